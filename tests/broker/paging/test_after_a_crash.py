"""What a start finds where a crash, or a power failure, came between two steps."""

import asyncio
import contextlib
import logging
import shutil
import threading

import pytest

from broker.model.message import Message
from broker.model.routing_type import RoutingType
from broker.model.xid import Xid
from broker.paging import counting, loading
from broker.records.page_records import entries
from broker.storage.page_folders import FileFolder, FileFolders
from tests.broker.bench import message
from tests.broker.paging.runs import BrokerRun, copy_of, durable, runs

XID = Xid(1, b"b", b"g")
WIDE = {"max_read_page_bytes": 1024 * 1024}
XA = {"is_xa": True, "auto_commit_sends": False, "auto_commit_acks": False}


class HeldCounting:
    """Counts one page after a start, and the others once it is told to."""

    def __init__(self, monkeypatch):
        monkeypatch.setattr(loading, "_COUNTED_AT_ONCE", 0)
        self._real = counting.Counting.go_on
        self._calls = []
        self._is_held = True
        monkeypatch.setattr(counting.Counting, "go_on", lambda one: self._go_on(one))

    def _go_on(self, one):
        self._calls.append(one)
        if len(self._calls) == 1 or not self._is_held:
            self._real(one)

    @property
    def has_counted(self):
        return len(self._calls) == 2

    def go_on(self):
        self._is_held = False
        self._real(self._calls[-1])


@contextlib.contextmanager
def held_pages(monkeypatch):
    """Nothing is written to pages meanwhile."""
    go_on = threading.Event()
    real = FileFolder.append

    def append(folder, page, data):
        assert go_on.wait(600)
        real(folder, page, data)

    with monkeypatch.context() as patched:
        patched.setattr(FileFolder, "append", append)
        try:
            yield
        finally:
            go_on.set()


@pytest.mark.parametrize("names", [("q", "q"), ("x", "y")], ids=["two pages", "two addresses"])
def test_a_transaction_counts_while_its_pages_are_being_counted(tmp_path, monkeypatch, names):
    async def before(run):
        for name in dict.fromkeys(names):
            await run.queue(name)
            await run.send_numbers(range(12), name)
        session = run.session(auto_commit_sends=False)
        for number in range(100, 180):
            session.send(message(str(number), names[number % 2]), lambda error: None)
        await durable(session.commit)
        for name in dict.fromkeys(names):
            await run.send_numbers(range(200, 300), name)

    runs(tmp_path, before, how="crash", settings=WIDE)
    counts = HeldCounting(monkeypatch)

    async def after(run):
        await run.until(lambda: counts.has_counted)
        stores = run.paging.stores
        # The last page of each was counted at once.
        first, name = next(
            (store.pages[1], name)
            for name, store in stores.items()
            if store.pages[1].remaining is not None
        )
        # More of the transaction lies in pages that are not counted yet.
        assert first.transactions
        sink = run.consume(name)
        await run.until(lambda: len(sink.got) >= 10)
        taken = 0
        while not first.is_gone:
            await run.until(lambda known=taken: len(sink.got) > known)
            taken = len(sink.got)
            await run.acknowledge(sink, sink.ids[taken - 1])
        await run.until(lambda: 1 not in stores[name].pages)
        await durable(run.broker.parts.storage.after)
        await run.until(run.is_quiet)
        sink.session.close(has_failed=False)
        counts.go_on()

        await run.until(lambda: run.queue_of(name).has_at_most(1000))
        got = {int(body) for body in sink.bodies[:taken]}
        for other in dict.fromkeys(names):
            sent = {number for number in range(100, 180) if names[number % 2] == other}
            expected = {*range(12), *sent, *range(200, 300)} - (got if other == name else set())
            assert set(await run.drain(len(expected), other)) == expected
        await run.until(lambda: not any(map(run.pages, names)))
        await run.until(lambda: len(run.broker._activation.stores.messages) == 0)

    async def one_run():
        async with BrokerRun(tmp_path / "copy0", settings=WIDE) as run:
            await after(run)

    asyncio.run(one_run())


def test_old_acknowledgements_do_not_meet_new_messages(tmp_path):
    """Not durable ones are delivered before they are synced, their acknowledgements are synced."""

    async def before(run):
        await run.queue()
        await run.send_numbers(range(20))
        await run.send_numbers(range(20, 25), durable=False)
        sink = run.consume()
        await run.until(lambda: len(sink.got) == 25)
        for number in range(20, 25):
            await run.acknowledge(sink, sink.ids[number], is_individual=True)

    async def after(run):
        await run.send_numbers(range(100, 110))
        assert await run.drain(30) == [*range(20), *range(100, 110)]
        await run.until(lambda: not run.pages())
        await run.until(lambda: len(run.broker._activation.stores.messages) == 0)

    runs(tmp_path, before, how="crash", settings=WIDE)
    page = next((tmp_path / "copy0").glob("paging/*/*.page"))
    data = page.read_bytes()
    # What the power failure takes: all that was not synced.
    page.write_bytes(data[: list(entries(data, 0, 0))[9].end])

    async def one_run():
        async with BrokerRun(tmp_path / "copy0", settings=WIDE) as run:
            await after(run)

    asyncio.run(one_run())


@pytest.mark.parametrize("is_written", [True, False])
def test_an_address_may_go_while_its_pages_are_written(tmp_path, monkeypatch, is_written):
    async def part(run):
        await run.queue()
        await run.queue("other")
        session = run.session()
        with held_pages(monkeypatch):
            for number in range(100):
                session.send(message(str(number)), lambda error: None)
            if is_written:
                # Some of it is on its way to the disk, the rest waits in memory.
                await asyncio.sleep(0)
                for number in range(100, 200):
                    session.send(message(str(number)), lambda error: None)
            run.broker.parts.postoffice.addresses.delete("q", force=True)
        await run.until(run.is_quiet)
        await durable(run.broker.parts.storage.after)
        await run.until(run.is_quiet)
        assert run.broker.failure is None
        assert not run.pages()
        assert len(run.broker._activation.stores.messages) == 0
        await run.send_numbers(range(30), "other")
        assert await run.drain(30, "other") == list(range(30))

    runs(tmp_path, part)


def test_a_rollback_is_recorded_at_once_and_seen_by_others_later(tmp_path, monkeypatch):
    """What a prepared transaction gives back comes behind pages that were to be written before."""

    async def before(run):
        await run.queue()
        await run.queue("full")
        await run.send_numbers(range(20))
        await run.send_numbers(range(20), "full")
        session = run.session(**XA)
        session.xa.start(XID)
        sink = run.consume(session=session)
        await run.until(lambda: len(sink.got) == 20)
        await run.acknowledge(sink, sink.ids[19])
        await run.send_numbers([500], session=session)
        session.xa.end(XID, has_failed=False)
        await durable(session.xa.prepare, XID)
        with held_pages(monkeypatch):
            run.session().send(message("delayed", "full"), lambda error: None)
            session.stop()
            other = run.session(**XA)
            other.xa.rollback(XID, lambda error: None)
            taker = run.consume()
            messages = run.broker.parts.storage.completions.messages
            await run.until(lambda: messages.is_durable)
            assert taker.got == []
            copy_of(run.folder, tmp_path / "copy")
        await run.until(lambda: len(taker.got) == 20)
        await run.until(run.is_quiet)

    async def after():
        async with BrokerRun(tmp_path / "copy", settings=WIDE) as run:
            assert run.broker.parts.transactions.in_doubt() == ()
            assert run.queue_of().message_count == 20

    runs(tmp_path, before, settings=WIDE)
    asyncio.run(after())


def test_what_was_rolled_back_before_its_pages_were_written_is_not_in_doubt(tmp_path, monkeypatch):
    async def before(run):
        await run.queue()
        await run.send_numbers(range(20))
        session = run.session(**XA)
        session.xa.start(XID)
        sink = run.consume(session=session)
        await run.until(lambda: len(sink.got) == 20)
        await run.acknowledge(sink, sink.ids[19])
        with held_pages(monkeypatch):
            session.send(message("in the transaction"), lambda error: None)
            session.xa.end(XID, has_failed=False)
            session.xa.prepare(XID, lambda error: None)
            run.session(**XA).xa.rollback(XID, lambda error: None)
            session.close(has_failed=False)
        await run.until(run.is_quiet)

    async def after(run):
        assert run.broker.parts.transactions.in_doubt() == ()
        assert await run.drain(20) == list(range(20))

    runs(tmp_path, before, after, how="crash", settings=WIDE)


def test_what_another_has_acknowledged_does_not_come_back_with_a_transaction(tmp_path):
    async def before(run):
        await run.queue()
        await run.send_numbers(range(20))
        session = run.session(**XA)
        session.xa.start(XID)
        sink = run.consume(session=session)
        await run.until(lambda: len(sink.got) == 20)
        await run.acknowledge(sink, sink.ids[19])
        session.xa.end(XID, has_failed=False)
        await durable(session.xa.prepare, XID)
        # As if somebody had it since, and the rollback before that had been lost.
        for number in range(5):
            run.paging.appends.acknowledge(run.queue_of().queue_id, 1, number, None, True)
        await durable(run.broker.parts.storage.after)

    async def after(run):
        session = run.session(**XA)
        await durable(session.xa.rollback, XID)
        assert await run.drain(15) == [*range(10), *range(15, 20)]
        await run.until(lambda: not run.pages())
        await run.until(lambda: len(run.broker._activation.stores.messages) == 0)

    runs(tmp_path, before, after, how="crash", settings=WIDE)


def test_pages_of_a_deleted_queue_go_after_its_record(tmp_path):
    async def part(run):
        await run.queue()
        await run.send_numbers(range(60))
        bindings = run.broker.parts.storage.completions.bindings
        before = bindings.appended
        seen = []
        real = run.paging.change

        def change(work, done):
            seen.append(bindings.durable)
            real(work, done)

        run.paging.change = change
        run.broker.parts.postoffice.addresses.delete_queue("q")
        await run.until(lambda: not run.pages())
        assert seen
        assert min(seen) > before

    runs(tmp_path, part)


def test_a_transaction_whose_pages_went_with_their_queue_is_forgotten(tmp_path):
    async def part(run):
        await run.queue("q", address="t", routing_type=RoutingType.MULTICAST)
        await run.send_numbers(range(20), "t")
        session = run.session(auto_commit_sends=False)
        for number in range(100):
            session.send(message(str(number), "t"), lambda error: None)
        run.broker.parts.postoffice.addresses.delete_queue("q")
        await run.until(lambda: not run.pages("t"))
        await run.until(run.is_quiet)
        await durable(session.commit)
        assert len(run.paging.transactions) == 0
        await run.until(lambda: len(run.broker._activation.stores.messages) == 0)

    runs(tmp_path, part)


def test_a_prepared_transaction_with_a_short_record_leaves_nothing_behind(tmp_path):
    async def before(run):
        await run.queue()
        await run.send_numbers(range(20))
        session = run.session(**XA)
        session.xa.start(XID)
        sink = run.consume(session=session)
        await run.until(lambda: len(sink.got) == 20)
        await run.acknowledge(sink, sink.ids[19])
        await run.send_numbers(range(100, 120), session=session)
        storage = run.broker.parts.storage
        storage._messages.add(storage.new_id(), 39, b"short", tx=session.tx.tx_id, wait=False)
        session.xa.end(XID, has_failed=False)
        await durable(session.xa.prepare, XID)

    async def after(run):
        assert run.broker.parts.transactions.in_doubt() == ()
        assert len(run.paging.transactions) == 0
        assert await run.drain(20) == list(range(20))
        await run.until(lambda: not run.pages())
        await run.until(lambda: len(run.broker._activation.stores.messages) == 0)

    runs(tmp_path, before, after, how="crash", settings=WIDE)


async def send_large(run, body, **how):
    session = run.session()
    session.uploads.begin(Message.decode_headers(message("", **how).encode_headers()))
    session.uploads.append(body)
    await durable(lambda done: session.uploads.end(-1, done))


def test_large_messages_that_are_not_durable_are_delivered_from_pages(tmp_path):
    async def part(run):
        await run.queue()
        await run.send_numbers(range(15))
        for _ in range(3):
            await send_large(run, b"body" * 1000, durable=False)
        sink = run.consume()
        await run.until(lambda: len(sink.got) == 18)
        for one in sink.got[15:]:
            assert one.large.read(0, 1 << 20) == b"body" * 1000
            one.large.close()
        await run.acknowledge(sink, sink.ids[-1])
        await run.until(lambda: not run.pages())
        await run.until(lambda: not list(run.folder.glob("largemessages/*")))

    runs(tmp_path, part, settings=WIDE)


@pytest.mark.parametrize("is_purged", [True, False])
def test_large_messages_that_are_not_durable_leave_their_page_with_the_end(tmp_path, is_purged):
    async def before(run):
        await run.queue()
        await run.send_numbers(range(15))
        for _ in range(3):
            await send_large(run, b"body", durable=False)
        await run.send_numbers(range(15, 20))

    async def after(run):
        assert not list(run.folder.glob("largemessages/*"))
        if is_purged:
            run.queue_of().remove_all()
        else:
            assert await run.drain(20) == list(range(20))
        await run.until(lambda: not run.pages())
        await run.until(lambda: len(run.broker._activation.stores.messages) == 0)
        assert not run.paging.active_count

    runs(tmp_path, before, after, how="crash", settings=WIDE)


def test_no_page_is_deleted_in_a_folder_that_was_never_made(tmp_path):
    folder = FileFolders(tmp_path).create("q", 0)
    folder.delete(1, is_invalid=False)
    assert not list(tmp_path.iterdir())


def test_a_paging_folder_that_was_left_behind_is_told(tmp_path, caplog):
    async def before(run):
        await run.queue()
        await run.send_numbers(range(25))
        sink = run.consume()
        await run.until(lambda: len(sink.got) == 25)
        for number in range(20, 25):
            await run.acknowledge(sink, sink.ids[number], is_individual=True)

    runs(tmp_path, before, settings=WIDE)
    (paging,) = [one for one in tmp_path.rglob("paging") if one.is_dir()]
    shutil.rmtree(paging)
    caplog.set_level(logging.INFO)
    caplog.clear()

    async def after(run):
        await run.until(lambda: run.queue_of().pages is None)

    runs(tmp_path, after, settings=WIDE)

    (line,) = [one for one in caplog.messages if "AMQ224153" in one]
    assert "on Address q" in line
    assert "of 1 page is deleted (5 records)" in line
