"""Large messages: stored as they come, told to every protocol, and never a file too many."""

import asyncio
import contextlib
import json

import pytest
from proton import Delivery, Message, symbol

from broker.client.errors import ClosedError
from broker.management.registry import Resources
from broker.model.bodies import decode_map, decode_stream, decode_text, encode_text
from broker.model.routing_type import RoutingType
from broker.records.amqp_large_message import LargeAmqpMessage
from broker.settings.settings import AddressFullPolicy
from broker.storage.large_files import LargeFile
from tests.broker.protocols.amqp.client import (
    WAIT_S,
    Capability,
    Client,
    core,
    serving,
    until,
)
from tests.broker.protocols.amqp.test_transactions import Transactions
from tests.interop.asynchronous import asynchronous

SIZE = 300_000
DATA = (bytes(range(256)) * 2000)[:SIZE]
TEXT = "Größe — 𝄞 " * 40_000
BODIES = {
    "data": Message(body=DATA, inferred=True),
    "binary": Message(body=DATA),
    "text": Message(body=TEXT),
    "map": Message(body={f"k{number}": "v" * 100 for number in range(2000)}),
    "list": Message(body=list(range(60_000))),
}

# What a client of Core makes of their bodies.
READ = {
    "data": bytes,
    "binary": bytes,
    "text": decode_text,
    "map": decode_map,
    "list": decode_stream,
}


def large(body=DATA, **fields):
    return Message(body=body, durable=True, **fields)


def files(folder):
    found = folder / "large"
    return sorted(one.name for one in found.iterdir()) if found.exists() else []


def waiting(broker, queue="q"):
    return [one.message for one in broker.parts.postoffice.addresses.queues[queue].references()]


def split(sender, message, parts):
    """Begin to send a message; gives what sends its next part."""
    link = sender.link
    encoded = message.encode()
    step = len(encoded) // parts
    delivery = link.delivery(link.delivery_tag())
    pieces = [encoded[at : at + step] for at in range(0, len(encoded), step)]
    return delivery, [lambda piece=piece: link.send(piece) for piece in pieces]


@pytest.mark.parametrize("kind", BODIES)
@asynchronous
async def test_a_large_message_is_delivered_as_it_was_sent(tmp_path, kind):
    message = BODIES[kind]
    message.durable, message.properties, message.id = True, {"a": 1}, "m"
    message.annotations = {symbol("x-opt-k"): "v"}
    async with serving(tmp_path) as broker, Client.of(broker) as client:
        sender = await client.sender("q", Capability("queue"))
        await sender.send(message)
        (name,) = files(tmp_path)
        assert (tmp_path / "large" / name).read_bytes() == message.encode()
        receiver = await client.receiver("q")
        received = await receiver.get()
        await receiver.accept()
        assert received.encode() == message.encode()
        await until(lambda: not files(tmp_path))


@pytest.mark.parametrize("kind", BODIES)
@asynchronous
async def test_a_core_consumer_reads_its_body(tmp_path, kind):
    message = BODIES[kind]
    message.durable, message.properties = True, {"colour": "red"}
    async with serving(tmp_path) as broker, Client.of(broker) as client:
        sender = await client.sender("q", Capability("queue"))
        await sender.send(message)
        async with core(broker) as session:
            received = await (await session.consumer("q", selector="colour = 'red'")).receive(10)
            body = await received.read()
            # Artemis's JMS client asks for it.
            assert received.properties["_AMQ_LARGE_SIZE"].value == len(body)
            await received.acknowledge()
        expected = {"map": dict, "list": list}.get(kind, lambda same: same)(message.body)
        if isinstance(expected, memoryview):
            expected = bytes(expected)
        assert READ[kind](body) == expected
        await until(lambda: not files(tmp_path))


@pytest.mark.parametrize("text", [TEXT, "x" * 300_000, "𝄞" * 100_000])
@asynchronous
async def test_nobody_reads_a_text_to_count_it(tmp_path, monkeypatch, text):
    async with serving(tmp_path) as broker, Client.of(broker) as client:
        await (await client.sender("q", Capability("queue"))).send(large(text))
        (message,) = waiting(broker)
        body = message.large
        with monkeypatch.context() as patch:
            patch.setattr(LargeFile, "read", lambda *_: pytest.fail("it was read"))
            counted = body.size
            copied = message.copy().large.size
        assert counted == copied == len(encode_text(text))
    async with serving(tmp_path) as broker:
        (message,) = waiting(broker)
        assert message.large.size == counted


@pytest.mark.parametrize(("limit", "is_large"), [(1000, True), (-1, False), (10_000, False)])
@asynchronous
async def test_large_is_what_the_acceptor_says(tmp_path, limit, is_large):
    async with (
        serving(tmp_path, parameters={"amqpMinLargeMessageSize": str(limit)}) as broker,
        Client.of(broker) as client,
    ):
        await (await client.sender("q", Capability("queue"))).send(large(b"x" * 2000))
        (message,) = waiting(broker)
        assert isinstance(message, LargeAmqpMessage) is is_large
        assert bool(files(tmp_path)) is is_large


@asynchronous
async def test_it_survives_restarts(tmp_path):
    message = large(properties={"a": 1}, id="m", subject="s")
    async with serving(tmp_path) as broker, Client.of(broker) as client:
        await (await client.sender("q", Capability("queue"))).send(message)
    for _ in range(2):
        async with serving(tmp_path) as broker:
            assert len(files(tmp_path)) == 1
            (found,) = waiting(broker)
            assert (found.get("a"), found.large.size) == (1, len(DATA))
    async with serving(tmp_path) as broker, Client.of(broker) as client:
        receiver = await client.receiver("q")
        assert (await receiver.get()).encode() == message.encode()
        await receiver.accept()
        await until(lambda: not files(tmp_path))


@asynchronous
async def test_a_damaged_body_ends_its_core_consumer_and_nothing_else(tmp_path):
    encoded = bytearray(BODIES["map"].encode())
    encoded[-60:] = b"\xff" * 60
    async with serving(tmp_path) as broker, Client.of(broker) as client:
        link = (await client.sender("q", Capability("queue"))).link
        link.delivery("damaged")
        link.send(bytes(encoded))
        link.advance()
        await driven(client, lambda: "q" in queues(broker) and waiting(broker))
        listing = Resources(broker).find("queue.q").invoke("listMessagesAsJSON", [""])
        assert listed(listing)[0]["address"] == "q"
        async with core(broker) as session:
            consumer = await session.consumer("q")
            with pytest.raises(ClosedError):
                await consumer.receive(30)
        assert len(waiting(broker)) == 1


def queues(broker):
    return broker.parts.postoffice.addresses.queues


def listed(work):
    """The result of an operation that is done in parts."""
    try:
        while True:
            next(work)
    except StopIteration as end:
        return json.loads(end.value)


@asynchronous
async def test_one_that_cannot_be_read_keeps_the_broker_from_nothing(tmp_path, caplog):
    async with serving(tmp_path) as broker, Client.of(broker) as client:
        sender = await client.sender("q", Capability("queue"))
        await sender.send(large())
        await sender.send(Message("behind it", durable=True))
    (name,) = files(tmp_path)
    path = tmp_path / "large" / name
    content = path.read_bytes()
    path.unlink()
    # No file that can be read, and no missing one.
    path.mkdir()
    async with serving(tmp_path) as broker:
        assert len(waiting(broker)) == 2
        assert "cannot be read" in caplog.text
    path.rmdir()
    path.write_bytes(content)
    async with serving(tmp_path) as broker, Client.of(broker) as client:
        receiver = await client.receiver("q")
        assert bytes((await receiver.get()).body) == DATA
        assert (await receiver.get()).body == "behind it"


@pytest.mark.parametrize("is_commit", [True, False])
@asynchronous
async def test_a_transaction_takes_it_or_leaves_no_file(tmp_path, is_commit):
    async with serving(tmp_path) as broker, Client.of(broker) as client:
        transactions = await Transactions.of(client)
        sender = await client.sender("q", Capability("queue"))
        tx = await transactions.declare()
        await transactions.send(tx, sender, large())
        assert len(files(tmp_path)) == 1
        await transactions.discharge(tx, fails=not is_commit)
        assert len(waiting(broker)) == int(is_commit)
        await until(lambda: len(files(tmp_path)) == int(is_commit))


async def driven(client, holds):
    """Let the client write, which it does for nobody else, until something holds."""
    async with asyncio.timeout(WAIT_S):
        while not holds():
            await client.flush()


@pytest.mark.parametrize("end", ["aborted", "detached", "disconnected"])
@asynchronous
async def test_one_that_never_comes_to_its_end_leaves_nothing(tmp_path, end):
    async with serving(tmp_path) as broker:
        async with Client.of(broker) as client:
            sender = await client.sender("q", Capability("queue"))
            delivery, parts = split(sender, large(), 6)
            for part in parts[:4]:
                part()
            await driven(client, lambda: len(files(tmp_path)) == 1)
            if end == "aborted":
                delivery.abort()
            elif end == "detached":
                with contextlib.suppress(Exception):
                    await sender.close()
            if end != "disconnected":
                await driven(client, lambda: not files(tmp_path))
                await client.send("q", "after")
        await until(lambda: not files(tmp_path))
        assert len(waiting(broker)) == int(end != "disconnected")


@asynchronous
async def test_one_that_is_refused_leaves_nothing(tmp_path):
    address = {"max_size_bytes": 1000, "address_full_policy": AddressFullPolicy.FAIL}
    async with serving(tmp_path, address=address) as broker, Client.of(broker) as client:
        sender = await client.sender("q", Capability("queue"))
        await sender.send(large(b"x" * 2000))
        assert await sender.refused(large()) == Delivery.REJECTED
        await until(lambda: not files(tmp_path))


@asynchronous
async def test_what_comes_behind_it_stays_behind(tmp_path):
    async with serving(tmp_path) as broker, Client.of(broker) as client:
        sender = await client.sender("q", Capability("queue"))
        for number in range(4):
            await sender.send(large(DATA + bytes([number])))
            await sender.send(large(b"small %d" % number))
        receiver = await client.receiver("q", credit=20)
        found = await receiver.bodies(8)
        assert [len(one) for one in found] == [SIZE + 1, 7] * 4
        assert [one[-1] for one in found[::2]] == list(range(4))


@asynchronous
async def test_each_subscriber_gets_it_and_then_it_is_gone(tmp_path):
    async with serving(tmp_path) as broker, Client.of(broker) as client:
        receivers = [await client.receiver("t", Capability("topic")) for _ in range(2)]
        await (await client.sender("t", Capability("topic"))).send(large())
        for receiver in receivers:
            assert (await receiver.get()).body == DATA
            await receiver.accept()
        await until(lambda: not files(tmp_path))


@asynchronous
async def test_one_that_was_delivered_before_says_so(tmp_path):
    async with serving(tmp_path) as broker, Client.of(broker) as client:
        await (await client.sender("q", Capability("queue"))).send(large())
        receiver = await client.receiver("q", credit=1)
        await receiver.get()
        await receiver.settle_and_flow()
        again = await receiver.get()
        assert (again.delivery_count, again.body) == (1, DATA)
        await receiver.accept()


@asynchronous
async def test_a_copy_says_where_it_was(tmp_path):
    address = {"max_delivery_attempts": 1}
    async with serving(tmp_path, address=address) as broker, Client.of(broker) as client:
        async with core(broker) as session:
            await session.create_queue("DLQ", "DLQ", routing_type=RoutingType.ANYCAST)
        await (await client.sender("q", Capability("queue"))).send(large(properties={"a": 1}))
        receiver = await client.receiver("q", credit=1)
        await receiver.get()
        receiver.blocking.fetcher.unsettled[-1].local.failed = True
        await receiver.settle(Delivery.MODIFIED)
        await until(lambda: len(waiting(broker, "DLQ")) == 1)
    async with serving(tmp_path) as broker, Client.of(broker) as client:
        dead = await (await client.receiver("DLQ")).get()
        assert (dead.body, dead.properties) == (DATA, {"a": 1})
        assert dead.annotations["x-opt-ORIG-QUEUE"] == "q"
        await until(lambda: len(files(tmp_path)) == 1)


@asynchronous
async def test_pages_hold_it(tmp_path):
    address = {"max_size_bytes": 100_000, "page_size_bytes": 50_000}
    async with serving(tmp_path, address=address) as broker, Client.of(broker) as client:
        sender = await client.sender("q", Capability("queue"))
        for number in range(200):
            await sender.send(large(b"%06d" % number * 200))
            if number % 20 == 0:
                await sender.send(large(DATA + b"%d" % number))
        assert broker.parts.paging.stores["q"].is_paging
        assert len(files(tmp_path)) == 10
    async with serving(tmp_path, address=address) as broker, Client.of(broker) as client:
        receiver = await client.receiver("q", credit=50)
        sizes = [len(one) for one in await receiver.bodies(210)]
        assert sum(size > SIZE for size in sizes) == 10
        await until(lambda: not files(tmp_path))
