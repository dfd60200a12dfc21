"""Files that a reader keeps open: a compaction does not write over what it has copied."""

import pytest

from journal.journal import Journal
from journal.options import JournalOptions, JournalType

BODY = bytes(900)


@pytest.fixture
def options(tmp_path):
    return JournalOptions(
        directory=tmp_path / "journal",
        journal_type=JournalType.NIO,
        file_size=4096,
        compact_min_files=0,
        pool_files=-1,
        buffer_timeout_ns=0,
    )


def write(options):
    """Several files, half of whose records are dead; the names of those with data."""
    with Journal(options) as journal:
        journal.load()
        for record_id in range(1, 21):
            journal.add(record_id, 1, BODY)
        for record_id in range(1, 21, 2):
            journal.delete(record_id)
        return [one.name for one in journal.file_counts()]


def record_at(file, offset):
    file.seek(offset)
    return file.read(len(BODY))


@pytest.mark.parametrize("pins", [True, False])
def test_a_compaction_deletes_what_is_pinned(options, pins):
    write(options)
    folder = options.directory
    with Journal(options) as journal:
        places = []

        def take(batch):
            places.extend((record.file, record.offset) for record in batch)

        journal.load(take)
        names = {name for name, _ in places}
        if pins:
            for name in names:
                journal.pin_file(name)
        files = {name: (folder / name).open("rb", buffering=0) for name in names}
        before = [record_at(files[name], offset) for name, offset in places]
        assert journal.compact()
        for record_id in range(100, 140):
            journal.add(record_id, 1, BODY)
        after = [record_at(files[name], offset) for name, offset in places]
        for file in files.values():
            file.close()
        assert (after == before) == pins

    with Journal(options) as journal:
        found = []
        journal.load(lambda batch: found.extend(record.record_id for record in batch))
    assert sorted(found) == [*range(2, 21, 2), *range(100, 140)]
