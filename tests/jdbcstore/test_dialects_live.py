"""What every dialect promises, on a real server of each kind that can be had."""

import threading
import time

import pytest
import sqlalchemy

from jdbcstore import Database, DatabaseStoreOptions, Fault, classify
from jdbcstore.schema import NODE_ROWS, create_if_missing, file_table, journal_table, node_table
from tests.jdbcstore.sql_server_stub import SqlServerStub, skip_without_driver
from tests.servers import new_embedded_derby

SQL_SERVER = pytest.param("sql-server-stub", marks=pytest.mark.slow)

LIVE = ["sqlite", "postgresql", "mariadb", "derby", "derby-embedded", SQL_SERVER]
QUERY = {"derby": "VALUES 1"}


@pytest.fixture(params=LIVE)
def place(request, new_database, tmp_path):
    if request.param == "sql-server-stub":
        skip_without_driver()
        with SqlServerStub(tmp_path) as stub:
            yield stub.place
    elif request.param == "derby-embedded":
        yield new_embedded_derby(tmp_path)
    else:
        yield new_database(request.param)


@pytest.fixture
def open_database(place):
    opened = []

    def opening(**changes):
        # A machine that stalls for a while must not fail a test.
        given = {"connection_url": place.jdbc_url or place.url, "network_timeout_ms": 300_000}
        if place.jdbc_url and place.user:
            given |= {"user": place.user, "password": place.password or None}
        opened.append(Database(DatabaseStoreOptions(**given | changes)))
        return opened[-1]

    yield opening
    for database in opened:
        database.close()


@pytest.fixture
def database(open_database):
    return open_database()


def create(database, table, **named):
    with database.connect() as connection:
        create_if_missing(connection, table, database.dialect, **named)
    return table


def row(record_id, seq, body=b"body"):
    return (record_id, 11, 0, 0, 3, len(body), body, 0, b"", 0, seq)


def test_a_table_without_a_key_gets_the_index_that_a_load_needs(database):
    """Those of Artemis have none, nor have those that we made before."""
    if database.dialect.artemis_has_key:
        pytest.skip(f"{database.dialect.name}: Artemis's table has the key where ours has it")
    table = create(database, journal_table("Old", database.dialect))
    with database.connect() as connection:
        connection.execute(sqlalchemy.text("ALTER TABLE old DROP PRIMARY KEY"))
        connection.commit()
    create(database, journal_table("Old", database.dialect))

    with database.connect() as connection:
        found = sqlalchemy.inspect(connection).get_indexes(table.name)
    assert ["seq"] in [index["column_names"] for index in found]


def ids(database, table):
    with database.connect(read_only=True) as connection:
        return (
            connection.execute(sqlalchemy.select(table.c.id).order_by(table.c.seq)).scalars().all()
        )


@pytest.mark.parametrize("build", [journal_table, file_table, node_table])
def test_tables_are_created_once_by_the_folded_name(database, build):
    for _ in range(2):
        table = create(database, build("Things", database.dialect))

    with database.connect() as connection:
        found = sqlalchemy.inspect(connection)
        assert found.has_table(table.name)
        names = [column["name"].lower() for column in found.get_columns(table.name)]
        indexes = {index["name"].lower() for index in found.get_indexes(table.name)}
    assert names == [column.name.lower() for column in table.columns]
    assert indexes >= {str(index.name).lower() for index in table.indexes}


def test_many_starters_may_race(database):
    table = node_table("NODES", database.dialect)
    barrier = threading.Barrier(6)
    failures = []

    def start():
        barrier.wait()
        try:
            create(database, table, rows=NODE_ROWS)
        except sqlalchemy.exc.DBAPIError as error:
            failures.append(error)

    threads = [threading.Thread(target=start) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert failures == []
    with database.connect() as connection:
        assert sorted(connection.execute(sqlalchemy.select(table.c.ID)).scalars()) == [0, 1, 2, 3]


def test_missing_indexes_are_made_good(database):
    table = create(database, journal_table("J", database.dialect))
    index = sorted(table.indexes, key=lambda index: index.name)[0]
    with database.connect() as connection:
        connection.execute(sqlalchemy.schema.DropIndex(index))
        connection.commit()

    create(database, table)

    with database.connect() as connection:
        found = sqlalchemy.inspect(connection).get_indexes(table.name)
    assert str(index.name).lower() in {one["name"].lower() for one in found}


def test_rows_of_every_size_go_in_and_out_by_the_driver(database):
    table = create(database, journal_table("J", database.dialect))
    bodies = [
        b"",
        b"\0",
        bytes(range(256)),
        b"abc",
        b"'; drop table j",
        bytes(70_000),
        b"x" * 300_000,
    ]

    with database.raw() as raw:
        database.dialect.begin_write(raw)
        rows = [row(at, at, body) for at, body in enumerate(bodies)]
        database.dialect.insert_rows(raw, table, rows)
        raw.commit()

    with database.connect(read_only=True) as connection:
        found = connection.execute(sqlalchemy.select(table).order_by(table.c.seq)).all()
    assert [
        tuple(bytes(v) if isinstance(v, (bytes, memoryview)) else v for v in one) for one in found
    ] == rows


def test_extreme_numbers_are_kept(database):
    table = create(database, journal_table("J", database.dialect))
    low, high = -(2**63), 2**63 - 1
    row = (low, -128, 127, high, -1, 2**31 - 1, b"", -1, b"", -(2**31), high)

    with database.raw() as raw:
        database.dialect.begin_write(raw)
        database.dialect.insert_rows(raw, table, [row])
        raw.commit()

    with database.connect(read_only=True) as connection:
        found = connection.execute(sqlalchemy.select(table)).one()
    assert [value for value in found if value != b""] == [value for value in row if value != b""]


def test_deletes_in_ranges_say_how_many(database):
    table = create(database, journal_table("J", database.dialect))
    with database.raw() as raw:
        database.dialect.begin_write(raw)
        database.dialect.insert_rows(raw, table, [row(at, at) for at in range(1200)])
        raw.commit()

    with database.raw() as raw:
        database.dialect.begin_write(raw)
        deleted = database.dialect.delete_ids(raw, table, range(100, 1500))
        raw.commit()

    assert deleted == 1100
    assert ids(database, table) == list(range(100))


def test_what_is_not_committed_does_not_count(database):
    table = create(database, journal_table("J", database.dialect))

    with database.raw() as raw:
        database.dialect.begin_write(raw)
        database.dialect.insert_rows(raw, table, [row(1, 1)])

    assert ids(database, table) == []


def test_the_databases_clock_is_utc_in_milliseconds(database):
    before = time.time_ns() // 1_000_000
    with database.connect() as connection:
        now = connection.execute(sqlalchemy.text(database.dialect.select_now_ms)).scalar_one()
    after = time.time_ns() // 1_000_000

    assert isinstance(now, int)
    assert before - 2 <= now <= after + 2


# SQLite holds the whole file: test_database.py.
@pytest.mark.parametrize("place", [kind for kind in LIVE if kind != "sqlite"], indirect=True)
def test_a_row_can_be_held_against_others(database, open_database):
    table = create(database, node_table("NODES", database.dialect), rows=NODE_ROWS)
    other = open_database(network_timeout_ms=60_000)
    held = sqlalchemy.text(database.dialect.select_locked("ID", table, "ID = :row"))
    taken = threading.Event()
    order = []

    def wait_for_it():
        with other.connect() as connection:
            taken.wait()
            connection.execute(held, {"row": 1}).all()
            order.append("second")

    second = threading.Thread(target=wait_for_it)
    second.start()
    with database.connect() as connection:
        assert connection.execute(held, {"row": 1}).all() != []
        taken.set()
        second.join(0.3)
        order.append("first")
        connection.commit()
    second.join(60)

    assert order == ["first", "second"]


def connected(database):
    """The database, with a connection in its pool, however slow this machine is just now."""
    while True:
        try:
            with database.connect():
                return database
        except sqlalchemy.exc.DBAPIError as error:
            if classify(error, database.dialect) is not Fault.LOST:
                raise


def fault_of(database, what_happens):
    """The fault of a statement that runs after something happened to its server."""
    with database.raw() as raw:
        cursor = raw.cursor()
        query = QUERY.get(database.dialect.name, "SELECT 1")
        cursor.execute(query)
        cursor.fetchall()
        what_happens()
        try:
            cursor.execute(query)
        except Exception as error:  # noqa: BLE001 - any driver's.
            return classify(error, database.dialect)
    return None


def test_a_duplicate_key_is_fatal(database):
    table = create(database, node_table("NODES", database.dialect), rows=NODE_ROWS)
    with database.connect() as connection, pytest.raises(sqlalchemy.exc.DBAPIError) as caught:
        connection.execute(table.insert(), {"ID": 1})
    assert classify(caught.value, database.dialect) is Fault.FATAL


@pytest.mark.own_server
def test_a_lost_server_is_lost(database, place):
    if place.server is None:
        pytest.skip("this database has no server")

    assert fault_of(database, place.server.kill9) is Fault.LOST
    with pytest.raises(sqlalchemy.exc.DBAPIError) as caught, database.connect():
        pass
    assert classify(caught.value, database.dialect) is Fault.LOST


@pytest.mark.own_server
@pytest.mark.parametrize("place", ["postgresql", "mariadb", "derby"], indirect=True)
def test_a_silent_server_is_lost_after_the_network_timeout(open_database, place):
    database = connected(open_database(network_timeout_ms=1500))

    try:
        assert fault_of(database, place.server.pause) is Fault.LOST
    finally:
        place.server.resume()


@pytest.mark.own_server
@pytest.mark.parametrize("place", ["postgresql", "mariadb", "derby"], indirect=True)
def test_a_login_to_a_silent_server_times_out(open_database, place):
    database = open_database(network_timeout_ms=1500)

    place.server.pause()
    try:
        with pytest.raises(sqlalchemy.exc.DBAPIError) as caught:
            database.connect()
    finally:
        place.server.resume()

    assert classify(caught.value, database.dialect) is Fault.LOST


@pytest.mark.parametrize("name", ["order", "SELECT", "Group", "user", "_x"])
def test_a_reserved_word_is_a_name_like_any_other(database, name):
    table = create(database, journal_table(name, database.dialect))

    assert ids(database, table) == []
