"""Databases and tables that were not made for a broker: named, or served all the same."""

import pytest
from sqlalchemy import text

from jdbcstore.database import Database
from jdbcstore.node import NodeManager, NodeState
from jdbcstore.options import DatabaseStoreOptions
from jdbcstore.schema import journal_table
from jdbcstore.snapshot import TableSnapshot
from jdbcstore.store import SqlStore
from journal.errors import OptionError
from tests.crash.model import open_and_load
from tests.jdbcstore.reading import read_table_view


@pytest.fixture
def options(database):
    """Of a database in which the table of messages is somebody else's."""
    options = DatabaseStoreOptions(connection_url=database.url, message_table_name="invoices")
    opened = Database(options)
    quoted = opened.dialect.quoted(journal_table("invoices", opened.dialect))
    with opened.connect() as connection, connection.begin():
        connection.execute(text(f"CREATE TABLE {quoted} (id INTEGER, customer INTEGER)"))
    opened.close()
    return options


@pytest.mark.parametrize("database", ["sqlite", "postgresql", "mariadb"], indirect=True)
def test_a_table_that_was_made_for_something_else_is_named(options):
    store = SqlStore(options)
    with pytest.raises(OptionError, match=r"(?i)table invoices was made for .* recordType,"):
        store.open()

    database = Database(options)
    with pytest.raises(OptionError, match=r"(?i)invoices"), TableSnapshot(database, "invoices"):
        pass
    database.close()


def test_a_broker_runs_in_a_database_without_an_encoding(database_servers):
    """SQL_ASCII: the server converts nothing, and tells no encoding."""
    server = database_servers.get("postgresql")
    database = server.new_database(encoding="SQL_ASCII")
    options = DatabaseStoreOptions(connection_url=database.url)
    try:
        connections = Database(options)
        node = NodeManager(connections)
        node.start()
        node.start_primary()
        node.activated()
        state = node.read_state()
        node.pause_primary()
        node.stop()
        connections.close()
        store = SqlStore(options)
        open_and_load(store)
        store.add(1, 1, b"\xff\x00body", sync=True)
        store.close()
        view = read_table_view(database.url)
    finally:
        server.drop_database(database)

    assert state is NodeState.ACTIVE
    assert [(row[0], bytes(row[3])) for row in view[0]] == [(1, b"\xff\x00body")]
