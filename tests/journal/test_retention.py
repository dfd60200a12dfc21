"""The history has a whole copy of every file that was filled, for as long as it should."""

import os
from datetime import datetime, timedelta

import pytest

from journal.errors import JournalIOError
from journal.files.base import Folder
from journal.folder import JournalName
from journal.reader import read_file
from journal.retention import History, history_name, list_history, restore_names
from tests.journal.stored import View, loaded

NAME = JournalName()
START = datetime.fromisoformat("2024-05-06T07:08:09")  # Local, as in the names.


class Clock:
    """A clock that the test moves."""

    def __init__(self):
        self.time = START

    def __call__(self):
        return self.time


def journal_folder(tmp_path, files=3, size=4096):
    folder = tmp_path / "journal"
    folder.mkdir()
    for number in range(1, files + 1):
        (folder / f"activemq-data-{number}.amq").write_bytes(bytes([number]) * size)
    return folder


def history_of(tmp_path, clock, **limits):
    return History(
        Folder(tmp_path / "journal"),
        tmp_path / "history",
        NAME,
        file_size=4096,
        clock=clock,
        **limits,
    )


def test_copy_is_named_by_time_and_id(tmp_path):
    journal_folder(tmp_path)
    clock = Clock()
    clock.time = datetime.fromisoformat("1972-01-19T04:05:07")

    name = history_of(tmp_path, clock).copy("activemq-data-1.amq", 1)

    assert name == "activemq-data-19720119040507-1.amq"
    assert (tmp_path / "history" / name).read_bytes() == b"\x01" * 4096
    (copy,) = list_history(tmp_path / "history", NAME)
    assert (copy.time, copy.file_id) == (clock.time, 1)


def test_copies_older_than_the_period_go(tmp_path):
    journal_folder(tmp_path, files=4)
    clock = Clock()
    history = history_of(tmp_path, clock, period_ms=10_000)
    for number in range(1, 5):
        history.copy(f"activemq-data-{number}.amq", number)
        clock.time += timedelta(seconds=4)

    history.clean()

    assert [copy.file_id for copy in history.copies()] == [3, 4]


@pytest.mark.parametrize("days", [10**6, 2**31 - 1])
def test_a_period_that_began_before_all_calendars_keeps_everything(tmp_path, days):
    journal_folder(tmp_path)
    history = history_of(tmp_path, Clock(), period_ms=days * 86_400_000)
    for number in range(1, 4):
        history.copy(f"activemq-data-{number}.amq", number)

    assert [copy.file_id for copy in history.copies()] == [1, 2, 3]


def test_the_oldest_of_too_many_go(tmp_path):
    journal_folder(tmp_path, files=12)
    clock = Clock()
    history = history_of(tmp_path, clock, max_bytes=3 * 4096 + 100)
    for number in range(1, 13):
        history.copy(f"activemq-data-{number}.amq", number)

    assert [copy.file_id for copy in history.copies()] == [10, 11, 12]


@pytest.mark.parametrize("limits", [{"max_bytes": 4096}, {"period_ms": 60_000}])
def test_the_newest_stays_though_the_clock_was_set_back(tmp_path, limits):
    journal_folder(tmp_path)
    clock = Clock()
    history = history_of(tmp_path, clock, **limits)
    history.copy("activemq-data-1.amq", 1)
    clock.time -= timedelta(hours=1)
    history.copy("activemq-data-2.amq", 2)
    clock.time += timedelta(hours=2)

    history.clean()

    assert history.newest_id() == 2


def test_limit_below_one_file_is_ignored(tmp_path):
    journal_folder(tmp_path)
    history = history_of(tmp_path, Clock(), max_bytes=4095)
    for number in range(1, 4):
        history.copy(f"activemq-data-{number}.amq", number)

    assert len(history.copies()) == 3


def test_only_names_of_this_journal_count(tmp_path):
    journal_folder(tmp_path)
    history = history_of(tmp_path, Clock(), max_bytes=4096)
    foreign = ["other-20240506070809-1.amq", "activemq-data-2024-1.amq", "notes.txt", "x.amq.tmp"]
    for name in foreign:
        (tmp_path / "history" / name).write_bytes(b"")

    history.copy("activemq-data-1.amq", 1)
    history.copy("activemq-data-2.amq", 2)

    assert set(foreign) < set(os.listdir(tmp_path / "history"))
    assert [copy.file_id for copy in history.copies()] == [2]


def test_unfinished_copy_is_removed_at_start(tmp_path):
    journal_folder(tmp_path)
    (tmp_path / "history").mkdir()
    unfinished = tmp_path / "history" / (history_name(NAME, START, 15) + ".tmp")
    unfinished.write_bytes(b"half")

    history_of(tmp_path, Clock())

    assert not unfinished.exists()


def test_failed_copy_leaves_nothing(tmp_path):
    journal_folder(tmp_path)
    history = history_of(tmp_path, Clock())

    with pytest.raises(JournalIOError):
        history.copy("activemq-data-9.amq", 9)

    assert os.listdir(tmp_path / "history") == []


def test_backup_names_are_matched_in_full(tmp_path):
    folder = journal_folder(tmp_path)
    (folder / "activemq-data-1.amq").rename(folder / "activemq-data-1.amq.bkp")
    (folder / "other-1.amq.bkp").write_bytes(b"foreign")

    assert restore_names(Folder(folder), NAME) == ["activemq-data-1.amq"]
    assert restore_names(Folder(folder), NAME) == []
    assert (folder / "other-1.amq.bkp").exists()


def test_backup_name_never_replaces_a_file(tmp_path):
    folder = journal_folder(tmp_path)
    (folder / "activemq-data-1.amq.bkp").write_bytes(b"another")

    with pytest.raises(JournalIOError):
        restore_names(Folder(folder), NAME)
    assert (folder / "activemq-data-1.amq.bkp").read_bytes() == b"another"


# --- with a journal ----------------------------------------------------------------------------


def kept(tmp_path, **changes):
    return loaded(
        tmp_path / "journal",
        retention_directory=tmp_path / "history",
        **{"retention_period_ms": 10**9, **changes},
    )


def ids_in_history(tmp_path):
    found = set()
    for view in read_folder_views(tmp_path / "history"):
        found |= {record.record_id for record in view if record.kind in ("add", "event")}
    return found


def read_folder_views(folder):
    return [read_file(copy.path) for copy in list_history(folder, NAME)]


def fill(journal, first, count):
    for record_id in range(first, first + count):
        journal.add(record_id, 1, b"x" * 100)
        journal.delete(record_id)


def test_every_filled_file_is_in_the_history(tmp_path):
    journal = kept(tmp_path)
    fill(journal, 1, 1000)
    current = journal.file_counts()[-1].file_id
    journal.close()

    copies = list_history(tmp_path / "history", NAME)
    assert sorted(copy.file_id for copy in copies) == list(range(1, current))
    assert all(copy.path.stat().st_size == 16 * 1024 for copy in copies)


def test_files_are_used_again_once_copied(tmp_path):
    journal = kept(tmp_path)
    fill(journal, 1, 3000)
    journal.close()

    assert len(list((tmp_path / "journal").glob("*.amq"))) < 45


def test_files_without_a_copy_are_copied_after_a_crash(tmp_path):
    journal = loaded(tmp_path / "journal")
    for record_id in range(1, 500):
        journal.add(record_id, 1, b"x" * 100)
    closed = [count.file_id for count in journal.file_counts()][:-1]
    journal.close()

    journal = kept(tmp_path)
    journal.close()

    copies = list_history(tmp_path / "history", NAME)
    assert sorted(copy.file_id for copy in copies) == closed


def test_events_in_a_file_of_their_own_reach_the_history(tmp_path):
    journal = kept(tmp_path)
    for record_id in range(1, 20):
        journal.event(record_id, 49, b"only for the history")
    journal.close()

    kept(tmp_path).close()

    assert ids_in_history(tmp_path) == set(range(1, 20))


@pytest.mark.parametrize("is_kept", [True, False], ids=["kept", "off"])
def test_backup_of_artemis_is_loaded(tmp_path, is_kept):
    journal = loaded(tmp_path / "journal")
    for record_id in range(1, 500):
        journal.add(record_id, 1, b"x" * 100)
    oldest = tmp_path / "journal" / journal.file_counts()[0].name
    journal.close()
    oldest.rename(f"{oldest}.bkp")

    (kept(tmp_path) if is_kept else loaded(tmp_path / "journal")).close()

    assert set(View(tmp_path / "journal").records) == set(range(1, 500))
    assert not list((tmp_path / "journal").glob("*.bkp"))
    if is_kept:
        assert 1 in {copy.file_id for copy in list_history(tmp_path / "history", NAME)}


def test_compaction_waits_for_the_copies(tmp_path):
    journal = kept(tmp_path)
    fill(journal, 1, 300)
    journal.add(1000, 1, b"stays")
    assert journal.compact()
    closed = journal.file_counts()[-1].file_id
    journal.close()

    assert set(range(1, 301)) < ids_in_history(tmp_path)
    assert {copy.file_id for copy in list_history(tmp_path / "history", NAME)} <= set(range(closed))
    assert set(View(tmp_path / "journal").records) == {1000}
