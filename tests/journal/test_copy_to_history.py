"""What is in the current file is in the history once somebody asks for it."""

import time

import pytest

from journal import Journal, JournalOptions, JournalType
from journal.errors import JournalClosed, JournalIOError, WrongState
from journal.folder import JournalName
from journal.reader import read_file
from journal.retention import History, list_history


def journal_of(tmp_path, **more):
    return Journal(
        JournalOptions(
            directory=tmp_path / "journal",
            journal_type=JournalType.NIO,
            file_size=4096,
            **more,
        )
    )


def copied(journal):
    """Ask for the copies, and wait for them."""
    journal.copy_to_history()
    until_s = time.monotonic() + 60
    while not journal.all_are_copied():
        assert time.monotonic() < until_s
        time.sleep(0.01)


def test_records_of_the_current_file_are_copied(tmp_path):
    history = tmp_path / "history"
    with journal_of(tmp_path, retention_directory=history, retention_period_ms=10**9) as journal:
        journal.load()
        for number in range(1, 4):
            journal.add(number, 1, b"body", sync=False)
            copied(journal)
        # Nothing was appended since: there is nothing to copy.
        copied(journal)
        copies = sorted(list_history(history, JournalName()), key=lambda copy: copy.file_id)

        assert [[record.record_id for record in read_file(copy.path)] for copy in copies] == [
            [1],
            [2],
            [3],
        ]
        journal.add(4, 1, b"goes on")
    with pytest.raises(JournalClosed):
        journal.copy_to_history()


def test_without_a_history_there_is_nothing_to_ask_for(tmp_path):
    with journal_of(tmp_path) as journal:
        journal.load()
        with pytest.raises(WrongState, match="no history"):
            journal.copy_to_history()


def test_whatever_goes_wrong_with_a_copy_ends_the_journal(tmp_path, monkeypatch):
    def copy(self, file, file_id):
        raise ZeroDivisionError(file)

    monkeypatch.setattr(History, "copy", copy)
    history = tmp_path / "history"
    journal = journal_of(tmp_path, retention_directory=history, retention_period_ms=10**9)
    journal.open()
    journal.load()
    journal.add(1, 1, b"body")

    with pytest.raises((JournalIOError, JournalClosed)):
        copied(journal)
    with pytest.raises(JournalIOError, match="ZeroDivisionError"):
        journal.close()
