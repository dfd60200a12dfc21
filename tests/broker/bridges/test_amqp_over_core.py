"""AMQP messages over links of Core: they come out at the other broker as they were sent."""

import asyncio

import pytest
from proton import Message, symbol

from broker.model.message import Message as CoreMessage
from broker.model.message_types import MessageType
from broker.records.amqp_message import AmqpMessage
from broker.records.embedded_messages import EMBEDDED_SIGNATURE, embedded, extracted
from tests.broker.bridges.two_brokers import bridge, options, port_of, running, until
from tests.broker.protocols.amqp.client import Capability, Client
from tests.broker.protocols.amqp.test_large import BODIES
from tests.broker.protocols.stomp.client import core

SMALL = {
    "data": Message(body=b"\0\1", inferred=True),
    "text": Message(body="grüße"),
    "map": Message(body={"a": [1, 2]}),
    "list": Message(body=[1, "two", {"three": 3}]),
}


def told(body):
    """A message with what Core has no place for."""
    return Message(
        body=body.body,
        inferred=body.inferred,
        durable=True,
        priority=7,
        id="an id",
        subject="s",
        properties={"colour": "red", "number": 7},
        annotations={symbol("x-opt-k"): [1, 2]},
    )


@pytest.mark.parametrize("bodies", [SMALL, BODIES], ids=["small", "large"])
def test_a_bridge_takes_them_as_they_are(tmp_path, bodies):
    async def main():
        async with running(options("t", queue="to", folder=tmp_path / "t")) as target:
            made = options(
                "s",
                queue="from",
                folder=tmp_path / "s",
                bridges=(bridge(),),
                target_port=port_of(target),
            )
            async with running(made) as source:
                sent = [told(one) for one in bodies.values()]
                async with Client.of(source) as client:
                    sender = await client.sender("from", Capability("queue"))
                    for one in sent:
                        await sender.send(one)
                async with Client.of(target) as client:
                    receiver = await client.receiver("to")
                    for one in sent:
                        assert (await receiver.get()).encode() == one.encode()
                        await receiver.accept()
                queue = source.parts.postoffice.addresses.queues["from"]
                await until(lambda: queue.message_count == 0)
        for name in "st":
            assert list((tmp_path / name / "large").glob("*.msg")) == []

    asyncio.run(main())


def test_a_core_consumer_behind_a_bridge_reads_them(tmp_path):
    async def main():
        async with running(options("t", queue="to", folder=tmp_path / "t")) as target:
            made = options(
                "s",
                queue="from",
                folder=tmp_path / "s",
                bridges=(bridge(),),
                target_port=port_of(target),
            )
            async with running(made) as source:
                async with Client.of(source) as client:
                    sender = await client.sender("from", Capability("queue"))
                    await sender.send(told(SMALL["text"]))
                    await sender.send(told(BODIES["data"]))
                async with core(target) as session:
                    consumer = await session.consumer("to", selector="colour = 'red'")
                    first = await consumer.receive(30)
                    assert first.text == "grüße"
                    second = await consumer.receive(30)
                    assert await second.read() == bytes(BODIES["data"].body)
                    size = second.properties["_AMQ_LARGE_SIZE"].value
                    assert size == len(BODIES["data"].body)

    asyncio.run(main())


def amqp(durable=True, **fields):
    return AmqpMessage.received(Message(body="text", durable=durable, **fields).encode(), "a", 0)


@pytest.mark.parametrize("durable", [True, False])
def test_a_message_comes_out_as_it_went_in(durable):
    message = amqp(durable)
    message.message_id = 7
    made = extracted(CoreMessage.decode(embedded(message).encode()))
    assert type(made) is AmqpMessage
    assert (made.encoded, made.address, made.message_id) == (message.encoded, "a", 7)
    assert made.durable is durable


def test_what_the_broker_noted_comes_along():
    message = amqp()
    message.set_bytes("_AMQ_ROUTE_TO", b"12345678")
    made = extracted(embedded(message))
    assert bytes(made.get("_AMQ_ROUTE_TO")) == b"12345678"


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (MessageType.EMBEDDED, b"something else"),
        (MessageType.EMBEDDED, EMBEDDED_SIGNATURE + b"\5 damaged"),
        (MessageType.EMBEDDED, EMBEDDED_SIGNATURE),
        (MessageType.LARGE_EMBEDDED, b""),
        (MessageType.BYTES, EMBEDDED_SIGNATURE + b"of a client"),
    ],
)
def test_what_is_no_such_message_stays_as_it_came(kind, body):
    message = CoreMessage("a", body, type=kind)
    assert extracted(message) is message


def test_a_core_message_is_sent_as_it_is():
    message = CoreMessage("a", b"body")
    assert embedded(message) is message
