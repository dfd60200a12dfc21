"""Which files may be used again."""

import pytest

from journal.journal import Journal
from journal.options import JournalOptions, JournalType

BODY = bytes(900)


@pytest.fixture
def options(tmp_path):
    return JournalOptions(
        directory=tmp_path / "journal",
        journal_type=JournalType.NIO,
        file_size=2048,
        compact_min_files=0,
        buffer_timeout_ns=0,
    )


def roll(journal, record_id):
    """Fill more than one file with what is dead at once."""
    for i in range(4):
        journal.add(record_id + i, 1, BODY)
        journal.delete(record_id + i)


def live_ids(options):
    ids = []
    with Journal(options) as journal:
        journal.load(lambda batch: ids.extend(record.record_id for record in batch))
    return ids


def test_a_file_with_a_delete_that_commits_later_outlives_the_record(options):
    """Its file was found free of deletes before the commit made them count."""
    with Journal(options) as journal:
        journal.load()
        journal.add(1, 1, BODY)
        journal.add(2, 1, b"stays in the same file")
        roll(journal, 100)
        journal.delete(1, tx=7)
        roll(journal, 200)
        journal.reclaim()
        journal.commit(7)
        roll(journal, 300)
        journal.reclaim()

    assert live_ids(options) == [2]
