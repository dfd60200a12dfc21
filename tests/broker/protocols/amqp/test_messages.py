"""Messages: kept as they were sent, and what other clients make of them and they of others'."""

import asyncio
import uuid

import pytest
from proton import (
    Data,
    Described,
    Message,
    byte,
    char,
    float32,
    int32,
    short,
    symbol,
    timestamp,
    ubyte,
    uint,
    ulong,
    ushort,
)

from tests.broker.protocols.amqp.client import Capability, Client, core, serving, until
from tests.broker.protocols.stomp.client import Stomp
from tests.interop.asynchronous import asynchronous

LARGE = 300_000
VALUES = [
    None,
    True,
    False,
    ubyte(255),
    ushort(65535),
    uint(2**32 - 1),
    ulong(2**64 - 1),
    byte(-128),
    short(-(2**15)),
    int32(-(2**31)),
    -(2**63),
    float32(0.5),
    1.25,
    char("x"),
    timestamp(1700000000000),
    uuid.UUID(int=5),
    b"\0\xff",
    "text, and ünïcode \N{GRINNING FACE}",
    symbol("symbol"),
    [1, "two", [3, None]],
    {"a": 1, "b": {"c": [True]}},
    Described(symbol("of"), "described"),
]


def everything(**fields):
    return Message(
        durable=True,
        priority=7,
        ttl=60,
        id="ID:an-id",
        user_id=b"someone",
        address="elsewhere",
        subject="subject",
        reply_to="answers",
        correlation_id=uuid.UUID(int=9),
        content_type=symbol("text/plain"),
        content_encoding=symbol("none"),
        creation_time=1700000000.0,
        group_id="group",
        group_sequence=3,
        reply_to_group_id="other",
        properties={"text": "a", "number": 5, "real": 0.5, "flag": True, "none": None},
        annotations={symbol("x-opt-mark"): "m", symbol("x-opt-list"): [1, 2]},
        **fields,
    )


async def send(client, *messages, address="q"):
    sender = await client.sender(address, Capability("queue"))
    for message in messages:
        await sender.send(message)


@asynchronous
async def test_every_kind_of_value_comes_as_it_was_sent_before_and_after_a_restart(tmp_path):
    for is_again in (False, True):
        async with serving(tmp_path) as broker, Client.of(broker) as client:
            if not is_again:
                bodies = [Message(body=one, durable=True) for one in VALUES]
                await send(client, *bodies)
                continue
            queue = await client.receiver("q", credit=len(VALUES))
            for one in VALUES:
                body = (await queue.get()).body
                assert (type(body), body) == (type(one), one)
                await queue.accept()
            await until(lambda: not broker.parts.postoffice.addresses.queues["q"].message_count)


@asynchronous
async def test_all_sections_come_as_they_were_sent(tmp_path):
    sent = everything(body="text")
    for is_again in (False, True):
        async with serving(tmp_path) as broker, Client.of(broker) as client:
            if not is_again:
                await send(client, sent)
                continue
            queue = await client.receiver("q", credit=1)
            assert (await queue.get()).encode() == sent.encode()
            await queue.settle_and_flow()
            got = await queue.get()
            assert got.delivery_count == 1
            got.delivery_count = 0
            assert got.encode() == sent.encode()


@asynchronous
async def test_a_large_message_comes_as_it_was_sent(tmp_path):
    sizes = (LARGE, 5_000_000, 25_000_000)
    async with serving(tmp_path) as broker, Client.of(broker) as client:
        await send(client, *(Message(body=b"x" * size, durable=True) for size in sizes))
        await send(client, Message(body="y" * sizes[2], durable=True, properties={"n": 1}))
    async with serving(tmp_path) as broker, Client.of(broker) as client:
        queue = await client.receiver("q", credit=2)
        for size in sizes:
            message = await queue.get()
            assert message.body == b"x" * size
            await queue.accept()
            queue.link.flow(1)
        message = await queue.get()
        assert (message.body == "y" * sizes[2], message.properties) == (True, {"n": 1})


@asynchronous
async def test_core_clients_read_what_amqp_clients_send():
    async with serving() as broker, Client.of(broker) as client, core(broker) as session:
        await send(client, everything(body="text"), Message(body=b"bytes"), Message(body={"a": 1}))
        consumer = await session.consumer("q")
        text, data, values = [await consumer.receive() for _ in range(3)]
        assert text.content == "text"
        properties = {name: item.value for name, item in text.properties.items()}
        assert properties["text"] == "a"
        assert properties["JMSType"] == "subject"
        assert properties["JMSCorrelationID"] == f"ID:AMQP_UUID:{uuid.UUID(int=9)}"
        assert properties["JMSReplyTo"] == "queue://answers"
        assert properties["_AMQ_GROUP_ID"] == "group"
        assert properties["JMS_AMQP_MA_x-opt-mark"] == "m"
        assert (text.message.durable, text.message.priority) == (True, 7)
        assert (data.content, values.content) == (b"bytes", {"a": 1})


@asynchronous
async def test_amqp_clients_read_what_core_and_stomp_clients_send():
    async with serving() as broker, Client.of(broker) as client, core(broker) as session:
        await client.send("q")
        queue = await client.receiver("q", credit=10)
        producer = session.producer("q")
        await producer.send("text", properties={"n": 5, "b": b"x"})
        await producer.send(b"bytes")
        await producer.send({"a": 1, "b": "two"})
        text, data, values = [await queue.get() for _ in range(3)]
        assert (text.body, data.body, values.body) == ("text", b"bytes", {"a": 1, "b": "two"})
        assert text.properties == {"n": 5, "b": b"x"}
        assert text.address == "q"
        assert text.annotations[symbol("x-opt-jms-msg-type")] == byte(5)
        assert text.annotations[symbol("x-opt-jms-dest")] == byte(0)
        async with Stomp.of(broker) as stomp:
            await stomp.send("q", b"by stomp", **{"correlation-id": "c", "type": "t", "x": "y"})
            got = await queue.get()
            assert (got.body, got.correlation_id, got.subject) == ("by stomp", "c", "t")
            assert got.properties["x"] == "y"


@pytest.mark.parametrize("kind", ["text", "bytes"])
@asynchronous
async def test_large_messages_of_core_are_streamed(kind, tmp_path):
    size = 3_000_000
    async with serving(tmp_path) as broker, Client.of(broker) as client:
        await client.send("q", "before")
        async with core(broker) as session:
            await session.producer("q").send("ü" * size if kind == "text" else b"x" * size)
        await client.send("q", "behind")
        queue = await client.receiver("q", credit=3)
        body = "ü" * size if kind == "text" else b"x" * size
        assert await queue.bodies(3) == ["before", body, "behind"]


@asynchronous
async def test_what_expires_and_what_is_delayed():
    async with serving() as broker, Client.of(broker) as client:
        await client.send("EXPIRED")
        delay = {symbol("x-opt-delivery-delay"): 400}
        await send(
            client,
            Message(body="late", annotations=delay),
            Message(body="short", ttl=0.001),
            Message(body="now"),
        )
        await asyncio.sleep(0.05)
        queue = await client.receiver("q")
        assert (await queue.get()).body == "now"
        late = await queue.get()
        assert (late.body, late.annotations[symbol("x-opt-delivery-delay")]) == ("late", 400)
        expired = await client.receiver("EXPIRED")
        got = await expired.get()
        assert (got.body, got.ttl) == ("short", 0)
        assert got.annotations[symbol("x-opt-ORIG-QUEUE")] == "q"
        assert symbol("x-opt-ACTUAL-EXPIRY") in got.annotations


@asynchronous
async def test_a_duplicate_is_accepted_and_dropped(tmp_path):
    async with serving(tmp_path) as broker, Client.of(broker) as client:
        one = Message(body="1", properties={"_AMQ_DUPL_ID": "a"})
        await send(client, one, one, Message(body="2"))
        queue = await client.receiver("q")
        assert await queue.bodies(2) == ["1", "2"]


@asynchronous
async def test_management_is_asked_and_answers(tmp_path):
    async with serving(tmp_path) as broker, Client.of(broker) as client:
        await client.send("q", "x")
        answers = await client.receiver(None, dynamic=True)
        sender = await client.sender("activemq.management")
        await sender.send(
            Message(
                body="[]",
                reply_to=answers.link.remote_source.address,
                correlation_id="c",
                properties={
                    "_AMQ_ResourceName": "queue.q",
                    "_AMQ_Attribute": "messageCount",
                },
            )
        )
        got = await answers.get()
        assert (got.body, got.correlation_id) == ("[1]", "c")
        assert got.properties["_AMQ_OperationSucceeded"] is True


@asynchronous
async def test_what_is_no_message_is_rejected(tmp_path):
    async with serving(tmp_path) as broker, Client.of(broker) as client:
        sender = await client.sender("q", Capability("queue"))
        connection, link = client.connection, sender.link
        good = Message(body="x").encode()
        nested = Data()
        nested.put_described()
        for data in (b"\xff", good[:-1], b"\0" * 40, b"\x00\x53\x70\x40" * 2, b"\xc1" * 100):

            def run(data=data):
                connection.wait(lambda: link.credit > 0)
                delivery = link.delivery(link.delivery_tag())
                link.stream(data)
                link.advance()
                connection.wait(lambda: delivery.settled)
                return delivery

            delivery = await client.run(run)
            assert delivery.remote.condition.name == "amqp:decode-error"
        await client.send("q", "x")
