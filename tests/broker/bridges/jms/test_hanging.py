"""Factories and providers that hang or fail, management, and a transaction manager from outside."""

import asyncio
import threading
import time

import pytest

from broker.bridges.jms import (
    BridgeConfigError,
    BridgeState,
    Capabilities,
    CoreConnectionFactory,
    Credentials,
    Destination,
    ExactlyOnce,
    JMSBridge,
    QualityOfService,
    engine,
)
from broker.bridges.jms.coordinator import branch
from broker.bridges.jms.message import BodyKind, JMSMessage
from broker.bridges.jms.transactions import Role
from broker.embedded import EmbeddedBroker
from broker.model.properties import Property, PropertyType
from broker.options import BrokerOptions
from tests.broker.bridges.jms.ends import WAIT_S, bridge, wait_for


@pytest.fixture
def hanging():
    """A factory that never returns, until the test is over."""
    over = threading.Event()
    called = threading.Event()

    def hang():
        called.set()
        over.wait()
        raise ConnectionRefusedError

    hang.called = called
    yield hang
    over.set()


def test_a_factory_that_hangs_delays_neither_pause_nor_stop(source, hanging):
    moving = bridge(source, hanging)
    moving.start()
    assert hanging.called.wait(WAIT_S)

    began_s = time.monotonic()
    moving.pause()
    moving.resume()
    moving.stop()

    assert time.monotonic() - began_s < moving.options.failover_timeout_s / 4
    # And the broker of the source, in whose process it hangs, works.
    source.send("q", "one")
    assert source.contents("q", 1) == ["one"]


def test_a_factory_that_hangs_fails_after_failover_timeout(source, hanging):
    with bridge(source, hanging, failover_timeout=50, failure_retry_interval=10) as moving:
        assert moving.wait_until(BridgeState.RETRYING, timeout_s=WAIT_S)
        assert "no answer within failover_timeout, 50 ms" in moving.why


def test_a_target_that_does_not_confirm_is_told_and_does_not_delay_stop(source):
    over = threading.Event()

    class Slow(Memory):
        def confirmed(self):
            over.wait()

    source.send("q", "one")
    slow = Slow()
    with bridge(source, lambda: slow, failover_timeout=500) as moving:
        wait_for(
            lambda: "a message waits for the target to confirm it since 1 s" in (moving.why or "")
        )
    over.set()

    assert moving.state is BridgeState.STOPPED
    assert source.count("q") == 1


class Memory:
    """A provider in memory with blocking methods: connection factory, connection, session, all."""

    capabilities = Capabilities()
    lost = None

    def __init__(self):
        self.sent = []
        self.threads = set()

    def connect(self, credentials):
        return self

    def session(self, kind):
        return self

    def sender(self, destination):
        return self

    def receiver(self, destination, selector, subscription):
        return self

    def receive(self, timeout_s):
        time.sleep(timeout_s)

    def send(self, message):
        self.threads.add(threading.current_thread())
        self.sent.append(message.content())

    def confirmed(self):
        self.threads.add(threading.current_thread())

    def nothing(self):
        pass

    stop = start = acknowledge = commit = close = nothing

    def duplicate_ids_max(self, destination):
        return None


def test_a_provider_of_blocking_methods_is_called_in_one_thread(source):
    source.send("q", "one", b"two", {"three": 3})
    memory = Memory()

    with bridge(source, lambda: memory, max_batch_size=2, max_batch_time=20):
        wait_for(lambda: len(memory.sent) == 3)

    assert memory.sent == ["one", b"two", {"three": 3}]
    assert len(memory.threads) == 1
    assert threading.main_thread() not in memory.threads


def test_what_comes_again_behind_a_reconnect_is_not_in_the_same_batch():
    """A client that reconnects by itself receives it twice, and the bridge may send it once."""
    source, target = Memory(), Memory()
    given = iter(["one", None, "one", "two"])

    def connect(credentials):
        source.lost = None
        return source

    def receive(timeout_s):
        text = next(given, "over")
        if text is None:
            source.lost = ConnectionError("cut")
            text = "one"
        elif text == "over":
            time.sleep(timeout_s)
            return None
        return JMSMessage(BodyKind.TEXT, text)

    source.connect, source.receive = connect, receive
    with bridge(
        lambda: source,
        lambda: target,
        quality_of_service=QualityOfService.AT_MOST_ONCE,
        failure_retry_interval=10,
        max_batch_size=2,
    ):
        wait_for(lambda: "two" in target.sent)

    assert target.sent == ["one", "two"]


def test_messages_of_another_provider_become_core_messages(target):
    group = {"JMSXGroupID": Property("JMSXGroupID", PropertyType.STRING, "g")}
    waiting = [
        JMSMessage(BodyKind.TEXT, "one", message_id="ID:a", correlation_id="c", type="t"),
        JMSMessage(BodyKind.MAP, {"a": 1}, durable=False, priority=9, properties=group),
    ]

    class Two(Memory):
        def receive(self, timeout_s):
            return waiting.pop(0) if waiting else super().receive(timeout_s)

    two = Two()
    with bridge(lambda: two, target):
        first, second = target.take("q", 2)

    assert (first.content, first.get("JMSCorrelationID"), first.get("JMSType")) == ("one", "c", "t")
    assert second.message.group_id == "g"
    assert (second.content, second.message.durable, second.message.priority) == ({"a": 1}, False, 9)


def test_a_factory_that_gives_something_else_is_an_error(source):
    with bridge(source, lambda: "tcp://x") as moving:
        assert moving.wait_until(BridgeState.FAILED, timeout_s=WAIT_S)
        assert "gave str, which has no method connect" in moving.why


class Server:
    """A management server, as a program has one."""

    def __init__(self):
        self.controls = {}

    def register(self, object_name, control):
        if object_name in self.controls:
            raise BridgeConfigError(f"another bridge has the object_name {object_name!r}")
        self.controls[object_name] = control

    def unregister(self, object_name):
        self.controls.pop(object_name, None)


def test_it_is_managed_by_its_object_name(source, target):
    server = Server()
    source.send("q", "one")

    with bridge(source, target, mbean_server=server, object_name="a:b=c") as moving:
        target.contents("q", 1)
        control = server.controls["a:b=c"]
        wait_for(lambda: control.attributes()["messageCount"] == 1)
        control.pause()
        assert control.attributes()["paused"]
        other = bridge(source, target, mbean_server=server, object_name="a:b=c")
        with pytest.raises(BridgeConfigError, match="another bridge has the object_name 'a:b=c'"):
            other.start()
        assert moving.state is BridgeState.PAUSED

    assert server.controls == {}


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"object_name": "x"}, "mbean_server and object_name need each other"),
        ({"mbean_server": Server()}, "mbean_server and object_name need each other"),
        ({"transaction_log": "x", "transaction_manager": object()}, "not both"),
        ({"max_batch_sise": 1}, "no parameter 'max_batch_sise'"),
        ({"source_password": "ENC(zz)"}, "source_password cannot be unmasked"),
    ],
)
def test_wrong_parameters_are_one_clear_error(given, named):
    with pytest.raises(BridgeConfigError, match=named):
        JMSBridge(list, list, list, list, **given)


def test_a_factory_that_is_none_is_one_clear_error():
    with pytest.raises(BridgeConfigError, match="target_connection_factory_factory is 'tcp://x'"):
        JMSBridge(list, "tcp://x", list, list)


def test_two_phase_commit_without_a_manager_is_one_clear_error(source, target):
    with bridge(
        source,
        target,
        quality_of_service=QualityOfService.ONCE_AND_ONLY_ONCE,
        exactly_once=ExactlyOnce.TWO_PHASE,
    ) as moving:
        assert moving.wait_until(BridgeState.FAILED, timeout_s=WAIT_S)
        assert "needs a transaction_manager or a transaction_log" in moving.why


class OutsideTransaction:
    def __init__(self, resources, number):
        self._resources = resources
        self._id = b"outside" + bytes([number])

    async def begin(self):
        for role, resource in self._resources.items():
            await resource.xa_start(branch(role, self._id))

    async def _end(self):
        for role, resource in self._resources.items():
            await resource.xa_end(branch(role, self._id))

    async def commit(self):
        await self._end()
        for role, resource in self._resources.items():
            await resource.xa_prepare(branch(role, self._id))
        for role, resource in self._resources.items():
            await resource.xa_commit(branch(role, self._id))

    async def rollback(self):
        await self._end()
        for role, resource in self._resources.items():
            await resource.xa_rollback(branch(role, self._id))


class OutsideManager:
    """Without a log: enough to see who is asked."""

    def __init__(self):
        self.begun = 0
        self.recovered = 0

    async def begin(self, resources):
        self.begun += 1
        made = OutsideTransaction(resources, self.begun)
        await made.begin()
        return made

    async def recover(self, resources):
        assert set(resources) == set(Role)
        self.recovered += 1


def test_a_transaction_manager_from_outside_is_asked(source, target):
    manager = OutsideManager()
    source.send("q", "one", "two", "three")

    with bridge(
        source,
        target,
        quality_of_service=QualityOfService.ONCE_AND_ONLY_ONCE,
        exactly_once=ExactlyOnce.TWO_PHASE,
        transaction_manager=manager,
        max_batch_size=2,
        max_batch_time=20,
    ) as moving:
        assert target.contents("q", 3) == ["one", "two", "three"]
        wait_for(lambda: moving.snapshot()["moved"] == 3)

    assert manager.recovered == 1
    assert manager.begun >= 2
    assert source.count("q") == 0


def test_messages_every_nine_tenths_of_max_batch_time_leave(source, target):
    """Artemis starts its timer again with each message, and would move none of them."""
    with bridge(source, target, max_batch_size=1000, max_batch_time=200) as moving:
        assert moving.wait_until(BridgeState.STARTED, timeout_s=WAIT_S)
        for _ in range(6):
            source.send("q", "m")
            time.sleep(0.18)
        assert moving.snapshot()["moved"] >= 2


def test_a_smaller_id_cache_makes_smaller_batches(source, target, caplog):
    with target.client.session() as session:
        session.manage("broker", "addAddressSettings", "q", '{"idCacheSize": 3}')
    source.send("q", *map(str, range(10)))

    with bridge(
        source,
        target,
        quality_of_service=QualityOfService.ONCE_AND_ONLY_ONCE,
        max_batch_size=50,
        max_batch_time=50,
    ):
        assert target.contents("q", 10) == list(map(str, range(10)))

    assert "more than the target's id-cache-size 3; batches are of 3" in caplog.text


def test_the_id_cache_size_of_the_broker_counts_where_the_address_has_none():
    with EmbeddedBroker(BrokerOptions(acceptors=(), id_cache_size=3)) as embedded:
        factory = CoreConnectionFactory("vm://", broker=embedded.broker)

        async def ask():
            connection = await factory.connect(Credentials())
            try:
                return await connection.duplicate_ids_max(Destination.queue("q"))
            finally:
                await connection.close()

        assert asyncio.run(ask()) == 3


def test_a_destination_of_a_topic_needs_no_queue(source, target):
    moving = JMSBridge(
        source.factory,
        target.factory,
        lambda: Destination.queue("q"),
        lambda: Destination.topic("news"),
    )
    with moving:
        assert moving.wait_until(BridgeState.STARTED, timeout_s=WAIT_S)
        with target.client.session() as session:
            session.create_queue("s", "news", routing_type=_multicast())
        source.send("q", "one")
        assert target.contents("s", 1) == ["one"]


def _multicast():
    from broker.client import RoutingType

    return RoutingType.MULTICAST


def test_a_factory_that_hangs_has_one_thread_however_often_it_is_tried(source):
    over, calls = threading.Event(), []

    def hang():
        calls.append(threading.current_thread())
        over.wait(WAIT_S)
        raise ConnectionRefusedError

    with bridge(source, hang, failover_timeout=30, failure_retry_interval=1) as moving:
        wait_for(lambda: moving.snapshot()["failures"] >= 5)
        assert len(calls) == 1
        over.set()
        wait_for(lambda: len(calls) > 1)


def test_a_connection_that_hangs_has_one_thread_too(source):
    """Its connect(), or what comes behind that."""
    for name in ("connect", "session"):
        over, calls = threading.Event(), []

        def hang(_, over=over, calls=calls):
            calls.append(threading.current_thread())
            over.wait(WAIT_S)
            raise ConnectionRefusedError

        memory = Memory()
        setattr(memory, name, hang)
        with bridge(
            source, lambda memory=memory: memory, failover_timeout=30, failure_retry_interval=1
        ) as moving:
            wait_for(lambda moving=moving: moving.snapshot()["failures"] >= 5)
            assert len(calls) == 1, name
            over.set()
            wait_for(lambda calls=calls: len(calls) > 1)


def test_of_two_starts_at_once_one_counts(source, target):
    moving = bridge(source, target)
    together = threading.Barrier(8)

    def start():
        together.wait()
        moving.start()

    threads = [threading.Thread(target=start) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    source.send("q", "one")
    assert target.contents("q", 1) == ["one"]
    moving.stop()
    running = [one.name for one in threading.enumerate() if one.name.startswith("jms-bridge-")]
    assert running == []


def test_why_says_that_no_message_comes_and_counts_down(source, target, monkeypatch):
    monkeypatch.setattr(engine, "IDLE_S", 0.2)
    with bridge(source, target, selector="a = 1", max_batch_size=2) as moving:
        said = "no message that selector 'a = 1' takes has come for "
        wait_for(lambda: (moving.why or "").startswith(said))
        source.send("q", "one", properties={"a": 1})
        wait_for(lambda: "a batch of 2 has 1 yet, and no message" in (moving.why or ""))

    def refuses():
        raise ConnectionRefusedError("not there")

    with bridge(source, refuses, failure_retry_interval=60_000) as moving:
        assert moving.wait_until(BridgeState.RETRYING, timeout_s=WAIT_S)
        wait_for(lambda: 0 < int(moving.why.split()[1]) < 59_900)
        assert moving.why.endswith(" to retry (attempt 1): not there")


def test_the_lag_grows_while_the_target_confirms_nothing(source):
    class Slow(Memory):
        def confirmed(self):
            over.wait(WAIT_S)

    over, slow = threading.Event(), Slow()
    source.send("q", "one")
    with bridge(source, lambda: slow, failover_timeout=1000) as moving:
        wait_for(lambda: (moving.snapshot()["lag_ms"] or 0) > 300)
        over.set()
