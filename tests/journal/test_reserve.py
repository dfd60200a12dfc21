"""What a full disk leaves: records that make room are accepted, from files made ahead."""

import contextlib
import errno
import sys
import threading
import time

import pytest

from journal.errors import JournalFull
from journal.files.tap import set_tap
from journal.journal import Journal
from journal.options import JournalOptions, JournalType
from tests.crash.model import read_folder_view

FILE_SIZE = 64 << 10
BODY = b"x" * 1000
# The control file of a compaction takes the place of a free file where it has no other.
OVERWRITTEN = ("activemq-data-0.amq.tmp",)


class FullDisk:
    """No journal file can be made while `is_full`.

    Attributes:
        delay_s: that each file takes which can be made.
        has_no_byte: nor a control file, but in the place of another file.
        refuses_copies: compaction opens no file to copy into.
        copies_begun: such files that it opened, or was refused.
    """

    def __init__(self):
        self.is_full = self.has_no_byte = self.refuses_copies = False
        self.delay_s = 0
        self.copies_begun = 0
        self._replaced = set()

    def __call__(self, event):
        if event.call == "rename" and event.is_done:
            self._replaced.add(event.target)
        if event.call == "unlink" and not event.is_done:
            self._replaced.discard(event.name)
        if event.call != "create" or event.is_done:
            return 0
        if event.name.endswith(".cmp"):
            self.copies_begun += 1
            return -errno.ENOSPC if self.refuses_copies else 0
        if not event.name.endswith(".amq.tmp"):
            return 0
        if not self.is_full:
            time.sleep(self.delay_s)
            return 0
        if event.name in OVERWRITTEN and not self.has_no_byte:
            return 0
        return 0 if event.name in self._replaced else -errno.ENOSPC


@pytest.fixture
def disk():
    made = FullDisk()
    set_tap(made)
    yield made
    set_tap(None)


@contextlib.contextmanager
def opened(folder, kind=JournalType.NIO, **changes):
    changes = {"file_size": FILE_SIZE, **changes}
    journal = Journal(JournalOptions(directory=folder, journal_type=kind, **changes))
    journal.open()
    journal.load()
    try:
        yield journal
    finally:
        journal.close()


def fill(journal, first=1):
    """Add until it is refused; the ids of what is there."""
    added = []
    for record_id in range(first, first + 1_000_000):
        try:
            journal.add(record_id, 45, BODY, sync=False)
        except JournalFull:
            return added
        added.append(record_id)
    raise AssertionError("it was never refused")


def add_before(journal, count):
    for record_id in range(1, count + 1):
        journal.add(record_id, 45, BODY, sync=False)
    journal.sync()


def acknowledge(journal, record_id):
    journal.update(record_id, 33, bytes(8), sync=True, makes_room=True)
    journal.delete(record_id, sync=False)


def add_when_possible(journal, record_id):
    while True:
        with contextlib.suppress(JournalFull):
            return journal.add(record_id, 45, BODY, sync=True)


@pytest.mark.parametrize("kind", JournalType)
def test_all_that_is_live_can_be_acknowledged_one_at_a_time(tmp_path, disk, kind):
    with opened(tmp_path, kind) as journal:
        add_before(journal, 300)
        disk.is_full = True
        added = [*range(1, 301), *fill(journal, 301)]
        for record_id in added:
            acknowledge(journal, record_id)
        assert len(journal) == 0
        # Room comes back by itself, on a disk that is as full as before.
        add_when_possible(journal, 2_000_000)


def test_what_an_acknowledgement_opens_no_producer_gets(tmp_path, disk):
    with opened(tmp_path) as journal:
        add_before(journal, 100)
        disk.is_full = True
        added = [*range(1, 101), *fill(journal, 101)]
        current = journal.file_counts()[-1].name
        for number, record_id in enumerate(added[:-1]):
            acknowledge(journal, record_id)
            if journal.file_counts()[-1].name != current and number < len(added) // 2:
                with pytest.raises(JournalFull):
                    journal.add(1_000_000 + number, 45, BODY)
        acknowledge(journal, added[-1])


def test_transactions_end_and_acknowledge_on_a_full_disk(tmp_path, disk):
    with opened(tmp_path) as journal:
        add_before(journal, 200)
        sending, acknowledging = journal.begin(), journal.begin()
        journal.add(900, 45, BODY, tx=sending)
        disk.is_full = True
        fill(journal, 1000)
        for record_id in range(1, 201):
            journal.update(record_id, 33, bytes(8), tx=acknowledging, makes_room=True)
            journal.delete(record_id, tx=acknowledging)
        with pytest.raises(JournalFull):
            journal.add(901, 45, BODY, tx=journal.begin())
        journal.prepare(acknowledging, b"xid")
        journal.commit(acknowledging)
        journal.rollback(sending)
        assert 1 not in journal
        assert 900 not in journal


def test_a_journal_opens_goes_on_and_is_drained_on_a_full_disk(tmp_path, disk):
    with opened(tmp_path, JournalType.ASYNCIO) as journal:
        add_before(journal, 300)
        disk.is_full = True
        added = [*range(1, 301), *fill(journal, 301)]
    for first in range(0, len(added), 100):
        with opened(tmp_path, JournalType.ASYNCIO) as journal:
            assert len(journal) == len(added) - first
            more = fill(journal, 1_000_000 + first)
            for record_id in [*added[first : first + 100], *more]:
                acknowledge(journal, record_id)


def test_a_full_disk_is_compacted(tmp_path, disk):
    with opened(tmp_path) as journal:
        add_before(journal, 900)
        disk.is_full = True
        added = [*range(1, 901), *fill(journal, 901)]
        for record_id in added:
            if record_id % 20:
                acknowledge(journal, record_id)
        left = len(journal)
        add_when_possible(journal, 2_000_000)
        assert len(journal) == left + 1
    with opened(tmp_path) as journal:
        assert len(journal) == left + 1


def test_a_full_disk_is_compacted_though_many_files_were_opened_ahead(tmp_path, disk):
    with opened(tmp_path) as journal:
        # Appends wait for files, and have more of them opened ahead.
        disk.delay_s = 0.02
        add_before(journal, 900)
        assert journal.stats()["files_ahead"] > 2
        disk.delay_s, disk.is_full, disk.has_no_byte = 0, True, True
        added = [*range(1, 901), *fill(journal, 901)]
        for record_id in added:
            if record_id % 20:
                acknowledge(journal, record_id)
        left = len(journal)
        assert journal.stats()["files_ahead"] + journal.stats()["free_files"] > 2
        add_when_possible(journal, 2_000_000)
        assert len(journal) == left + 1
    with opened(tmp_path) as journal:
        assert len(journal) == left + 1


def test_a_compaction_that_failed_on_a_full_disk_is_tried_again_a_second_later(tmp_path, disk):
    with opened(tmp_path) as journal:
        add_before(journal, 900)
        disk.is_full = True
        added = [*range(1, 901), *fill(journal, 901)]
        disk.refuses_copies = True
        for record_id in added:
            if record_id % 20:
                acknowledge(journal, record_id)
        started = time.monotonic()
        time.sleep(2.5)
        seconds = time.monotonic() - started
        assert 0 < disk.copies_begun <= seconds + 1
        disk.refuses_copies = False
        add_when_possible(journal, 2_000_000)


def test_files_are_few_while_little_is_live(tmp_path):
    with opened(tmp_path) as journal:
        assert journal.stats()["free_files"] + journal.stats()["files_ahead"] <= 1


@pytest.mark.parametrize("attempt", range(4))
def test_many_threads_go_on_in_the_reserve_one_file_after_another(tmp_path, disk, attempt):
    """A file of the reserve that was opened for direct writes is changed before it is begun."""
    accepted, errors = [], []

    def acknowledge_all(journal, ids):
        try:
            for record_id in ids:
                journal.update(record_id, 33, bytes(8), sync=False, makes_room=True)
                accepted.append(record_id)
        except JournalFull:
            pass
        except Exception as error:  # noqa: BLE001 - told by the test's own thread.
            errors.append(error)

    interval = sys.getswitchinterval()
    options = {"file_size": 12 << 10, "compact_min_files": 0}
    with opened(tmp_path, JournalType.ASYNCIO, **options) as journal:
        for record_id in range(1, 12_001):
            journal.add(record_id, 45, b"", sync=False)
        disk.is_full = True
        threads = [
            threading.Thread(target=acknowledge_all, args=(journal, range(first, 12_001, 8)))
            for first in range(1, 9)
        ]
        # A thread that lets the interpreter's lock go loses it to another one.
        sys.setswitchinterval(1e-6)
        try:
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        finally:
            sys.setswitchinterval(interval)

    assert errors == []
    (records, *_), damages = read_folder_view(tmp_path)
    assert damages == []
    updated = [record for record, is_update, _, _ in records if is_update]
    assert sorted(updated) == sorted(accepted)
    assert accepted


def test_room_is_kept_for_ends_of_what_is_kept_elsewhere(tmp_path, disk):
    """As of messages in pages: their acknowledgements are new records."""
    count = 4 * FILE_SIZE // 80
    with opened(tmp_path) as journal:
        assert journal.reserve_ends(count)
        # Room for them, one file to go on in, and the current one.
        while len(list(tmp_path.glob("*.amq"))) < 4 + 2:
            time.sleep(0.001)
        disk.is_full = True
        added = fill(journal)
        assert not journal.reserve_ends(10 * count)
        for number in range(count):
            journal.add(10_000_000 + number, 39, bytes(20), sync=False, makes_room=True)
        journal.sync()
    with opened(tmp_path) as journal:
        assert len(journal) == len(added) + count
