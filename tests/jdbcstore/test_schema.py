import threading

import pytest
import sqlalchemy

from jdbcstore import Database, DatabaseStoreOptions
from jdbcstore.dialects import dialect_named
from jdbcstore.schema import NODE_ROWS, create_if_missing, file_table, journal_table, node_table
from journal.errors import OptionError


@pytest.fixture
def database(tmp_path):
    with_file = Database(DatabaseStoreOptions(connection_url=f"sqlite:///{tmp_path}/broker.db"))
    yield with_file
    with_file.close()


@pytest.fixture
def dialect(database):
    return database.dialect


TABLES = {"journal": journal_table, "file": file_table, "node": node_table}


@pytest.mark.parametrize("kind", TABLES)
def test_a_table_is_created_once(database, dialect, kind):
    table = TABLES[kind]("THINGS", dialect)

    for _ in range(2):
        with database.connect() as connection:
            create_if_missing(connection, table, dialect)

    with database.connect() as connection:
        found = sqlalchemy.inspect(connection)
        assert found.get_table_names() == ["THINGS"]
        assert [column["name"] for column in found.get_columns("THINGS")] == table.columns.keys()


def test_an_empty_table_gets_its_rows_and_a_full_one_no_more(database, dialect):
    table = node_table("NODES", dialect)
    with database.connect() as connection:
        create_if_missing(connection, table, dialect)

    for _ in range(2):
        with database.connect() as connection:
            create_if_missing(connection, table, dialect, rows=NODE_ROWS)

    with database.connect() as connection:
        ids = connection.execute(sqlalchemy.select(table.c.ID)).scalars().all()
    assert sorted(ids) == [0, 1, 2, 3]


def test_missing_indexes_are_made_good(database, dialect):
    table = journal_table("J", dialect)
    with database.connect() as connection:
        create_if_missing(connection, table, dialect)
        connection.execute(sqlalchemy.text("DROP INDEX J_TX_IDX"))
        connection.commit()

    with database.connect() as connection:
        create_if_missing(connection, table, dialect)

        names = {index["name"] for index in sqlalchemy.inspect(connection).get_indexes("J")}
    assert names == {"J_IDX", "J_TX_IDX"}


def test_two_starters_may_race(database, dialect):
    table = node_table("NODES", dialect)
    barrier = threading.Barrier(8)
    failures = []

    def start():
        barrier.wait()
        try:
            with database.connect() as connection:
                create_if_missing(connection, table, dialect, rows=NODE_ROWS)
        except sqlalchemy.exc.DBAPIError as error:
            failures.append(error)

    threads = [threading.Thread(target=start) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert failures == []
    with database.connect() as connection:
        assert connection.execute(sqlalchemy.select(table.c.ID)).scalars().all() == [0, 1, 2, 3]


HOSTILE = [
    "x; drop table y",
    'a"b',
    "a`b",
    "a]b",
    "a'b",
    "",
    " ",
    "a b",
    "ä",
    "a\n",
    "x" * 200,
    "--",
]


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize(
    "vendor", ["sqlite", "postgresql", "mysql", "derby", "oracle", "db2", "mssql"]
)
def test_a_hostile_name_is_refused(vendor, kind, name):
    with pytest.raises(OptionError):
        TABLES[kind](name, dialect_named(vendor))


@pytest.mark.parametrize("name", ["order", "SELECT", "Group", "user", "_x"])
def test_a_reserved_word_is_a_name_like_any_other(database, dialect, name):
    table = journal_table(name, dialect)

    with database.connect() as connection:
        create_if_missing(connection, table, dialect)

        assert sqlalchemy.inspect(connection).get_table_names() == [name]


@pytest.mark.parametrize(
    ("name", "shown"),
    [("postgresql", "messages"), ("mysql", "messages"), ("sqlite", "Messages")],
)
def test_names_are_folded_as_artemis_does(name, shown):
    assert journal_table("Messages", dialect_named(name)).name == shown
