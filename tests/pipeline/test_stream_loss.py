"""What a follower says where what it should read next is gone, or is something else."""

import shutil
import tracemalloc

import pytest

pytest.importorskip(
    "pyspark.sql.streaming.datasource", reason="needs PySpark 4.2: quiver-mq[spark]"
)

import pipeline.stream
from pipeline.errors import DataLoss
from tests.pipeline.test_stream import Query, adds, adds_of, opened, reader_of, rows

# Records that fit one file of these journals.
PER_FILE = 3
LAST = 10 * PER_FILE


def lenient(query):
    """The query, started again with failOnDataLoss false."""
    query.options["failOnDataLoss"] = "false"
    query.reader = reader_of(query.path, **query.options)
    return query


@pytest.fixture
def history(tmp_path):
    """A history of ten files that a query followed up to the third, before five were removed."""
    folder = tmp_path / "node" / "history"
    with opened(
        tmp_path / "node" / "journal", retention_directory=folder, retention_period_ms=10**9
    ) as journal:
        journal.load()
        adds(journal, *range(1, LAST + 2))
    copies = sorted(folder.glob("*.amq"), key=file_id)
    assert [file_id(copy) for copy in copies] == list(range(1, 11))
    aside = folder.parent / "aside"
    aside.mkdir()
    for copy in copies[3:]:
        copy.rename(aside / copy.name)
    query = Query(folder, is_history=True)
    query.read = len(query.batch())
    for copy in copies[:3]:
        copy.rename(aside / copy.name)
    for copy in copies[5:]:
        shutil.copy(aside / copy.name, folder)
    query.aside = aside
    return query


def file_id(copy):
    return int(copy.stem.rpartition("-")[2])


def test_copies_that_were_removed_before_a_query_came_to_them_are_data_loss(history):
    assert history.read == 3 * PER_FILE

    with pytest.raises(DataLoss, match="copies of files 4 to 5: removed before it was read"):
        history.batch()


def test_the_rest_comes_where_copies_were_removed(history):
    found = lenient(history).batch()

    assert found[0] == ("damage", None)
    assert found[1:] == adds_of(*range(5 * PER_FILE + 1, LAST + 1))
    assert history.again() == found
    assert history.batch() == []


def test_copies_that_were_read_may_go(history):
    for number in (4, 5):
        (copy,) = history.aside.glob(f"*-{number}.amq")
        shutil.copy(copy, history.path)

    assert history.batch() == adds_of(*range(3 * PER_FILE + 1, LAST + 1))


@pytest.fixture
def replaced(tmp_path):
    """A query whose journal was removed, and a new one made, behind its batch."""
    folder = tmp_path / "node" / "journal"
    with opened(folder) as journal:
        journal.load()
        adds(journal, *range(1, LAST + 1))
    query = Query(folder)
    assert len(query.batch()) == LAST
    shutil.rmtree(folder)
    with opened(folder) as journal:
        journal.load()
        adds(journal, 1, 2)
    return query


def test_another_journal_in_the_place_of_the_one_that_was_followed_is_data_loss(replaced):
    with pytest.raises(DataLoss, match="all files are older than file 10, which was read"):
        replaced.batch()


def test_another_journal_is_read_from_its_beginning_if_that_is_asked_for(replaced):
    query = lenient(replaced)

    assert query.batch() == adds_of(1, 2)
    assert query.again() == adds_of(1, 2)
    assert query.batch() == []


def test_a_broker_that_compacts_and_starts_again_is_the_same(tmp_path):
    folder = tmp_path / "node" / "journal"
    query = None
    for turn in range(4):
        with opened(folder) as journal:
            journal.load()
            ids = range(100 * turn + 1, 100 * turn + 30)
            adds(journal, *ids)
            query = query or Query(folder)
            assert query.batch()[-1] == ("add", ids[-1])
            for number in ids:
                journal.delete(number)
            journal.compact()

    assert ("add", 1) not in query.batch()


def test_a_journal_has_one_position_whatever_path_leads_there(tmp_path):
    folder = tmp_path / "node" / "journal"
    with opened(folder) as journal:
        journal.load()
        adds(journal, 1, 2)
    (tmp_path / "link").symlink_to(tmp_path / "node")
    query = Query(folder)
    assert query.batch() == adds_of(1, 2)

    for path in (tmp_path / "link" / "journal", tmp_path / "node" / ".." / "node" / "journal"):
        again = reader_of(path)
        end = again.latestOffset(query.at, query.all)
        assert rows(again, query.at, end) == []


def test_a_folder_that_goes_leaves_the_others(tmp_path):
    for name in "ab":
        with opened(tmp_path / name / "journal") as journal:
            journal.load()
            adds(journal, 1)
    query = Query(tmp_path / "*" / "journal")
    assert query.batch() == adds_of(1, 1)

    shutil.rmtree(tmp_path / "a")
    with opened(tmp_path / "b" / "journal") as journal:
        journal.load()
        adds(journal, 2)

    assert query.batch() == adds_of(2)


def test_compacted_files_are_not_in_memory_together(tmp_path, monkeypatch):
    monkeypatch.setattr(pipeline.stream, "SPOOLED_IN_MEMORY_MAX", 1)
    folder = tmp_path / "node" / "journal"
    with opened(folder, file_size=1 << 18) as journal:
        journal.load()
        for number in range(1, 401):
            journal.add(number, 45, bytes(40_000))
            if number % 2:
                journal.delete(number)
        journal.compact()
        query = Query(folder)
        end = query.reader.latestOffset(query.at, query.all)
        (part,) = query.reader.partitions(query.at, end)

        tracemalloc.start()
        try:
            found = sum(batch.num_rows for batch in query.reader.read(part))
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()

    assert found == 200
    assert peak < 200 * 40_000 / 2
