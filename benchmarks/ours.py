"""Our journal through its public API: the one file of the benchmarks that knows it.

Every workload runs the calls that a user would write; nothing is reached into.
"""

from __future__ import annotations

import asyncio
import itertools
import queue
import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Any

from benchmarks.measure import (
    BATCH_SIZE,
    FILE_SIZE,
    RECORDS,
    Case,
    Clock,
    Latencies,
    Outcome,
    main_for,
    outcome,
    run_clocked,
    run_threads,
)
from journal import Journal, JournalOptions

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

USER_TYPE = 1


def open_journal(case: Case, folder: Path) -> Journal:
    """A loaded journal with its files made ahead; it never compacts by itself."""
    journal = Journal(
        JournalOptions(
            directory=folder,
            journal_type=case.io,
            file_size=FILE_SIZE,
            min_files=case.files_ahead,
            compact_min_files=0,
        )
    )
    journal.open()
    journal.load()
    return journal


def blocking(case: Case, journal: Journal) -> Outcome:
    """Threads, each of which waits for its record, and keeps the time after it.

    A record's latency is the time since the one before it in the same thread, so it holds the
    loop too. The limit program does the same work: a look at the clock, and a number kept.
    """
    body = b"x" * case.record_size
    ids = itertools.count(1)

    def work(_: int, clock: Clock) -> None:
        add, keep, now = journal.add, clock.times.append, time.perf_counter_ns
        keep(now())
        while not clock.is_over:
            add(next(ids), USER_TYPE, body, sync=True)
            keep(now())

    return run_clocked(case.producers, case.seconds, work)


SAMPLED_TASKS = 16


def tasks(case: Case, journal: Journal) -> Outcome:
    """Tasks of one event loop, each of which awaits its record; every 16th keeps its latencies.

    Reading the clock and keeping a number cost a fifth of what an awaited record does.
    """
    body = b"x" * case.record_size
    ids = itertools.count(1)
    latencies = Latencies()
    add = journal.add_durable
    records = 0
    is_time = True

    def stop() -> None:
        nonlocal is_time
        is_time = False

    async def work() -> None:
        nonlocal records
        done = 0
        while is_time:
            await add(next(ids), USER_TYPE, body)
            done += 1
        records += done

    async def timed_work() -> None:
        nonlocal records
        begun = time.perf_counter_ns()
        while is_time:
            await add(next(ids), USER_TYPE, body)
            begun = latencies.add(begun)
            records += 1

    async def main() -> float:
        asyncio.get_running_loop().call_later(case.seconds, stop)
        begun = time.perf_counter()
        await asyncio.gather(
            *(work() if i % SAMPLED_TASKS else timed_work() for i in range(case.producers))
        )
        return time.perf_counter() - begun

    seconds = asyncio.run(main())
    return outcome(records, seconds, [latencies])


def window(case: Case, journal: Journal) -> Outcome:
    """One thread with `producers` tickets outstanding."""
    body = b"x" * case.record_size
    tickets: deque[int] = deque()
    add, wait = journal.add, journal.wait
    begun = time.perf_counter()
    end = begun + case.seconds
    records = 0
    while time.perf_counter() < end:
        # A look at the clock every 64 records costs nothing beside them.
        for _ in range(BATCH_SIZE):
            records += 1
            tickets.append(add(records, USER_TYPE, body, sync=True, wait=False))
            if len(tickets) == case.producers:
                wait(tickets.popleft())
    if tickets:
        wait(tickets[-1])
    return outcome(records, time.perf_counter() - begun)


def paced(case: Case, journal: Journal) -> Outcome:
    """Records at their moments; another thread waits for each. Latencies count from the moments."""
    body = b"x" * case.record_size
    count = int(case.producers * case.seconds)
    interval_ns = 1_000_000_000 // case.producers
    tickets: queue.SimpleQueue[tuple[int, int]] = queue.SimpleQueue()
    latencies = Latencies()

    def take() -> None:
        for _ in range(count):
            due_ns, ticket = tickets.get()
            journal.wait(ticket)
            latencies.add(due_ns)

    taking = threading.Thread(target=take)
    taking.start()
    begun = due = time.perf_counter_ns()
    for record_id in range(1, count + 1):
        due += interval_ns
        while (early := due - time.perf_counter_ns()) > 0:
            time.sleep(early / 1e9)
        ticket = journal.add(record_id, USER_TYPE, body, sync=True, wait=False)
        tickets.put((due, ticket))
    taking.join()
    return outcome(count, (time.perf_counter_ns() - begun) / 1e9, [latencies])


def batch(case: Case, journal: Journal) -> Outcome:
    """One call that appends `producers` records, and one wait."""
    bodies = [b"x" * case.record_size] * case.producers
    latencies = Latencies()
    ids = itertools.count(1, case.producers)
    begun = time.perf_counter()
    end = begun + case.seconds
    now = time.perf_counter_ns()
    while time.perf_counter() < end:
        first = next(ids)
        journal.add_many(range(first, first + case.producers), USER_TYPE, bodies, sync=True)
        now = latencies.add(now)
    records = len(latencies.values) * case.producers
    return outcome(records, time.perf_counter() - begun, [latencies])


def unsynced(case: Case, journal: Journal) -> Outcome:
    """A call a record, or one for 64 of them; then a last synced record, and its wait."""
    body = b"x" * case.record_size
    bodies = [body] * BATCH_SIZE
    share = case.records // case.producers // BATCH_SIZE

    def one_by_one(index: int, _: Callable[[], bool], __: Latencies) -> int:
        add = journal.add
        first = 1 + index * share * BATCH_SIZE
        for record_id in range(first, first + share * BATCH_SIZE):
            add(record_id, USER_TYPE, body, sync=False)
        return share * BATCH_SIZE

    def together(index: int, _: Callable[[], bool], __: Latencies) -> int:
        first = 1 + index * share * BATCH_SIZE
        for start in range(first, first + share * BATCH_SIZE, BATCH_SIZE):
            journal.add_many(range(start, start + BATCH_SIZE), USER_TYPE, bodies, sync=False)
        return share * BATCH_SIZE

    begun = time.perf_counter()
    work = together if case.workload == "unsynced-batch" else one_by_one
    run_threads(case.producers, case.seconds, work)
    journal.add(case.records + 1, USER_TYPE, b"", sync=True)
    return outcome(share * BATCH_SIZE * case.producers, time.perf_counter() - begun)


WORK: dict[str, Callable[[Case, Journal], Outcome]] = {
    "blocking": blocking,
    "asyncio": tasks,
    "window": window,
    "paced": paced,
    "batch": batch,
    "unsynced": unsynced,
    "unsynced-batch": unsynced,
}


def load(case: Case, folder: Path) -> Outcome:
    """Load a journal that `prepare` wrote, and with "load-delivered" take every live record.

    Counted are the records read, deletes among them, as Artemis's callbacks count them.
    """
    journal = Journal(
        JournalOptions(directory=folder, journal_type=case.io, file_size=FILE_SIZE, min_files=2)
    )
    journal.open()
    delivered = 0

    def take(batch: Sequence[Any]) -> None:
        nonlocal delivered
        delivered += len(batch)

    begun = time.perf_counter()
    result = journal.load(take if case.workload == "load-delivered" else None)
    seconds = time.perf_counter() - begun
    journal.close()
    if case.workload == "load-delivered" and delivered != result.delivered_count:
        raise RuntimeError(f"{delivered} of {result.delivered_count} records were delivered")
    return outcome(sum(file.record_count for file in result.files), seconds)


def compaction(case: Case, folder: Path) -> Outcome:
    """Compact a journal that `prepare` wrote; MB/s of the files it read."""
    journal = open_journal(case, folder)
    size = sum(file.stat().st_size for file in folder.glob("*.amq"))
    begun = time.perf_counter()
    journal.compact()
    seconds = time.perf_counter() - begun
    journal.close()
    return Outcome(size / 1e6 / seconds)


def prepare(case: Case, folder: Path) -> None:
    """Write what load and compaction begin with: RECORDS records, some updated, some deleted."""
    journal = open_journal(case, folder)
    bodies = [b"x" * case.record_size] * BATCH_SIZE
    for first in range(1, RECORDS + 1, BATCH_SIZE):
        journal.add_many(range(first, first + BATCH_SIZE), USER_TYPE, bodies, sync=False)
    if case.workload != "compaction":
        for record_id in range(1, RECORDS, 10):
            journal.update(record_id, USER_TYPE, b"updated", sync=False)
    step = 2 if case.workload == "compaction" else 10
    for record_id in range(2, RECORDS, step):
        journal.delete(record_id, sync=False)
    journal.close()


def run(case: Case, folder: Path) -> Outcome:
    """Run one case in a fresh folder; load and compaction in one that `prepare` filled."""
    if case.workload in ("load", "load-delivered"):
        return load(case, folder)
    if case.workload == "compaction":
        return compaction(case, folder)
    journal = open_journal(case, folder)
    try:
        return WORK[case.workload](case, journal)
    finally:
        journal.close()


if __name__ == "__main__":
    main_for(run)
