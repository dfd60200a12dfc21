"""Records whose ids have the same lower half, which is what the map of records keeps of an id."""

import pytest

from journal import Journal, JournalOptions, UnknownRecord

APART = 1 << 32
# One home in the map for all of a kind, and enough of them that it grows while they are there.
IDS = [low + high * APART for low in range(1, 40) for high in range(5)]


@pytest.fixture
def options(tmp_path):
    return JournalOptions(directory=tmp_path, journal_type="NIO", file_size=64 * 1024)


def load(options):
    found = {}

    def take(batch):
        for record in batch:
            found[record.record_id] = (*found.get(record.record_id, ()), bytes(record.body))

    with Journal(options) as journal:
        journal.load(take)
    return found


@pytest.mark.parametrize("compacted", [False, True])
def test_each_is_updated_and_deleted_by_itself(options, compacted):
    gone = set(IDS[::3])
    with Journal(options) as journal:
        journal.load()
        for record_id in IDS:
            journal.add(record_id, 1, b"%d" % record_id)
        for record_id in IDS:
            journal.update(record_id, 2, b"u%d" % record_id)
        for record_id in gone:
            journal.delete(record_id)
        for record_id in gone:
            with pytest.raises(UnknownRecord):
                journal.update(record_id, 2, b"")
        if compacted:
            journal.compact()

    expected = {one: (b"%d" % one, b"u%d" % one) for one in IDS if one not in gone}
    assert load(options) == expected
