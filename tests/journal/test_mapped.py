"""MAPPED: which way its bytes go, and that the tap (so the tests of durability) sees them all."""

from pathlib import Path

import pytest

from journal import Journal, JournalOptions
from journal.files.base import Folder
from journal.files.choose import choose_back_end
from journal.files.tap import set_tap
from journal.options import JournalType


@pytest.fixture
def journal(tmp_path):
    """An open MAPPED journal that writes each unsynced record at once."""
    options = JournalOptions(
        directory=tmp_path,
        journal_type=JournalType.MAPPED,
        file_size=1 << 20,
        buffer_timeout_ns=0,
    )
    with Journal(options) as opened:
        opened.load()
        yield opened
        set_tap(None)


def tapped():
    """What the tap is told as done from now on: (call, data), in order."""
    told = []
    set_tap(lambda event: told.append((event.call, event.data)) if event.is_done else None)
    return told


def first_file(folder):
    return folder / "activemq-data-1.amq"


def test_its_files_are_mapped_while_they_are_open(journal, tmp_path):
    journal.add(1, 1, b"x", sync=True)

    mapped = Path("/proc/self/maps").read_text()

    assert str(first_file(tmp_path)) in mapped


def test_an_unsynced_record_is_in_the_file_and_synced_by_the_next_sync(journal, tmp_path):
    told = tapped()

    journal.add(1, 1, b"unsynced body", sync=False)
    journal.sync()

    calls = [call for call, _ in told]
    stored = next(i for i, (_, data) in enumerate(told) if b"unsynced body" in data)
    assert calls[stored] == "write"
    assert "sync_data" in calls[stored:]
    assert b"unsynced body" in first_file(tmp_path).read_bytes()


def test_a_synced_record_is_written_before_its_sync(journal, tmp_path):
    told = tapped()

    journal.add(1, 1, b"synced body", sync=True)

    calls = [call for call, data in told if call == "sync_data" or b"synced body" in data]
    assert calls == ["write", "sync_data"]
    assert b"synced body" in first_file(tmp_path).read_bytes()


def test_small_and_large_batches_stand_side_by_side(journal, tmp_path):
    """Stores into the map and writes through the descriptor share pages and do not hide a byte."""
    bodies = {i: bytes([i]) * (10 if i % 2 else 70_000) for i in range(1, 12)}

    for record_id, body in bodies.items():
        journal.add(record_id, 1, body, sync=record_id % 3 == 0)
    journal.sync()

    content = first_file(tmp_path).read_bytes()
    assert [i for i, body in bodies.items() if body not in content] == []


@pytest.mark.parametrize("kind", list(JournalType))
@pytest.mark.parametrize("datasync", [True, False])
def test_the_disk_starts_early_only_below_the_page_cache_and_with_datasync(
    tmp_path, kind, datasync
):
    options = JournalOptions(directory=tmp_path, journal_type=kind, datasync=datasync)
    with Folder(tmp_path) as folder:
        back_end = choose_back_end(folder, options)

        assert back_end.starts_early == (datasync and not back_end.direct)

        back_end.close()
