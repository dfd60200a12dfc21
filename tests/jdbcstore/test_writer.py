"""Group commit without a database: those who wait when a write does not end well."""

import threading

import pytest

from jdbcstore.writer import GroupWriter
from journal.errors import JournalClosed

WAIT_S = 60


def appended(writer, record_id):
    with writer.lock:
        writer.begin_rows().insert((record_id, 11, 0, b"x", 0, b"", record_id))
        return writer.accept(is_wanted=True, is_blocking=True)


def test_an_interrupted_write_ends_the_store_and_tells_all_who_wait():
    writing, interrupt = threading.Event(), threading.Event()

    def write(batch):
        writing.set()
        interrupt.wait(WAIT_S)
        raise KeyboardInterrupt

    writer = GroupWriter(write, 0.005, "test-writer")
    outcomes = {}

    def wait(name, ticket):
        try:
            writer.wait(ticket)
        except BaseException as error:  # noqa: BLE001 - the interrupt is what is looked for
            outcomes[name] = error

    first = threading.Thread(target=wait, args=("first", appended(writer, 1)))
    first.start()
    assert writing.wait(WAIT_S)
    second = threading.Thread(target=wait, args=("second", appended(writer, 2)))
    second.start()
    interrupt.set()
    first.join(WAIT_S)
    second.join(WAIT_S)

    assert isinstance(outcomes["first"], KeyboardInterrupt)
    assert isinstance(outcomes["second"], JournalClosed)
    with pytest.raises(JournalClosed, match="interrupted"):
        writer.sync()
    writer.stop()
