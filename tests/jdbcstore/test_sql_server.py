"""What goes to SQL Server over the wire, and what its errors become, by Microsoft's own driver.

The server is a stub (sql_server_stub.py): it notes what comes, and keeps rows in SQLite. The
contract of a store runs over it too: tests/contract.
"""

import threading

import pytest
import sqlalchemy

from jdbcstore import Database, DatabaseStoreOptions, Fault, classify
from jdbcstore.blobs import SqlFiles
from jdbcstore.lease_row import LeaseRow
from jdbcstore.schema import (
    NODE_ROWS,
    PRIMARY_LOCK_ROW,
    create_if_missing,
    journal_table,
    node_table,
)
from jdbcstore.store import SqlStore
from journal.errors import JournalIOError
from tests.crash.model import open_and_load
from tests.jdbcstore.reading import read_table_view
from tests.jdbcstore.sql_server_stub import SqlServerStub, skip_without_driver

pytestmark = pytest.mark.slow

HOLDS_LEASE = (
    "SELECT 1 FROM [NODE_MANAGER_STORE] WITH (UPDLOCK, ROWLOCK, HOLDLOCK) WHERE ID = 1 "
    "AND HOLDER_ID = @P1 AND HOLDER_EXPIRATION_TIME >= "
    "DATEDIFF_BIG(MILLISECOND, CAST('1970-01-01' AS DATETIME2), SYSUTCDATETIME())"
)


@pytest.fixture
def server(tmp_path):
    skip_without_driver()
    with SqlServerStub(tmp_path) as server:
        yield server


@pytest.fixture
def open_database(server):
    opened = []

    def opening(**changes):
        given = {"connection_url": server.url, "network_timeout_ms": 60_000} | changes
        opened.append(Database(DatabaseStoreOptions(**given)))
        return opened[-1]

    yield opening
    for database in opened:
        database.close()


@pytest.fixture
def database(open_database):
    return open_database()


@pytest.fixture
def new_store(server):
    opened = []

    def new(**changes):
        given = {"connection_url": server.url, "network_timeout_ms": 60_000} | changes
        opened.append(SqlStore(DatabaseStoreOptions(**given)))
        return opened[-1]

    yield new
    for store in opened:
        store.close()


def create(database, table, **named):
    with database.connect() as connection:
        create_if_missing(connection, table, database.dialect, **named)
    return table


def those_of(server, text):
    """Statements that hold this text."""
    return [statement for statement in server.statements if text in statement.text]


def ended(server, statement):
    """How the transaction of a statement ended."""
    return [
        what
        for session, number, what in server.transactions
        if (session, number) == (statement.session, statement.transaction) and what != "begin"
    ]


def test_a_login_names_database_user_and_password(server, database):
    database.connect().close()

    login = server.logins[0]
    assert (login.user, login.password, login.database) == ("quiver", "secret", "quiver")


def test_a_commit_holds_its_lease_and_its_rows_in_one_transaction(server, new_store):
    store = new_store()
    open_and_load(store)
    store.add(7, 11, b"abc", sync=True)
    (insert,) = those_of(server, "INSERT INTO [MESSAGES]")
    fence = server.statements[server.statements.index(insert) - 1]

    assert fence.text == HOLDS_LEASE
    assert (fence.session, fence.transaction) == (insert.session, insert.transaction)
    assert fence.types == ["varchar(36)"]
    assert ended(server, insert) == ["commit"]
    *values, seq = [parameter.value for parameter in insert.parameters.values()]
    assert values == [7, 11, 0, 0, 11, 3, b"abc", 0, b"", 0]
    assert seq > 0


def test_a_load_reads_pages_in_one_transaction_each(server, new_store):
    store = new_store()
    open_and_load(store)
    store.add(1, 11, b"abc", sync=True)
    store.close()
    server.statements.clear()

    view = read_table_view(server.url)

    assert view[0] == ((1, False, 11, b"abc"),)
    pages = those_of(server, "ORDER BY [MESSAGES].seq")
    assert "SELECT TOP 4000 [MESSAGES].seq" in pages[0].text
    assert pages[1].text.endswith("WHERE [MESSAGES].seq <= @P1 ORDER BY [MESSAGES].seq")


def test_bytes_go_as_varbinary_and_numbers_as_integers(server, database):
    table = create(database, journal_table("J", database.dialect))
    low, high = -(2**63), 2**63 - 1
    rows = [
        (low, -128, 127, high, -1, 2**31 - 1, b"", -1, b"plain text", -(2**31), 1),
        (1, 2, 3, 4, 5, 6, b"x" * 300_000, 7, bytes(range(256)), 8, 2),
    ]

    for row in rows:
        with database.raw() as raw:
            database.dialect.begin_write(raw)
            database.dialect.insert_rows(raw, table, [row])
            raw.commit()

    sent = those_of(server, "INSERT INTO [J]")
    assert [tuple(p.value for p in one.parameters.values()) for one in sent] == rows
    for statement in sent:
        kinds = [kind.partition("(")[0] for kind in statement.types]
        assert kinds[6] == kinds[8] == "varbinary"
        assert set(kinds) - {"varbinary"} <= {"bigint", "int", "smallint", "tinyint"}
    with database.connect(read_only=True) as connection:
        assert connection.execute(sqlalchemy.select(table).order_by(table.c.seq)).all() == rows


def test_many_rows_go_in_one_transaction(server, database):
    table = create(database, journal_table("J", database.dialect))
    rows = [(at, 11, 0, 0, 3, 4, b"body", 0, b"", 0, at) for at in range(1200)]

    with database.raw() as raw:
        database.dialect.begin_write(raw)
        database.dialect.insert_rows(raw, table, rows)
        assert database.dialect.delete_ids(raw, table, range(100, 1500)) == 1100
        raw.commit()

    sent = those_of(server, "[J] (") + those_of(server, "DELETE FROM [J]")
    sent = [one for one in sent if one.parameters]
    assert len({one.transaction for one in sent}) == 1
    assert ended(server, sent[0]) == ["commit"]
    # The most that one statement takes is 2,100.
    assert max(len(one.parameters) for one in sent) <= 2100
    with database.connect(read_only=True) as connection:
        assert connection.execute(
            sqlalchemy.select(table.c.id).order_by(table.c.seq)
        ).scalars().all() == list(range(100))


def test_what_is_not_committed_is_rolled_back(server, database):
    table = create(database, journal_table("J", database.dialect))

    with database.raw() as raw:
        database.dialect.begin_write(raw)
        database.dialect.insert_rows(raw, table, [(1, 11, 0, 0, 3, 0, b"", 0, b"", 0, 1)])

    (insert,) = those_of(server, "INSERT INTO [J]")
    assert ended(server, insert) == ["rollback"]


def test_a_lease_is_taken_renewed_and_released_by_guarded_statements(server, database):
    table = create(database, node_table("NODES", database.dialect), rows=NODE_ROWS)
    row = LeaseRow(table, database.dialect, PRIMARY_LOCK_ROW)

    with database.connect() as connection:
        taken = row.try_acquire(connection, "me", 60_000)
        taken_by_another = row.try_acquire(connection, "other", 60_000)
        renewed = row.renew(connection, "me", 60_000)
        view = row.look(connection)
        released_by_another = row.release(connection, "other")
        released = row.release(connection, "me")
        connection.commit()

    assert (taken, taken_by_another, renewed) == (True, False, True)
    assert view.holder == "me"
    assert 0 < view.remaining_ms <= 60_000
    assert (released_by_another, released) == (False, True)
    updates = those_of(server, "UPDATE [NODES]")
    assert len({statement.transaction for statement in updates}) == 1


def test_a_locked_row_keeps_others_waiting_until_the_commit(server, database, open_database):
    table = create(database, node_table("NODES", database.dialect), rows=NODE_ROWS)
    held = sqlalchemy.text(database.dialect.select_locked("ID", table, "ID = :row"))
    other = open_database()
    found = []

    def wait_for_it():
        with other.connect() as connection:
            found.append(connection.execute(held, {"row": 1}).all())

    second = threading.Thread(target=wait_for_it)
    with database.connect() as connection:
        connection.execute(held, {"row": 1})
        second.start()
        server.lock.wait_for_waiting()
        assert found == []
        connection.commit()
    second.join()

    assert found == [[(1,)]]


def test_who_waits_longer_than_the_network_timeout_is_lost(server, database, open_database):
    table = create(database, node_table("NODES", database.dialect), rows=NODE_ROWS)
    held = sqlalchemy.text(database.dialect.select_locked("ID", table, "ID = :row"))
    other = open_database(network_timeout_ms=1000)

    with database.connect() as holder, other.connect() as connection:
        holder.execute(held, {"row": 1})
        with pytest.raises(sqlalchemy.exc.DBAPIError) as caught:
            connection.execute(held, {"row": 1})
        holder.commit()

    assert classify(caught.value, other.dialect) is Fault.LOST


def test_files_grow_in_place(server, database):
    files = SqlFiles(database, "LARGE_MESSAGES")
    files.start()
    file = files.open("1.msg")
    file.append(b"one")
    file.append(b"two" * 40_000)

    assert b"".join(file.pieces()) == b"one" + b"two" * 40_000
    assert [tuple(one.types) for one in those_of(server, "SET DATA.WRITE(")] == [
        *(("varbinary(3)", "tinyint"), ("varbinary(max)", "tinyint"))
    ]


FAULTS = {
    **dict.fromkeys((1204, 1205, 1222, 3960, 701, 1105, 9002), Fault.CONFLICT),
    **dict.fromkeys((596, 976, 978, 983, 3906, 3908), Fault.LOST),
    **dict.fromkeys((40197, 40501, 40613, 49918), Fault.LOST),
    **dict.fromkeys((2627, 2601, 208, 547), Fault.FATAL),
}


@pytest.mark.parametrize(("number", "fault"), FAULTS.items())
def test_an_error_of_the_server_is_classified(server, database, number, fault):
    database.connect().close()
    server.fail_next("SELECT 42", number)

    # Some of them end the session, and the driver fails once more when it rolls back.
    with pytest.raises(sqlalchemy.exc.DBAPIError) as caught, database.connect() as connection:
        connection.exec_driver_sql("SELECT 42")

    assert classify(caught.value, database.dialect) is fault


@pytest.mark.parametrize(
    ("number", "fault"),
    [(18456, Fault.FATAL), (4060, Fault.FATAL), (18401, Fault.LOST), (40613, Fault.LOST)],
)
def test_a_refused_login_is_classified(server, database, number, fault):
    server.fail_next("login", number)

    with pytest.raises(sqlalchemy.exc.DBAPIError) as caught:
        database.connect()

    assert classify(caught.value, database.dialect) is fault


def test_a_wrong_password_is_refused_at_once(server, new_store):
    store = new_store(connection_url=server.url.replace("secret", "wrong"), ride_out_ms=600_000)

    with pytest.raises(JournalIOError, match="Login failed for user") as caught:
        store.open()

    assert "wrong" not in str(caught.value)


def test_a_duplicate_key_of_the_table_is_fatal(database):
    table = create(database, node_table("NODES", database.dialect), rows=NODE_ROWS)

    with database.connect() as connection, pytest.raises(sqlalchemy.exc.DBAPIError) as caught:
        connection.execute(table.insert(), {"ID": 1})

    assert classify(caught.value, database.dialect) is Fault.FATAL


@pytest.mark.parametrize("number", [1205, 1222, 40613, 596])
def test_a_store_writes_again_what_the_server_refused_for_now(server, new_store, number):
    store = new_store(ride_out_ms=600_000)
    open_and_load(store)
    server.fail_next("INSERT INTO [MESSAGES]", number)
    store.add(1, 11, b"abc", sync=True)
    store.add(2, 11, b"def", sync=True)
    store.close()

    assert read_table_view(server.url)[0] == (*((1, False, 11, b"abc"), (2, False, 11, b"def")),)


@pytest.mark.parametrize("is_done", [False, True])
def test_a_store_survives_a_connection_lost_in_a_commit(server, new_store, is_done):
    store = new_store(ride_out_ms=600_000)
    open_and_load(store)
    server.cut_commit(is_done=is_done)
    store.add(1, 11, b"abc", sync=True)
    store.close()

    assert read_table_view(server.url)[0] == ((1, False, 11, b"abc"),)


def test_a_lost_server_is_lost(server, open_database):
    # The driver tries to connect for as long as that.
    database = open_database(network_timeout_ms=1000)
    with database.connect() as connection:
        connection.exec_driver_sql("SELECT 42").all()
        server.cut()
        with pytest.raises(sqlalchemy.exc.DBAPIError) as caught:
            connection.exec_driver_sql("SELECT 42")
    assert classify(caught.value, database.dialect) is Fault.LOST

    server.stop_listening()
    server.cut()
    database.close()
    with pytest.raises(sqlalchemy.exc.DBAPIError) as caught:
        database.connect()
    assert classify(caught.value, database.dialect) is Fault.LOST
