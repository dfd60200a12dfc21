"""No waiter is forgotten: all are woken together, then admitted one at a time (waiters.pyx)."""

import threading
import time
from pathlib import Path

import pytest

from journal import Journal, JournalOptions

WAIT_S = 60


@pytest.mark.parametrize("buffer_timeout_ns", [0, 100_000])
@pytest.mark.parametrize("producers", [1, 3, 40])
def test_every_waiter_returns_whatever_it_waits_for(tmp_path, producers, buffer_timeout_ns, effort):
    """Waits for the disk, for the file alone and for older tickets, all mixed."""
    journal = Journal(
        JournalOptions(
            directory=tmp_path,
            journal_type="NIO",
            file_size=256 * 1024,
            buffer_size=4096,
            buffer_timeout_ns=buffer_timeout_ns,
        )
    )
    rounds = effort(20_000, 200) // producers
    with journal:
        journal.load()

        def produce(first: int) -> None:
            old = []
            for i in range(rounds):
                record_id = first + i
                ticket = journal.add(record_id, 1, b"x" * (i % 700), sync=i % 3 == 0)
                old.append(ticket)
                if i % 50 == 49:
                    journal.wait(old[i // 2])
                if i % 70 == 69:
                    journal.sync()

        threads = [
            threading.Thread(target=produce, args=(1 + k * rounds,), daemon=True)
            for k in range(producers)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(WAIT_S)

        assert not any(thread.is_alive() for thread in threads)
        assert len(journal) == rounds * producers


def test_threads_that_come_back_late_delay_no_other_thread(tmp_path):
    """Half of the threads do other work, or end, after a wake-up, and never release admission."""
    options = JournalOptions(directory=tmp_path, journal_type="NIO", file_size=256 * 1024)
    with Journal(options) as journal:
        journal.load()
        rounds = 200

        def produce(first: int, pause_s: float) -> None:
            for i in range(rounds):
                journal.add(first + i, 1, b"x", sync=True)
                if pause_s and i % 4 == 0:
                    time.sleep(pause_s)

        threads = [
            threading.Thread(
                target=produce, args=(1 + k * rounds, 0.0002 if k % 2 else 0.0), daemon=True
            )
            for k in range(24)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(WAIT_S)

        assert not any(thread.is_alive() for thread in threads)
        assert len(journal) == rounds * len(threads)


def test_admission_held_in_one_journal_does_not_block_another(tmp_path):
    """Each thread waits in two journals in turn."""
    journals = []
    for name in ("first", "second"):
        journal = Journal(
            JournalOptions(directory=tmp_path / name, journal_type="NIO", file_size=256 * 1024)
        )
        journal.open()
        journal.load()
        journals.append(journal)
    rounds = 100

    def produce(first: int) -> None:
        for i in range(rounds):
            for journal in journals:
                journal.add(first + i, 1, b"x", sync=True)

    threads = [
        threading.Thread(target=produce, args=(1 + k * rounds,), daemon=True) for k in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT_S)

    assert not any(thread.is_alive() for thread in threads)
    assert [len(journal) for journal in journals] == [rounds * len(threads)] * 2
    for journal in journals:
        journal.close()


@pytest.mark.parametrize("pause_ms", [0, 1, 3, 6, 40, 700])
def test_record_without_a_waiter_is_durable_in_time_however_long_the_flusher_slept(
    tmp_path, pause_ms
):
    """It sleeps till a record could be due at the earliest, till its idle mark, then for ever."""
    options = JournalOptions(
        directory=tmp_path, journal_type="NIO", file_size=256 * 1024, buffer_timeout_ns=3_000_000
    )
    with Journal(options) as journal:
        journal.load()
        for record_id in range(1, 2 + 60 // (1 + pause_ms), 2):
            journal.add(record_id, 1, b"x", sync=True)
            time.sleep(pause_ms / 1000)
            ticket = journal.add(record_id + 1, 1, b"y", sync=True, done=print, flush_now=False)

            deadline = time.monotonic() + WAIT_S
            while journal.durable_ticket <= ticket:
                assert time.monotonic() < deadline
                time.sleep(0.001)


def test_prewarm_without_records_delays_no_producer(tmp_path):
    options = JournalOptions(
        directory=tmp_path, journal_type="NIO", file_size=256 * 1024, buffer_timeout_ns=1_000_000
    )
    with Journal(options) as journal:
        journal.prewarm()
        journal.load()
        is_over = threading.Event()

        def prewarm():
            while not is_over.is_set():
                journal.prewarm()

        thread = threading.Thread(target=prewarm, daemon=True)
        thread.start()
        for record_id in range(1, 400, 2):
            journal.add(record_id, 1, b"x", sync=True)
            ticket = journal.add(record_id + 1, 1, b"y", sync=True, done=print, flush_now=False)
        deadline = time.monotonic() + WAIT_S
        while journal.durable_ticket <= ticket:
            assert time.monotonic() < deadline
            time.sleep(0.001)
        is_over.set()
        thread.join(WAIT_S)
        assert not thread.is_alive()
    journal.prewarm()


def switches():
    """How often each thread of this process has gone to sleep by itself."""
    found = {}
    for task in Path("/proc/self/task").iterdir():
        lines = (task / "status").read_text().splitlines()
        found[task.name] = int(next(one for one in lines if one.startswith("voluntary")).split()[1])
    return found


def test_the_flusher_listens_to_no_more_announcements_of_which_nothing_comes(tmp_path):
    before = set(switches())
    options = JournalOptions(directory=tmp_path, journal_type="NIO", file_size=256 * 1024)
    with Journal(options) as journal:
        journal.load()
        # The flusher, and what else a journal starts.
        threads = set(switches()) - before

        def slept():
            return sum(count for name, count in switches().items() if name in threads)

        def announce(count):
            begun = slept()
            for _ in range(count):
                journal.prewarm()
                time.sleep(0.001)
            return slept() - begun

        many = announce(200)
        journal.add(1, 1, b"x", sync=True)
        begun = slept()
        journal.prewarm()
        deadline = time.monotonic() + WAIT_S
        while slept() == begun:
            assert time.monotonic() < deadline
            time.sleep(0.001)

    # Eight; a poll, a mark or a wake-up of the kernel's own may be a sleep more.
    assert many < 40
