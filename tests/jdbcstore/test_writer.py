"""Group commit without a database: those who wait when a write does not end well."""

import itertools
import signal
import threading
import time

import pytest

from jdbcstore.appends import Appends
from jdbcstore.writer import GroupWriter
from journal.errors import JournalClosed

WAIT_S = 60


def appends_to(writer):
    appends = Appends()
    appends.writer, appends.state, appends.body_size_max = writer, "loaded", 100
    return appends


def close_during_a_write(monkeypatch, *, ending=None, meanwhile=None):
    """Close while a producer writes and the writer's thread sleeps: no other thread can wake it.

    Returns:
        Numbers of the batches that were written, and the producer's ticket or error.
    """
    writing, joining, go_on = threading.Event(), threading.Event(), threading.Event()
    written, outcomes, join = [], [], threading.Thread.join

    def write(batch):
        writing.set()
        assert go_on.wait(WAIT_S)
        if ending is not None:
            raise ending
        written.append(batch.number)

    def add():
        try:
            outcomes.append(appends.add(1, 1, b"body"))
        except JournalClosed as error:
            outcomes.append(error)

    def join_told(thread, timeout=None):
        joining.set()
        join(thread, timeout)

    writer = GroupWriter(write, 3600, "test-writer")
    appends = appends_to(writer)
    writer.start()
    producer = threading.Thread(target=add, daemon=True)
    producer.start()
    assert writing.wait(WAIT_S)
    if meanwhile is not None:
        meanwhile(appends)
    monkeypatch.setattr(threading.Thread, "join", join_told)
    closing = threading.Thread(target=writer.stop, daemon=True)
    closing.start()
    assert joining.wait(WAIT_S)
    go_on.set()
    join(closing, WAIT_S)
    join(producer, WAIT_S)
    assert not closing.is_alive()
    assert not producer.is_alive()
    (outcome,) = outcomes
    return written, outcome


def test_an_interrupted_write_ends_the_store_and_tells_all_who_wait():
    writing, interrupt = threading.Event(), threading.Event()

    def write(batch):
        writing.set()
        interrupt.wait(WAIT_S)
        raise KeyboardInterrupt

    writer = GroupWriter(write, 0.005, "test-writer")
    appends, outcomes = appends_to(writer), {}

    def add(name, record_id):
        try:
            appends.add(record_id, 1, b"body")
        except BaseException as error:  # noqa: BLE001 - the interrupt is what is looked for
            outcomes[name] = error

    first = threading.Thread(target=add, args=("first", 1))
    first.start()
    assert writing.wait(WAIT_S)
    second = threading.Thread(target=add, args=("second", 2))
    second.start()
    interrupt.set()
    first.join(WAIT_S)
    second.join(WAIT_S)

    assert isinstance(outcomes["first"], KeyboardInterrupt)
    assert isinstance(outcomes["second"], JournalClosed)
    with pytest.raises(JournalClosed, match="interrupted"):
        writer.sync()
    writer.stop()


def test_who_waits_for_the_write_of_another_can_be_interrupted():
    writing, go_on = threading.Event(), threading.Event()

    def write(batch):
        writing.set()
        assert go_on.wait(WAIT_S)

    def wait():
        main = threading.main_thread().ident
        threading.Timer(0.3, signal.pthread_kill, (main, signal.SIGINT)).start()
        writer.sync()

    writer = GroupWriter(write, 3600, "test-writer")
    appends = appends_to(writer)
    writer.start()
    first = threading.Thread(target=appends.add, args=(1, 1, b"body"), daemon=True)
    first.start()
    assert writing.wait(WAIT_S)
    appends.add(2, 1, b"body", sync=False)
    try:
        with pytest.raises(KeyboardInterrupt):
            wait()
    finally:
        go_on.set()
        first.join(WAIT_S)
    writer.sync()  # It was the wait that ended, not the store.
    writer.stop()


def test_close_while_a_producer_writes_returns(monkeypatch):
    assert close_during_a_write(monkeypatch) == ([0], 0)


def test_close_while_a_producer_writes_writes_what_came_meanwhile(monkeypatch):
    def meanwhile(appends):
        appends.add(2, 1, b"no caller waits", sync=False)

    assert close_during_a_write(monkeypatch, meanwhile=meanwhile) == ([0, 1], 0)


def test_close_while_a_producers_write_fails_returns(monkeypatch):
    error = JournalClosed("no more")

    assert close_during_a_write(monkeypatch, ending=error) == ([], error)


def test_close_of_a_failed_store_waits_for_the_producer_who_writes():
    """Its connection is closed next, and its socket's number may be another file's at once."""
    writing, go_on, ended = threading.Event(), threading.Event(), []

    def write(batch):
        writing.set()
        assert go_on.wait(WAIT_S)
        ended.append("write")

    def close():
        writer.stop()
        ended.append("close")

    writer = GroupWriter(write, 3600, "test-writer")
    appends = appends_to(writer)
    writer.start()
    producer = threading.Thread(target=appends.add, args=(1, 1, b"body"), daemon=True)
    producer.start()
    assert writing.wait(WAIT_S)
    writer.fail(JournalClosed("somebody else has the lease"))
    closing = threading.Thread(target=close, daemon=True)
    closing.start()
    closing.join(0.2)  # Time enough to do it wrong.
    go_on.set()
    closing.join(WAIT_S)
    producer.join(WAIT_S)

    assert ended == ["write", "close"]


@pytest.mark.parametrize("waiting", [1000, 4000])
def test_a_batch_takes_half_of_those_who_wait(waiting):
    """In one batch all would wait for it together, and the database then for all of them."""
    go_on, written, sizes = threading.Semaphore(0), threading.Semaphore(0), []

    def write(batch):
        assert go_on.acquire(timeout=WAIT_S)
        sizes.append(batch.operation_count)
        written.release()

    writer = GroupWriter(write, 3600, "test-writer")
    appends = appends_to(writer)
    writer.start()
    ids = itertools.count(1)
    coming = waiting
    try:
        for _ in range(40):  # Who is told comes again.
            for _ in range(coming):
                appends.add(next(ids), 1, b"x", sync=True, done=lambda _: None)
            go_on.release()
            assert written.acquire(timeout=WAIT_S)
            coming = sizes[-1]
    finally:
        go_on.release(10_000)
        writer.stop()

    half = waiting // 2
    assert max(sizes) <= half
    assert sum(sizes[20:40]) >= 20 * half * 0.6


@pytest.mark.parametrize("absent", [0, 1])
def test_a_batch_waits_for_the_producers_of_the_commit_before_but_not_for_ever(absent):
    """Four block, record after record; `absent` of them stop after the first."""
    rounds, sizes = 6, []

    def write(batch):
        time.sleep(0.1)  # Half of it is how long the next batch may wait.
        sizes.append(batch.operation_count)

    def produce(first_id, count):
        for record_id in range(first_id, first_id + count):
            appends.add(record_id, 1, b"x")

    writer = GroupWriter(write, 3600, "test-writer")
    appends = appends_to(writer)
    writer.start()
    producers = [
        threading.Thread(
            target=produce, args=(100 * n + 1, 1 if n < absent else rounds), daemon=True
        )
        for n in range(4)
    ]
    for producer in producers:
        producer.start()
    for producer in producers:
        producer.join(WAIT_S)
        assert not producer.is_alive()
    writer.stop()

    assert sum(sizes) == absent + (4 - absent) * rounds
    # In turns, each batch without those who were told while it began, it would be twice as many.
    assert len(sizes) <= rounds + 3
