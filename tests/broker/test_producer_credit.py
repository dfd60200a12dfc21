"""What producers may send when memory or the disk is full: BLOCK, FAIL, DROP, and credits."""

from pathlib import Path

import pytest

from broker.errors import BrokerError, ErrorCode
from broker.model.xid import Xid
from broker.server.disk import DiskMonitor, DiskSpace, disk_space
from broker.settings.policies import AddressFullPolicy, DiskFullPolicy
from tests.broker.bench import Answers, Bench, done, message

XID = Xid(7, b"branch", b"global")


@pytest.fixture
def bench():
    made = Bench()
    made.queue()
    return made


def acknowledge(sink, count=1):
    for one in sink.got[:count]:
        sink.session.acknowledge(0, one.message_id, done, is_individual=True)


def test_block_holds_credits_back_until_there_is_room(bench, caplog):
    bench.set(max_size_messages=2, address_full_policy=AddressFullPolicy.BLOCK)
    session, granted = bench.session(), []
    session.request_credits("q", granted.append)
    for _ in range(3):
        # What was within the credits is taken.
        session.send(message(), done)
    session.request_credits("q", granted.append)
    session.request_credits("q", granted.append)
    assert granted == [False]
    told = (
        "AMQ222183: Blocking message production on address 'q': its memory is full, with 3 messages"
    )
    assert [one[: len(told)] for one in caplog.messages] == [told]

    sink = bench.consume()
    for one in sink.got[:2]:
        assert granted == [False]
        sink.session.acknowledge(0, one.message_id, done, is_individual=True)

    assert granted == [False, False, False]


@pytest.mark.parametrize("limit", ["max_size_messages", "max_size_bytes"])
def test_what_is_not_committed_holds_no_credits_back(bench, limit):
    """It would wait for room that only its own commit makes."""
    bench.set(**{limit: 2}, address_full_policy=AddressFullPolicy.BLOCK)
    bench.queue("other", address="q")
    session, granted = bench.transacted(), []
    for number in range(1, 6):
        session.send(message(), done)
        session.request_credits("q", granted.append)
        assert granted == [False] * number
    memory = bench.addresses.by_name["q"].memory
    assert memory.is_full

    session.rollback(done)
    assert (memory.uncommitted_count, memory.uncommitted_size) == (0, 0)

    for _ in range(3):
        session.send(message(), done)
    session.commit(done)
    session.send(message(), done)
    session.request_credits("q", granted.append)
    assert (memory.count, memory.uncommitted_count) == (4, 1)
    assert len(granted) == 5

    for queue in ("q", "other"):
        acknowledge(bench.consume(queue), 3)
    assert granted == [False] * 6


def test_what_is_prepared_needs_no_more_room(bench):
    bench.set(max_size_messages=2, address_full_policy=AddressFullPolicy.BLOCK)
    granted = []
    session = bench.session(is_xa=True, auto_commit_sends=False)
    session.xa.start(XID)
    for _ in range(3):
        session.send(message(), done)
    session.xa.end(XID, has_failed=False)
    session.request_credits("q", granted.append)
    assert granted == [False]

    session.xa.prepare(XID, done)
    session.request_credits("q", granted.append)
    assert granted == [False]

    session.xa.rollback(XID, done)
    assert granted == [False, False]
    assert bench.addresses.by_name["q"].memory.uncommitted_count == 0


def test_fail_refuses_messages_and_credits(bench, caplog):
    bench.set(max_size_messages=1, address_full_policy=AddressFullPolicy.FAIL)
    session, granted = bench.session(), []
    session.send(message(), done)

    with pytest.raises(BrokerError) as refusal:
        session.send(message(), done)
    session.request_credits("q", granted.append)

    assert refusal.value.code is ErrorCode.ADDRESS_FULL
    assert granted == [True]
    assert caplog.messages == ["messages sent to address q are refused: its memory is full"]
    assert bench.addresses.queues["q"].message_count == 1


def test_drop_takes_and_forgets(bench, caplog):
    bench.set(max_size_messages=1, address_full_policy=AddressFullPolicy.DROP)
    answers = Answers()
    for _ in range(3):
        bench.session().send(message(), answers)

    assert answers.errors == [None] * 3
    assert bench.addresses.queues["q"].message_count == 1
    assert bench.counters.dropped == 2
    told = "AMQ222039: Messages sent to address 'q' are being dropped: its memory is full"
    assert caplog.messages == [told]


def test_the_broker_as_a_whole_may_be_full(bench):
    bench.set(address_full_policy=AddressFullPolicy.FAIL)
    bench.addresses.memory.size_max = 1
    bench.session().send(message(), done)
    bench.queue("other")

    with pytest.raises(BrokerError):
        bench.session().send(message(address="other"), done)


class Disk:
    """A disk of 100 bytes."""

    def __init__(self):
        self.usable = 50

    def __call__(self, folder):
        return DiskSpace(self.usable, 100)


@pytest.fixture
def disk():
    return Disk()


def monitor(bench, disk, **limits):
    limits = {"max_usage_percent": 90, **limits}
    return DiskMonitor([Path("/somewhere")], bench.addresses.memory, measure=disk, **limits)


@pytest.mark.parametrize("policy", [None, DiskFullPolicy.BLOCK])
@pytest.mark.parametrize("address", ["q", "new"])
def test_a_full_disk_blocks_producers_and_no_consumer(bench, disk, policy, address):
    bench.set(disk_full_policy=policy)
    watch = monitor(bench, disk)
    session, granted = bench.session(), []
    session.send(message("there"), done)
    disk.usable = 10
    watch.look()

    session.request_credits(address, granted.append)
    sink = bench.consume()
    acknowledge(sink)
    assert granted == []
    assert sink.bodies == ["there"]

    disk.usable = 11
    watch.look()
    assert granted == [False]


def test_a_full_disk_refuses_where_it_is_told_to(bench, disk):
    bench.set(disk_full_policy=DiskFullPolicy.FAIL)
    disk.usable = 0
    monitor(bench, disk).look()
    granted = []

    with pytest.raises(BrokerError, match="the disk is") as refusal:
        bench.session().send(message(), done)
    bench.session().request_credits("q", granted.append)

    assert refusal.value.code is ErrorCode.ADDRESS_FULL
    assert granted == [True]


def test_a_full_disk_drops_where_it_is_told_to(bench, disk):
    bench.set(disk_full_policy=DiskFullPolicy.DROP)
    disk.usable = 0
    monitor(bench, disk).look()
    bench.session().send(message(), done)

    assert bench.addresses.queues["q"].message_count == 0
    assert bench.counters.dropped == 1


def test_bytes_that_must_stay_free_count_instead_of_the_usage(bench, disk):
    watch = monitor(bench, disk, min_free=49)
    watch.look()
    assert not bench.addresses.memory.is_disk_full

    disk.usable = 49
    watch.look()
    assert bench.addresses.memory.is_disk_full


def test_without_a_limit_no_disk_is_full(bench, disk):
    disk.usable = 0

    monitor(bench, disk, max_usage_percent=-1).look()

    memory = bench.addresses.memory
    assert (memory.is_disk_full, memory.disk_usage) == (False, 1)


def test_the_fullest_disk_counts(bench):
    spaces = {"a": DiskSpace(60, 100), "b": DiskSpace(50, 1000), "c": DiskSpace(70, 100)}
    watch = DiskMonitor(
        [Path(one) for one in spaces],
        bench.addresses.memory,
        max_usage_percent=95,
        measure=lambda folder: spaces[str(folder)],
    )

    watch.look()
    assert bench.addresses.memory.is_disk_full
    assert bench.addresses.memory.disk_usage == 0.95
    spaces["b"] = DiskSpace(51, 1000)
    watch.look()

    assert not bench.addresses.memory.is_disk_full


def test_who_waits_for_memory_and_disk_goes_on_when_there_is_both(bench, disk):
    bench.set(max_size_messages=1, address_full_policy=AddressFullPolicy.BLOCK)
    watch = monitor(bench, disk)
    session, granted = bench.session(), []
    session.send(message(), done)
    disk.usable = 0
    watch.look()
    session.request_credits("q", granted.append)

    acknowledge(bench.consume())
    assert granted == []
    disk.usable = 50
    watch.look()

    assert granted == [False]


def test_the_disk_of_a_folder_that_is_not_there_yet(tmp_path):
    assert disk_space(tmp_path / "not" / "there").total == disk_space(tmp_path).total > 0
