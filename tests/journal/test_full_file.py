"""A file in which no record fits any more says so, and counts its records, before it is left."""

import contextlib
import time

import pytest

from journal import Journal, JournalDamaged, JournalOptions
from tests.crash.workload import TYPES
from tests.live_copy import copy_live

BLOCK = 4096
FILE_SIZE = 16 * BLOCK
MARK_SIZE = 9
END_MARK = 0xF4
BODY_SIZE = 100
WAIT_S = 60


def opened(folder, kind):
    journal = Journal(
        JournalOptions(
            directory=folder,
            journal_type=kind,
            file_size=FILE_SIZE,
            buffer_size=8 * BLOCK,
            compact_min_files=0,
        )
    )
    journal.open()
    return journal


def used(first):
    """Where the file's last record ends: its last byte is never zero here."""
    return len(first.read_bytes().rstrip(b"\0"))


def fill(journal, first):
    """Leave room for the end mark and for no other mark; the ids of the records."""
    start = used(first)
    journal.add(1, 0, b"x" * BODY_SIZE)
    second = used(first)
    if second > BLOCK:  # Batches begin with blocks; the last block is the end mark's.
        ids = range(1, FILE_SIZE // BLOCK - 1)
        for record_id in ids[1:]:
            journal.add(record_id, 0, b"x" * BODY_SIZE)
        return ids
    overhead = second - start - BODY_SIZE
    for record_id in (2, 3):
        journal.add(record_id, 0, b"x" * 7 * BLOCK)
    journal.add(4, 0, b"x" * (FILE_SIZE - used(first) - overhead - MARK_SIZE - 3))
    return range(1, 5)


@pytest.fixture
def full(tmp_path):
    """`full(kind)`: an open journal, its first file, which is full, and the records' ids."""
    with contextlib.ExitStack() as stack:

        def filled(kind):
            journal = opened(tmp_path / "journal", kind)
            stack.callback(journal.close)
            journal.load()
            first = tmp_path / "journal" / "activemq-data-1.amq"
            ids = fill(journal, first)
            assert 0 < FILE_SIZE - used(first) < 2 * BLOCK
            return journal, first, ids

        yield filled


def end_mark(first):
    """Where the first file ends, and is said to."""
    data = first.read_bytes()
    place = len(data) - MARK_SIZE - 3
    return data[place] == END_MARK or data[-BLOCK] == END_MARK


def assert_last_record_counts(folder, copy, kind):
    """Its damage is not a torn tail."""
    copy_live(folder, copy)
    first = copy / "activemq-data-1.amq"
    data = bytearray(first.read_bytes())
    data[data.rindex(b"x" * BODY_SIZE)] ^= 0x10
    first.write_bytes(data)
    journal = opened(copy, kind)
    with pytest.raises(JournalDamaged, match="activemq-data-1"):
        journal.load()
    journal.close()


@pytest.mark.parametrize("kind", TYPES)
def test_a_clean_close_of_a_full_file(kind, full, tmp_path):
    journal, first, ids = full(kind)

    journal.close()

    assert end_mark(first)
    assert_last_record_counts(tmp_path / "journal", tmp_path / "copy", kind)
    again = opened(tmp_path / "journal", kind)
    assert again.load().max_id == ids[-1]
    again.add(ids[-1] + 1, 0, b"y")
    again.close()
    assert first.stat().st_size == FILE_SIZE
    last = opened(tmp_path / "journal", kind)
    assert last.load().max_id == ids[-1] + 1
    last.close()


@pytest.mark.parametrize("kind", TYPES)
def test_a_full_file_of_a_journal_that_is_idle(kind, full, tmp_path):
    journal, first, ids = full(kind)

    deadline = time.monotonic() + WAIT_S
    while not end_mark(first) and time.monotonic() < deadline:
        time.sleep(0.05)

    assert_last_record_counts(tmp_path / "journal", tmp_path / "copy", kind)
    journal.add(ids[-1] + 1, 0, b"y" * BODY_SIZE)
    journal.close()
    assert first.stat().st_size == FILE_SIZE
    again = opened(tmp_path / "journal", kind)
    found = again.load()
    again.close()
    assert (found.max_id, found.damages) == (ids[-1] + 1, [])
