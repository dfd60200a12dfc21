"""A statement is reported as done, with no rows, and was cancelled: nothing is lost by that.

test_session_kill.py has the server do so; it is rare. Here it happens to each statement in turn.
"""

import contextlib

import pytest

from jdbcstore import row_pages
from jdbcstore.database import Database
from jdbcstore.dialects import dialect_named
from jdbcstore.errors import StatementCancelled
from jdbcstore.file_rows import MySQLFileRows
from jdbcstore.node_table import DatabaseAway
from jdbcstore.options import DatabaseStoreOptions
from jdbcstore.pages import PageStores
from jdbcstore.schema import file_table
from jdbcstore.snapshot import TableSnapshot
from jdbcstore.store import SqlStore
from journal.errors import JournalIOError
from tests.crash.model import open_and_load
from tests.jdbcstore.cancelling import Cancelling
from tests.jdbcstore.reading import read_table_view

# PostgreSQL loads by COPY, and says what was cancelled.
PAGED = ["sqlite", "mariadb"]
# A test that is delayed for a minute must not fail.
PATIENT = {"network_timeout_ms": 300_000, "lock_expiration_ms": 600_000, "ride_out_ms": 600_000}
# Of the SELECT that measures each row of more than one page.
MEASURES_EACH = {"text": "AS bytes", "but": "count("}


@pytest.fixture
def small_pages(monkeypatch):
    monkeypatch.setattr(row_pages, "PAGE_ROWS", 10)
    monkeypatch.setattr(row_pages, "PAGE_SIZE", 4000)
    monkeypatch.setattr(row_pages, "PAGE_SIZE_TARGET", 3600)


@pytest.fixture
def new_store(database):
    """`new_store(rows...)`: an open store over rows (id, type, user type, body, tx, tx data)."""
    stores = []

    def new(*rows):
        store = SqlStore(DatabaseStoreOptions(connection_url=database.url, **PATIENT))
        stores.append(store)
        store.open()
        table = store.leased.table
        if rows:
            with table.connection.begin():
                table.insert_rows([(*row, seq) for seq, row in enumerate(rows, 1)])
        return store

    yield new
    for store in stores:
        store.close()


def cancelling(store, kind, **which):
    return Cancelling(store.leased._database.engine, "MESSAGES", kind, **which)


def plain_rows(count, first=1, size=500):
    return [(first + at, 11, 1, bytes(size), 0, b"") for at in range(count)]


@pytest.mark.parametrize("database", PAGED, indirect=True)
def test_a_load_reads_all_whichever_select_comes_empty(small_pages, new_store):
    store = new_store(*plain_rows(40), *plain_rows(2, first=41, size=9000), *plain_rows(9, 43))
    nth, hits = 0, 1

    while hits:
        with cancelling(store, "SELECT", nth=nth) as cancelled:
            ids = [row[0] for rows in store.leased.reconnecting.rows() for row in rows]
        assert ids == list(range(1, 52))
        nth, hits = nth + 1, cancelled.hits

    assert nth > 10


@pytest.mark.parametrize("database", PAGED, indirect=True)
def test_a_commit_row_that_a_load_nearly_missed_counts(database, small_pages, new_store):
    store = new_store(
        (1000, 13, 45, b"committed", 7, b""),
        *plain_rows(15),
        *plain_rows(15, first=16, size=1000),
        (-1, 18, 255, b"", 7, b""),
    )

    with cancelling(store, "SELECT", nth=1, **MEASURES_EACH) as cancelled:
        store.load()
    store.add(2000, 1, b"behind all", sync=True)
    store.close()

    assert cancelled.hits
    ids = [record for record, *_ in read_table_view(database.url)[0]]
    assert sorted(ids) == [*range(1, 31), 1000, 2000]


@pytest.mark.parametrize("database", ["mariadb"], indirect=True)
def test_a_commit_whose_update_was_cancelled_keeps_its_records(database, new_store):
    store = new_store()
    store.load()
    store.add(1, 1, b"one", tx=50)
    store.update(1, 2, b"again", tx=50)
    store.prepare(50, b"xid", sync=True)

    with cancelling(store, "UPDATE") as cancelled:
        store.commit(50, sync=True)
    store.close()

    assert cancelled.hits
    assert read_table_view(database.url)[0] == ((1, False, 1, b"one"), (1, True, 2, b"again"))


@pytest.mark.parametrize("database", ["mariadb"], indirect=True)
@pytest.mark.parametrize("nth", [0, 1])
def test_a_load_whose_update_was_cancelled_keeps_what_was_committed(database, new_store, nth):
    store = new_store(
        (1, 13, 45, b"one", 7, b""),
        (2, 13, 45, b"two", 8, b""),
        (-1, 18, 255, b"", 7, b""),
        (-1, 18, 255, b"", 8, b""),
    )

    with cancelling(store, "UPDATE", nth=nth) as cancelled:
        store.load()
    store.close()

    assert cancelled.hits
    assert [record for record, *_ in read_table_view(database.url)[0]] == [1, 2]


@pytest.mark.parametrize("database", ["mariadb"], indirect=True)
def test_what_is_deleted_and_added_in_one_batch_need_not_have_been_there(database):
    """Its DELETE finds nothing, rightly; what is counted then is not what was inserted behind."""
    store = SqlStore(
        DatabaseStoreOptions(
            connection_url=database.url, ride_out_ms=500, journal_sync_period_ms=600_000
        )
    )
    open_and_load(store)
    store.delete(5, tx=50)
    store.commit(50, sync=False)

    store.add(5, 1, b"five", sync=True)
    store.close()

    assert read_table_view(database.url)[0] == ((5, False, 1, b"five"),)


@pytest.fixture
def snapshot(database, small_pages, new_store):
    new_store(*plain_rows(30)).close()
    connected = Database(DatabaseStoreOptions(connection_url=database.url))
    with TableSnapshot(connected, "MESSAGES") as snapshot:
        yield snapshot
    connected.close()


def ids_of(snapshot):
    return [row.id for rows in snapshot.pages() for row in rows]


def cancelling_page(snapshot, **which):
    return Cancelling(snapshot.database.engine, snapshot.name, "SELECT", **which)


@pytest.mark.parametrize("database", PAGED, indirect=True)
def test_who_only_looks_sees_all_though_measuring_was_cancelled(snapshot):
    with cancelling_page(snapshot, **MEASURES_EACH) as cancelled:
        assert ids_of(snapshot) == list(range(1, 31))

    assert cancelled.hits


@pytest.mark.parametrize("database", ["mariadb"], indirect=True)
def test_who_only_looks_is_told_of_a_page_that_did_not_come(snapshot):
    with cancelling_page(snapshot, text="userRecordType"), pytest.raises(JournalIOError):
        ids_of(snapshot)


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_where_rows_may_go_while_somebody_looks_a_page_may_be_empty(snapshot):
    """As on Derby, DB2 and SQL Server; SQLite stands for them."""
    with cancelling_page(snapshot, text="userRecordType") as cancelled:
        ids = ids_of(snapshot)

    assert cancelled.hits
    assert 0 < len(ids) < 30


class SilentCursor:
    """Finds nothing by a change or a SELECT, and so many rows by a count."""

    rowcount = 0

    def __init__(self, count):
        self.count = count

    def execute(self, sql, parameters=()):
        self.counts = sql.startswith("SELECT COUNT(*)")

    def fetchone(self):
        return (self.count,) if self.counts else None

    def fetchall(self):
        return []


STATEMENTS = {
    "find": ("name.msg",),
    "names": ("msg",),
    "read": (7, 0, 10),
    "grow": (7, b"more"),
    "set": (7, b"other"),
    "rename": (7, "name.msg"),
    "remove": (7,),
}


@pytest.mark.parametrize("statement", STATEMENTS)
def test_a_statement_on_a_file_that_found_no_row_is_looked_at_again(statement):
    dialect = dialect_named("mysql")
    rows = MySQLFileRows(file_table("LARGE_MESSAGES", dialect), dialect)

    getattr(rows, statement)(SilentCursor(0), *STATEMENTS[statement])
    with pytest.raises(StatementCancelled):
        getattr(rows, statement)(SilentCursor(1), *STATEMENTS[statement])


class OnceEmpty:
    """A cursor one of whose SELECTs comes empty: the nth of all on file tables."""

    def __init__(self, cursor, tally):
        self._cursor, self._tally = cursor, tally

    def __getattr__(self, name):
        return getattr(self._cursor, name)

    def execute(self, sql, parameters=()):
        if sql.startswith("SELECT") and "page_store" in sql and "COUNT" not in sql:
            self._tally.seen += 1
            if self._tally.seen == self._tally.nth:
                sql = f"SELECT * FROM ({sql}) AS cancelled WHERE 1 = 0"
        return self._cursor.execute(sql, parameters)


class Tally:
    def __init__(self, nth):
        self.nth, self.seen = nth, 0


class Raw:
    """A driver's connection that gives cursors of the above."""

    def __init__(self, connection, tally):
        self._connection, self._tally = connection, tally

    def __getattr__(self, name):
        return getattr(self._connection, name)

    def cursor(self):
        return OnceEmpty(self._connection.cursor(), self._tally)


@pytest.mark.parametrize("database", ["mariadb"], indirect=True)
def test_pages_are_all_found_whichever_select_comes_empty(database, monkeypatch):
    connected = Database(DatabaseStoreOptions(connection_url=database.url, **PATIENT))
    made = PageStores(connected)
    made.start()
    for number, address in enumerate(("a", "b"), 1):
        made.create(address, number).open("000000001.page").append(b"page")
    made.create("a", 3)  # As a kill leaves it: without pages.
    plain_raw = connected.raw
    nth = 0

    while True:
        nth += 1
        tally = Tally(nth)

        @contextlib.contextmanager
        def raw(tally=tally, **named):
            with plain_raw(**named) as connection:
                yield Raw(connection, tally)

        with monkeypatch.context() as patched:
            patched.setattr(connected, "raw", raw)
            found = PageStores(connected).load()
        assert {name: files.names("page") for name, files in found.items()} == {
            "a": ["000000001.page"],
            "b": ["000000001.page"],
        }
        if tally.seen < nth:
            break
        if "3" not in made.suffixes():
            made.create("a", 3)

    assert nth > 5
    connected.close()


@pytest.mark.parametrize("database", ["postgresql", "mariadb"], indirect=True)
def test_a_renewal_that_was_cancelled_does_not_lose_the_lease(brokers):
    connected = brokers.database()
    lease = brokers.lease(database=connected)
    lease.acquire()

    with (
        Cancelling(connected.engine, "NODE_MANAGER_STORE", "UPDATE") as cancelled,
        pytest.raises(DatabaseAway),
    ):
        lease.renew()

    assert cancelled.hits
    assert lease.renew()
    assert lease.is_held_by_me()
