"""What a start finds where a crash, or a power failure, came between two steps."""

import asyncio
import contextlib
import shutil
import threading
import uuid

import pytest

from broker.model.message import Message
from broker.model.routing_type import RoutingType
from broker.model.xid import Xid
from broker.paging import counting, loading
from broker.records.page_records import entries
from broker.settings.queue_defaults import QueueRequest
from broker.storage.context import Admission
from broker.storage.page_folders import ADDRESS_FILE, FileFolder, FileFolders
from journal.errors import JournalDamaged
from tests.broker.bench import message
from tests.broker.paging.lives import Life, copy_of, durable, lives

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
    async def before(life):
        for name in dict.fromkeys(names):
            await life.queue(name)
            await life.send_numbers(range(12), name)
        session = life.session(auto_commit_sends=False)
        for number in range(100, 180):
            session.send(message(str(number), names[number % 2]), lambda error: None)
        await durable(session.commit)
        for name in dict.fromkeys(names):
            await life.send_numbers(range(200, 300), name)

    lives(tmp_path, before, how="crash", settings=WIDE)
    counts = HeldCounting(monkeypatch)

    async def after(life):
        await life.until(lambda: counts.has_counted)
        stores = life.paging.stores
        # The last page of each was counted at once.
        first, name = next(
            (store.pages[1], name)
            for name, store in stores.items()
            if store.pages[1].remaining is not None
        )
        # More of the transaction lies in pages that are not counted yet.
        assert first.transactions
        sink = life.consume(name)
        await life.until(lambda: len(sink.got) >= 10)
        taken = 0
        while not first.is_gone:
            await life.until(lambda known=taken: len(sink.got) > known)
            taken = len(sink.got)
            await life.acknowledge(sink, sink.ids[taken - 1])
        await life.until(lambda: 1 not in stores[name].pages)
        await durable(life.broker.storage.after)
        await life.until(life.is_quiet)
        sink.session.close(has_failed=False)
        counts.go_on()

        await life.until(lambda: life.queue_of(name).has_at_most(1000))
        got = {int(body) for body in sink.bodies[:taken]}
        for other in dict.fromkeys(names):
            sent = {number for number in range(100, 180) if names[number % 2] == other}
            expected = {*range(12), *sent, *range(200, 300)} - (got if other == name else set())
            assert set(await life.drain(len(expected), other)) == expected
        await life.until(lambda: not any(map(life.pages, names)))
        await life.until(lambda: len(life.broker._stores.messages) == 0)

    async def one_life():
        async with Life(tmp_path / "copy0", settings=WIDE) as life:
            await after(life)

    asyncio.run(one_life())


def test_old_acknowledgements_do_not_meet_new_messages(tmp_path):
    """Not durable ones are delivered before they are synced, their acknowledgements are synced."""

    async def before(life):
        await life.queue()
        await life.send_numbers(range(20))
        await life.send_numbers(range(20, 25), durable=False)
        sink = life.consume()
        await life.until(lambda: len(sink.got) == 25)
        for number in range(20, 25):
            await life.acknowledge(sink, sink.ids[number], is_individual=True)

    async def after(life):
        await life.send_numbers(range(100, 110))
        assert await life.drain(30) == [*range(20), *range(100, 110)]
        await life.until(lambda: not life.pages())
        await life.until(lambda: len(life.broker._stores.messages) == 0)

    lives(tmp_path, before, how="crash", settings=WIDE)
    page = next((tmp_path / "copy0").glob("paging/*/*.page"))
    data = page.read_bytes()
    # What the power failure takes: all that was not synced.
    page.write_bytes(data[: list(entries(data, 0, 0))[9].end])

    async def one_life():
        async with Life(tmp_path / "copy0", settings=WIDE) as life:
            await after(life)

    asyncio.run(one_life())


@pytest.mark.parametrize("is_written", [True, False])
def test_an_address_may_go_while_its_pages_are_written(tmp_path, monkeypatch, is_written):
    async def part(life):
        await life.queue()
        await life.queue("other")
        session = life.session()
        with held_pages(monkeypatch):
            for number in range(100):
                session.send(message(str(number)), lambda error: None)
            if is_written:
                # Some of it is on its way to the disk, the rest waits in memory.
                await asyncio.sleep(0)
                for number in range(100, 200):
                    session.send(message(str(number)), lambda error: None)
            life.broker.postoffice.addresses.delete("q", force=True)
        await life.until(life.is_quiet)
        await durable(life.broker.storage.after)
        await life.until(life.is_quiet)
        assert life.broker.failure is None
        assert not life.pages()
        assert len(life.broker._stores.messages) == 0
        await life.send_numbers(range(30), "other")
        assert await life.drain(30, "other") == list(range(30))

    lives(tmp_path, part)


class FolderCount:
    """How many folders one address has at most, looked at whenever something is written."""

    def __init__(self, monkeypatch, folder):
        self.most = 0
        real = FileFolder.append

        def append(one, page, data):
            real(one, page, data)
            self.most = max(self.most, len(list(folder.glob(f"paging/*/{ADDRESS_FILE}"))))

        monkeypatch.setattr(FileFolder, "append", append)


def test_an_address_that_pages_again_at_once_has_one_folder(tmp_path, monkeypatch):
    async def part(life):
        await life.queue()
        folders = FolderCount(monkeypatch, life.folder)
        for start in (0, 100, 200):
            await life.send_numbers(range(start, start + 30))
            sink = life.consume()
            await life.until(lambda one=sink: len(one.got) == 30)
            sink.session.stop()
            # In one turn: the last page is done with, and memory is full again.
            sink.session.acknowledge(0, sink.ids[-1], lambda error: None)
            assert not life.paging.stores["q"].is_paging
            await life.send_numbers(range(start + 50, start + 80))
            assert life.paging.stores["q"].is_paging
            sink.session.close(has_failed=False)
            assert await life.drain(30) == list(range(start + 50, start + 80))
            await life.until(lambda: not list(life.folder.glob("paging/*")))
        assert folders.most == 1

    lives(tmp_path, part, settings=WIDE, purge_page_folders=True)


def test_a_folder_is_not_removed_before_the_pages_of_its_next_use(tmp_path):
    """Paging ends, begins and ends again while nothing becomes durable."""

    async def part(life):
        await life.queue()
        await life.send_numbers(range(30))
        sink = life.consume()
        await life.until(lambda: len(sink.got) == 30)
        sink.session.stop()
        storage = life.broker.storage
        admission = Admission()
        storage.new_context().after_admission(admission, lambda error: None)
        sink.session.acknowledge(0, sink.ids[-1], lambda error: None)
        store = life.paging.stores["q"]
        assert not store.is_paging
        filling = life.session(auto_commit_sends=False)
        for _ in range(10):
            filling.send(message(), lambda error: None)
        life.session().send(message(), lambda error: None)
        assert store.is_paging
        filling.rollback(lambda error: None)
        life.broker.postoffice.addresses.delete_queue("q")
        await life.until(lambda: not store.is_paging)
        admission.open(storage.completions.messages)
        storage.completions.run_due()
        await life.until(life.is_quiet)
        await durable(storage.after)
        await life.until(life.is_quiet)
        assert life.broker.failure is None
        assert not list(life.folder.glob("paging/*"))

    lives(tmp_path, part, settings=WIDE, purge_page_folders=True)


def test_an_address_that_is_made_anew_has_one_folder(tmp_path, monkeypatch):
    async def before(life):
        folders = FolderCount(monkeypatch, life.folder)
        addresses = life.broker.postoffice.addresses
        for start in (0, 100, 200):
            session = life.session()
            wanted = QueueRequest(name="q", address="q", routing_type=RoutingType.ANYCAST)
            session.administration.create_queue(wanted)
            await life.send_numbers(range(start, start + 60), session=session)
            # In one turn it goes, comes, and is full again.
            addresses.delete("q", force=True)
            if start == 100:
                addresses.create("q", [RoutingType.ANYCAST])
                addresses.delete("q")
        session.administration.create_queue(wanted)
        await life.send_numbers(range(60), session=session)
        assert folders.most == 1

    async def after(life):
        assert life.queue_of().message_count == 60
        assert await life.drain(60) == list(range(60))
        await life.until(lambda: not life.pages())

    lives(tmp_path, before, after, how="crash")


def give_another_folder(folder, pages):
    """Move pages of an address to a folder of their own, as an earlier broker could leave it."""
    old = next(folder.glob(f"paging/*/{ADDRESS_FILE}")).parent
    new = old.with_name(str(uuid.uuid1()))
    new.mkdir()
    shutil.copy(old / ADDRESS_FILE, new)
    for page in pages:
        shutil.move(old / f"{page:09d}.page", new)
    return old, new


def test_two_folders_of_an_address_become_one(tmp_path):
    async def before(life):
        await life.queue()
        await life.send_numbers(range(100))

    async def after(life):
        assert await life.drain(100) == list(range(100))
        await life.until(lambda: not life.pages())

    lives(tmp_path, before)
    folders = give_another_folder(tmp_path / "data", [2])
    with pytest.raises(JournalDamaged, match="its broker joins them"):
        FileFolders(tmp_path / "data" / "paging").view()
    lives(tmp_path, after)
    assert [folder.exists() for folder in folders].count(True) == 1


def test_two_folders_with_the_same_page_are_refused(tmp_path):
    for data in (b"1", b"2"):
        folder = FileFolders(tmp_path).create("q", 0)
        folder.append(1, [data])
        folder.close()

    with pytest.raises(JournalDamaged, match="'q' has another page 1 in"):
        FileFolders(tmp_path).load()
    assert len(list(tmp_path.glob("*/000000001.page"))) == 2


def test_a_rollback_is_recorded_at_once_and_seen_by_others_later(tmp_path, monkeypatch):
    """What a prepared transaction gives back comes behind pages that were to be written before."""

    async def before(life):
        await life.queue()
        await life.queue("full")
        await life.send_numbers(range(20))
        await life.send_numbers(range(20), "full")
        session = life.session(**XA)
        session.xa.start(XID)
        sink = life.consume(session=session)
        await life.until(lambda: len(sink.got) == 20)
        await life.acknowledge(sink, sink.ids[19])
        await life.send_numbers([500], session=session)
        session.xa.end(XID, has_failed=False)
        await durable(session.xa.prepare, XID)
        with held_pages(monkeypatch):
            life.session().send(message("delayed", "full"), lambda error: None)
            session.stop()
            other = life.session(**XA)
            other.xa.rollback(XID, lambda error: None)
            taker = life.consume()
            messages = life.broker.storage.completions.messages
            await life.until(lambda: messages.is_durable)
            assert taker.got == []
            copy_of(life.folder, tmp_path / "copy")
        await life.until(lambda: len(taker.got) == 20)
        await life.until(life.is_quiet)

    async def after():
        async with Life(tmp_path / "copy", settings=WIDE) as life:
            assert life.broker.transactions.in_doubt() == ()
            assert life.queue_of().message_count == 20

    lives(tmp_path, before, settings=WIDE)
    asyncio.run(after())


def test_what_was_rolled_back_before_its_pages_were_written_is_not_in_doubt(tmp_path, monkeypatch):
    async def before(life):
        await life.queue()
        await life.send_numbers(range(20))
        session = life.session(**XA)
        session.xa.start(XID)
        sink = life.consume(session=session)
        await life.until(lambda: len(sink.got) == 20)
        await life.acknowledge(sink, sink.ids[19])
        with held_pages(monkeypatch):
            session.send(message("in the transaction"), lambda error: None)
            session.xa.end(XID, has_failed=False)
            session.xa.prepare(XID, lambda error: None)
            life.session(**XA).xa.rollback(XID, lambda error: None)
            session.close(has_failed=False)
        await life.until(life.is_quiet)

    async def after(life):
        assert life.broker.transactions.in_doubt() == ()
        assert await life.drain(20) == list(range(20))

    lives(tmp_path, before, after, how="crash", settings=WIDE)


def test_what_another_has_acknowledged_does_not_come_back_with_a_transaction(tmp_path):
    async def before(life):
        await life.queue()
        await life.send_numbers(range(20))
        session = life.session(**XA)
        session.xa.start(XID)
        sink = life.consume(session=session)
        await life.until(lambda: len(sink.got) == 20)
        await life.acknowledge(sink, sink.ids[19])
        session.xa.end(XID, has_failed=False)
        await durable(session.xa.prepare, XID)
        # As if somebody had it since, and the rollback before that had been lost.
        for number in range(5):
            life.paging.appends.acknowledge(life.queue_of().queue_id, 1, number, None, True)
        await durable(life.broker.storage.after)

    async def after(life):
        session = life.session(**XA)
        await durable(session.xa.rollback, XID)
        assert await life.drain(15) == [*range(10), *range(15, 20)]
        await life.until(lambda: not life.pages())
        await life.until(lambda: len(life.broker._stores.messages) == 0)

    lives(tmp_path, before, after, how="crash", settings=WIDE)


def test_pages_of_a_deleted_queue_go_after_its_record(tmp_path):
    async def part(life):
        await life.queue()
        await life.send_numbers(range(60))
        bindings = life.broker.storage.completions.bindings
        before = bindings.appended
        seen = []
        real = life.paging.change

        def change(work, done):
            seen.append(bindings.durable)
            real(work, done)

        life.paging.change = change
        life.broker.postoffice.addresses.delete_queue("q")
        await life.until(lambda: not life.pages())
        assert seen
        assert min(seen) > before

    lives(tmp_path, part)


def test_a_transaction_whose_pages_went_with_their_queue_is_forgotten(tmp_path):
    async def part(life):
        await life.queue("q", address="t", routing_type=RoutingType.MULTICAST)
        await life.send_numbers(range(20), "t")
        session = life.session(auto_commit_sends=False)
        for number in range(100):
            session.send(message(str(number), "t"), lambda error: None)
        life.broker.postoffice.addresses.delete_queue("q")
        await life.until(lambda: not life.pages("t"))
        await life.until(life.is_quiet)
        await durable(session.commit)
        assert len(life.paging.transactions) == 0
        await life.until(lambda: len(life.broker._stores.messages) == 0)

    lives(tmp_path, part)


def test_a_prepared_transaction_with_a_short_record_leaves_nothing_behind(tmp_path):
    async def before(life):
        await life.queue()
        await life.send_numbers(range(20))
        session = life.session(**XA)
        session.xa.start(XID)
        sink = life.consume(session=session)
        await life.until(lambda: len(sink.got) == 20)
        await life.acknowledge(sink, sink.ids[19])
        await life.send_numbers(range(100, 120), session=session)
        storage = life.broker.storage
        storage._messages.add(storage.new_id(), 39, b"short", tx=session.tx.tx_id, wait=False)
        session.xa.end(XID, has_failed=False)
        await durable(session.xa.prepare, XID)

    async def after(life):
        assert life.broker.transactions.in_doubt() == ()
        assert len(life.paging.transactions) == 0
        assert await life.drain(20) == list(range(20))
        await life.until(lambda: not life.pages())
        await life.until(lambda: len(life.broker._stores.messages) == 0)

    lives(tmp_path, before, after, how="crash", settings=WIDE)


async def send_large(life, body, **how):
    session = life.session()
    session.uploads.begin(Message.decode_headers(message("", **how).encode_headers()))
    session.uploads.append(body)
    await durable(lambda done: session.uploads.end(-1, done))


def test_large_messages_that_are_not_durable_are_delivered_from_pages(tmp_path):
    async def part(life):
        await life.queue()
        await life.send_numbers(range(15))
        for _ in range(3):
            await send_large(life, b"body" * 1000, durable=False)
        sink = life.consume()
        await life.until(lambda: len(sink.got) == 18)
        for one in sink.got[15:]:
            assert one.large.read(0, 1 << 20) == b"body" * 1000
            one.large.close()
        await life.acknowledge(sink, sink.ids[-1])
        await life.until(lambda: not life.pages())
        await life.until(lambda: not list(life.folder.glob("largemessages/*")))

    lives(tmp_path, part, settings=WIDE)


@pytest.mark.parametrize("is_purged", [True, False])
def test_large_messages_that_are_not_durable_leave_their_page_with_the_end(tmp_path, is_purged):
    async def before(life):
        await life.queue()
        await life.send_numbers(range(15))
        for _ in range(3):
            await send_large(life, b"body", durable=False)
        await life.send_numbers(range(15, 20))

    async def after(life):
        assert not list(life.folder.glob("largemessages/*"))
        if is_purged:
            life.queue_of().remove_all()
        else:
            assert await life.drain(20) == list(range(20))
        await life.until(lambda: not life.pages())
        await life.until(lambda: len(life.broker._stores.messages) == 0)
        assert not life.paging.active_count

    lives(tmp_path, before, after, how="crash", settings=WIDE)


def test_no_page_is_deleted_in_a_folder_that_was_never_made(tmp_path):
    folder = FileFolders(tmp_path).create("q", 0)
    folder.delete(1, is_invalid=False)
    assert not list(tmp_path.iterdir())
