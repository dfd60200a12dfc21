"""The server ends our sessions, or what they run, while records are in flight.

An administrator's KILL, a proxy's or the server's own limits: the server goes on, the socket does
not, and whether the COMMIT before it counts nobody says.
"""

import random
import time

import pytest
import sqlalchemy.exc
from sqlalchemy import create_engine, text

from jdbcstore.options import DatabaseStoreOptions
from jdbcstore.store import SqlStore
from jdbcstore.url import sqlalchemy_url
from tests.crash.model import open_and_load
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


@pytest.mark.slow
@pytest.mark.parametrize("database", sorted(OTHERS), indirect=True)
@pytest.mark.parametrize("what", ["session", "statement"])
def test_what_the_server_ends_is_neither_lost_nor_doubled(database, what, effort):
    rounds = effort(400, least=20)
    rng = random.Random(17)
    store = SqlStore(DatabaseStoreOptions(connection_url=database.url))
    open_and_load(store)
    administrator = Administrator(database)

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
