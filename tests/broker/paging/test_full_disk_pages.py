"""A full disk while an address is paging: what has no room is refused, and the broker goes on."""

import asyncio
import errno
from types import SimpleNamespace

import pytest

from broker.errors import BrokerError, ErrorCode, broker_error
from broker.storage import page_folders
from journal.errors import JournalFull, RecordTooLarge
from tests.broker.bench import message
from tests.broker.full_journal import full_journals
from tests.broker.paging.runs import BrokerRun, durable, runs
from tests.crash.small_disk import FILE_SYSTEMS, empty, fill, small_disk


class Room:
    """Of a disk on which keep_room() finds nothing while it `is_full`."""

    def __init__(self, monkeypatch):
        self.is_full = False
        self._real = page_folders.keep_room
        monkeypatch.setattr(page_folders, "keep_room", self._keep)

    def _keep(self, fd, size):
        if self.is_full:
            raise JournalFull(errno.ENOSPC, "no room")
        return self._real(fd, size)


@pytest.fixture
def room(monkeypatch):
    # Room is asked for with every message.
    monkeypatch.setattr("broker.paging.store._ROOM_LEAST", 1)
    return Room(monkeypatch)


async def refused(sending):
    with pytest.raises(BrokerError) as caught:
        await sending
    assert caught.value.code is ErrorCode.ADDRESS_FULL
    assert "disk is full" in str(caught.value)


async def until_refused(run, first, size=0):
    """Send until it is refused; the numbers that were taken."""
    session, number = run.session(), first
    while True:
        try:
            session.send(message(f"{number}".zfill(size or 1)), lambda error: None)
        except BrokerError:
            await durable(session.context.after)
            return list(range(first, number))
        number += 1


def test_a_page_that_has_no_room_is_refused_and_the_broker_goes_on(tmp_path, room):
    async def part(run):
        await run.queue()
        await run.send_numbers(range(30))
        room.is_full = True
        # What was kept before may be used up.
        taken = await until_refused(run, 30)
        await refused(run.send_numbers([1000]))
        assert run.broker.failure is None
        count = 30 + len(taken)
        assert run.queue_of().message_count == count
        assert await run.drain(count) == list(range(count))
        room.is_full = False
        await run.send_numbers([2000])
        assert await run.drain(1) == [2000]
        await run.until(lambda: not run.pages())

    runs(tmp_path, part, after_nothing)


async def after_nothing(run):
    assert run.queue_of().message_count == 0


@pytest.mark.parametrize("count", [0, 5])
def test_a_first_page_that_has_no_room_leaves_nothing(tmp_path, room, count):
    """With none sent before it is paging only because memory is full."""

    async def part(run):
        await run.queue()
        await run.send_numbers(range(10))
        room.is_full = True
        for _ in range(2):
            await refused(run.send_numbers([100]))
        assert run.pages() == []
        room.is_full = False
        await run.send_numbers(range(10, 10 + count))
        assert await run.drain(10 + count) == list(range(10 + count))
        await run.until(lambda: not run.pages())

    runs(tmp_path, part, after_nothing)


def test_a_transaction_that_lost_a_page_is_rolled_back(tmp_path, room):
    async def part(run):
        await run.queue()
        await run.send_numbers(range(20))
        room.is_full = True
        taken = await until_refused(run, 20)
        session = run.session(auto_commit_sends=False)
        await refused(durable(session.send, message("1000")))
        await refused(durable(session.commit))
        count = 20 + len(taken)
        assert run.queue_of().message_count == count
        assert await run.drain(count) == list(range(count))

    runs(tmp_path, part, after_nothing)


def test_a_dead_letter_waits_until_its_page_has_room(tmp_path, room):
    async def part(run):
        await run.queue()
        await run.queue("dead")
        await run.send_numbers(range(3))
        await run.send_numbers(range(100, 120), address="dead")
        room.is_full = True
        while True:
            try:
                await run.send_numbers([120], address="dead")
            except BrokerError:
                break
        known = run.queue_of("dead").message_count
        sink = run.consume(session=run.session(auto_commit_acks=False))
        await run.until(lambda: len(sink.got) == 3)
        session = sink.session
        session.acknowledge(0, sink.ids[0], lambda error: None)
        await durable(lambda done: session.rollback(done, considers_last_delivered=True))
        for _ in range(5):
            await asyncio.sleep(0.01)
        assert run.queue_of("dead").message_count == known
        room.is_full = False
        await run.until(lambda: run.queue_of("dead").message_count > known)
        assert run.broker.failure is None

    settings = {"max_delivery_attempts": 1, "dead_letter_address": "dead"}
    runs(tmp_path, part, settings=settings)


def test_a_message_for_several_addresses_is_in_all_or_none(tmp_path, room):
    """Bound to a pattern and to the address itself, of which one is paging and has no room."""

    async def part(run):
        await run.queue("a.b", routing_type=0)
        await run.queue("a.#", routing_type=0)
        await run.send_numbers(range(40), address="a.b")
        queues = [run.queue_of(name) for name in ("a.b", "a.#")]
        room.is_full = True
        while True:
            counts = [queue.message_count for queue in queues]
            try:
                await run.send_numbers([100], address="a.b")
            except BrokerError:
                break
        assert [queue.message_count for queue in queues] == counts
        assert counts[0] == counts[1]

    runs(tmp_path, part)


@pytest.mark.parametrize("system", FILE_SYSTEMS)
def test_pages_on_a_disk_without_a_byte_free(tmp_path, system):
    """Real file systems: what was accepted is written, whatever else is full."""

    async def first(run):
        await run.queue()
        await run.send_numbers(range(50))
        fill(folder.parent)
        taken = await until_refused(run, 50, 2000)
        sent.extend([*range(50), *taken])
        assert run.broker.failure is None
        sink = run.consume()
        await run.until(lambda: len(sink.got) > 20)
        await run.acknowledge(sink, sink.ids[19])
        sink.session.close(has_failed=False)
        await run.until(run.is_quiet)

    async def second(run):
        assert await run.drain(len(sent) - 20) == sent[20:]
        await run.until(lambda: not run.pages())
        empty(folder.parent)
        await run.send_numbers(range(7, 40))
        assert await run.drain(33) == list(range(7, 40))

    async def both():
        async with BrokerRun(folder, settings=big) as run:
            await first(run)
        async with BrokerRun(folder, settings=big) as run:
            await second(run)

    big, sent = {"page_size_bytes": 256 * 1024}, []
    with small_disk(system, tmp_path) as mount:
        folder = mount / "data"
        asyncio.run(both())


def test_a_commit_without_room_for_what_is_said_of_its_pages_is_rolled_back(tmp_path):
    async def part(run):
        def add_transaction(page_tx_id, count, tx_id):
            # The journal refuses it, as it does without room.
            with pytest.raises(RecordTooLarge):
                run.broker._activation.stores.messages.add(
                    1, 35, bytes(1 << 20), tx=tx_id, wait=False
                )
            raise broker_error("address_is_full", "the disk is full")

        await run.queue()
        await run.send_numbers(range(20))
        session = run.session(auto_commit_sends=False)
        await durable(session.send, message("1000"))
        session.tx.paged._appends = SimpleNamespace(add_transaction=add_transaction)
        await refused(durable(session.commit))
        assert run.broker.failure is None
        assert run.queue_of().message_count == 20
        assert await run.drain(20) == list(range(20))

    runs(tmp_path, part, after_nothing)


def test_pages_are_numbered_behind_records_that_could_not_be_deleted(tmp_path, monkeypatch):
    """Or what they acknowledge would be a message of a new page."""
    refused = {("delete", None)}
    full_journals(monkeypatch, refused)

    async def drained(run):
        await run.queue()
        await run.send_numbers(range(100))
        assert await run.drain(100) == list(range(100))
        await run.until(lambda: not run.pages())

    async def again(run):
        assert run.queue_of().message_count == 0
        await run.send_numbers(range(200, 300))
        assert run.queue_of().message_count == 100
        refused.clear()

    async def room_again(run):
        assert await run.drain(100) == list(range(200, 300))
        await run.until(lambda: not run.pages())

    runs(tmp_path, drained, again, room_again)


COMPLETE = 42


def test_a_page_that_is_not_recorded_as_done_keeps_what_it_has(tmp_path, monkeypatch):
    """One of two queues is done with its pages, and the record that says so has no room."""
    made = full_journals(monkeypatch, {("add", COMPLETE)})

    async def before(run):
        for name in ("one", "two"):
            await run.queue(name, address="q", routing_type=0)
        await run.send_numbers(range(100))
        assert await run.drain(100, "one") == list(range(100))
        assert run.broker.failure is None

    async def after(run):
        made[-1].refused.clear()
        assert run.queue_of("one").message_count == 0
        assert await run.drain(100, "two") == list(range(100))
        await run.until(lambda: not run.pages())
        await run.until(lambda: len(run.broker._activation.stores.messages) == 0)

    runs(tmp_path, before, after, how="crash")
