"""Large messages: bodies to their place and from there, piece by piece."""

import asyncio
import zlib

import pytest

from broker.model.bodies import encode_text
from broker.model.message import Message
from broker.model.message_types import MessageType
from broker.model.properties import PropertyType
from tests.broker.protocols.stomp.client import Stomp, core, serving, until
from tests.interop.asynchronous import asynchronous

VERSIONS = ["1.0", "1.1", "1.2"]
ANYCAST = {"destination-type": "ANYCAST"}
SMALL = {"parameters": {"stompMinLargeMessageSize": "1000"}}
BODY = bytes(range(256)) * 4000
TEXT = "größer als 1000 €, 𝄞 " * 20_000


def files(tmp_path):
    return list((tmp_path / "large").glob("*.msg"))


def sized(body):
    return {**ANYCAST, "content-length": len(body)}


@pytest.mark.parametrize("version", VERSIONS)
@asynchronous
async def test_a_body_is_a_file_and_comes_back_also_after_a_restart(tmp_path, version):
    async with serving(tmp_path) as broker, Stomp.of(broker, version) as client:
        await client.send("q", BODY, **sized(BODY), colour="red")
        await client.send("q", TEXT.encode(), **ANYCAST)
        await client.send("q", b"small", **ANYCAST)
        assert len(files(tmp_path)) == 2

    async with serving(tmp_path) as broker, Stomp.of(broker, version) as client:
        await client.subscribe("q", ack="client-individual", consumer_window_size="-1")
        first, second, third = [await client.get("MESSAGE") for _ in range(3)]
        assert first.body == BODY
        assert (first.headers["colour"], first.headers["content-length"]) == ("red", str(len(BODY)))
        assert first.headers["_AMQ_LARGE_SIZE"] == str(len(BODY))
        assert second.body.decode() == TEXT
        assert third.body == b"small"
        for one in (first, second, third):
            await client.ack(one)
        assert files(tmp_path) == []


@asynchronous
async def test_a_core_client_gets_what_was_sent_and_the_other_way_round(tmp_path):
    async with (
        serving(tmp_path, **SMALL) as broker,
        Stomp.of(broker) as client,
        core(broker) as session,
    ):
        await client.send("q", BODY, **sized(BODY))
        await client.send("q", TEXT.encode(), **ANYCAST)
        consumer = await session.consumer("q")
        for content in (BODY, TEXT):
            received = await consumer.receive(30)
            await received.read()
            assert received.content == content
            await received.acknowledge()

        await client.subscribe("r", subscription_type="ANYCAST")
        for content in (BODY, TEXT):
            await session.producer("r").send(content, durable=True)
        assert (await client.get("MESSAGE")).body == BODY
        assert (await client.get("MESSAGE")).body.decode() == TEXT


@asynchronous
async def test_in_mode_auto_it_is_acknowledged_when_it_is_written(tmp_path):
    async with serving(tmp_path, **SMALL) as broker, Stomp.of(broker) as client:
        await client.subscribe("q", subscription_type="ANYCAST")
        client.put("SEND", {"destination": "q", "persistent": "true", **sized(BODY)}, BODY)
        assert (await client.get("MESSAGE")).body == BODY
        await client.do("BEGIN", {"transaction": "behind it"})
        assert broker.parts.postoffice.addresses.queues["q"].message_count == 0
        assert files(tmp_path) == []


@asynchronous
async def test_no_frame_begins_within_a_body(tmp_path):
    """Receipts, beats and other subscriptions wait for its end."""
    body = bytes(2_000_000)
    async with (
        serving(tmp_path) as broker,
        Stomp.of(broker, heart_beat="0,500") as client,
        Stomp.of(broker) as sender,
    ):
        await client.subscribe("large", "l", "client", subscription_type="ANYCAST")
        await client.subscribe("small", "s", "client", subscription_type="ANYCAST")
        client.writer.transport.pause_reading()
        for number in range(3):
            await sender.send("large", body, **sized(body))
            await sender.send("small", str(number).encode(), **ANYCAST)
        for number in range(20):
            client.put("BEGIN", {"transaction": number, "receipt": number})
        await asyncio.sleep(0.8)
        client.writer.transport.resume_reading()

        # One large message fills the window of its subscription.
        got = [await client.next() for _ in range(1 + 3 + 20)]
        receipts = [one.headers["receipt-id"] for one in got if one.command == "RECEIPT"]
        assert receipts == [str(number) for number in range(20)]
        for one in got:
            if one.headers.get("subscription") == "l":
                assert one.body == body


@asynchronous
async def test_the_window_takes_a_body_larger_than_itself_and_then_waits(tmp_path):
    async with serving(tmp_path, **SMALL) as broker, Stomp.of(broker) as client:
        await client.send("q", BODY, **sized(BODY))
        await client.send("q", b"next", **ANYCAST)
        await client.subscribe("q", ack="client", consumer_window_size="100")
        got = await client.get("MESSAGE")
        assert await client.is_silent()
        client.put("ACK", {"id": got.headers["ack"]})
        assert await client.bodies(1) == ["next"]


@asynchronous
async def test_compressed_bodies_are_unpacked(tmp_path):
    async with serving(tmp_path) as broker, Stomp.of(broker) as client:
        async with core(broker) as session:
            await client.subscribe("q", subscription_type="ANYCAST")
            for kind, body in (
                (MessageType.BYTES, BODY),
                (MessageType.TEXT, encode_text(TEXT)),
                # Says it is compressed, and is not: sent as it is.
                (MessageType.BYTES, None),
            ):
                packed = b"not packed" if body is None else zlib.compress(body)
                message = Message(None, packed, type=kind)
                message.set("_AMQ_LARGE_COMPRESSED", PropertyType.BOOLEAN, True)
                await session.producer("q").send(message)
        got = [(await client.get("MESSAGE")).body for _ in range(3)]
        assert got == [BODY, TEXT.encode(), b"not packed"]


@pytest.mark.parametrize("size", [0, -1])
@asynchronous
async def test_all_or_none_may_be_large(tmp_path, size):
    parameters = {"stomp-min-large-message-size": str(size)}
    async with serving(tmp_path, parameters=parameters) as broker, Stomp.of(broker) as client:
        if size < 0:
            await client.send("q", BODY[:200_000], **sized(BODY[:200_000]))
            assert files(tmp_path) == []
            return
        error = await client.refused("SEND", {"destination": "q", "content-length": "1"}, b"x")
        assert "AMQ339028" in error.headers["message"]


@asynchronous
async def test_headers_as_large_as_large_bodies_are_refused_and_the_next_frame_is_found(tmp_path):
    async with serving(tmp_path, **SMALL) as broker, Stomp.of(broker, "1.1") as client:
        headers = {"destination": "q", "long": "x" * 1000, **sized(BODY)}
        error = await client.refused("SEND", headers, BODY)
        assert "AMQ339028: Message header too big" in error.headers["message"]
        await client.send("q", BODY, **sized(BODY))
        assert len(files(tmp_path)) == 1


@asynchronous
async def test_a_refused_streamed_body_is_passed_over(tmp_path):
    async with serving(tmp_path, **SMALL) as broker, Stomp.of(broker, "1.1") as client:
        headers = {"destination": "q", "priority": "x", "receipt": "7", **sized(BODY)}
        error = await client.refused("SEND", headers, BODY)
        assert error.headers["receipt-id"] == "7"
        error = await client.refused(
            "SEND", {"destination": "q", "transaction": "t", **sized(BODY)}, BODY
        )
        assert "No transaction started" in error.headers["message"]
        await client.send("q", b"x", **ANYCAST)
        await client.subscribe("q")
        assert await client.bodies(1) == ["x"]
        assert files(tmp_path) == []


@asynchronous
async def test_a_body_that_does_not_come_whole_is_never_there(tmp_path):
    async with serving(tmp_path, **SMALL) as broker:
        async with Stomp.of(broker) as client:
            client.put(
                "SEND", {"destination": "q", "persistent": "true", **sized(BODY)}, BODY[:-1000]
            )
            await client.writer.drain()
            await until(lambda: files(tmp_path))
        await until(lambda: not broker.clients.connections)
        assert files(tmp_path) == []
        async with Stomp.of(broker) as client:
            await client.subscribe("q", subscription_type="ANYCAST")
            assert await client.is_silent()


@asynchronous
async def test_in_transactions_they_count_with_the_commit(tmp_path):
    async with serving(tmp_path, **SMALL) as broker, Stomp.of(broker) as client:
        for transaction in "ab":
            await client.do("BEGIN", {"transaction": transaction})
            await client.send(
                "q",
                BODY + transaction.encode(),
                **ANYCAST,
                transaction=transaction,
                **{"content-length": len(BODY) + 1},
            )
        await client.do("ABORT", {"transaction": "a"})
        await client.do("COMMIT", {"transaction": "b"})
        await client.subscribe("q")
        assert (await client.get("MESSAGE")).body == BODY + b"b"


@asynchronous
async def test_a_consumer_that_leaves_in_the_middle_gives_it_back(tmp_path):
    body = bytes(20_000_000)
    async with serving(tmp_path) as broker:
        async with Stomp.of(broker) as client:
            await client.send("q", body, **sized(body))
        async with Stomp.of(broker) as client:
            client.put("SUBSCRIBE", {"destination": "q", "id": "1", "ack": "auto"})
            await client.reader.readexactly(100_000)
            client.put("UNSUBSCRIBE", {"id": "1"})
        async with Stomp.of(broker) as client:
            await client.subscribe("q")
            got = await client.get("MESSAGE")
            assert got.body == body


@asynchronous
async def test_a_broker_that_keeps_nothing_takes_them_in_memory():
    async with serving() as broker, Stomp.of(broker) as client:
        await client.subscribe("q", ack="client", subscription_type="ANYCAST")
        await client.send("q", BODY, **sized(BODY))
        assert (await client.get("MESSAGE")).body == BODY
