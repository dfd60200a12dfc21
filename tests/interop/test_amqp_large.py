"""Large AMQP messages: one folder in turn, and the same bytes from Artemis 2.44 and from ours."""

import pytest
from proton import Message, symbol

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
MESSAGES = [
    Message(body=DATA, inferred=True, durable=True, id="data", properties={"a": 1}, priority=7),
    Message(body=TEXT, durable=True, id="text", subject="s"),
    Message(body=DATA, durable=True, id="binary", annotations={symbol("x-opt-k"): "v"}),
    Message(body=list(range(60_000)), durable=True, id="list"),
]

READ = {
    MessageType.BYTES: bytes,
    MessageType.TEXT: decode_text,
    MessageType.STREAM: decode_stream,
}


def amqp(port):
    return Client.of(port, allowed_mechs="PLAIN", allow_insecure_mechs=True, **LOGIN)


def core(port):
    return AsyncClient(f"tcp://127.0.0.1:{port}", **LOGIN)


async def send(port, queue):
    async with core(port) as client, await client.session() as session:
        await session.create_queue(queue, queue, routing_type=RoutingType.ANYCAST)
    async with amqp(port) as client:
        sender = await client.sender(queue, Capability("queue"))
        for one in MESSAGES:
            await sender.send(one)


async def received(port, queue):
    found = []
    async with amqp(port) as client:
        receiver = await client.receiver(queue, Capability("queue"))
        for _ in MESSAGES:
            found.append(await receiver.get())
            await receiver.accept()
    return found


def fields(message):
    return (
        *(message.id, message.body, message.properties, message.annotations, message.subject),
        *(message.durable, message.priority, message.inferred),
    )


async def read_as_core(port, queue):
    found = []
    async with core(port) as client, await client.session() as session:
        consumer = await session.consumer(queue)
        for _ in MESSAGES:
            one = await consumer.receive(30)
            kind = one.message.type
            # Artemis sends it as one that is not large.
            content = READ[kind](await one.read()) if one.is_large else one.content
            found.append((kind, content))
            await one.acknowledge()
    return found


def large_files(data):
    return sorted(one.name for one in (data / "large-messages").iterdir())


@pytest.mark.parametrize("first", ["artemis", "ours"])
@asynchronous
async def test_what_one_stores_the_other_delivers(folder_owner, first):
    data = folder_owner.data
    brokers = {"artemis": folder_owner.serving, "ours": lambda: ours(data)}
    (other,) = set(brokers) - {first}
    async with brokers[first]() as port:
        await send(port, "amqp")
        await send(port, "core")
        await send(port, "back")
    assert len(large_files(data)) == 3 * len(MESSAGES)
    async with brokers[other]() as port:
        assert [fields(one) for one in await received(port, "amqp")] == [
            fields(one) for one in MESSAGES
        ]
        there = await read_as_core(port, "core")
    async with brokers[first]() as port:
        await send(port, "same")
        assert await read_as_core(port, "same") == there
        assert [fields(one) for one in await received(port, "back")] == [
            fields(one) for one in MESSAGES
        ]
    assert large_files(data) == []
