"""AMQP messages, small and large: one folder in turn, and the same from Artemis and ours."""

import uuid

import pytest
from proton import Described, Message, byte, symbol, timestamp, ulong

from broker.client.aio import AsyncClient
from broker.model.bodies import decode_stream, decode_text
from broker.model.message_types import MessageType
from broker.model.routing_type import RoutingType
from tests.broker.protocols.amqp.client import Capability, Client
from tests.interop.asynchronous import asynchronous
from tests.interop.one_folder import Artemis, ours

LOGIN = {"user": Artemis.USER, "password": Artemis.PASSWORD}
DATA = bytes(range(256)) * 1500
TEXT = "Größe — 𝄞 " * 40_000
LARGE = [
    Message(body=DATA, inferred=True, durable=True, id="data", properties={"a": 1}, priority=7),
    Message(body=TEXT, durable=True, id="text", subject="s"),
    Message(body=DATA, durable=True, id="binary", annotations={symbol("x-opt-k"): "v"}),
    Message(body=list(range(60_000)), durable=True, id="list"),
]
SMALL = [
    Message(body=DATA[:500], inferred=True, durable=True, id="first", priority=7),
    Message(body=TEXT[:500], durable=True, id=ulong(7), subject="s", properties={"a": 1}),
    Message(body={"a": 1, "b": "two"}, durable=True, id=uuid.UUID(int=9), reply_to="answers"),
    Message(body=[1, "two", None], durable=True, id="list", group_id="g", group_sequence=3),
    Message(body=None, durable=True, id="none", annotations={symbol("x-opt-k"): [1, "v"]}),
    Message(body="lives", durable=True, id="ttl", ttl=3600, creation_time=1.7e9),
    # Artemis closes a consumer of Core for the last one: it does not convert a timestamp.
    Message(
        body=Described(symbol("of"), "described"),
        durable=True,
        id="described",
        properties={"when": timestamp(5), "real": 0.5, "none": None, "byte": byte(-1)},
    ),
]
KINDS = {"small": SMALL, "large": LARGE}

READ = {
    MessageType.BYTES: bytes,
    MessageType.TEXT: decode_text,
    MessageType.STREAM: decode_stream,
}


def amqp(port):
    return Client.of(port, allowed_mechs="PLAIN", allow_insecure_mechs=True, **LOGIN)


def core(port):
    return AsyncClient(f"tcp://127.0.0.1:{port}", **LOGIN)


async def send(port, queue, messages):
    async with core(port) as client, await client.session() as session:
        await session.create_queue(queue, queue, routing_type=RoutingType.ANYCAST)
    async with amqp(port) as client:
        sender = await client.sender(queue, Capability("queue"))
        for one in messages:
            await sender.send(one)


async def received(port, queue, count):
    found = []
    async with amqp(port) as client:
        receiver = await client.receiver(queue, Capability("queue"))
        for _ in range(count):
            found.append(await receiver.get())
            await receiver.accept()
    return found


def fields(message):
    return (
        *(message.id, message.body, message.properties, message.annotations, message.subject),
        *(message.durable, message.priority, message.inferred, message.ttl, message.reply_to),
        *(message.group_id, message.group_sequence, message.creation_time),
    )


async def read_as_core(port, queue, count):
    found = []
    async with core(port) as client, await client.session() as session:
        consumer = await session.consumer(queue)
        for _ in range(count):
            one = await consumer.receive(30)
            kind = one.message.type
            # Artemis sends it as one that is not large.
            content = READ[kind](await one.read()) if one.is_large else one.content
            found.append((kind, content))
            await one.acknowledge()
    return found


def large_files(data):
    return sorted(one.name for one in (data / "large-messages").iterdir())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("first", ["artemis", "ours"])
@asynchronous
async def test_what_one_stores_the_other_delivers(folder_owner, first, kind):
    data, messages = folder_owner.data, KINDS[kind]
    count, sent = len(messages), [fields(one) for one in messages]
    for_core = messages[:-1] if kind == "small" else messages
    brokers = {"artemis": folder_owner.serving, "ours": lambda: ours(data)}
    (other,) = set(brokers) - {first}
    async with brokers[first]() as port:
        await send(port, "amqp", messages)
        await send(port, "core", for_core)
        await send(port, "back", messages)
    assert len(large_files(data)) == (3 * count if kind == "large" else 0)
    async with brokers[other]() as port:
        assert [fields(one) for one in await received(port, "amqp", count)] == sent
        there = await read_as_core(port, "core", len(for_core))
    async with brokers[first]() as port:
        await send(port, "same", for_core)
        assert await read_as_core(port, "same", len(for_core)) == there
        assert [fields(one) for one in await received(port, "back", count)] == sent
    assert large_files(data) == []
