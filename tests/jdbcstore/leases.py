"""Leases under test: several brokers over one database, and a row that is moved by hand."""

import contextlib

import sqlalchemy

from jdbcstore.database import Database
from jdbcstore.environment import Environment
from jdbcstore.lease import Lease
from jdbcstore.options import DatabaseStoreOptions
from jdbcstore.schema import node_table

KINDS = ["sqlite", "postgresql", "mariadb", "derby"]
# So long that no renewal comes by itself in a test, and that a delayed test does not fail.
QUIET = {
    "lock_renew_period_ms": 300_000,
    "lock_expiration_ms": 600_000,
    "network_timeout_ms": 300_000,
}


class Brokers:
    """Brokers over one database; each has connections of its own, as a process would."""

    def __init__(self, url, **options):
        self.url = url
        self.options = QUIET | {"lock_acquisition_timeout_ms": 0} | options
        self._opened = []

    def database(self, environment=None, **changes):
        """The connections of one more broker."""
        database = Database(
            DatabaseStoreOptions(connection_url=self.url, **(self.options | changes)),
            environment=environment,
        )
        self._opened.append(database)
        return database

    def lease(
        self, row_id=1, database=None, *, clock=None, wall_clock=None, on_lost=None, **changes
    ):
        """A lease of one more broker, over the table that is there by then."""
        clocks = {
            name: value
            for name, value in (("clock", clock), ("wall_clock", wall_clock))
            if value is not None
        }
        database = database or self.database(Environment(**clocks), **changes)
        lease = Lease(database, row_id, on_lost=on_lost)
        lease.create_table()
        self._opened.append(contextlib.closing(lease))
        lease.close = lease.release
        return lease

    def change_row(self, row_id, assignments):
        """Set columns of a row by SQL, as no broker would; NOW is the database's clock."""
        database = self.database()
        table = node_table(database.options.node_manager_store_table_name, database.dialect)
        text = assignments.replace("NOW", database.dialect.now_ms)
        with database.connect() as connection:
            done = connection.execute(
                sqlalchemy.text(
                    f"UPDATE {database.dialect.quoted(table)} SET {text} WHERE ID = {row_id}"
                )
            )
            assert done.rowcount == 1
            connection.commit()

    def expire(self, row_id=1):
        """Let the lease have ended a moment ago."""
        self.change_row(row_id, "HOLDER_EXPIRATION_TIME = NOW - 1")

    def close(self):
        for opened in reversed(self._opened):
            if isinstance(opened, Database):
                opened.close()
            else:
                opened.__exit__()
