"""The server ends our sessions, or what they run, while records are in flight.

An administrator's KILL, a proxy's or the server's own limits: the server goes on, the socket does
not, and whether the COMMIT before it counts is unknown.
"""

import random
import threading
import time

import pytest
import sqlalchemy.exc
from sqlalchemy import create_engine, text

from jdbcstore.options import DatabaseStoreOptions
from jdbcstore.store import SqlStore
from jdbcstore.url import sqlalchemy_url
from tests.crash.model import open_and_load
from tests.crash.writer import body_of
from tests.jdbcstore.reading import read_table_view
from tests.jdbcstore.test_kill import Producers, live_once

OTHERS = {
    "mariadb": (
        "SELECT ID FROM information_schema.PROCESSLIST"
        " WHERE DB = DATABASE() AND ID <> CONNECTION_ID()"
    ),
    "postgresql": (
        "SELECT pid FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid <> pg_backend_pid()"
    ),
}
END = {
    ("mariadb", "session"): "KILL CONNECTION {}",
    ("mariadb", "statement"): "KILL QUERY {}",
    ("postgresql", "session"): "SELECT pg_terminate_backend({})",
    ("postgresql", "statement"): "SELECT pg_cancel_backend({})",
}
UNKNOWN_THREAD = 1094


class Administrator:
    """Ends what others do in a database."""

    def __init__(self, database):
        self.kind = database.server.kind
        self.engine = create_engine(sqlalchemy_url(database.url), isolation_level="AUTOCOMMIT")
        self.ended = 0

    def end_all(self, what):
        with self.engine.connect() as connection:
            for number in connection.execute(text(OTHERS[self.kind])).scalars().all():
                try:
                    connection.execute(text(END[self.kind, what].format(int(number))))
                except sqlalchemy.exc.OperationalError as error:
                    if error.orig.args[0] != UNKNOWN_THREAD:
                        raise
                else:
                    self.ended += 1


@pytest.mark.own_server
@pytest.mark.slow
@pytest.mark.parametrize("database", sorted(OTHERS), indirect=True)
@pytest.mark.parametrize("what", ["session", "statement"])
def test_what_the_server_ends_is_neither_lost_nor_doubled(database, what, effort):
    rounds = effort(400, least=20)
    rng = random.Random(17)
    administrator = Administrator(database)
    store = SqlStore(DatabaseStoreOptions(connection_url=database.url))
    open_and_load(store)

    producers = Producers(store, count=6)
    try:
        for _ in range(rounds):
            time.sleep(rng.random() * 0.02)
            administrator.end_all(what)
            producers.wait_for(producers.acked() + 10)
    finally:
        producers.stop()
        administrator.engine.dispose()
    outages, read_back = store.stats()["outages"], store.stats()["read_back"]
    store.close()

    assert producers.history.errors == []
    assert all(step.state == "acked" for step in producers.history.steps)
    producers.history.check(live_once(read_table_view(database.url)))
    assert administrator.ended >= rounds
    assert (outages > 0) == (what == "session")
    print(
        f"{administrator.ended} {what}s ended, {len(producers.history.steps)} steps, {outages}"
        f" outages, {read_back} commits found out by reading back"
    )


@pytest.mark.own_server
@pytest.mark.slow
@pytest.mark.parametrize("database", sorted(OTHERS), indirect=True)
@pytest.mark.parametrize("what", ["session", "statement"])
def test_a_load_that_the_server_ends_again_and_again_reads_all(database, what, effort):
    """And loses no transaction whose commit row stands at the end, as Artemis leaves one."""
    loads = effort(100, least=3)
    rng = random.Random(19)
    administrator = Administrator(database)
    store = SqlStore(DatabaseStoreOptions(connection_url=database.url))
    open_and_load(store)
    # More than a page now and then, so that each row is measured.
    sizes = [rng.choice((10, 1000, 3000)) if at < 2850 else 60_000 for at in range(3000)]
    for record_id, size in enumerate(sizes, 1):
        store.add(record_id, 1, body_of(record_id, size), sync=False)
    store.close()
    add_committed_transaction(database.url, first_seq=0, final_seq=len(sizes) + 1)
    # Once for each page that came, so that a slow machine gets on as well.
    stopping, read_on = threading.Event(), threading.Event()

    def end_all():
        while read_on.wait() and not stopping.wait(rng.random() * 0.1):
            read_on.clear()
            administrator.end_all(what)

    store = SqlStore(DatabaseStoreOptions(connection_url=database.url, ride_out_ms=600_000))
    store.open()
    ending = threading.Thread(target=end_all, daemon=True)
    ending.start()
    try:
        for _ in range(loads):
            found = []
            for rows in store.leased.reconnecting.rows():
                found += rows
                read_on.set()
            assert [row[6] for row in found] == list(range(len(sizes) + 2))
            assert all(len(row[3]) == size for row, size in zip(found[1:], sizes, strict=False))
        store.load()
    finally:
        stopping.set()
        read_on.set()
        ending.join()
        administrator.engine.dispose()
    store.close()

    ids = [record for record, *_ in read_table_view(database.url)[0]]
    assert sorted(ids) == list(range(len(sizes) + 1))
    assert administrator.ended
    print(f"{loads} loads of {len(sizes)} rows, {administrator.ended} {what}s ended")


def add_committed_transaction(url, first_seq, final_seq):
    """An add and its commit row, with everything else between the two."""
    store = SqlStore(DatabaseStoreOptions(connection_url=url))
    store.open()
    table = store.leased.table
    with table.connection.begin():
        table.insert_rows([(0, 13, 1, b"committed", 7, b"", first_seq)])
        table.insert_rows([(-1, 18, 255, b"", 7, b"", final_seq)])
    store.close()
