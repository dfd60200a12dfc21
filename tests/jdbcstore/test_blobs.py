"""Files in tables, on every database that can be had."""

import contextlib
import subprocess
import sys
import threading

import pytest
import sqlalchemy

from jdbcstore import Database, DatabaseStoreOptions, LeaseLost
from jdbcstore.blobs import SqlFiles
from jdbcstore.lease import Lease
from jdbcstore.lease_row import Fence
from jdbcstore.pages import PageStores, _encode
from journal.errors import JournalDamaged, JournalIOError, WrongUse
from tests.jdbcstore.sql_server_stub import SqlServerStub, skip_without_driver
from tests.servers import new_embedded_derby

SQL_SERVER = pytest.param("sql-server-stub", marks=pytest.mark.slow)

KINDS = ["sqlite", "postgresql", "mariadb", "derby", "derby-embedded", SQL_SERVER]


@pytest.fixture(params=KINDS)
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
def database(place):
    opened = Database(
        DatabaseStoreOptions(
            connection_url=place.jdbc_url or place.url,
            # No renewal comes by itself, and a machine that stalls does not fail a test.
            lock_renew_period_ms=300_000,
            lock_expiration_ms=600_000,
            ride_out_ms=600_000,
        )
    )
    yield opened
    opened.close()


@pytest.fixture
def files(database):
    made = SqlFiles(database, "LARGE_MESSAGES")
    made.start()
    return made


def content(file):
    return b"".join(file.pieces())


def test_what_is_appended_is_read_back_anywhere(files):
    file = files.open("1.msg")
    whole = bytes(range(256)) * 1000

    for at in range(0, len(whole), 100_000):
        file.append(whole[at : at + 100_000])

    assert file.size == len(whole)
    assert content(file) == whole
    assert file.read_at(99_990, 20) == whole[99_990:100_010]
    assert file.read_at(len(whole) - 5, 100) == whole[-5:]
    assert file.read_at(len(whole), 10) == b""
    assert file.read_at(0, 0) == b""
    again = files.open("1.msg")
    assert again.size == len(whole)
    assert content(again) == whole


def test_a_new_file_is_empty_and_an_empty_append_changes_nothing(files):
    file = files.open("1.msg")

    file.append(b"")

    assert file.size == 0
    assert content(files.open("1.msg")) == b""


def test_files_are_listed_by_extension(files):
    for name in ("1.msg", "2.tmp", "3.msg", "plain"):
        files.open(name).append(b"x")

    assert files.names("msg") == ["1.msg", "3.msg"]
    assert files.names("tmp") == ["2.tmp"]
    assert files.exists("plain")
    assert not files.exists("4.msg")


def test_a_renamed_file_keeps_its_content_and_what_it_is_listed_by(files):
    file = files.open("1.tmp")
    file.append(b"content")

    file.rename("1.msg")

    assert not files.exists("1.tmp")
    assert content(files.open("1.msg")) == b"content"
    assert files.names("tmp") == ["1.msg"]


def test_a_deleted_file_is_gone(files):
    file = files.open("1.msg")
    file.append(b"content")

    file.delete()

    assert not files.exists("1.msg")
    assert content(files.open("1.msg")) == b""


def test_a_copy_has_the_same_content(files):
    file, copy = files.open("1.msg"), files.open("2.msg")
    file.append(b"abc" * 100_000)

    file.copy_to(copy)

    assert content(files.open("2.msg")) == b"abc" * 100_000


@pytest.mark.parametrize(
    "name", ["'; drop table x", 'a"b.msg', "%_.msg", "ä.msg", "x" * 251 + ".msg"]
)
def test_any_text_is_a_name(files, name):
    files.open(name).append(b"content")

    assert content(files.open(name)) == b"content"


@pytest.mark.parametrize("name", ["", "x" * 256, "a.extension99"])
def test_a_name_that_does_not_fit_is_refused(files, name):
    with pytest.raises(WrongUse):
        files.open(name)


def test_a_file_longer_than_a_row_goes_on_in_the_next(files):
    files.row_max = 1000
    file = files.open("1.msg")
    whole = bytes(range(250)) * 13

    for at in range(0, len(whole), 700):
        file.append(whole[at : at + 700])

    assert content(files.open("1.msg")) == whole
    assert file.read_at(990, 1020) == whole[990:2010]
    assert files.names("msg") == ["1.msg"]
    file.replace(b"short")
    assert content(files.open("1.msg")) == b"short"
    file.delete()
    assert not files.exists("1.msg")


class Fenced:
    """A lease that somebody else has."""

    def fence_statement(self, *, may_raise=True):
        return Fence("DELETE FROM LARGE_MESSAGES WHERE 1 = 0", (), raises=False, returns_row=False)

    def fenced(self):
        return LeaseLost("somebody else has it")

    def renew(self):
        return False


def test_nothing_is_written_without_the_lease(database, files):
    name = files.rows.name
    files.open("1.msg").append(b"before")
    lost = Fenced()
    lost.fence_statement = lambda **_: Fence(f"DELETE FROM {name} WHERE 1 = 0", (), False, False)
    fenced = SqlFiles(database, "LARGE_MESSAGES", fence=lost)
    file = fenced.open("1.msg")

    for write in (
        lambda: file.append(b"x"),
        lambda: file.replace(b"x"),
        lambda: file.rename("2.msg"),
        file.delete,
        lambda: fenced.open("3.msg"),
        fenced.destroy,
    ):
        with pytest.raises(LeaseLost):
            write()

    assert content(files.open("1.msg")) == b"before"
    assert files.names("msg") == ["1.msg"]


def test_a_commit_whose_answer_is_lost_is_not_done_twice(files, monkeypatch):
    file = files.open("1.msg")
    file.append(b"first")
    once = files._once
    answers = iter([ConnectionResetError("after the commit")])

    def losing(work, **named):
        result = once(work, **named)
        for error in answers:
            raise error
        return result

    monkeypatch.setattr(files, "_once", losing)
    file.append(b"second")

    assert content(files.open("1.msg")) == b"firstsecond"


@pytest.mark.own_server
@pytest.mark.parametrize("place", ["postgresql", "mariadb"], indirect=True)
def test_appends_ride_out_a_restart_of_the_server(files, place):
    file = files.open("1.msg")
    file.append(b"before")

    place.server.kill9()
    place.server.start()
    file.append(b"after")

    assert content(files.open("1.msg")) == b"beforeafter"


@pytest.mark.own_server
@pytest.mark.parametrize("place", ["postgresql", "mariadb"], indirect=True)
def test_reads_ride_out_restarts_of_the_server(files, place):
    file = files.open("1.msg")
    whole = bytes(range(250)) * 1000
    file.append(whole)

    pieces = []
    for offset in range(0, len(whole), 60_000):
        with away(place.server):
            pieces.append(file.read_at(offset, 60_000))

    assert b"".join(pieces) == whole


@pytest.mark.own_server
@pytest.mark.parametrize("place", ["postgresql", "mariadb"], indirect=True)
def test_pages_ride_out_restarts_of_the_server(database, place):
    stores = PageStores(database)
    stores.start()
    stores.create("orders", 1).open("000000001.page").append(b"page")

    for step in (
        lambda: stores.create("others", 2).open("000000001.page").append(b"other page"),
        lambda: stores.remove(1),
        stores.load,
    ):
        with away(place.server):
            step()

    found = PageStores(database).load()
    assert list(found) == ["others"]
    assert content(found["others"].open("000000001.page")) == b"other page"


@contextlib.contextmanager
def away(server):
    """Kill the server, and start it in a moment."""
    server.kill9()
    starter = threading.Timer(0.2, server.start)
    starter.start()
    yield
    starter.join()


def test_a_lease_that_expired_meanwhile_and_was_not_taken_goes_on(database):
    brokers = [Lease(database), Lease(database)]
    brokers[0].create_table()
    brokers[0].acquire()
    fenced = SqlFiles(database, "LARGE_MESSAGES", fence=brokers[0])
    fenced.start()
    file = fenced.open("1.msg")

    expire(database, brokers[0])
    file.append(b"it was not taken")
    expire(database, brokers[0])
    assert brokers[1].try_acquire()
    with pytest.raises(LeaseLost):
        file.append(b"somebody has it")

    assert content(SqlFiles(database, "LARGE_MESSAGES").open("1.msg")) == b"it was not taken"
    for broker in brokers:
        broker.release()


def expire(database, lease):
    """Let the lease have ended a moment ago."""
    dialect = database.dialect
    table = dialect.quoted(lease._table.table)
    with database.connect() as connection:
        connection.exec_driver_sql(
            f"UPDATE {table} SET HOLDER_EXPIRATION_TIME = {dialect.now_ms} - 1 WHERE ID = 1"
        )
        connection.commit()


@pytest.mark.parametrize("place", ["postgresql"], indirect=True)
def test_large_objects_go_with_their_rows(database, files):
    if database.dialect.name != "postgresql":
        pytest.skip("large objects are PostgreSQL's")
    files.open("1.msg").append(b"x")
    files.open("2.msg").append(b"x")

    files.open("1.msg").delete()

    objects = sqlalchemy.text("SELECT count(*) FROM pg_largeobject_metadata")
    with database.connect() as connection:
        assert connection.execute(objects).scalar_one() == 1
    files.destroy()
    with database.connect() as connection:
        assert connection.execute(objects).scalar_one() == 0


MEMORY = """
import re, sys
from pathlib import Path
from jdbcstore import Database, DatabaseStoreOptions
from jdbcstore.blobs import SqlFiles

def peak_kib():
    # Not ru_maxrss: that begins with the size of the process that forked us.
    return int(re.search(r"VmHWM:\\s*(\\d+) kB", Path("/proc/self/status").read_text())[1])

files = SqlFiles(Database(DatabaseStoreOptions(connection_url=sys.argv[1])), "LARGE")
files.start()
file = files.open("0.msg")
file.append(b"x" * 100_000)
b"".join(file.pieces())
before = peak_kib()
file, piece = files.open("1.msg"), bytes(1 << 20)
for _ in range(100):
    file.append(piece)
assert sum(map(len, files.open("1.msg").pieces())) == 100 << 20
print(peak_kib() - before)
"""


@pytest.mark.slow
@pytest.mark.parametrize("place", ["sqlite", "postgresql", "mariadb"], indirect=True)
def test_a_large_message_costs_little_memory(place):
    """100 MiB in pieces of 1 MiB: less than 32 MiB more than before."""
    command = [sys.executable, "-c", MEMORY, place.jdbc_url or place.url]

    done = subprocess.run(command, capture_output=True, text=True, check=True)

    print("KiB:", done.stdout.strip())
    assert 0 < int(done.stdout) < 32 * 1024


def test_page_stores_come_back_by_address(database):
    stores = PageStores(database)
    stores.start()
    first = stores.create("orders.#", 41)
    stores.create("Straße", 42)
    first.open("000000001.page").append(b"page")

    found = PageStores(database).load()

    assert set(found) == {"orders.#", "Straße"}
    assert content(found["orders.#"].open("000000001.page")) == b"page"
    assert found["orders.#"].names("page") == ["000000001.page"]
    stores.remove(41)
    assert set(PageStores(database).load()) == {"Straße"}
    assert stores.suffixes() == ["42"]


def test_a_directory_as_artemis_leaves_it_is_read(database):
    stores = PageStores(database)
    stores.start()
    stores.create("a", 1)
    stores.create("b", 2)
    stores.remove(1)
    directory = SqlFiles(database, "PAGE_STORE").open("directory.txt")
    # The old list, followed by the new one, with the name of a table that was dropped.
    directory.replace(b"".join(map(_encode, ["1", "2", "2"])))

    assert set(PageStores(database).load()) == {"b"}
    assert stores.suffixes() == ["2"]


def test_an_id_is_used_once(database):
    stores = PageStores(database)
    stores.start()
    stores.create("a", 1)

    with pytest.raises(WrongUse):
        stores.create("b", 1)


@pytest.mark.parametrize("place", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    "data", [b"\0", b"\0\0\0\1a", b"\0\0\0\4ab", b"\xff\xff\xff\xff", _encode("x; drop table y")]
)
def test_a_directory_that_makes_no_sense_is_damage(database, data):
    stores = PageStores(database)
    stores.start()
    SqlFiles(database, "PAGE_STORE").open("directory.txt").replace(data)

    with pytest.raises(JournalDamaged):
        stores.load()


def test_two_tables_of_one_address_are_one_or_refused(database):
    def stores():
        made = PageStores(database)
        made.start()
        return made

    first = stores().create("a", 1)
    second = stores().create("a", 2)
    second.open("000000002.page").append(b"page")
    assert stores().load()["a"].names("page") == ["000000002.page"]
    assert stores().suffixes() == ["2"]

    third = stores().create("a", 3)
    third.open("000000001.page").append(b"page")
    with pytest.raises(JournalDamaged, match="hold pages of address 'a'"):
        stores().load()
    assert not first.has_table()
    assert third.has_table()
    assert second.has_table()


def test_a_copy_within_the_database_outlives_its_source(files, place):
    file = files.open("1.msg")
    file.append(b"abc" * 500_000)

    files.copy("1.msg", "2.msg")
    assert content(files.find("2.msg")) == b"abc" * 500_000
    file.delete()

    assert files.names("msg") == ["2.msg"]
    assert content(files.find("2.msg")) == b"abc" * 500_000
    files.find("2.msg").delete()
    assert files.names("msg") == []
    if place.url.startswith("postgresql"):
        assert count_of(place, "SELECT COUNT(*) FROM pg_largeobject_metadata") == 0


def test_copies_go_with_their_table(files, place):
    files.open("1.msg").append(b"abc")
    files.copy("1.msg", "2.msg")

    files.destroy()

    if place.url.startswith("postgresql"):
        assert count_of(place, "SELECT COUNT(*) FROM pg_largeobject_metadata") == 0


def test_what_is_not_there_cannot_be_copied(files):
    with pytest.raises(JournalIOError):
        files.copy("1.msg", "2.msg")


def count_of(place, query):
    engine = sqlalchemy.create_engine(place.url)
    try:
        with engine.connect() as connection:
            return connection.execute(sqlalchemy.text(query)).scalar()
    finally:
        engine.dispose()
