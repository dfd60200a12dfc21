"""An outage of the database is one line in the log, and one more when it is over."""

import errno
import logging
import threading

import pytest

from jdbcstore.node import NodeManager
from jdbcstore.node_table import DatabaseAway
from journal.errors import JournalClosed

FAILURES = 6
WAIT_S = 120


class Outage:
    """Lets so many questions to a table fail as they do while its database is away."""

    def __init__(self, table, failures=FAILURES):
        self.over = threading.Event()
        self._ask, self._left = table.ask, failures
        table.ask = self.ask

    def ask(self, work, *, read_only=False):
        if self._left:
            self._left -= 1
            raise DatabaseAway(errno.EIO, "the database failed: nothing answers", "T")
        answer = self._ask(work, read_only=read_only)
        self.over.set()
        return answer


def lines(caplog, text):
    return [one for one in caplog.messages if text in one]


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_renewals_that_fail_are_one_line_an_outage(brokers, caplog):
    caplog.set_level(logging.INFO, "jdbcstore")
    lease = brokers.lease(lock_renew_period_ms=10)
    lease.acquire()

    for _ in range(2):
        assert Outage(lease._table).over.wait(WAIT_S)
        # The renewal behind the first that succeeds comes when that one was told of.
        assert Outage(lease._table, failures=0).over.wait(WAIT_S)
        assert Outage(lease._table, failures=0).over.wait(WAIT_S)
    assert len(lines(caplog, "could not be renewed")) == 2
    assert len(lines(caplog, "answers again")) == 2


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_who_waits_for_a_lease_tells_an_outage_once_and_the_holder_once(brokers, caplog):
    caplog.set_level(logging.INFO, "jdbcstore")
    holder, waiting = brokers.lease(), brokers.lease(lock_renew_period_ms=10)
    holder.acquire()
    outage = Outage(waiting._table)
    errors = []

    def wait():
        try:
            waiting.acquire(-1)
        except JournalClosed as error:
            errors.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    assert outage.over.wait(WAIT_S)
    # It looks, then tries: the outage is over for it behind the second that succeeds.
    for _ in range(2):
        assert Outage(waiting._table, failures=0).over.wait(WAIT_S)
    again = Outage(waiting._table)
    assert again.over.wait(WAIT_S)
    waiting.interrupt()
    thread.join()

    assert len(errors) == 1
    assert len(lines(caplog, "cannot take the lease")) == 2
    assert len(lines(caplog, f"waiting for the lease held by {holder.holder_id}")) == 1


@pytest.mark.own_server
@pytest.mark.parametrize("database", ["mariadb", "postgresql"], indirect=True)
def test_a_start_waits_for_a_database_that_is_away(brokers, database, caplog):
    manager = NodeManager(brokers.database(lock_renew_period_ms=50, ride_out_ms=600_000))
    is_told = threading.Event()

    class Listener(logging.Handler):
        def emit(self, record):
            if "the database is away" in record.getMessage():
                is_told.set()

    listener = Listener()
    logging.getLogger("jdbcstore").addHandler(listener)
    database.server.kill9()
    thread = threading.Thread(target=manager.start)
    thread.start()
    try:
        assert is_told.wait(WAIT_S)
        database.server.start()
        thread.join(WAIT_S)
    finally:
        logging.getLogger("jdbcstore").removeHandler(listener)
        manager.interrupt()
        thread.join()

    assert manager.node_id
    assert len(lines(caplog, "the database is away")) == 1
    manager.stop()


@pytest.mark.own_server
@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
def test_a_start_gives_up_when_its_time_is_over(brokers, database):
    manager = NodeManager(brokers.database(ride_out_ms=0))
    database.server.kill9()

    with pytest.raises(DatabaseAway):
        manager.start()
