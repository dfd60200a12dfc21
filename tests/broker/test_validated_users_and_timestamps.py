"""What elements about users do: names and times in messages, limits, matches of UUIDs."""

import asyncio
import urllib.error
import urllib.request

import pytest

from broker.client.aio import AsyncClient
from broker.errors import BrokerError
from broker.model.routing_type import RoutingType
from broker.options import BrokerOptions, WebOptions
from broker.server.server import Broker
from broker.sessions.resource_limits import ResourceLimits, UserLimits
from broker.sessions.send_marks import SendMarks
from broker.sessions.session import SessionOptions
from broker.settings.queue_defaults import QueueRequest
from broker.settings.settings import AddressSettings
from broker.settings.settings_repository import SettingsRepository
from broker.storage.open import FileStoreOptions, bindings_options, messages_options
from broker.transport.acceptor import AcceptorOptions
from tests.broker.bench import Bench, Sink, done, message
from tests.live_copy import copy_live

UUID = "3f2504e0-4f89-11d3-9a0c-0305e82c3301"
WAIT_S = 60


def session_of(bench, user, **options):
    return bench.new_session("s", user, SessionOptions(**options), set())


def sent(bench, user, **properties):
    """Send two messages, since the second one may take a shorter way; what a consumer gets."""
    sink = bench.consume()
    session = session_of(bench, user)
    for body in ("first", "second"):
        session.send(message(body, **properties), done)
        bench.loop.run_turns()
    assert sink.bodies == ["first", "second"]
    return sink.got


def test_messages_say_who_sent_them():
    bench = Bench(marks=SendMarks(populates_user=True))
    bench.queue()

    found = sent(bench, "anna", _AMQ_VALIDATED_USER="somebody else")

    assert [one.get("_AMQ_VALIDATED_USER") for one in found] == ["anna", "anna"]


def test_anonymous_messages_say_nothing():
    bench = Bench(marks=SendMarks(populates_user=True))
    bench.queue()

    assert [one.get("_AMQ_VALIDATED_USER") for one in sent(bench, None)] == [None, None]


def test_messages_without_a_user_are_refused():
    bench = Bench(marks=SendMarks(requires_user=True))
    queue = bench.queue()
    session = session_of(bench, "anna")

    for _ in range(2):
        session.send(message(_AMQ_VALIDATED_USER="said so"), done)
        with pytest.raises(BrokerError, match="AMQ229225: Validated User is not set"):
            session.send(message(), done)
    bench.loop.run_turns()

    assert queue.message_count == 2


def test_a_transaction_with_a_refused_message_can_only_be_rolled_back():
    bench = Bench(marks=SendMarks(requires_user=True))
    bench.queue()
    session = session_of(bench, "anna", auto_commit_sends=False, auto_commit_acks=False)

    with pytest.raises(BrokerError):
        session.send(message(), done)

    with pytest.raises(BrokerError, match="AMQ229225"):
        session.commit(done)


def test_messages_say_when_they_came_where_the_address_asks_for_it():
    bench = Bench()
    bench.set("q", enable_ingress_timestamp=True)
    bench.queue()

    found = sent(bench, None)

    assert [one.get("_AMQ_INGRESS_TIMESTAMP") for one in found] == [bench.now_ms] * 2


def test_a_setting_that_comes_later_holds_for_the_next_message():
    bench = Bench()
    bench.queue()
    sink = bench.consume()
    session = session_of(bench, None)
    session.send(message(), done)
    session.send(message(), done)

    bench.set("q", enable_ingress_timestamp=True)
    session.send(message(), done)
    bench.loop.run_turns()

    times = [one.get("_AMQ_INGRESS_TIMESTAMP") for one in sink.got]
    assert times == [None, None, bench.now_ms]


def test_a_user_has_so_many_queues_and_no_more():
    bench = Bench(resource_limits=ResourceLimits({"anna": UserLimits(max_queues=1)}))
    anna, ben = session_of(bench, "anna"), session_of(bench, "ben")

    def create(session, name):
        session.create_queue(_request(name, session.user))

    create(anna, "one")
    with pytest.raises(BrokerError, match="AMQ229111: Too many queues created by user 'anna'"):
        create(anna, "two")
    create(ben, "two")
    anna.delete_queue("one")
    create(anna, "three")

    assert set(bench.addresses.queues) == {"two", "three"}


def _request(name, user):
    return QueueRequest(name=name, address=name, user=user, routing_type=RoutingType.ANYCAST)


def test_a_user_has_so_many_sessions_and_no_more():
    async def serve():
        broker = Broker(
            BrokerOptions(acceptors=(), resource_limits={"anna": UserLimits(max_sessions=1)})
        )
        await broker.start()
        try:
            first = broker.clients.create_session("1", "anna", SessionOptions(), set())
            with pytest.raises(BrokerError, match="AMQ229110: Too many sessions for user 'anna'"):
                broker.clients.create_session("2", "anna", SessionOptions(), set())
            broker.clients.create_session("3", "ben", SessionOptions(), set())
            broker.clients.close_session(first, has_failed=False)
            broker.clients.create_session("4", "anna", SessionOptions(), set())
            return set(broker.clients.sessions)
        finally:
            await broker.stop()

    assert asyncio.run(serve()) == {"3", "4"}


@pytest.mark.parametrize("name", [UUID, UUID.upper(), "ID:host-1-2-3:1:1"])
def test_names_of_temporary_queues_are_looked_up_in_their_namespace(name):
    settings = SettingsRepository(uuid_namespace="temp")
    settings.add("temp.#", AddressSettings(max_delivery_attempts=2))
    settings.add("#", AddressSettings(max_delivery_attempts=9))

    assert settings.match(name).max_delivery_attempts == 2
    assert settings.match(f"{name}::q").max_delivery_attempts == 2
    assert settings.match("orders").max_delivery_attempts == 9
    settings.add(name, AddressSettings(max_delivery_attempts=3))
    assert settings.match(name).max_delivery_attempts == 3


def test_without_a_namespace_a_uuid_is_a_name_like_any():
    settings = SettingsRepository()
    settings.add(UUID, AddressSettings(max_delivery_attempts=2))

    assert settings.match(UUID).max_delivery_attempts == 2


# --- delivery counts --------------------------------------------------------------------------


def store(folder):
    return FileStoreOptions(
        bindings=bindings_options(folder / "bindings"),
        messages=messages_options(folder / "journal", journal_type="NIO", file_size=102400),
    )


class Told(Sink):
    """Tells when it has got something."""

    def __init__(self):
        super().__init__()
        self.told = asyncio.Event()

    def deliver(self, *delivery):
        self.told.set()
        return super().deliver(*delivery)


@pytest.mark.parametrize(("persists", "count"), [(True, 2), (False, 1)])
def test_a_delivery_counts_after_a_crash_if_it_is_recorded_before(tmp_path, persists, count):
    """A copy of the folder, taken while the message is at a client, is what a crash leaves."""

    async def deliver(folder, copy=None):
        broker = Broker(
            BrokerOptions(store=store(folder), acceptors=(), persist_deliveries=persists)
        )
        await broker.start()
        session = broker.clients.create_session("s", None, SessionOptions(), set())
        if copy is not None:
            session.create_queue(_request("q", None))
            durable = asyncio.get_running_loop().create_future()
            session.send(message(), durable.set_result)
            assert await durable is None
        sink = Told()
        consumer = session.create_consumer(1, "q", sink)
        session.start()
        consumer.receive_credits(-1)
        await sink.told.wait()
        if copy is not None:
            # Behind all that was recorded so far.
            durable = asyncio.get_running_loop().create_future()
            session.send(message("behind"), durable.set_result)
            assert await durable is None
            copy_live(folder, copy)
        await broker.stop()
        return sink.counts[0]

    assert asyncio.run(deliver(tmp_path / "one", tmp_path / "two")) == 1
    assert asyncio.run(deliver(tmp_path / "two")) == count


# --- graceful shutdown ------------------------------------------------------------------------


async def refused(port):
    """Connect until the broker does not listen any more."""
    while True:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except (ConnectionRefusedError, ConnectionResetError):
            return
        writer.close()


def test_a_graceful_stop_waits_until_clients_have_left():
    async def serve():
        options = BrokerOptions(
            acceptors=(AcceptorOptions(host="127.0.0.1", port=0),),
            graceful_shutdown_timeout=-1,
            web=(WebOptions(host="127.0.0.1", port=0),),
        )
        broker = Broker(options)
        await broker.start()
        port = broker.acceptors[0].port
        async with AsyncClient(f"tcp://127.0.0.1:{port}") as client:
            session = await client.session()
            await session.create_queue("q")
            stopping = asyncio.ensure_future(broker.stop())
            await refused(port)
            # It works on as long as it is there.
            await session.producer("q").send("late")
            assert not stopping.done()
            # A load balancer sends no more clients.
            url = f"http://127.0.0.1:{broker.web[0].port}/readyz"
            with pytest.raises(urllib.error.HTTPError, match="503"):
                await asyncio.to_thread(urllib.request.urlopen, url, timeout=WAIT_S)
        await asyncio.wait_for(stopping, WAIT_S)

    asyncio.run(serve())


def test_a_graceful_stop_waits_no_longer_than_it_may():
    async def serve():
        options = BrokerOptions(
            acceptors=(AcceptorOptions(host="127.0.0.1", port=0),), graceful_shutdown_timeout=1
        )
        broker = Broker(options)
        await broker.start()
        reader, writer = await asyncio.open_connection("127.0.0.1", broker.acceptors[0].port)
        await asyncio.wait_for(broker.stop(), WAIT_S)
        assert await reader.read() == b""
        writer.close()

    asyncio.run(serve())
