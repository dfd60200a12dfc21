"""What IBM's driver does with our dialect, on a server that speaks its protocol: Derby's.

A relay (drda_relay.py) goes between. Derby has neither DB2's clock nor its catalogue nor its words
for a lock, so the clock stands still here and the words are Derby's; statements as DB2 gets them:
test_foreign_sql.py.

Four things are not run, since driver and Derby disagree. Arrays of rows: the driver hangs. Reading
a BLOB: the driver wants locators. An UPDATE or DELETE that touches no row: a protocol error. A
deadlock: it is reported as a lost connection. So neither the contract of a store nor contenders for
a lease can run.
"""

import threading

import pytest
import sqlalchemy

from jdbcstore import Database, DatabaseStoreOptions, Fault, classify
from jdbcstore.dialects.db2 import DB2
from jdbcstore.dialects.derby import Derby
from jdbcstore.lease_row import LeaseRow
from jdbcstore.schema import NODE_ROWS, PRIMARY_LOCK_ROW, node_table
from tests.jdbcstore.drda_relay import DrdaRelay
from tests.servers import skip_without_jvm

pytestmark = pytest.mark.slow


class DB2OnDerby(DB2):
    """Our dialect, with what Derby calls otherwise."""

    now_ms = "CAST(1000000 AS BIGINT)"
    from_nothing = Derby.from_nothing
    row_lock = Derby.row_lock


@pytest.fixture
def relay(database_servers):
    pytest.importorskip("ibm_db_sa", reason="no ibm_db here: quiver-mq[db2] brings it")
    skip_without_jvm()
    with DrdaRelay(database_servers.get("derby").port) as relay:
        yield relay


@pytest.fixture
def place(new_database):
    """A database of Derby's whose name is in capitals, as IBM's driver sends it."""
    made = new_database("derby")
    name = made.name.upper()
    creator = Database(DatabaseStoreOptions(connection_url=made.url.replace(made.name, name)))
    creator.connect().close()
    creator.close()
    return name


@pytest.fixture
def open_database(relay, place):
    opened = []

    def opening(name=place):
        url = f"ibm_db_sa://me:secret@127.0.0.1:{relay.port}/{name}?Authentication=SERVER"
        # A machine that stalls for a while must not fail a test.
        database = Database(DatabaseStoreOptions(connection_url=url, network_timeout_ms=120_000))
        database.dialect = DB2OnDerby(database.engine.dialect)
        opened.append(database)
        return database

    yield opening
    for database in opened:
        database.close()


@pytest.fixture
def database(open_database):
    return open_database()


@pytest.fixture
def nodes(database):
    table = node_table("NODES", database.dialect)
    with database.connect() as connection:
        connection.execute(sqlalchemy.schema.CreateTable(table))
        for row in NODE_ROWS:
            connection.execute(table.insert(), row)
        connection.commit()
    return table


def held(database, table):
    return sqlalchemy.text(database.dialect.select_locked("ID", table, "ID = 1"))


def test_rows_go_in_and_out(database, nodes):
    with database.connect() as connection:
        found = connection.execute(sqlalchemy.select(nodes.c.ID).order_by(nodes.c.ID)).scalars()
        assert found.all() == [0, 1, 2, 3]


def test_what_is_not_committed_does_not_count(database, nodes):
    with database.connect() as connection:
        connection.execute(nodes.insert(), {"ID": 9})
    with database.connect() as connection:
        found = connection.execute(sqlalchemy.select(nodes.c.ID)).scalars().all()

    assert sorted(found) == [0, 1, 2, 3]


def test_a_duplicate_key_is_fatal(database, nodes):
    with database.connect() as connection, pytest.raises(sqlalchemy.exc.DBAPIError) as caught:
        connection.execute(nodes.insert(), {"ID": 1})

    assert "SQLSTATE=23505" in str(caught.value)
    assert classify(caught.value, database.dialect) is Fault.FATAL


def test_a_lease_is_taken_renewed_and_released(database, nodes):
    row = LeaseRow(nodes, database.dialect, PRIMARY_LOCK_ROW)

    with database.connect() as connection:
        taken = row.try_acquire(connection, "me", 60_000)
        renewed = row.renew(connection, "me", 60_000)
        view = row.look(connection)
        released = row.release(connection, "me")
        connection.commit()

    assert (taken, renewed, released) == (True, True, True)
    assert (view.holder, view.remaining_ms) == ("me", 60_000)


def test_a_locked_row_keeps_others_waiting_until_the_commit(database, open_database, nodes):
    other = open_database()
    order = []

    def wait_for_it():
        with other.connect() as connection:
            connection.execute(held(other, nodes)).all()
            order.append("second")
            connection.commit()

    second = threading.Thread(target=wait_for_it)
    with database.connect() as connection:
        connection.execute(held(database, nodes)).all()
        second.start()
        second.join(0.3)
        order.append("first")
        connection.commit()
    second.join()

    assert order == ["first", "second"]


def test_an_unknown_database_is_fatal(open_database):
    database = open_database("NOSUCH")

    with pytest.raises(sqlalchemy.exc.DBAPIError) as caught:
        database.connect()

    assert classify(caught.value, database.dialect) is Fault.FATAL


def test_a_lost_server_is_lost(relay, database, nodes):
    with database.connect() as connection:
        relay.cut()
        with pytest.raises(sqlalchemy.exc.DBAPIError) as caught:
            connection.execute(sqlalchemy.select(nodes.c.ID))
    assert classify(caught.value, database.dialect) is Fault.LOST

    relay.stop_listening()
    database.close()
    with pytest.raises(sqlalchemy.exc.DBAPIError) as caught:
        database.connect()
    assert classify(caught.value, database.dialect) is Fault.LOST
