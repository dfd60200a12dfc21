"""The unknown outcome of a commit is found out: a batch is never doubled, never lost."""

import sqlite3
import threading

import pytest
import sqlalchemy

from jdbcstore.batch import Batch
from jdbcstore.errors import Fault, LeaseLost
from jdbcstore.options import DatabaseStoreOptions
from jdbcstore.reconnecting import ReconnectingWriter
from jdbcstore.record_tables import mysql
from jdbcstore.store import SqlStore
from journal.errors import JournalClosed, JournalIOError
from tests.crash.model import open_and_load
from tests.jdbcstore.reading import read_table_view

LIVE = ["sqlite", "postgresql", "mariadb"]


class Gone(Exception):
    """What a driver raises when its connection is gone."""


class Clock:
    """Time that passes only where somebody sleeps."""

    def __init__(self):
        self.now = 0.0

    def sleep(self, seconds):
        self.now += seconds

    def __call__(self):
        return self.now


class FakeTable:
    """A table that fails as it is told: "lost", "committed and lost", "conflict", "fatal"."""

    def __init__(self, *failures):
        self.failures = list(failures)
        self.written = []
        self.connections = 0

    def connect(self):
        self.connections += 1

    def disconnect(self):
        pass

    def write(self, batch):
        failure = self.failures.pop(0) if self.failures else ""
        if failure == "lease":
            raise LeaseLost("expired")
        if failure.startswith("committed") or not failure:
            self.written.append(batch)
        if failure:
            raise Gone(failure)

    def holds(self, batch):
        return batch in self.written


def fault_of(error):
    text = str(error)
    if text in ("conflict", "fatal"):
        return Fault(text)
    return Fault.LOST


def rider_on(table, renew=None, ride_out_s=60):
    clock = Clock()
    return ReconnectingWriter(table, ride_out_s, fault_of, renew, sleep=clock.sleep, clock=clock)


def some_batch():
    batch = Batch()
    batch.insert((1, 11, 0, b"x", 0, b"", 1))
    return batch


@pytest.mark.parametrize(
    "failures",
    [
        ["lost"],
        ["lost", "lost", "conflict", "lost"],
        ["committed and lost"],
        ["lost", "committed and lost"],
        ["conflict", "conflict"],
    ],
)
def test_a_batch_is_there_once_whatever_came_between(failures):
    table = FakeTable(*failures)
    batch = some_batch()

    rider_on(table).write(batch)

    assert table.written == [batch]


def test_what_was_committed_before_the_connection_broke_is_found_by_reading_back():
    reconnecting = rider_on(FakeTable("committed and lost"))

    reconnecting.write(some_batch())

    assert reconnecting.read_back == 1


def test_a_refusal_is_final():
    table = FakeTable("fatal")

    with pytest.raises(JournalIOError, match="fatal"):
        rider_on(table).write(some_batch())

    assert table.written == []


def test_an_outage_ends_the_store_when_its_time_is_over():
    table = FakeTable(*["lost"] * 1000)
    reconnecting = rider_on(table, ride_out_s=30)

    with pytest.raises(JournalIOError):
        reconnecting.write(some_batch())

    assert reconnecting._clock.now + 1 >= 30
    assert table.written == []


@pytest.mark.parametrize("is_free", [True, False])
def test_an_expired_lease_goes_on_only_if_it_was_not_taken(is_free):
    table = FakeTable("lease")
    reconnecting = rider_on(table, renew=lambda: is_free)
    batch = some_batch()

    if is_free:
        reconnecting.write(batch)
    else:
        with pytest.raises(LeaseLost):
            reconnecting.write(batch)

    assert table.written == ([batch] if is_free else [])


def lose_connection_after(table, method):
    """Have the next call of `method` do its work and then say that the connection is gone."""
    original = getattr(table, method)
    told = threading.Event()

    def write(batch):
        original(batch)
        if not told.is_set():
            told.set()
            raise ConnectionResetError("cut off behind the commit")

    setattr(table, method, write)


@pytest.mark.parametrize("database", LIVE, indirect=True)
@pytest.mark.parametrize("what", ["add", "add and delete", "delete", "prepare", "commit staged"])
def test_an_unknown_outcome_on_a_live_database(database, what):
    store = SqlStore(DatabaseStoreOptions(connection_url=database.url))
    open_and_load(store)
    store.add(1, 1, b"first", sync=True)
    store.add(2, 2, b"in a transaction", tx=50)
    if what == "commit staged":
        store.prepare(50, b"extra", sync=True)
    lose_connection_after(store.leased.table, "write")

    if what == "add":
        store.add(3, 3, b"third", sync=True)
    elif what == "add and delete":
        store.add(3, 3, b"third", sync=False)
        store.delete(1, sync=True)
    elif what == "delete":
        store.delete(1, sync=True)
    elif what == "prepare":
        store.prepare(50, b"extra", sync=True)
    else:
        store.commit(50, sync=True)
    if what != "commit staged":
        store.commit(50, sync=True)
    assert store.stats()["outages"] == 1
    store.close()

    view = read_table_view(database.url)
    expected = {1: b"first", 2: b"in a transaction", 3: b"third"}
    if "delete" in what:
        del expected[1]
    if "add" not in what:
        del expected[3]
    assert sorted((record, body) for record, _, _, body in view[0]) == sorted(expected.items())
    assert view[1:] == ((), ())


@pytest.mark.parametrize("database", LIVE, indirect=True)
def test_a_store_whose_lease_another_took_writes_nothing_more(database):
    store = SqlStore(DatabaseStoreOptions(connection_url=database.url))
    open_and_load(store)
    store.add(1, 1, b"first", sync=True)
    with store.leased._database.connect() as connection, connection.begin():
        connection.exec_driver_sql(
            "UPDATE "
            + store.leased._database.dialect.quoted(store.leased.lease._table.table)
            + " SET HOLDER_ID = 'thief' WHERE ID = 1"
        )
    called = []

    with pytest.raises(LeaseLost):
        store.add(2, 1, b"second", sync=True)
    with pytest.raises(JournalClosed):
        store.add(3, 1, b"third", sync=True, done=called.append)
    store.close()

    assert [record for record, *_ in read_table_view(database.url)[0]] == [1]


@pytest.mark.parametrize(
    ("database", "way"),
    [
        *((kind, "all at once") for kind in LIVE),
        ("mariadb", "by the driver"),
        ("mariadb", "long commands"),
    ],
    indirect=["database"],
)
def test_a_fenced_owner_is_told_so_whatever_the_new_owner_has_written(database, way, monkeypatch):
    """The new owner goes on with the same numbers: rows of both have the same keys."""
    store = SqlStore(DatabaseStoreOptions(connection_url=database.url))
    open_and_load(store)
    store.add(1, 1, b"first", sync=True)
    if way != "all at once":
        monkeypatch.setattr(mysql, "is_plain_socket", lambda driver, commands: False)
    if way == "long commands":
        monkeypatch.setattr(mysql, "PACKET_MAX", 0)
    quoted = store.leased._database.dialect.quoted
    with store.leased._database.connect() as connection, connection.begin():
        connection.exec_driver_sql(
            f"UPDATE {quoted(store.leased.lease._table.table)} SET HOLDER_ID = 'thief' WHERE ID = 1"
        )
        table = store.leased.table.table
        taken = sqlalchemy.select(table).order_by(table.c.seq.desc()).limit(1)
        row = dict(connection.execute(taken).mappings().one())
        for seq in range(row["seq"] + 1, row["seq"] + 4):
            connection.execute(table.insert(), row | {"id": 2, "seq": seq})

    with pytest.raises(LeaseLost):
        store.add(2, 1, b"second", sync=True)
    store.close()


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
@pytest.mark.parametrize("is_taken", [True, False])
def test_a_lone_row_asks_for_the_lease_once_it_has_the_file(database, is_taken):
    """It is one statement: what it looks at is as it is then, and so is the time."""
    options = DatabaseStoreOptions(
        connection_url=database.url, lock_renew_period_ms=300_000, lock_expiration_ms=600_000
    )
    store = SqlStore(options)
    open_and_load(store)
    lease, outcomes = store.leased.lease, []
    other = sqlite3.connect(database.name, isolation_level=None)
    changed = "HOLDER_ID = 'thief'" if is_taken else "HOLDER_EXPIRATION_TIME = 0"

    def add():
        try:
            outcomes.append(store.add(1, 1, b"body", sync=True))
        except LeaseLost as error:
            outcomes.append(error)

    other.execute("BEGIN IMMEDIATE")
    producer = threading.Thread(target=add)
    producer.start()
    producer.join(0.2)  # Time enough to look before it has the file.
    other.execute(f"UPDATE NODE_MANAGER_STORE SET {changed} WHERE ID = 1")
    other.execute("COMMIT")
    other.close()
    producer.join()
    store.close()

    assert lease.fenced_writes == 1
    (outcome,) = outcomes
    assert isinstance(outcome, LeaseLost) == is_taken
    assert [record for record, *_ in read_table_view(database.url)[0]] == [1] * (not is_taken)
