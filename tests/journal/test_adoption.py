"""What a load does to the file that appends go on in."""

import pytest

from journal import Journal, JournalOptions
from journal.reader import read_file
from tests.journal.build import SECTOR, Built

TYPES = ["NIO", "ASYNCIO", "MAPPED", "IO_URING"]


def journal_of(folder, kind, **changes):
    options = {"file_size": 16384, "device_block_size": SECTOR}
    return Journal(JournalOptions(directory=folder, journal_type=kind, **(options | changes)))


def test_appends_to_a_file_that_only_looks_used_leave_no_gap(tmp_path):
    """By Artemis's rule stale bytes make it a data file; nothing in it is a record."""
    built = Built(file_id=5, has_leaders=False)
    built.data += bytes(100) + bytes.fromhex("1000000005") + b"\x01" * 20
    path = built.save(tmp_path)
    options = JournalOptions(
        directory=tmp_path, journal_type="NIO", file_size=16384, checksums=False
    )

    with Journal(options) as journal:
        journal.load()
        journal.add(1, 1, b"first", sync=True)

    assert read_file(path).damages == []
    assert [record.offset for record in read_file(path)] == [16]


def broken_off(folder):
    """A file without leaders: a whole record, and in the same block the head of another."""
    built = Built(file_id=5, has_leaders=False)
    built.add(1, b"whole")
    offset = built.add(2, b"y" * 900)
    del built.data[offset + 300 :]
    return built.save(folder), offset


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("checksums", [False, True])
def test_partial_record_before_the_append_block_is_not_damage(tmp_path, kind, checksums):
    path, offset = broken_off(tmp_path)
    whole = path.read_bytes()

    with journal_of(tmp_path, kind, checksums=checksums) as journal:
        result = journal.load()
        journal.add(3, 1, b"next", sync=True)

    assert [damage.torn for damage in result.damages] == [True]
    assert read_file(path).damages == []
    assert [record.record_id for record in read_file(path)] == [1, 3]
    kept = [file.read_bytes() for file in tmp_path.glob("attic/*.torn")]
    if kind in ("ASYNCIO", "IO_URING"):  # The others append where it began.
        assert kept == [whole[offset : offset + 300]]


@pytest.mark.parametrize("kind", TYPES)
def test_a_file_that_ends_in_a_whole_record_is_left_as_it_is(tmp_path, kind):
    built = Built(file_id=5, has_leaders=False)
    built.add(1, b"whole")
    path = built.save(tmp_path)
    before = path.read_bytes()

    with journal_of(tmp_path, kind, checksums=False) as journal:
        assert journal.load().damages == []

    assert path.read_bytes() == before
    assert not list(tmp_path.glob("attic/*"))
