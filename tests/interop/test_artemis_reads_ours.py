"""Artemis reads, compacts and goes on in what our journal wrote; and we in what it made."""

import pytest

from journal import Journal, JournalOptions
from journal.folder import JournalName, list_files
from journal.reader import read_folder
from tests.interop.model import contents, load_view, sorted_view
from tests.interop.work import Work, append

TYPES = ["NIO", "ASYNCIO", "MAPPED", "IO_URING"]
FILE_SIZE = 65536


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "journal"


def options(folder, kind, **changes):
    return JournalOptions(
        directory=folder,
        journal_type=kind,
        file_size=FILE_SIZE,
        compact_min_files=0,
        lock_acquisition_timeout_ms=0,
        **changes,
    )


def settings(kind="NIO"):
    """How Artemis opens the folder: its own I/O of that kind, where it has one."""
    if kind == "ASYNCIO":
        return {"file_size": FILE_SIZE, "type": kind, "max_io": 500}
    return {"file_size": FILE_SIZE, "type": "MAPPED" if kind == "MAPPED" else "NIO"}


def write(folder, kind, work, **changes):
    journal = Journal(options(folder, kind, **changes))
    journal.open()
    journal.load()
    for number, record in enumerate(work):
        append(journal, record, sync=number % 7 == 0 and record.kind != "event" and not record.tx)
    journal.close()


def warnings_beside_uncommitted(artemis):
    return [line for line in artemis.warnings if "AMQ142015" not in line]


def assert_loads(artemis, folder, work, kind="NIO"):
    view = artemis.call("load", folder, **settings(kind))
    assert sorted_view(view) == sorted_view(load_view(work))
    assert warnings_beside_uncommitted(artemis) == []


@pytest.mark.parametrize("checksums", [True, False])
@pytest.mark.parametrize("kind", TYPES)
def test_artemis_loads_every_kind_of_record(artemis, folder, kind, checksums):
    work = Work(1).turn(400)
    write(folder, kind, work, checksums=checksums)

    assert_loads(artemis, folder, work, kind)


@pytest.mark.parametrize("seed", range(10))
def test_artemis_loads_random_work(artemis, folder, seed):
    work = Work(100 + seed).turn(300)
    write(folder, TYPES[seed % len(TYPES)], work)

    assert_loads(artemis, folder, work)


@pytest.mark.parametrize("kind", TYPES)
def test_artemis_compacts_ours(artemis, folder, kind):
    work = Work(2).turn(400)
    write(folder, kind, work)
    before = artemis.call("load", folder, **settings(kind))

    after = artemis.call("compact", folder, **settings(kind))

    assert warnings_beside_uncommitted(artemis) == []
    assert contents(after) == contents(before)


@pytest.mark.parametrize("kind", TYPES)
def test_our_reader_follows_artemis_in_our_folder(artemis, folder, kind):
    """Ours, then its appends, its compaction, its appends again: no damage, no record lost."""
    work = Work(3).turn(300)
    write(folder, kind, work)
    artemis.call("append-after", folder, first_id=90_000, count=30, **settings(kind))
    artemis.call("compact", folder, **settings(kind))
    artemis.call("append-after", folder, first_id=91_000, count=30, **settings(kind))

    assert_our_reader_agrees(artemis, folder)


def assert_our_reader_agrees(artemis, folder):
    theirs = artemis.call("raw", folder, **settings())
    views = list(read_folder(list_files(folder, JournalName())))
    assert [str(damage) for view in views for damage in view.damages] == []
    assert [
        [(record.offset, record.size) for record in view if record.verdict == "live"]
        for view in views
    ] == [[(record["offset"], record["size"]) for record in file["records"]] for file in theirs]
