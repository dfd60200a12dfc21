"""Frames that are cut anywhere, or damaged: no crash, no hang, and other clients do not notice."""

import asyncio
import contextlib
import random

import pytest
from proton import Connection, Message, Terminus, Transport

from tests.broker.protocols.amqp.client import Client, serving
from tests.interop.asynchronous import asynchronous

WAIT_S = 30


def conversation():
    """All that a client says who opens, sends, and receives, without waiting for any answer."""
    transport, connection = Transport(), Connection()
    connection.container = "c"
    connection.open()
    transport.bind(connection)
    session = connection.session()
    session.open()
    sender = session.sender("s")
    sender.target.address = "q"
    sender.open()
    receiver = session.receiver("r")
    receiver.source.address = "q"
    receiver.source.durability = Terminus.CONFIGURATION
    receiver.open()
    receiver.flow(10)
    said = []
    while (size := transport.pending()) > 0:
        data = bytes(transport.peek(size))
        transport.pop(len(data))
        said.append(data)
    body = Message(body={"a": [1, "two", None]}, properties={"n": 1}, durable=True).encode()
    # A transfer: handle 0, delivery 0, its tag, format, settled.
    transfer = b"\x00\x53\x14\xc0\x0b\x05\x43\x43\xa0\x01x\x43\x41" + body
    size = 8 + len(transfer)
    said.append(size.to_bytes(4, "big") + b"\x02\x00\x00\x00" + transfer)
    return b"".join(said)


async def say(broker, pieces):
    """Send bytes, and read until the broker closes or has been silent."""
    reader, writer = await asyncio.open_connection("127.0.0.1", broker.acceptors[0].port)
    with contextlib.suppress(OSError):
        for piece in pieces:
            writer.write(piece)
            await asyncio.sleep(0)
        writer.write_eof()
        async with asyncio.timeout(WAIT_S):
            while await reader.read(65536):
                pass
    writer.close()


async def is_well(broker):
    async with Client.of(broker) as client:
        await client.send("other", "x")
        queue = await client.receiver("other")
        assert await queue.bodies(1) == ["x"]


@asynchronous
async def test_a_conversation_comes_byte_by_byte_and_cut_anywhere():
    said = conversation()
    async with serving() as broker:
        await say(broker, [said[at : at + 1] for at in range(len(said))])
        assert broker.parts.postoffice.addresses.queues["c.r"].message_count == 1
        for end in range(0, len(said), 7):
            await say(broker, [said[:end]])
        await is_well(broker)


@pytest.mark.slow
@asynchronous
async def test_damaged_frames_end_their_connection_alone(effort):
    said, seeded = conversation(), random.Random(22)
    async with serving() as broker:
        for _ in range(effort(3000, least=200)):
            data = bytearray(said)
            for _ in range(seeded.choice((1, 1, 2, 5, 30))):
                data[seeded.randrange(8, len(data))] = seeded.choice(
                    (0, 1, 0x40, 0xFF, seeded.randrange(256))
                )
            if seeded.random() < 0.2:
                at = seeded.randrange(8, len(data))
                del data[at : at + seeded.randrange(1, 20)]
            await say(broker, [bytes(data)])
        await is_well(broker)
