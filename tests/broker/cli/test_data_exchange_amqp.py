"""`broker data exp` of messages of AMQP, small and large: what Core's consumers get of them."""

import asyncio

import pytest

pytest.importorskip("proton", reason="python-qpid-proton is not installed")

from proton import Message, symbol

from broker.client import Client as CoreClient
from broker.model.bodies import decode_map, decode_text
from broker.model.message_types import MessageType
from tests.broker.cli.test_data_exchange import END_S, call
from tests.broker.protocols.amqp.client import Capability, Client
from tests.broker.serve import BrokerProcess

DATA = bytes(range(256)) * 1200
TEXT = "Größe — 𝄞 " * 40_000
MAP = {f"k{number}": "v" * 100 for number in range(2000)}
BODIES = {
    "data": Message(body=DATA, inferred=True),
    "small data": Message(body=DATA[:100], inferred=True),
    "text": Message(body=TEXT),
    "small text": Message(body="Größe"),
    "map": Message(body=MAP),
    "small map": Message(body={"a": 1}),
}
READ = {
    MessageType.BYTES: bytes,
    MessageType.TEXT: decode_text,
    MessageType.MAP: decode_map,
}


async def send(port):
    async with Client.of(port) as client:
        sender = await client.sender("q", Capability("queue"))
        for name, one in BODIES.items():
            await sender.send(
                Message(
                    body=one.body,
                    inferred=one.inferred,
                    durable=True,
                    id=name,
                    subject=name,
                    properties={"name": name, "n": 7},
                    annotations={symbol("x-opt-mark"): "m"},
                )
            )


async def receive(port):
    async with Client.of(port) as client:
        queue = await client.receiver("q", Capability("queue"))
        return [await queue.get() for _ in BODIES]


def content_of(process):
    """What a client of Core gets."""
    url = f"tcp://127.0.0.1:{process.port}"
    found = []
    with CoreClient(url) as client, client.session() as session, session.consumer("q") as consumer:
        for _ in BODIES:
            one = consumer.receive(END_S)
            kind = one.message.type
            body = READ[kind](one.read()) if one.is_large else one.content
            properties = {name: item.value for name, item in one.properties.items()}
            # Of its size in its broker.
            properties.pop("_AMQ_LARGE_SIZE", None)
            found.append((kind, body, one.message.durable, properties))
            one.acknowledge()
    return found


def test_they_are_exported_as_the_core_messages_that_they_become(tmp_path, capsys):
    first = BrokerProcess(tmp_path / "first")
    asyncio.run(send(first.port))
    assert first.stop() == 0
    exported = tmp_path / "exported.xml"

    status, _, said = call(capsys, "exp", tmp_path / "first", "--output", exported)

    assert (status, said[-1].endswith(f"{len(BODIES)} messages")) == (0, True)
    second = BrokerProcess(tmp_path / "second")
    third = BrokerProcess(tmp_path / "third")
    try:
        for process in (second, third):
            url = f"tcp://127.0.0.1:{process.port}"
            assert call(capsys, "imp", "--input", exported, "--url", url)[0] == 0
        # As AMQP, their bodies and properties are what they were.
        for got, (name, sent) in zip(
            asyncio.run(receive(second.port)), BODIES.items(), strict=True
        ):
            assert (got.body, got.id, got.subject) == (sent.body, name, name)
            assert got.properties == {"name": name, "n": 7}
            assert got.annotations[symbol("x-opt-mark")] == "m"
        there = content_of(third)
    finally:
        second.stop()
        third.stop()
    again = BrokerProcess(tmp_path / "first")
    try:
        assert content_of(again) == there
    finally:
        again.stop()
