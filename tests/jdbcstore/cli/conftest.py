"""Run `journal` in this process on databases, and see what it says."""

import contextlib

import pytest
import sqlalchemy

from jdbcstore.database import Database
from jdbcstore.options import DatabaseStoreOptions
from jdbcstore.schema import journal_table
from jdbcstore.store import SqlStore
from journal.cli.main import journal
from journal.commands.exit_status import run


@pytest.fixture
def call(capfd):
    """`call("locks", url)`: exit status, standard output, standard error."""

    def invoke(*arguments):
        capfd.readouterr()
        status = run(journal, "journal", [str(argument) for argument in arguments])
        said = capfd.readouterr()
        return status, said.out, said.err

    return invoke


@contextlib.contextmanager
def loaded_store(url, table="MESSAGES"):
    """A store over a table, that accepts appends."""
    options = DatabaseStoreOptions(connection_url=url, lock_acquisition_timeout_ms=600_000)
    with SqlStore(options, table) as store:
        store.load()
        yield store


def fill(url, table="MESSAGES"):
    """Records, an update, a deleted record, a prepared transaction; as ids say."""
    with loaded_store(url, table) as store:
        store.add(1, 45, b"one")
        store.add(2, 200, b"")
        store.update(1, 46, b"one again")
        store.add(3, 45, b"gone")
        store.delete(3)
        store.add(8, 1, b"eight", tx=100)
        store.update(2, 2, b"two", tx=100)
        store.delete(1, b"why", tx=100)
        store.prepare(100, b"branch")


class Rows:
    """A table as anybody with SQL may change it."""

    def __init__(self, url, name="MESSAGES"):
        self.database = Database(DatabaseStoreOptions(connection_url=url))
        self.table = journal_table(name, self.database.dialect)

    def insert(self, **columns):
        plain = {
            "id": 50,
            "recordType": 11,
            "compactCount": 0,
            "txId": 0,
            "userRecordType": 1,
            "variableSize": 0,
            "record": b"",
            "txDataSize": 0,
            "txData": b"",
            "txCheckNoRecords": 0,
            "seq": 1000,
        }
        with self.database.connect() as connection:
            connection.execute(self.table.insert(), plain | columns)
            connection.commit()

    def drop_key(self):
        """What Artemis makes on MySQL and MariaDB: seq is not a key, and may be NULL."""
        change = f"ALTER TABLE {self.table.name} DROP PRIMARY KEY, MODIFY seq BIGINT"
        with self.database.connect() as connection:
            connection.execute(sqlalchemy.text(change))

    def names(self):
        with self.database.connect() as connection:
            return sorted(sqlalchemy.inspect(connection).get_table_names())

    def all(self):
        with self.database.connect() as connection:
            return [
                tuple(row)
                for row in connection.execute(self.table.select().order_by(self.table.c.seq))
            ]


@pytest.fixture
def rows():
    """`rows(url)`: the table MESSAGES of a database, to be changed behind the store's back."""
    opened = []

    def of(url, name="MESSAGES"):
        opened.append(Rows(url, name))
        return opened[-1]

    yield of
    for one in opened:
        one.database.close()


@pytest.fixture
def filled(database):
    """The URL of a database with what fill() leaves."""
    fill(database.url)
    return database.url


@pytest.fixture
def sqlite_url(tmp_path):
    """The URL of a SQLite database that is not there yet."""
    return f"sqlite:///{tmp_path}/records.db"
