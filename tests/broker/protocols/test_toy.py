"""The next protocol: one folder, one entry point. It runs beside CORE on one port."""

import asyncio
import contextlib

import pytest

from broker.client import AsyncClient
from broker.options import BrokerOptions
from broker.server.server import Broker
from broker.settings.settings import AddressSettings
from broker.settings.settings_repository import SettingsRepository
from broker.storage.open import FileStoreOptions, bindings_options, messages_options
from broker.transport.acceptor import AcceptorOptions
from tests.broker.protocols.distribution import install
from tests.interop.asynchronous import asynchronous

WAIT_S = 30


@pytest.fixture(autouse=True)
def toy(tmp_path, monkeypatch):
    install(tmp_path / "site", monkeypatch, {"TOY": "tests.broker.protocols.toy:TOY"})


@contextlib.asynccontextmanager
async def serving(folder, **acceptor):
    """A broker on a folder, CORE and TOY on one port."""
    settings = SettingsRepository()
    settings.add("#", AddressSettings(dead_letter_address="DLQ", max_delivery_attempts=3))
    store = FileStoreOptions(
        bindings=bindings_options(folder / "bindings"),
        messages=messages_options(folder / "journal", journal_type="NIO"),
    )
    acceptors = (AcceptorOptions(host="127.0.0.1", port=0, **acceptor),)
    broker = Broker(BrokerOptions(store=store, acceptors=acceptors, settings=settings))
    await broker.start()
    try:
        yield broker
    finally:
        await broker.stop()


class Client:
    """A client of TOY."""

    @classmethod
    @contextlib.asynccontextmanager
    async def of(cls, broker):
        made = cls()
        port = broker.acceptors[0].port
        made.reader, made.writer = await asyncio.open_connection("127.0.0.1", port)
        made.writer.write(b"TOY\n")
        try:
            yield made
        finally:
            made.writer.close()

    async def read(self):
        """The next line, in words."""
        line = await asyncio.wait_for(self.reader.readline(), WAIT_S)
        return line.decode().rstrip("\n").split(" ", 3)

    async def say(self, line):
        """Send a line; the next one that comes."""
        self.writer.write(f"{line}\n".encode())
        return await self.read()

    async def is_silent(self):
        with contextlib.suppress(TimeoutError):
            return not await asyncio.wait_for(self.reader.read(1), 0.2)
        return True


async def bodies(broker, queue):
    """What a Core client finds in a queue."""
    uri = f"tcp://127.0.0.1:{broker.acceptors[0].port}"
    async with AsyncClient(uri) as client, await client.session() as session:
        return [bytes(one.message.body).decode() async for one in session.browse(queue)]


@asynchronous
async def test_a_message_sent_is_durable_and_a_core_client_gets_it(tmp_path):
    async with serving(tmp_path) as broker, Client.of(broker) as toy:
        assert await toy.say("SEND orders one") == ["SENT", "orders"]

    async with serving(tmp_path) as broker:
        assert await bodies(broker, "orders") == ["one"]


@asynchronous
async def test_it_consumes_with_credit_accepts_and_releases(tmp_path):
    async with serving(tmp_path) as broker, Client.of(broker) as toy:
        for body in ("one", "two", "three"):
            await toy.say(f"SEND orders {body}")
        _, first, _, body = await toy.say("TAKE orders 2")
        assert body == "one"
        give, second, count, body = await toy.read()
        assert (give, count, body) == ("GIVE", "1", "two")
        assert await toy.is_silent()

        assert await toy.say(f"OK orders {first}") == ["DONE", first]
        assert await toy.say(f"BACK orders {second}") == ["DONE", second]
        assert await toy.say("MORE orders 2") == ["GIVE", second, "1", "two"]
        assert (await toy.read())[3] == "three"

    async with serving(tmp_path) as broker:
        assert await bodies(broker, "orders") == ["two", "three"]


@asynchronous
async def test_rejected_and_failed_too_often_they_go_to_the_dead_letter_address(tmp_path):
    async with serving(tmp_path) as broker, Client.of(broker) as toy:
        await toy.say("SEND DLQ before")
        await toy.say("SEND orders bad")
        await toy.say("SEND orders failed")
        _, bad, _, _ = await toy.say("TAKE orders 10")
        _, failed, _, _ = await toy.read()
        assert await toy.say(f"BAD orders {bad}") == ["DONE", bad]
        for count in ("2", "3"):
            # Delivered again at once, before the answer about what is durable.
            lines = [await toy.say(f"FAIL orders {failed}"), await toy.read()]
            assert sorted(lines) == [["DONE", failed], ["GIVE", failed, count, "failed"]]
        assert await toy.say(f"FAIL orders {failed}") == ["DONE", failed]

        assert await bodies(broker, "DLQ") == ["before", "bad", "failed"]
        assert await bodies(broker, "orders") == []


@asynchronous
async def test_what_is_undeliverable_here_goes_to_another(tmp_path):
    async with serving(tmp_path) as broker, Client.of(broker) as one, Client.of(broker) as two:
        await one.say("SEND orders m")
        _, number, _, _ = await one.say("TAKE orders 10")
        assert await one.say(f"NEVER orders {number}") == ["DONE", number]
        assert await one.is_silent()

        assert await two.say("TAKE orders 1") == ["GIVE", number, "1", "m"]


@asynchronous
async def test_what_is_refused_is_answered_and_the_session_goes_on(tmp_path):
    async with serving(tmp_path) as broker, Client.of(broker) as toy:
        assert (await toy.say("TAKE nowhere 1"))[:2] == ["ERROR", "100"]
        await toy.say("SEND orders m")
        _, number, _, _ = await toy.say("TAKE orders 1")
        await toy.say(f"OK orders {number}")
        assert (await toy.say(f"OK orders {number}"))[:2] == ["ERROR", "104"]


@asynchronous
async def test_parameters_and_prefixes_are_its_acceptors(tmp_path):
    parameters = {"multicastPrefix": "topic://", "lineMax": "32"}
    async with serving(tmp_path, parameters=parameters) as broker, Client.of(broker) as toy:
        assert await toy.say("SEND topic://news m") == ["SENT", "topic://news"]
        assert [
            str(one.name) for one in broker.parts.postoffice.addresses.by_name["news"].routing_types
        ] == ["MULTICAST"]

        toy.writer.write(b"x" * 33)
        assert await asyncio.wait_for(toy.reader.read(), WAIT_S) == b""


@asynchronous
async def test_only_the_protocols_of_its_acceptor_are_spoken(tmp_path):
    async with serving(tmp_path, protocols=("CORE",)) as broker, Client.of(broker) as toy:
        assert await asyncio.wait_for(toy.reader.read(), WAIT_S) == b""
        assert broker.clients.connections == {}


@asynchronous
async def test_the_broker_knows_its_connections_and_tells_them_of_its_end(tmp_path):
    async with serving(tmp_path) as broker, Client.of(broker) as toy:
        await toy.say("SEND orders m")
        (connection,) = broker.clients.connections.values()
        assert connection.origin.protocol == "TOY"
        assert [one.name for one in broker.clients.sessions.values()] == [
            f"toy-{connection.origin.connection_id}"
        ]
        ending = asyncio.ensure_future(broker.stop())
        assert (await toy.read())[:2] == ["ERROR", "4"]
        await ending


@asynchronous
async def test_one_that_cannot_be_taken_is_closed(tmp_path):
    async with serving(tmp_path) as broker:
        broker.lifecycle.deactivated()
        async with Client.of(broker) as toy:
            assert await asyncio.wait_for(toy.reader.read(), WAIT_S) == b""
        broker.lifecycle.activated()
        assert broker.clients.connections == {}
