"""Waits for the answer of a database, and tells what it meets: `waiting_reader URL STATEMENT`."""

import sys

import sqlalchemy.exc

from jdbcstore.database import Database
from jdbcstore.options import DatabaseStoreOptions

# Much longer than the test waits.
TIMEOUT_MS = 600_000

if __name__ == "__main__":
    options = DatabaseStoreOptions(connection_url=sys.argv[1], network_timeout_ms=TIMEOUT_MS)
    database = Database(options)
    with database.engine.connect() as connection:
        print("waiting", flush=True)
        try:
            connection.exec_driver_sql(sys.argv[2])
        except sqlalchemy.exc.DBAPIError as error:
            print(database.dialect.fault(error.orig).name)
