"""What users and clients give reaches SQL as values only, on every database that can be had.

Names of tables cannot be hostile: test_schema.py refuses them. Here: the holder's id in every
fence, bodies and the extra data of transactions in every way of writing, and names of files.
"""

import pytest

from jdbcstore.blobs import SqlFiles
from jdbcstore.database import Database
from jdbcstore.lease import Lease
from jdbcstore.options import DatabaseStoreOptions
from jdbcstore.store import SqlStore
from tests.crash.model import open_and_load
from tests.jdbcstore.leases import QUIET
from tests.jdbcstore.reading import read_table_view

HOSTILE = [
    "x' OR '1'='1",
    "' || (SELECT 'y') || '",
    "'; DROP TABLE MESSAGES; --",
    '"; DROP TABLE messages; --',
    "\\",
    "\\'; DELETE FROM messages; -- ",
    "a`b]c[d",
    "%s %(me)s %% %",
    ":me ? $1 {0}",
    "*/ /* #",
    "ä\t\n",  # A column of MariaDB takes what its character set has, and an error tells else.
]
# A server's administrator may have set it for all sessions.
NO_BACKSLASH = {
    "connectionInitSqls": "SET SESSION sql_mode = CONCAT(@@sql_mode, ',NO_BACKSLASH_ESCAPES')"
}
WAYS = [
    pytest.param("sqlite", {}, id="sqlite"),
    pytest.param("postgresql", {}, id="postgresql"),
    pytest.param("mariadb", {}, id="mariadb"),
    pytest.param("mariadb", NO_BACKSLASH, id="mariadb-no-backslash"),
    pytest.param("derby", {}, id="derby", marks=pytest.mark.slow),
]


def options_for(new_database, kind, properties):
    return DatabaseStoreOptions(
        connection_url=new_database(kind).url, data_source_properties=properties, **QUIET
    )


@pytest.mark.parametrize(("kind", "properties"), WAYS)
def test_a_hostile_holder_writes_hostile_bodies_in_every_way(new_database, kind, properties):
    options = options_for(new_database, kind, properties)
    database = Database(options)
    expected = {}
    for number, text in enumerate(HOSTILE):
        lease = Lease(database, 1, holder_id=text)
        lease.create_table()
        assert lease.try_acquire()
        store = SqlStore(options, lease=lease)
        open_and_load(store)
        body = text.encode()
        first = number * 1000 + 1

        store.add(first, 1, body, sync=True)  # Alone.
        for record in range(first + 1, first + 5):  # Some together, with deletes.
            store.add(record, 1, body, sync=False)
        if number:
            store.delete(first - 1000, sync=False)
            del expected[first - 1000]
        store.sync()
        for record in range(first + 5, first + 105):  # Many together.
            store.add(record, 1, body, sync=False)
        store.sync()
        store.add(first + 105, 1, body, tx=first)
        store.prepare(first, body, sync=True)  # Staged: the rows of a transaction.
        if text is not HOSTILE[-1]:
            store.commit(first, sync=True)
            expected[first + 105] = body
        expected |= dict.fromkeys(range(first, first + 105), body)
        store.close()
        assert lease.is_held_by_me()
        lease.release()
    database.close()

    records, prepared, failed = read_table_view(options.connection_url)
    assert {record: body for record, _, _, body in records} == expected
    assert len(records) == len(expected)
    assert len(prepared) == 1
    assert HOSTILE[-1].encode() in prepared[0]
    assert failed == ()


@pytest.mark.parametrize(("kind", "properties"), WAYS)
def test_hostile_names_of_files_are_names(new_database, kind, properties):
    database = Database(options_for(new_database, kind, properties))
    files = SqlFiles(database, "LARGE_MESSAGES")
    files.start()
    files.open("victim.msg").append(b"untouched")

    for text in HOSTILE:
        file = files.open(f"{text}.msg")
        file.append(text.encode())
        assert b"".join(files.open(f"{text}.msg").pieces()) == text.encode()
        assert files.exists(f"{text}.msg")
        file.rename(f"{text}2.msg")
        assert sorted(files.names("msg")) == sorted(["victim.msg", f"{text}2.msg"])
        assert not files.exists(f"{text}.msg")
        file.delete()

    assert files.names("msg") == ["victim.msg"]
    assert b"".join(files.open("victim.msg").pieces()) == b"untouched"
    assert files.names("' OR '1'='") == []
    database.close()
