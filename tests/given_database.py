"""A database that somebody has, for `make test-db URL=…`: the live suites run against it.

The database must be empty: what each test made is dropped after it. What stops, kills or pauses
the server (`own_server`) is left out, since it is not ours.
"""

import contextlib

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
        with self.connection() as connection:
            for name in tables(connection):
                sqlalchemy.Table(name, sqlalchemy.MetaData()).drop(connection)
            for oid in large_objects(connection):
                connection.execute(sqlalchemy.text(f"SELECT lo_unlink({oid})"))
            connection.commit()

    @contextlib.contextmanager
    def connection(self):
        database = Database(DatabaseStoreOptions(connection_url=self.url))
        try:
            with database.connect() as connection:
                yield connection
        finally:
            database.close()

    def __getattr__(self, name):
        pytest.skip(f"the server is not ours: no {name}()")


def tables(connection):
    return sqlalchemy.inspect(connection).get_table_names()


def large_objects(connection):
    """PostgreSQL's: they outlive the tables that name them."""
    if connection.dialect.name != "postgresql":
        return []
    return list(
        connection.execute(sqlalchemy.text("SELECT oid FROM pg_largeobject_metadata")).scalars()
    )


def given_place(url):
    """The given database as a place of one test; it must be empty."""
    parsed = sqlalchemy_url(url)
    text = parsed.render_as_string(hide_password=False)
    server = GivenServer(text)
    with server.connection() as connection:
        if found := tables(connection):
            pytest.exit(f"the database given by --database-url has tables: {', '.join(found)}", 2)
        if found := large_objects(connection):
            pytest.exit(f"the database given by --database-url has {len(found)} large objects", 2)
    return Place(
        url=text,
        jdbc_url=None,
        name=text,
        server=server,
        host=parsed.host or "",
        port=(parsed.port or 0) if parsed.host else 0,
    )


def keep_only_live(config, items):
    """Deselect what does not run on the given database."""
    kept, dropped = [], []
    for item in items:
        values = item.callspec.params.values() if hasattr(item, "callspec") else ()
        is_ours = item.get_closest_marker("own_server") is not None
        (kept if STAND_IN in values and not is_ours else dropped).append(item)
    items[:] = kept
    config.hook.pytest_deselected(items=dropped)
