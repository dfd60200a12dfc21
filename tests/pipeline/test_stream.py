"""What a follower reads of a growing journal, step by step, without Spark."""

import json
import shutil
import struct
import time

import pytest

pytest.importorskip(
    "pyspark.sql.streaming.datasource", reason="needs PySpark 4.2: quiver-mq[spark]"
)

from journal import Journal, JournalOptions, JournalType
from journal.errors import OptionError
from pipeline.options import SourceOptions
from pipeline.schema import JOURNAL, RETENTION
from pipeline.stream import BEGIN, Follower

FILE_SIZE = 4096
BODY = bytes(900)


def opened(folder, **options):
    return Journal(
        JournalOptions(
            directory=folder,
            journal_type=JournalType.NIO,
            **{"file_size": FILE_SIZE, "min_files": 2, "compact_min_files": 0, **options},
        )
    )


@pytest.fixture
def journal(tmp_path):
    with opened(tmp_path / "node" / "journal") as made:
        made.load()
        yield made


def reader_of(path, *, is_history=False, **options):
    from pipeline.sources.streaming import StreamReader

    given = SourceOptions.read({"path": str(path), **options}, is_stream=True)
    columns = RETENTION if is_history else JOURNAL
    return StreamReader(given, is_history=is_history, columns=columns)


def rows(reader, start, end):
    return [
        (row["kind"], row["record_id"])
        for part in reader.partitions(start, end)
        for batch in reader.read(part)
        for row in batch.to_pylist()
    ]


class Query:
    """A stream without Spark: batch after batch, each from where the last one ended."""

    def __init__(self, path, **options):
        from pyspark.sql.streaming.datasource import ReadAllAvailable

        self.path, self.options = path, options
        self.all = ReadAllAvailable()
        self.reader = reader_of(path, **options)
        self.at = self.reader.initialOffset()

    def batch(self, limit=None):
        end = self.reader.latestOffset(self.at, limit or self.reader.getDefaultReadLimit())
        found = rows(self.reader, self.at, end)
        self.last, self.at = (self.at, end), end
        return found

    def again(self):
        """The last batch, as a query that was killed and started again asks for it."""
        return rows(reader_of(self.path, **self.options), *self.last)


def adds(journal, *ids):
    for number in ids:
        journal.add(number, 45, BODY)


def adds_of(*ids):
    return [("add", number) for number in ids]


def test_each_record_comes_once_as_files_fill(journal, tmp_path):
    query = Query(tmp_path / "node" / "journal")
    found = []

    for first in range(1, 22, 3):
        adds(journal, *range(first, first + 3))
        found.append(query.batch())

    assert found == [adds_of(first, first + 1, first + 2) for first in range(1, 22, 3)]
    assert query.batch() == []


def test_a_batch_that_is_asked_for_again_is_the_same(journal, tmp_path):
    query = Query(tmp_path / "node" / "journal")
    adds(journal, *range(1, 8))

    first = query.batch()
    adds(journal, *range(8, 16))

    assert first == adds_of(*range(1, 8)) == query.again()


def test_a_limit_cuts_batches_within_files(journal, tmp_path):
    adds(journal, *range(1, 12))
    query = Query(tmp_path / "node" / "journal", maxRecordsPerTrigger="4")

    assert [len(query.batch()) for _ in range(4)] == [4, 4, 3, 0]


def test_of_several_journals_each_has_its_share_and_its_position(tmp_path):
    for name, count in (("a", 5), ("b", 2)):
        with opened(tmp_path / name / "journal") as made:
            made.load()
            adds(made, *range(1, count + 1))
    query = Query(tmp_path / "*" / "journal", maxRecordsPerTrigger="4")

    assert query.batch() == adds_of(1, 2, 1, 2)
    assert query.batch() == adds_of(3, 4)
    shutil.copytree(tmp_path / "b", tmp_path / "c")
    assert query.batch() == adds_of(5, 1)


def test_files_that_are_used_again_give_what_is_new(journal, tmp_path):
    query = Query(tmp_path / "node" / "journal")
    seen = []
    for number in range(1, 60):
        adds(journal, number)
        journal.delete(number)
        seen += query.batch()

    assert seen == [(kind, number) for number in range(1, 60) for kind in ("add", "delete")]


def test_what_was_read_and_then_compacted_does_not_come_again(journal, tmp_path):
    query = Query(tmp_path / "node" / "journal")
    adds(journal, *range(1, 30))
    for number in range(1, 30):
        if number % 5:
            journal.delete(number)
    query.batch()

    journal.compact()
    adds(journal, 30)

    assert query.batch() == adds_of(30)


def test_live_records_that_were_compacted_unread_come_once(journal, tmp_path):
    query = Query(tmp_path / "node" / "journal")
    adds(journal, *range(1, 11))
    assert len(query.batch()) == 10
    adds(journal, *range(11, 31))
    for number in range(1, 31):
        if number % 5:
            journal.delete(number)
    journal.update(15, 32, struct.pack(">q", 7))
    journal.update(5, 32, struct.pack(">q", 7))

    journal.compact()
    adds(journal, 31)
    found = query.batch()

    # The update of 5 went unseen with its file: nothing tells it from one that was read.
    moved = [(15, "add"), (15, "update"), (20, "add"), (25, "add"), (30, "add")]
    assert sorted((number, kind) for kind, number in found[:-1]) == moved
    assert found[-1] == ("add", 31)
    assert query.again() == found
    assert query.batch() == []


def test_a_batch_that_was_compacted_before_it_is_read_again_gives_what_is_live(journal, tmp_path):
    query = Query(tmp_path / "node" / "journal", maxRecordsPerTrigger="7")
    adds(journal, *range(1, 22))
    found = query.batch()
    assert query.batch() == adds_of(*range(8, 15))
    for number in range(1, 22):
        if number % 4:
            journal.delete(number)

    journal.compact()

    assert query.again() == adds_of(8, 12)
    rest = [number for kind, number in query.batch() + query.batch() if kind == "add"]
    assert rest == [16, 20]
    assert len(found) == 7


def test_a_task_whose_file_was_compacted_since_gives_what_is_live_of_it(journal, tmp_path):
    query = Query(tmp_path / "node" / "journal")
    adds(journal, *range(1, 22))
    end = query.reader.latestOffset(query.at, query.all)
    parts = query.reader.partitions(query.at, end)
    for number in range(1, 22):
        if number % 4:
            journal.delete(number)

    journal.compact()
    found = [
        (row["kind"], row["record_id"])
        for part in parts
        for batch in query.reader.read(part)
        for row in batch.to_pylist()
    ]

    assert found == adds_of(4, 8, 12, 16, 20)


def test_latest_gives_only_what_comes_and_available_now_only_what_is_there(journal, tmp_path):
    adds(journal, *range(1, 8))
    latest = Query(tmp_path / "node" / "journal", startingOffsets="latest")
    now = Query(tmp_path / "node" / "journal", maxRecordsPerTrigger="3")
    now.reader.prepareForTriggerAvailableNow()
    adds(journal, *range(8, 16))

    assert latest.batch() == adds_of(*range(8, 16))
    assert [now.batch() for _ in range(4)] == [
        adds_of(1, 2, 3),
        adds_of(4, 5, 6),
        adds_of(7),
        [],
    ]


def test_offsets_say_where_a_query_begins_and_where_it_ends(journal, tmp_path):
    folder = tmp_path / "node" / "journal"
    adds(journal, *range(1, 8))
    first = Query(folder, maxRecordsPerTrigger="3")
    first.batch()
    after_3 = json.dumps(first.at)
    first.batch()
    after_6 = json.dumps(first.at)

    query = Query(folder, startingOffsets=after_3, endingOffsets=after_6)
    assert query.batch() == adds_of(4, 5, 6)
    adds(journal, 8)
    assert query.batch() == []
    # What is there when it starts; of folders that are not named, nothing.
    latest = Query(folder, endingOffsets="latest", maxRecordsPerTrigger="5")
    found = latest.batch()
    adds(journal, 9)
    assert found + latest.batch() + latest.batch() == adds_of(*range(1, 9))
    other = json.dumps({"elsewhere": json.loads(after_6).popitem()[1]})
    assert Query(folder, endingOffsets=other).batch() == []
    assert Query(folder, startingOffsets=other).batch() == adds_of(*range(1, 10))


def test_what_a_query_has_not_come_to_is_told(journal, tmp_path):
    folder = tmp_path / "node" / "journal"
    adds(journal, *range(1, 8))
    query = Query(folder, maxRecordsPerTrigger="2")
    lags = []
    while query.batch():
        ((key, latest),) = query.reader.reportLatestOffset().items()
        assert key == str(folder.resolve())
        lags.append(latest["lag_bytes"])

    assert lags == sorted(lags, reverse=True)
    assert lags[0] > 4 * len(BODY)
    assert lags[-1] == 0
    assert (latest["file_id"], latest["offset"]) == (
        query.at[key]["file_id"],
        query.at[key]["offset"],
    )


def test_a_torn_tail_waits_and_what_replaces_it_comes(tmp_path):
    folder = tmp_path / "node" / "journal"
    with opened(folder) as journal:
        journal.load()
        adds(journal, 1, 2)
    query = Query(folder)
    file = next(folder.glob("*-1.amq"))
    whole = file.read_bytes()
    at = whole.rindex(b"\x0b\x00\x00\x00\x01")
    file.write_bytes(whole[: at + 40] + bytes(len(whole) - at - 40))
    assert query.batch() == adds_of(1)

    file.write_bytes(whole)

    assert query.batch() == adds_of(2)


def test_a_history_is_followed_copy_by_copy(tmp_path):
    history = tmp_path / "node" / "history"
    query = None
    seen = []
    with opened(
        tmp_path / "node" / "journal", retention_directory=history, retention_period_ms=10**9
    ) as journal:
        journal.load()
        for number in range(1, 40):
            adds(journal, number)
            journal.delete(number)
            if any(history.glob("*.amq")):
                query = query or Query(history, is_history=True, maxRecordsPerTrigger="3")
                seen += query.batch()
    while found := query.batch():
        seen += found

    copied = len(seen) // 2
    (latest,) = query.reader.reportLatestOffset().values()
    assert latest["lag_bytes"] == 0
    now_ms = time.time_ns() // 1_000_000
    for ending_ms, count in ((1, 0), (now_ms + 60_000, len(seen))):
        bounded = Query(history, is_history=True, endingTimestamp=str(ending_ms))
        assert len(bounded.batch()) == count
    assert copied > 30
    expected = [(kind, number) for number in range(1, copied + 1) for kind in ("add", "delete")]
    assert seen == expected


def test_what_cannot_be_followed_is_said(tmp_path):
    with pytest.raises(OptionError, match="only raw records"):
        reader_of(tmp_path, records="live")
    with pytest.raises(OptionError, match="retention has"):
        reader_of(tmp_path, startingTimestamp="5")
    with pytest.raises(OptionError, match=r"endingTimestamp: .* retention has"):
        reader_of(tmp_path, endingTimestamp="5")
    for wrong in ("earliest", "{", '{"/a": 1}', '{"/a": {"file_id": 1}}'):
        with pytest.raises(OptionError, match="endingOffsets"):
            reader_of(tmp_path, endingOffsets=wrong)
    with pytest.raises(OptionError, match="must be 1 or more"):
        reader_of(tmp_path, maxRecordsPerTrigger="0")
    with pytest.raises(OptionError, match="no option 'startingOffsets'"):
        SourceOptions.read({"path": "x", "startingOffsets": "latest"})


def test_a_position_is_json(journal, tmp_path):
    from pipeline.place import Place
    from pipeline.stream import Position

    adds(journal, *range(1, 9))
    folder = tmp_path / "node" / "journal"
    end = Follower(Place("n", "j", folder), is_history=False, user_version=0).end()

    assert Position.of_json(end.json()) == end
    assert end.is_behind(BEGIN)
    assert not BEGIN.is_behind(end)
    assert end.greatest_id == 8
