"""Reads a table as a load would, without a lease and without changing anything."""

from jdbcstore.database import Database
from jdbcstore.live import LiveIds
from jdbcstore.loading import TableLoader
from jdbcstore.options import DatabaseStoreOptions
from jdbcstore.record_tables.choose import record_table
from jdbcstore.schema import journal_table
from tests.crash.model import record_view, transactions_view


def read_table_view(url, name="MESSAGES"):
    """What a new start would find, as Model.view() gives it."""
    database = Database(DatabaseStoreOptions(connection_url=url))
    table = record_table(database, journal_table(name, database.dialect), None)
    records = []
    loader = TableLoader(LiveIds(), lambda batch: records.extend(map(record_view, batch)))
    for rows in table.scan():
        loader.take(rows)
    result = loader.finish()
    table.disconnect()
    database.close()
    return (tuple(records), *transactions_view(result))
