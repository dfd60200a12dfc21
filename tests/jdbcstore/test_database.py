import contextlib
import sqlite3
import time

import pytest
import sqlalchemy
from sqlalchemy.dialects import sqlite

from jdbcstore import Database, DatabaseStoreOptions, Fault, SqlStore, classify
from jdbcstore.dialects.sqlite import SQLite
from jdbcstore.schema import create_if_missing, journal_table
from journal.errors import JournalIOError, OptionError


@pytest.fixture
def open_database(tmp_path):
    opened = []

    def opening(**changes):
        url = f"sqlite:///{tmp_path}/broker.db"
        opened.append(Database(DatabaseStoreOptions(connection_url=url, **changes)))
        return opened[-1]

    yield opening
    for database in opened:
        database.close()


def row(record_id, seq):
    return (record_id, 11, 0, 0, 3, 4, b"body", 0, b"", 0, seq)


def test_rows_go_in_and_out_by_the_driver(open_database):
    database = open_database()
    table = journal_table("J", database.dialect)
    with database.connect() as connection:
        create_if_missing(connection, table, database.dialect)

    with database.raw() as raw:
        database.dialect.begin_write(raw)
        database.dialect.insert_rows(raw, table, [row(number, number) for number in range(1200)])
        deleted = database.dialect.delete_ids(raw, table, range(100, 1150))
        raw.commit()

    assert deleted == 1050
    with database.connect(read_only=True) as connection:
        found = connection.execute(sqlalchemy.select(table.c.id).order_by(table.c.seq))
        assert found.scalars().all() == [*range(100), *range(1150, 1200)]


def test_what_is_not_committed_does_not_count(open_database):
    database = open_database()
    table = journal_table("J", database.dialect)
    with database.connect() as connection:
        create_if_missing(connection, table, database.dialect)

    with database.raw() as raw:
        database.dialect.begin_write(raw)
        database.dialect.insert_rows(raw, table, [row(1, 1)])

    with database.connect() as connection:
        assert connection.execute(sqlalchemy.select(table.c.id)).all() == []


def test_the_databases_clock_is_this_machines(open_database):
    database = open_database()

    before = time.time_ns() // 1_000_000
    with database.connect() as connection:
        now = connection.execute(sqlalchemy.text(database.dialect.select_now_ms)).scalar_one()
    after = time.time_ns() // 1_000_000

    assert before - 1 <= now <= after + 1


def test_a_second_writer_is_a_conflict(open_database):
    first, second = open_database(), open_database(network_timeout_ms=10)

    with first.raw() as holder, second.raw() as late:
        first.dialect.begin_write(holder)
        with pytest.raises(sqlite3.OperationalError) as caught:
            second.dialect.begin_write(late)

    assert classify(caught.value, second.dialect) is Fault.CONFLICT


def test_a_reader_does_not_wait_for_writers(open_database):
    database = open_database(network_timeout_ms=10)

    with database.raw() as holder, database.connect(read_only=True) as reader:
        database.dialect.begin_write(holder)

        assert reader.execute(sqlalchemy.text("SELECT 1")).scalar_one() == 1


def test_each_commit_is_synced(open_database):
    with open_database().connect() as connection:
        assert connection.execute(sqlalchemy.text("PRAGMA synchronous")).scalar_one() == 2
        assert connection.execute(sqlalchemy.text("PRAGMA journal_mode")).scalar_one() == "wal"


@pytest.mark.parametrize(
    "url", ["sqlite://", "sqlite:///:memory:", "jdbc:sqlite:", "no url", "x://y"]
)
def test_a_url_that_leads_nowhere_is_refused(url):
    with pytest.raises(OptionError):
        Database(DatabaseStoreOptions(connection_url=url))


class BusyAtFirst(sqlite3.Connection):
    """A new file that others switch over too: SQLite says busy without waiting."""

    refusals = 0

    def execute(self, sql, *parameters):
        if "journal_mode = WAL" in sql and self.refusals:
            self.refusals -= 1
            error = sqlite3.OperationalError("database is locked")
            error.sqlite_errorcode = sqlite3.SQLITE_BUSY
            raise error
        return super().execute(sql, *parameters)


def test_openers_of_a_new_file_wait_for_each_other(tmp_path):
    with contextlib.closing(sqlite3.connect(tmp_path / "b.db", factory=BusyAtFirst)) as raw:
        raw.refusals = 3
        SQLite(sqlite.dialect()).set_up(raw, 60_000)
        assert raw.refusals == 0
        assert raw.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_a_new_file_that_stays_busy_is_given_up(tmp_path):
    with contextlib.closing(sqlite3.connect(tmp_path / "b.db", factory=BusyAtFirst)) as raw:
        raw.refusals = 1_000_000
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            SQLite(sqlite.dialect()).set_up(raw, 50)


def test_a_sqlite_file_in_a_folder_that_is_missing_is_named(tmp_path):
    path = tmp_path / "missing" / "broker.db"
    store = SqlStore(DatabaseStoreOptions(connection_url=f"sqlite:///{path}"))

    with pytest.raises(JournalIOError, match=f"file {path}: its folder has to exist"):
        store.open()
