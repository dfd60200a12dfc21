"""AMQP messages over links of Core: they come out at the other broker as they were sent."""

import dataclasses
import random

import pytest
from proton import Message, symbol

from broker.model.encoding import BodyReader, BodyWriter
from broker.model.message import Message as CoreMessage
from broker.model.message_types import MessageType
from broker.model.properties import Property, PropertyType
from broker.records.amqp_large_message import LargeAmqpMessage
from broker.records.amqp_message import AmqpMessage
from broker.records.embedded_messages import EMBEDDED_SIGNATURE, embedded, extracted
from broker.records.stored_messages import read_message, write_message
from tests.broker.bridges.two_brokers import bridged, until
from tests.broker.protocols.amqp.client import Capability, Client
from tests.broker.protocols.amqp.test_large import BODIES
from tests.broker.protocols.stomp.client import core
from tests.interop.asynchronous import asynchronous

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


async def send(broker, messages):
    async with Client.of(broker) as client:
        sender = await client.sender("from", Capability("queue"))
        for one in messages:
            await sender.send(one)


@pytest.mark.parametrize("bodies", [SMALL, BODIES], ids=["small", "large"])
@asynchronous
async def test_a_bridge_takes_them_as_they_are(tmp_path, bodies):
    sent = [told(one) for one in bodies.values()]
    async with bridged(tmp_path) as (source, target):
        await send(source, sent)
        async with Client.of(target) as client:
            receiver = await client.receiver("to")
            for one in sent:
                assert (await receiver.get()).encode() == one.encode()
                await receiver.accept()
        queue = source.parts.postoffice.addresses.queues["from"]
        await until(lambda: queue.message_count == 0)
    for name in "st":
        assert list((tmp_path / name / "large").glob("*.msg")) == []


@asynchronous
async def test_a_core_consumer_behind_a_bridge_reads_them(tmp_path):
    async with bridged(tmp_path) as (source, target):
        await send(source, [told(SMALL["text"]), told(BODIES["data"])])
        async with core(target) as session:
            consumer = await session.consumer("to", selector="colour = 'red'")
            assert (await consumer.receive(30)).text == "grüße"
            second = await consumer.receive(30)
            body = bytes(BODIES["data"].body)
            assert await second.read() == body
            assert second.properties["_AMQ_LARGE_SIZE"].value == len(body)


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


def large_record(**fields):
    """A message of Core with the record of a large one of AMQP, in which these sections differ."""
    encoded = Message(body=b"x", inferred=True, durable=True, id="i", subject="s").encode()
    record = LargeAmqpMessage.received(encoded, "a", 0).record()
    stored = read_message(BodyReader(record))
    for name, other in fields.items():
        stored = dataclasses.replace(stored, **{name: getattr(stored, other)})
    writer = BodyWriter()
    write_message(writer, stored)
    return with_large_record(writer.getvalue())


def with_large_record(record):
    properties = (Property("_AMQP_EMBED_LARGE", PropertyType.BYTES, record),)
    return CoreMessage("a", b"", type=MessageType.LARGE_EMBEDDED, properties=properties)


def test_a_section_in_the_place_of_another_one_is_not_read():
    assert type(extracted(large_record())) is LargeAmqpMessage
    message = large_record(header="properties")
    assert extracted(message) is message


def test_a_damaged_one_can_be_stored_or_stays_as_it_came():
    seeded = random.Random(7)
    encoded = Message(body={"a": [1, 2]}, durable=True, properties={"k": 1}, id="i").encode()
    small = bytes(embedded(AmqpMessage.received(encoded, "a", 0)).body)
    record = LargeAmqpMessage.received(encoded, "a", 0).record()
    kinds = set()
    for _ in range(3000):
        body, large = bytearray(small), bytearray(record)
        for data, first in ((body, len(EMBEDDED_SIGNATURE)), (large, 0)):
            for _ in range(seeded.randrange(1, 4)):
                at = seeded.randrange(first, len(data))
                data[at : at + seeded.randrange(3)] = seeded.randbytes(seeded.randrange(3))
        for message in (
            CoreMessage("a", bytes(body), type=MessageType.EMBEDDED),
            with_large_record(bytes(large)),
        ):
            found = extracted(message)
            found.record()
            found.encode()
            kinds.add(type(found))
    assert kinds == {CoreMessage, AmqpMessage, LargeAmqpMessage}


def test_a_core_message_is_sent_as_it_is():
    message = CoreMessage("a", b"body")
    assert embedded(message) is message
