"""retroactive-message-count: later queues get the last messages of their address."""

import asyncio

import pytest

from broker.model.address import DEFAULT_WILDCARDS
from broker.model.routing_type import RoutingType
from broker.options import BrokerOptions
from broker.routing.retroactive import Retroactive
from broker.server.server import Broker
from broker.sessions.session import SessionOptions
from broker.settings.queue_defaults import QueueRequest
from broker.settings.settings import AddressSettings
from broker.settings.settings_repository import SettingsRepository
from broker.storage.open import FileStoreOptions, bindings_options, messages_options
from tests.broker.bench import Bench, done, message

PREFIX = "$.artemis.internal."
ADDRESS = f"{PREFIX}news.address.retro"
MULTICAST, ANYCAST = RoutingType.MULTICAST, RoutingType.ANYCAST


@pytest.fixture
def bench():
    made = Bench()
    made.addresses.listener = Retroactive(
        postoffice=made.postoffice,
        storage=made.storage,
        timers=made.loop,
        settings=made.settings,
        notifications=made.notifications,
        parse_filter=made.parse_filter,
        prefix=PREFIX,
        delimiter=DEFAULT_WILDCARDS.delimiter,
    )
    made.set("news", retroactive_message_count=2, default_address_routing_type=MULTICAST)
    made.addresses.create("news", [MULTICAST, ANYCAST])
    return made


def send(bench, *bodies, kind=MULTICAST, **properties):
    session = bench.session()
    for body in bodies:
        one = message(body, "news", **properties)
        one.routing_type = kind
        session.send(one, done)
    bench.loop.run_turns()


def got(bench, name, routing_type=MULTICAST, **attributes):
    bench.queue(name, "news", routing_type, **attributes)
    bench.loop.run_turns()
    sink = bench.consume(name)
    bench.loop.run_turns()
    return sink


def test_the_resources_have_the_names_that_artemis_gives_them(bench):
    assert set(bench.addresses.by_name) == {"news", ADDRESS}
    assert set(bench.addresses.queues) == {
        f"{PREFIX}news.queue.multicast.retro",
        f"{PREFIX}news.queue.anycast.retro",
    }
    assert list(bench.addresses.by_name["news"].diverts) == [f"{PREFIX}news.divert.retro"]


def test_a_later_queue_gets_the_last_messages(bench):
    send(bench, "1", "2", "3")

    first, second = got(bench, "first"), got(bench, "second")

    assert first.bodies == second.bodies == ["2", "3"]
    assert {one.address for one in first.got} == {"news"}
    send(bench, "4")
    assert first.bodies == ["2", "3", "4"]
    assert got(bench, "third").bodies == ["3", "4"]


def test_only_what_the_filter_and_the_routing_type_take(bench):
    send(bench, "red", color="red")
    send(bench, "blue", color="blue")
    send(bench, "any", kind=ANYCAST)

    assert got(bench, "reds", filter="color = 'red'").bodies == ["red"]
    assert got(bench, "one", ANYCAST).bodies == ["any"]


def test_the_ring_follows_the_setting(bench):
    bench.set("news", retroactive_message_count=3)
    send(bench, "1", "2", "3", "4")

    assert got(bench, "later").bodies == ["2", "3", "4"]


def test_the_resources_go_with_the_address(bench):
    bench.addresses.delete("news", force=True)

    assert not bench.addresses.by_name
    assert not bench.addresses.queues


def test_other_addresses_keep_nothing(bench):
    bench.addresses.create("orders", [ANYCAST])

    assert not bench.addresses.by_name["orders"].diverts


def test_large_messages_and_a_restart(tmp_path):
    body = bytes(range(256)) * 2000
    settings = SettingsRepository()
    settings.add("news", AddressSettings(retroactive_message_count=5))
    options = BrokerOptions(
        store=FileStoreOptions(
            bindings=bindings_options(tmp_path / "bindings"),
            messages=messages_options(tmp_path / "journal", journal_type="NIO"),
            large_messages=tmp_path / "large",
        ),
        acceptors=(),
        settings=settings,
    )

    async def first():
        broker = Broker(options)
        await broker.start()
        session = broker.clients.create_session("s", None, SessionOptions(), set())
        session.administration.create_address("news", [MULTICAST], is_auto_created=False)
        large = message("", "news")
        large.is_large = True
        session.uploads.begin(large)
        session.uploads.append(body)
        durable = asyncio.get_running_loop().create_future()
        there = asyncio.Event()
        while not session.uploads.finish(there.set):
            await there.wait()
            there.clear()
        session.uploads.end(-1, durable.set_result)
        assert await durable is None
        await broker.stop()

    async def second():
        broker = Broker(options)
        await broker.start()
        session = broker.clients.create_session("s", None, SessionOptions(), set())
        queue = session.administration.create_queue(
            QueueRequest(name="later", address="news", routing_type=MULTICAST)
        )
        durable = asyncio.get_running_loop().create_future()
        session.context.after(durable.set_result)
        await durable
        found = [reference.message.large.size for reference in queue.references()]
        await broker.stop()
        return found

    asyncio.run(first())
    assert asyncio.run(second()) == [len(body)]
