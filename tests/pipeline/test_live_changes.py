"""What a query gives of a journal whose files its broker uses again while they are read."""

import errno

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed: quiver-mq[spark] brings it")

import pipeline.live_journal
from journal import Journal, JournalOptions, JournalType
from journal.compaction_recovery import plan_recovery
from journal.errors import JournalIOError
from journal.folder import JournalName
from journal.loader import Loader
from pipeline.live_journal import ATTEMPTS_MAX, FolderJournal, stable_plan
from pipeline.options import SourceOptions
from pipeline.place import Place
from pipeline.sources.journal import LiveReader


@pytest.fixture
def journal(tmp_path):
    options = JournalOptions(
        directory=tmp_path / "journal",
        journal_type=JournalType.NIO,
        file_size=4096,
        min_files=2,
        compact_min_files=0,
    )
    with Journal(options) as made:
        made.load()
        yield made


def add(journal, *ids):
    for number in ids:
        journal.add(number, 7, body_of(number))


def body_of(number):
    return b"%03d" % number * 300


def turn_over(journal, ids, *, first):
    """Delete records, and write until their files have been used again; the first stays alone."""
    for number in ids:
        journal.delete(number)
    for number in range(first, first + 20):
        add(journal, number)
        journal.delete(number)
    add(journal, first + 20)


def loading(monkeypatch, *, before=(), after=()):
    """Have each load do the next thing before it reads, or behind that."""
    before, after = iter(before), iter(after)

    class Disturbed(Loader):
        def load(self):
            next(before, lambda: None)()
            result = super().load()
            next(after, lambda: None)()
            return result

    monkeypatch.setattr(pipeline.live_journal, "Loader", Disturbed)


def found(folder):
    reader = LiveReader(
        SourceOptions.read({"path": str(folder), "records": "live", "live": "true"})
    )
    return [
        (row["record_id"], row["body"])
        for part in reader.partitions()
        for batch in reader.read(part)
        for row in batch.to_pylist()
    ]


def test_no_record_has_the_bytes_of_another(journal, tmp_path):
    folder = tmp_path / "journal"
    add(journal, *range(1, 9))
    loaded = FolderJournal(Place("n", "j", folder), 0)

    turn_over(journal, range(1, 9), first=100)

    with pytest.raises(JournalIOError, match="changed while it was being read") as raised:
        list(loaded.records())
    assert raised.value.errno == errno.ESTALE


def test_a_task_begins_again_where_files_were_used_again(journal, tmp_path, monkeypatch):
    add(journal, *range(1, 9))
    loading(monkeypatch, after=[lambda: turn_over(journal, range(1, 9), first=100)])

    assert found(tmp_path / "journal") == [(120, body_of(120))]


def test_files_that_change_all_the_time_are_one_error(journal, tmp_path, monkeypatch):
    add(journal, 1)

    def step(turn):
        return lambda: turn_over(
            journal, [100 * turn + 20] if turn else [1], first=100 * turn + 100
        )

    loading(monkeypatch, before=[step(turn) for turn in range(ATTEMPTS_MAX)])

    with pytest.raises(JournalIOError, match="faster than they are read"):
        found(tmp_path / "journal")


def test_a_listing_that_a_compaction_changes_is_made_again(journal, tmp_path, monkeypatch):
    add(journal, *range(1, 30))
    for number in range(1, 29):
        journal.delete(number)
    calls = []

    def listed(folder, name):
        plan = plan_recovery(folder, name)
        if not calls:
            journal.compact()
        calls.append(plan)
        return plan

    monkeypatch.setattr(pipeline.live_journal, "plan_recovery", listed)
    folder = tmp_path / "journal"

    plan = stable_plan(folder, JournalName())

    assert plan.files == plan_recovery(folder, JournalName()).files != calls[0].files


def test_a_file_that_went_since_it_was_loaded_is_told_in_the_same_way(journal, tmp_path):
    folder = tmp_path / "journal"
    add(journal, *range(1, 9))
    loaded = FolderJournal(Place("n", "j", folder), 0)
    (folder / "activemq-data-1.amq").rename(tmp_path / "aside")

    with pytest.raises(JournalIOError, match="changed while it was being read") as raised:
        list(loaded.records())
    assert raised.value.errno == errno.ESTALE
