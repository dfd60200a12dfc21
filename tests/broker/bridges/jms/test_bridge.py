"""A JMS bridge between two brokers of ours: qualities of service, batches, headers, its life."""

import pytest

from broker.bridges.jms import BridgeState, Destination, ExactlyOnce, JMSBridge, QualityOfService
from broker.bridges.jms.core.session import CoreSession
from broker.bridges.jms.message import ID_LISTS
from tests.broker.bridges.jms.ends import WAIT_S, an_end, bridge, wait_for
from tests.broker.bridges.jms.faults import WAYS

AT_MOST_ONCE = QualityOfService.AT_MOST_ONCE
DUPLICATES_OK = QualityOfService.DUPLICATES_OK
ONCE = QualityOfService.ONCE_AND_ONLY_ONCE


@pytest.mark.parametrize("batch", [1, 7])
@pytest.mark.parametrize("quality", QualityOfService)
def test_messages_arrive_in_order_and_are_gone_at_the_source(source, target, quality, batch):
    source.send("q", *(f"m{number}" for number in range(20)))

    with bridge(
        source, target, quality_of_service=quality, max_batch_size=batch, max_batch_time=20
    ) as moving:
        found = target.contents("q", 20)
        wait_for(lambda: moving.snapshot()["moved"] == 20)

    assert found == [f"m{number}" for number in range(20)]
    assert source.count("q") == 0
    assert target.count("q") == 0


def test_two_phases_move_the_same(source, target, tmp_path):
    source.send("q", *(f"m{number}" for number in range(20)))

    with bridge(
        source,
        target,
        quality_of_service=ONCE,
        exactly_once=ExactlyOnce.TWO_PHASE,
        transaction_log=tmp_path / "log",
        max_batch_size=6,
        max_batch_time=20,
    ) as moving:
        found = target.contents("q", 20)
        wait_for(lambda: moving.snapshot()["moved"] == 20)
        assert moving.snapshot()["mode"] == "two-phase commit"

    assert found == [f"m{number}" for number in range(20)]
    assert source.count("q") == 0


@pytest.fixture
def stored_ends(tmp_path):
    """Brokers that keep large messages."""
    with an_end(tmp_path / "a") as source, an_end(tmp_path / "b") as target:
        source.create("q")
        target.create("q")
        yield source, target


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("max_in_flight", [1, 6, 1000])
def test_large_messages_between_small_ones_come_in_order(stored_ends, tmp_path, way, max_in_flight):
    """Batches that are due while the bodies of their messages are still read."""
    source, target = stored_ends
    quality, exactly_once = WAYS[way]
    bodies = [bytes([number]) * (10 if number % 4 > 1 else 150_000) for number in range(30)]
    source.send("q", *bodies)

    with bridge(
        source,
        target,
        quality_of_service=quality,
        exactly_once=exactly_once,
        transaction_log=tmp_path / "log",
        max_batch_size=4,
        max_batch_time=1,
        max_in_flight=max_in_flight,
    ) as moving:
        with target.client.session() as session, session.consumer("q") as consumer:
            found = [consumer.receive(WAIT_S).read() for _ in bodies]
        wait_for(lambda: moving.snapshot()["moved"] == len(bodies))

    assert found == bodies
    assert source.count("q") == 0


def test_one_broker_is_one_local_transaction(source):
    source.create("other")
    source.send("q", "one", "two")

    with bridge(source, source, to="other", quality_of_service=ONCE, max_batch_size=2) as moving:
        found = source.contents("other", 2)
        wait_for(lambda: moving.snapshot()["moved"] == 2)
        assert moving.snapshot()["mode"] == "local transaction"

    assert found == ["one", "two"]
    assert source.count("q") == 0


def test_a_batch_that_is_not_full_leaves_when_its_time_is_over(source, target):
    source.send("q", "one", "two")

    with bridge(source, target, max_batch_size=100, max_batch_time=100):
        assert target.contents("q", 2) == ["one", "two"]


def test_a_batch_that_is_not_full_waits_without_a_time(source, target):
    source.send("q", "one", "two")

    with bridge(source, target, max_batch_size=3) as moving:
        moving.wait_until(BridgeState.STARTED, timeout_s=WAIT_S)
        wait_for(lambda: source.count("q") == 2)
        assert target.count("q") == 0
        source.send("q", "three")
        assert target.contents("q", 3) == ["one", "two", "three"]


def test_only_what_the_selector_takes_is_moved(source, target):
    source.send("q", "red", properties={"colour": "red"})
    source.send("q", "blue", properties={"colour": "blue"})

    with bridge(source, target, selector="colour = 'blue'"):
        assert target.contents("q", 1) == ["blue"]

    assert source.count("q") == 1


def test_headers_properties_and_body_are_kept(source, target):
    properties = {"text": "t", "number": 5, "raw": b"\0\1", "yes": True}
    source.send(
        "q",
        {"a": 1, "b": "c"},
        priority=7,
        correlation_id="c-1",
        reply_to="queue://answers",
        group_id="g",
        properties=properties,
        time_to_live_ms=3_600_000,
    )

    with bridge(source, target):
        found = target.take("q", 1)[0]

    assert found.content == {"a": 1, "b": "c"}
    assert {name: found.get(name) for name in properties} == properties
    assert found.get("JMSCorrelationID") == "c-1"
    assert found.get("JMSReplyTo") == "queue://answers"
    assert found.get("_AMQ_GROUP_ID") == "g"
    assert found.message.priority == 7
    assert found.message.durable
    assert found.message.expiration > 0


@pytest.mark.parametrize("quality", QualityOfService)
def test_a_large_message_is_moved_whole(tmp_path, quality):
    body = bytes(range(256)) * 4096
    with an_end(tmp_path / "source") as source, an_end(tmp_path / "target") as target:
        source.create("q")
        target.create("q")
        source.send("q", body, "small")

        with (
            bridge(source, target, quality_of_service=quality),
            target.client.session() as session,
            session.consumer("q") as consumer,
        ):
            assert consumer.receive(WAIT_S).read() == body
            assert consumer.receive(WAIT_S).content == "small"


def test_ids_are_appended_under_both_names(source, target):
    source.send("q", "one", user_id=b"0123456789abcdef")

    with bridge(source, target, add_message_id_in_header=True):
        found = target.take("q", 1)[0]

    first = "ID:30313233-3435-3637-3839-616263646566"
    assert [found.get(name) for name in ID_LISTS] == [first, first]
    assert found.message.user_id not in (None, b"0123456789abcdef")


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("way", WAYS)
def test_ids_that_senders_gave_keep_no_batch_back(
    source, target, tmp_path, monkeypatch, way, batch
):
    """The target knows one from elsewhere, and all of them once a batch comes again."""
    quality, exactly_once = WAYS[way]
    target.send("q", "zero", properties={"_AMQ_DUPL_ID": "a"})
    for content in "abc":
        source.send("q", content, properties={"_AMQ_DUPL_ID": content})
    real, fails = CoreSession.acknowledge, [True]

    async def acknowledge(self):
        if fails and quality is not AT_MOST_ONCE:
            fails.pop()
            raise ConnectionError("lost")
        await real(self)

    monkeypatch.setattr(CoreSession, "acknowledge", acknowledge)
    with bridge(
        source,
        target,
        quality_of_service=quality,
        exactly_once=exactly_once,
        transaction_log=tmp_path,
        max_batch_size=batch,
        max_batch_time=20,
        failure_retry_interval=10,
    ) as moving:
        wait_for(lambda: moving.snapshot()["moved"] == 3)
        found = target.take("q", target.count("q"))

    assert {one.content for one in found} == {"zero", *"abc"}
    is_by_ids = exactly_once is ExactlyOnce.DUPLICATE_IDS
    kept = [one.get("_AMQ_DUPL_ID") for one in found[1:]]
    assert all((one is not None) is is_by_ids for one in kept), kept


def test_a_non_durable_message_is_moved_counted_apart_and_warned_of_once(source, target, caplog):
    source.send("q", "one", "two", durable=False)
    source.send("q", "three")

    with bridge(source, target, quality_of_service=ONCE) as moving:
        target.contents("q", 3)
        wait_for(lambda: moving.snapshot()["moved"] == 3)
        counted = moving.snapshot()["moved_non_durable"]

    assert counted == 2
    assert sum("non-durable" in record.message for record in caplog.records) == 1


@pytest.mark.parametrize("is_durable", [True, False])
def test_a_topic_by_either_kind_of_subscription(source, target, is_durable):
    with source.client.session() as session:
        session.create_address("news", *_multicast())
    parameters = {"subscription_name": "s.1", "client_id": "c"} if is_durable else {}

    def made():
        return JMSBridge(
            source.factory,
            target.factory,
            lambda: Destination.topic("news"),
            lambda: Destination.queue("q"),
            **parameters,
        )

    with made() as moving:
        assert moving.wait_until(BridgeState.STARTED, timeout_s=WAIT_S)
        source.send("news", "one")
        assert target.contents("q", 1) == ["one"]
        if is_durable:
            wait_for(lambda: source.count("c.s\\.1") == 0)
    source.send("news", "two")
    with made() as moving:
        assert moving.wait_until(BridgeState.STARTED, timeout_s=WAIT_S)
        source.send("news", "three")
        expected = ["two", "three"] if is_durable else ["three"]
        assert target.contents("q", len(expected)) == expected


def _multicast():
    from broker.client import RoutingType

    return (RoutingType.MULTICAST,)


def test_paused_it_moves_nothing_and_resumed_everything(source, target):
    with bridge(source, target) as moving:
        assert moving.wait_until(BridgeState.STARTED, timeout_s=WAIT_S)
        moving.pause()
        source.send("q", "one")
        assert moving.state is BridgeState.PAUSED
        assert moving.why == "paused"
        with target.client.session() as session, session.consumer("q") as consumer:
            assert consumer.receive(0.3) is None
        moving.resume()
        assert target.contents("q", 1) == ["one"]


def test_it_starts_again_after_a_stop(source, target):
    moving = bridge(source, target)
    for content in ("one", "two"):
        with moving:
            source.send("q", content)
            assert target.contents("q", 1) == [content]
        assert moving.state is BridgeState.STOPPED


def test_a_target_that_comes_later_is_waited_for(source, target):
    source.send("q", "one")
    is_there = []

    def late():
        if not is_there:
            raise ConnectionRefusedError("not there yet")
        return target.factory()

    with bridge(source, late, failure_retry_interval=20) as moving:
        assert moving.wait_until(BridgeState.RETRYING, timeout_s=WAIT_S)
        assert "not there yet" in moving.why
        is_there.append(True)
        assert target.contents("q", 1) == ["one"]


def test_it_gives_up_after_max_retries(source):
    calls = []

    def never():
        calls.append(1)
        raise ConnectionRefusedError("never there")

    with bridge(source, never, failure_retry_interval=1, max_retries=3) as moving:
        assert moving.wait_until(BridgeState.FAILED, timeout_s=WAIT_S)
        assert moving.why == "failed: never there"

    assert len(calls) == 4
