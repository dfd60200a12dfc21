"""Folders of pages: one for each address, whatever is deleted, made anew or killed meanwhile."""

import shutil
import threading
import uuid

import pytest

from broker.model.routing_type import RoutingType
from broker.records.page_records import encode_entry
from broker.settings.queue_defaults import QueueRequest
from broker.storage.context import Admission
from broker.storage.page_folders import ADDRESS_FILE, FileFolder, FileFolders
from journal.errors import JournalDamaged
from tests.broker.bench import message
from tests.broker.paging.runs import copy_of, durable, runs

WIDE = {"max_read_page_bytes": 1024 * 1024}


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
    async def part(run):
        await run.queue()
        folders = FolderCount(monkeypatch, run.folder)
        for start in (0, 100, 200):
            await run.send_numbers(range(start, start + 30))
            sink = run.consume()
            await run.until(lambda one=sink: len(one.got) == 30)
            sink.session.stop()
            # In one turn: the last page is done with, and memory is full again.
            sink.session.acknowledge(0, sink.ids[-1], lambda error: None)
            assert not run.paging.stores["q"].is_paging
            await run.send_numbers(range(start + 50, start + 80))
            assert run.paging.stores["q"].is_paging
            sink.session.close(has_failed=False)
            assert await run.drain(30) == list(range(start + 50, start + 80))
            await run.until(lambda: not list(run.folder.glob("paging/*")))
        assert folders.most == 1

    runs(tmp_path, part, settings=WIDE, purge_page_folders=True)


def test_a_folder_is_not_removed_before_the_pages_of_its_next_use(tmp_path):
    """Paging ends, begins and ends again while nothing becomes durable."""

    async def part(run):
        await run.queue()
        await run.send_numbers(range(30))
        sink = run.consume()
        await run.until(lambda: len(sink.got) == 30)
        sink.session.stop()
        storage = run.broker.parts.storage
        admission = Admission()
        storage.new_context().after_admission(admission, lambda error: None)
        sink.session.acknowledge(0, sink.ids[-1], lambda error: None)
        store = run.paging.stores["q"]
        assert not store.is_paging
        filling = run.session(auto_commit_sends=False)
        for _ in range(10):
            filling.send(message(), lambda error: None)
        run.session().send(message(), lambda error: None)
        assert store.is_paging
        filling.rollback(lambda error: None)
        run.broker.parts.postoffice.addresses.delete_queue("q")
        await run.until(lambda: not store.is_paging)
        admission.open(storage.completions.messages)
        storage.completions.run_due()
        await run.until(run.is_quiet)
        await durable(storage.after)
        await run.until(run.is_quiet)
        assert run.broker.failure is None
        assert not list(run.folder.glob("paging/*"))

    runs(tmp_path, part, settings=WIDE, purge_page_folders=True)


def test_an_address_that_is_made_anew_has_one_folder(tmp_path, monkeypatch):
    async def before(run):
        folders = FolderCount(monkeypatch, run.folder)
        addresses = run.broker.parts.postoffice.addresses
        for start in (0, 100, 200):
            session = run.session()
            wanted = QueueRequest(name="q", address="q", routing_type=RoutingType.ANYCAST)
            session.administration.create_queue(wanted)
            await run.send_numbers(range(start, start + 60), session=session)
            # In one turn it goes, comes, and is full again.
            addresses.delete("q", force=True)
            if start == 100:
                addresses.create("q", [RoutingType.ANYCAST])
                addresses.delete("q")
        session.administration.create_queue(wanted)
        await run.send_numbers(range(60), session=session)
        assert folders.most == 1

    async def after(run):
        assert run.queue_of().message_count == 60
        assert await run.drain(60) == list(range(60))
        await run.until(lambda: not run.pages())

    runs(tmp_path, before, after, how="crash")


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
    async def before(run):
        await run.queue()
        await run.send_numbers(range(100))

    async def after(run):
        assert await run.drain(100) == list(range(100))
        await run.until(lambda: not run.pages())

    runs(tmp_path, before)
    folders = give_another_folder(tmp_path / "data", [2])
    with pytest.raises(JournalDamaged, match="its broker joins them"):
        FileFolders(tmp_path / "data" / "paging").view()
    runs(tmp_path, after)
    assert [folder.exists() for folder in folders].count(True) == 1


def test_two_folders_with_the_same_page_are_refused(tmp_path):
    for data in (b"1", b"2"):
        folder = FileFolders(tmp_path).create("q", 0)
        folder.append(1, [data])
        folder.close()

    with pytest.raises(JournalDamaged, match="'q' has another page 1 in"):
        FileFolders(tmp_path).load(lambda folder, page: False)
    assert len(list(tmp_path.glob("*/000000001.page"))) == 2


def add_another_folder(data, name, page):
    """Give the address `q` one more folder, with a page 1 of these bytes."""
    folder = data / "paging" / name
    folder.mkdir()
    (folder / ADDRESS_FILE).write_text("q\n")
    (folder / "000000001.page").write_bytes(page)
    return folder


# The folder of the first name is loaded first, and gets the pages of the other.
@pytest.mark.parametrize("name", ["0", "g"])
@pytest.mark.parametrize("torn", [b"", b"torn"])
def test_of_two_pages_of_a_number_one_whose_queues_are_gone_is_deleted(tmp_path, name, torn):
    async def before(run):
        await run.queue()
        await run.send_numbers(range(100))

    async def after(run):
        assert await run.drain(100) == list(range(100))
        await run.until(lambda: not run.pages())

    runs(tmp_path, before)
    add_another_folder(tmp_path / "data", name, encode_entry(message("gone"), [10**12]) + torn)
    runs(tmp_path, after)
    # What was not a record is kept for inspection.
    invalid = list(tmp_path.glob("data/paging/*/*.invalidPage"))
    assert [file.read_bytes()[-4:] for file in invalid] == ([torn] if torn else [])
    assert len(list(tmp_path.glob(f"data/paging/*/{ADDRESS_FILE}"))) == 1


@pytest.mark.parametrize("name", ["0", "g"])
def test_a_start_refuses_two_pages_of_a_number_that_queues_have(tmp_path, name):
    async def before(run):
        await run.queue()
        await run.send_numbers(range(100))

    runs(tmp_path, before)
    page = next(tmp_path.glob("data/paging/*/000000001.page"))
    other = add_another_folder(tmp_path / "data", name, page.read_bytes()) / page.name
    with pytest.raises(JournalDamaged, match="'q' has another page 1 in"):
        runs(tmp_path, before)
    assert page.read_bytes() == other.read_bytes()


def test_pages_of_an_address_go_on_while_its_old_folder_is_being_removed(tmp_path, monkeypatch):
    go_on = threading.Event()
    real = FileFolder.delete

    def delete(folder, page, **how):
        assert go_on.wait(600)
        real(folder, page, **how)

    async def before(run):
        await run.queue()
        await run.send_numbers(range(100))
        monkeypatch.setattr(FileFolder, "delete", delete)
        run.broker.parts.postoffice.addresses.delete("q", force=True)
        await run.until(lambda: not run.paging._deleted_stores)
        await run.queue()
        await run.send_numbers(range(10))
        # Room for their page is kept at once; it is written behind the removal.
        session = run.session()
        for number in range(10, 15):
            session.send(message(str(number), "q"), lambda error: None)
        try:
            assert len(list(tmp_path.glob(f"data/paging/*/{ADDRESS_FILE}"))) == 2
            assert len(run.pages()) == len(set(run.pages()))
            copy_of(tmp_path / "data", tmp_path / "copy" / "data")
        finally:
            go_on.set()

    async def after(run):
        assert await run.drain(10) == list(range(10))
        await run.send_numbers([20])
        assert await run.drain(1) == [20]
        await run.until(lambda: not run.pages())

    async def after_the_removal(run):
        assert await run.drain(15) == list(range(15))
        await run.until(lambda: not run.pages())

    runs(tmp_path, before)
    runs(tmp_path / "copy", after)
    runs(tmp_path, after_the_removal)
