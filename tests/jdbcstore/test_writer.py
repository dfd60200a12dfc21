"""Group commit without a database: those who wait when a write does not end well."""

import threading

import pytest

from jdbcstore.appends import Appends
from jdbcstore.writer import GroupWriter
from journal.errors import JournalClosed

WAIT_S = 60


def appends_to(writer):
    appends = Appends()
    appends.writer, appends.state, appends.body_size_max = writer, "loaded", 100
    return appends


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
