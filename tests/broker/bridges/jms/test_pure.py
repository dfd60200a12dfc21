"""What of a JMS bridge has no I/O: batches, states, modes, ids, options."""

import itertools

import pytest

from broker.bridges.jms.batch import Batch
from broker.bridges.jms.core.conversion import content_of_body, made_message
from broker.bridges.jms.duplicate_ids import duplicate_id
from broker.bridges.jms.errors import BridgeConfigError, QualityOfServiceError
from broker.bridges.jms.message import ID_LISTS, BodyKind, JMSMessage, extended_ids, first_id
from broker.bridges.jms.mode import Mode, batch_size_for, choose_mode
from broker.bridges.jms.options import ExactlyOnce, JMSBridgeOptions, QualityOfService
from broker.bridges.jms.providers import Capabilities
from broker.bridges.jms.state import BridgeState, Progress
from broker.model.properties import Property, PropertyType

ONCE = QualityOfService.ONCE_AND_ONLY_ONCE
CORE = Capabilities(node_id="n", names_messages=True, keeps_duplicate_ids=True, two_phase=True)
PLAIN = Capabilities()
XA = Capabilities(two_phase=True)


JAVA = b"\xac\xed\x00\x05t\x00\x02hi"


def test_an_object_of_core_is_its_bytes_alone():
    """Core's layout has their number before them."""
    core = made_message(JMSMessage(kind=BodyKind.OBJECT, body=JAVA))

    assert bytes(core.body) == len(JAVA).to_bytes(4, "big") + JAVA
    assert content_of_body(core.type, bytes(core.body)) == JAVA


def message():
    return JMSMessage(kind=BodyKind.TEXT, body="m")


def test_max_batch_time_counts_from_the_first_message():
    """A message every 0.9 of it: Artemis starts again with each one, and never sends."""
    batch = Batch(size_max=1000, time_max_ms=100)
    now_s, sizes = 0.0, []
    for _ in range(20):
        batch.add(message(), now_s)
        now_s += 0.09
        if batch.is_due(now_s):
            sizes.append(len(batch.take(now_s)))

    # The second message comes 90 ms behind the first, and both are due 10 ms later.
    assert sizes == [2] * 10


def test_a_batch_is_due_when_it_is_full():
    batch = Batch(size_max=2, time_max_ms=-1)

    batch.add(message(), 0)
    assert not batch.is_due(1e9)
    batch.add(message(), 0)
    assert batch.is_due(0)


def test_what_is_behind_a_full_batch_is_of_the_next_one():
    batch = Batch(size_max=2, time_max_ms=100)
    for number in range(5):
        batch.add(JMSMessage(kind=BodyKind.TEXT, body=str(number)), 0.0)

    taken = [[one.body for one in batch.take(7.0)] for _ in range(2)]

    assert taken == [["0", "1"], ["2", "3"]]
    # Its time counts from when the batch before it was taken.
    assert not batch.is_due(7.09)
    assert batch.is_due(7.11)


def test_the_wait_for_a_message_ends_when_the_batch_is_due():
    batch = Batch(size_max=10, time_max_ms=100)

    assert batch.wait_s(5.0, 0.2) == 0.2
    batch.add(message(), 5.0)
    assert batch.wait_s(5.04, 0.2) == pytest.approx(0.06)
    assert batch.wait_s(6.0, 0.2) == 0


def test_it_retries_max_retries_times_and_counts_anew_behind_a_success():
    progress = Progress(max_retries=2, retry_interval_ms=7)
    error = OSError("no")
    progress.start()

    assert [progress.failed(error) for _ in range(2)] == [7, 7]
    assert progress.state is BridgeState.RETRYING
    progress.connected()
    assert [progress.failed(error) for _ in range(3)] == [7, 7, None]
    assert progress.state is BridgeState.FAILED
    assert progress.reason == "failed: no"


def test_without_an_interval_it_does_not_retry():
    progress = Progress(max_retries=-1, retry_interval_ms=-1)
    progress.start()

    assert progress.failed(OSError()) is None


def test_pausing_holds_through_a_reconnect():
    progress = Progress(max_retries=-1, retry_interval_ms=5)
    progress.start()
    progress.pause()
    assert progress.state is BridgeState.CONNECTING

    progress.connected()
    assert progress.state is BridgeState.PAUSED
    progress.failed(OSError("gone"))
    assert progress.state is BridgeState.RETRYING
    progress.connected()
    assert progress.state is BridgeState.PAUSED
    progress.resume()
    assert progress.state is BridgeState.STARTED


def test_what_fails_while_it_stops_is_not_tried_again():
    progress = Progress(max_retries=-1, retry_interval_ms=5)
    progress.start()
    progress.stop()

    assert progress.failed(OSError()) is None
    progress.connected()
    assert progress.state is BridgeState.STOPPING
    progress.stopped()
    assert progress.state is BridgeState.STOPPED


@pytest.mark.parametrize(
    ("quality", "exactly_once", "source", "target", "expected"),
    [
        (QualityOfService.AT_MOST_ONCE, ExactlyOnce.AUTO, PLAIN, PLAIN, Mode.SEND_LAST),
        (QualityOfService.DUPLICATES_OK, ExactlyOnce.AUTO, PLAIN, PLAIN, Mode.ACKNOWLEDGE_LAST),
        (ONCE, ExactlyOnce.AUTO, CORE, CORE, Mode.DUPLICATE_IDS),
        (ONCE, ExactlyOnce.TWO_PHASE, CORE, CORE, Mode.TWO_PHASE),
        (ONCE, ExactlyOnce.AUTO, CORE, XA, Mode.TWO_PHASE),
        (ONCE, ExactlyOnce.AUTO, XA, CORE, Mode.TWO_PHASE),
    ],
)
def test_the_mode_follows_from_what_both_sides_can(quality, exactly_once, source, target, expected):
    found = choose_mode(quality, exactly_once, is_same=False, source=source, target=target)

    assert found is expected


@pytest.mark.parametrize("quality", QualityOfService)
def test_one_provider_is_one_local_transaction(quality):
    found = choose_mode(quality, ExactlyOnce.AUTO, is_same=True, source=PLAIN, target=PLAIN)

    assert found is Mode.LOCAL


@pytest.mark.parametrize(
    ("exactly_once", "source", "target", "reason"),
    [
        (ExactlyOnce.AUTO, CORE, PLAIN, "the target keeps no duplicate ids, and the target cannot"),
        (ExactlyOnce.AUTO, PLAIN, PLAIN, "the source and the target cannot prepare"),
        (ExactlyOnce.DUPLICATE_IDS, XA, CORE, "the source does not name its messages for good"),
        (ExactlyOnce.TWO_PHASE, PLAIN, CORE, "the source cannot prepare transactions"),
    ],
)
def test_an_impossible_quality_says_what_is_missing(exactly_once, source, target, reason):
    with pytest.raises(QualityOfServiceError, match=reason):
        choose_mode(ONCE, exactly_once, is_same=False, source=source, target=target)


@pytest.mark.parametrize(
    ("wanted", "kept", "size"),
    [(10, 10, 10), (10, 9, 9), (10, 11, 10), (10, None, 10), (501, None, 500)],
)
def test_a_batch_is_not_larger_than_the_ids_that_the_target_keeps(wanted, kept, size):
    assert batch_size_for(wanted, kept) == size


def test_a_target_without_an_id_cache_is_refused():
    with pytest.raises(QualityOfServiceError, match="id-cache-size 0"):
        batch_size_for(1, 0)


def listed(**texts):
    return {
        name: Property(name, PropertyType.STRING, texts[key])
        for key, name in zip(("documented", "coded"), ID_LISTS, strict=True)
        if key in texts
    }


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        (listed(), "c"),
        (listed(documented="a"), "a,c"),
        (listed(coded="a,b"), "a,b,c"),
        # Ours → Artemis → ours: Artemis has extended the one that it knows.
        (listed(documented="a", coded="a,b"), "a,b,c"),
    ],
)
def test_the_list_of_ids_goes_on_whatever_bridge_wrote_it(properties, expected):
    assert extended_ids(properties, "c") == expected


def test_the_first_id_is_the_sender_s():
    assert first_id(listed(coded="a,b")) == "a"
    assert first_id({}) is None


def test_a_message_without_an_id_appends_none():
    assert extended_ids({}, None) is None
    assert extended_ids(listed(coded="a"), None) == "a"


def test_a_duplicate_id_stays_the_same_for_good():
    """A bridge of another version has sent the message already."""
    known = "4708ed557b80b2302dee6a09264c8d6bedf98ce20e2a5eb2ddbc60b2ca424ba2"

    assert duplicate_id("n", b"q 1").hex() == known


def test_duplicate_ids_differ_by_node_queue_and_message():
    positions = [b"q\0" + bytes([7, number]) for number in range(3)] + [b"p\0\7\0"]
    ids = {duplicate_id(node, one) for node, one in itertools.product("ab", positions)}

    assert len(ids) == 8


@pytest.mark.parametrize(
    ("parameters", "named"),
    [
        ({"max_batch_size": 0}, "max_batch_size is 0"),
        ({"max_batch_time": 0}, "max_batch_time is 0; it must be at least 1, or -1"),
        ({"max_retries": -2}, "max_retries is -2"),
        ({"failure_retry_interval": 0}, "failure_retry_interval is 0"),
        ({"failure_retry_interval": -1, "max_retries": 3}, "retries need an interval"),
        ({"failover_timeout": 0}, "failover_timeout"),
        ({"subscription_name": "s"}, "without a client_id"),
        ({"name": ""}, "name is empty"),
        ({"name": "x" * 33}, "more than 32 bytes"),
    ],
)
def test_wrong_parameters_are_named(parameters, named):
    with pytest.raises(BridgeConfigError, match=named):
        JMSBridgeOptions(**parameters)
