"""What the flusher writes and when: groups, marks, end marks, timers; seen from outside."""

import errno
import threading
import time

import pytest

from journal.errors import JournalClosed, JournalIOError
from journal.files.tap import set_tap
from journal.options import JournalType
from journal.reader import read_file
from tests.journal.stored import loaded

TYPES = pytest.mark.parametrize("kind", list(JournalType))
HOUR_NS = 3600 * 10**9
WAIT_S = 30


@pytest.fixture
def make(tmp_path):
    """make(**options) gives a loaded journal with no timer that would be noticed."""
    journals = []

    def make(**changes):
        given = {"buffer_timeout_ns": HOUR_NS, "file_size": 64 * 1024, **changes}
        journals.append(loaded(tmp_path / f"journal-{len(journals)}", **given))
        return journals[-1]

    yield make
    set_tap(None)
    for journal in journals:
        journal.close()


def until(condition):
    """Wait for it; whether it came true in time."""
    end = time.monotonic() + WAIT_S
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.002)
    return True


def counts(journal):
    stats = journal.stats()
    return stats["records"], stats["flushes"], stats["syncs"]


def view(journal, number=1):
    return read_file(journal.options.directory / f"activemq-data-{number}.amq")


# --- group commit ---


@TYPES
def test_records_wait_for_company_and_go_together(make, kind):
    journal = make(journal_type=kind)
    for i in range(1, 11):
        journal.add(i, 1, b"x", sync=False)
    assert counts(journal) == (10, 0, 0)

    journal.add(11, 1, b"x", sync=True)

    assert counts(journal) == (11, 1, 1)
    assert len(view(journal)) == 11


@TYPES
def test_a_lone_synced_record_waits_for_no_timer(make, kind):
    journal = make(journal_type=kind)

    started = time.monotonic()
    for i in range(1, 6):
        journal.add(i, 1, b"x", sync=True)

    assert counts(journal) == (5, 5, 5)
    assert time.monotonic() - started < WAIT_S


@TYPES
def test_a_batch_call_is_one_write_and_one_sync(make, kind):
    journal = make(journal_type=kind)

    journal.add_many(list(range(1, 101)), 1, [b"x" * 20] * 100, sync=True)

    assert counts(journal) == (100, 1, 1)


def test_many_threads_share_syncs(make):
    journal = make()
    slow = threading.Event()
    set_tap(lambda event: slow.wait(0.002) and 0 if event.call == "write" else 0)

    def work(first):
        for i in range(10):
            journal.add(first + i, 1, b"x", sync=True)

    threads = [threading.Thread(target=work, args=(n * 100,)) for n in range(1, 17)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT_S)
    set_tap(None)

    records, flushes, syncs = counts(journal)
    assert records == 160
    assert flushes == syncs <= 80


def test_tickets_rise_and_a_durable_one_says_so(make):
    journal = make()
    first = journal.add(1, 1, b"x", sync=False)
    second = journal.add(2, 1, b"x", sync=False)
    assert second >= first >= journal.durable_ticket

    journal.sync()

    assert journal.durable_ticket > second
    third = journal.add(3, 1, b"x", sync=False)
    assert third >= journal.durable_ticket


def test_sync_with_nothing_to_sync_touches_no_disk(make):
    journal = make()
    journal.add(1, 1, b"x", sync=True)
    before = counts(journal)

    journal.sync()

    assert counts(journal) == before


# --- timers ---


def test_an_unsynced_record_goes_once_its_time_is_over(make):
    journal = make(buffer_timeout_ns=50_000_000)
    started = time.monotonic()

    journal.add(1, 1, b"x", sync=False)

    assert counts(journal)[1] == 0 or time.monotonic() - started > 0.05
    assert until(lambda: counts(journal)[1] == 1)
    assert time.monotonic() - started >= 0.05
    assert counts(journal) == (1, 1, 0)


@TYPES
def test_timeout_0_writes_each_record_at_once(make, kind):
    journal = make(journal_type=kind, buffer_timeout_ns=0)

    journal.add(1, 1, b"x", sync=False)

    assert until(lambda: counts(journal)[1] == 1)
    assert counts(journal) == (1, 1, 0)
    assert len(view(journal)) == 1


def test_timeout_0_joins_no_late_comers(make):
    journal = make(buffer_timeout_ns=0)
    for i in range(1, 6):
        journal.add(i, 1, b"x", sync=False)
        assert until(lambda i=i: counts(journal)[1] == i)

    assert counts(journal) == (5, 5, 0)


def test_a_full_buffer_does_not_wait_for_its_timer(make):
    journal = make(buffer_size=4096)

    for i in range(1, 21):
        journal.add(i, 1, b"x" * 1000, sync=False)

    assert until(lambda: counts(journal)[1] >= 2)


# --- marks ---


def test_a_batch_opens_with_what_was_synced_before(make):
    journal = make()

    journal.add(1, 1, b"x", sync=True)
    assert view(journal).synced_count == 0
    journal.add(2, 1, b"x", sync=True)
    assert view(journal).synced_count == 1
    journal.add_many([3, 4, 5], 1, [b"x"] * 3, sync=True)
    journal.add(6, 1, b"x", sync=True)

    assert view(journal).synced_count == 5
    assert view(journal).next_ordinal == 6


@TYPES
def test_an_idle_journal_says_within_a_second_what_is_on_disk(make, kind):
    journal = make(journal_type=kind)
    journal.add(1, 1, b"x", sync=True)
    assert view(journal).synced_count == 0

    started = time.monotonic()
    assert until(lambda: view(journal).synced_count == 1)

    assert time.monotonic() - started < 5  # A second where the machine has nothing else to do.
    end = view(journal).append_position
    time.sleep(0.7)
    assert view(journal).append_position == end  # Once is enough.


def test_what_is_only_written_is_never_marked(make):
    journal = make(buffer_timeout_ns=0)
    journal.add(1, 1, b"x", sync=False)
    assert until(lambda: counts(journal)[1] == 1)

    time.sleep(0.8)

    assert view(journal).synced_count == 0


def test_closing_marks_all_there_is(make):
    journal = make()
    for i in range(1, 8):
        journal.add(i, 1, b"x", sync=False)

    journal.close()

    assert view(journal).synced_count == 7


@TYPES
def test_a_full_file_ends_with_its_mark_before_the_next_begins(make, kind):
    journal = make(journal_type=kind, file_size=8192, buffer_size=4096, device_block_size=512)
    for i in range(1, 41):
        journal.add(i, 1, b"x" * 700, sync=False)
    journal.sync()

    files = [view(journal, number) for number in range(1, 4)]

    for file in files:
        assert file.is_ended
        assert file.synced_count == file.next_ordinal == len(file)
        assert file.damages == []


@pytest.mark.parametrize("changes", [{"checksums": False}, {"datasync": False}])
def test_there_is_no_mark_where_it_could_not_be_true(make, changes):
    journal = make(file_size=8192, buffer_size=4096, **changes)
    for i in range(1, 41):
        journal.add(i, 1, b"x" * 700, sync=True)
    journal.close()

    for number in range(1, 4):
        assert view(journal, number).synced_count == 0
        assert not view(journal, number).is_ended


def test_without_datasync_nothing_is_synced(make):
    journal = make(datasync=False, file_size=1 << 20)
    calls = []
    set_tap(lambda event: calls.append(event.call) and 0)

    for i in range(1, 6):
        journal.add(i, 1, b"x", sync=True)
    set_tap(None)

    assert "write" in calls
    assert not [call for call in calls if call.startswith("sync")]


# --- errors ---


@TYPES
def test_the_first_failed_write_is_final(make, kind):
    journal = make(journal_type=kind)
    journal.add(1, 1, b"x", sync=True)
    before = counts(journal)[1:]
    asked = []

    def tap(event):
        if event.call in ("write", "submit") and not event.is_done:
            asked.append(event.call)
            return -errno.EIO
        return 0

    set_tap(tap)
    with pytest.raises(JournalIOError):
        journal.add(2, 1, b"x", sync=True)
    for call in (lambda: journal.add(3, 1, b"x", sync=True), journal.sync):
        with pytest.raises(JournalClosed):
            call()
    set_tap(None)
    with pytest.raises(JournalClosed):
        journal.add(4, 1, b"x", sync=True)

    assert counts(journal)[1:] == before
    assert len(asked) == 1  # Not tried again.
    with pytest.raises(JournalIOError):
        journal.close()
