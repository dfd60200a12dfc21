"""A database that somebody has, for `make test-db URL=…`: the live suites run against it.

The database must be empty: each test's tables are dropped after it. What stops, kills or pauses
the server is skipped, since it is not ours.
"""

import pytest
import sqlalchemy

from jdbcstore import Database, DatabaseStoreOptions, sqlalchemy_url
from tests.servers import Database as Place

# Tests are parametrised with a kind of server; those for this one run, on the given database.
STAND_IN = "postgresql"


class GivenServer:
    """What a test asks of a server, where the server is somebody else's."""

    def __init__(self, url):
        self.url = url

    def ensure_running(self):
        pass

    def drop_database(self, place):
        for name in self.tables():
            self.drop(name)

    def tables(self):
        database = Database(DatabaseStoreOptions(connection_url=self.url))
        try:
            with database.connect() as connection:
                return sqlalchemy.inspect(connection).get_table_names()
        finally:
            database.close()

    def drop(self, name):
        database = Database(DatabaseStoreOptions(connection_url=self.url))
        try:
            with database.connect() as connection:
                sqlalchemy.Table(name, sqlalchemy.MetaData()).drop(connection)
                connection.commit()
        finally:
            database.close()

    def __getattr__(self, name):
        pytest.skip(f"the server is not ours: no {name}()")


def given_place(url):
    """The given database as a place of one test; it must be empty."""
    text = sqlalchemy_url(url).render_as_string(hide_password=False)
    server = GivenServer(text)
    tables = server.tables()
    if tables:
        pytest.exit(f"the database given by --database-url has tables: {', '.join(tables)}", 2)
    return Place(url=text, jdbc_url=None, name=text, server=server)


def keep_only_live(config, items):
    """Deselect what does not run on the given database."""
    kept, dropped = [], []
    for item in items:
        values = item.callspec.params.values() if hasattr(item, "callspec") else ()
        (kept if STAND_IN in values else dropped).append(item)
    items[:] = kept
    config.hook.pytest_deselected(items=dropped)
