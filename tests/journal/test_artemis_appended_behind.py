"""A journal on a file in which Artemis went on behind our torn tail.

docs/decisions/0007: such a file is read, and never appended to or cut.
"""

import pytest

from journal import Journal, JournalDamaged, JournalOptions
from tests.journal.build import SECTOR, Built

TYPES = ["NIO", "ASYNCIO", "MAPPED", "IO_URING"]


def appended_behind(folder, *, body, gap=0):
    """A file of ours with a torn record of `body` bytes, and one of Artemis's behind it."""
    built = Built()
    built.add(1)
    built.mark()
    offset = built.add(2, b"\xaa" * body)
    del built.data[offset + 100 :]
    built.pad()
    built.data += bytes(gap)
    built.add(50, by_artemis=True)
    return built.save(folder)


def journal_of(folder, kind="NIO", **changes):
    return Journal(
        JournalOptions(
            directory=folder,
            journal_type=kind,
            file_size=16384,
            device_block_size=SECTOR,
            **changes,
        )
    )


def load(journal):
    """(ids, LoadResult) of an opened journal."""
    ids = []
    journal.open()
    result = journal.load(lambda batch: ids.extend(record.record_id for record in batch))
    return ids, result


@pytest.mark.parametrize("kind", TYPES)
def test_load_says_that_the_file_is_closed_and_goes_on_in_another(tmp_path, kind):
    path = appended_behind(tmp_path, body=200)
    before = path.read_bytes()
    journal = journal_of(tmp_path, kind)

    ids, result = load(journal)
    journal.add(60, 1, b"ours again", sync=True)
    journal.close()

    assert ids == [1, 50]
    assert {file.name: file.is_closed for file in result.files if file.has_data} == {
        path.name: True
    }
    assert path.read_bytes() == before
    ids, result = load(again := journal_of(tmp_path, kind))
    again.close()
    assert ids == [1, 50, 60]
    assert [file.is_closed for file in result.files if file.has_data] == [True, False]


def test_load_says_that_a_file_of_ours_is_not_closed(tmp_path):
    built = Built()
    built.add(1)
    path = built.mark().save(tmp_path)
    journal = journal_of(tmp_path)

    _, result = load(journal)
    journal.add(60, 1, b"ours", sync=True)
    journal.close()

    assert [file.is_closed for file in result.files if file.has_data] == [False]
    assert b"ours" in path.read_bytes()


@pytest.mark.parametrize("kind", TYPES)
def test_record_that_may_be_a_body_s_stops_the_load(tmp_path, kind):
    before = appended_behind(tmp_path, body=4000).read_bytes()
    journal = journal_of(tmp_path, kind)

    with pytest.raises(JournalDamaged):
        load(journal)
    journal.close()

    assert (tmp_path / "activemq-data-1.amq").read_bytes() == before


@pytest.mark.parametrize("kind", TYPES)
def test_quarantine_goes_on_without_it_and_leaves_it_where_it_is(tmp_path, kind):
    path = appended_behind(tmp_path, body=4000)
    before = path.read_bytes()
    journal = journal_of(tmp_path, kind, damage="quarantine")

    ids, result = load(journal)
    journal.add(60, 1, b"ours again", sync=True)
    journal.close()

    assert ids == [1]
    assert [damage.torn for damage in result.damages] == [False, True]
    assert [file.is_closed for file in result.files if file.has_data] == [True]
    assert path.read_bytes() == before
    again = journal_of(tmp_path, kind, damage="quarantine")
    ids, _ = load(again)
    again.close()
    assert ids == [1, 60]
