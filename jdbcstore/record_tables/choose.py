"""Which way of writing a database gets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from jdbcstore.record_tables.generic import GenericTable
from jdbcstore.record_tables.mysql import MySqlTable
from jdbcstore.record_tables.sqlite import SqliteTable

if TYPE_CHECKING:
    from sqlalchemy import Table

    from jdbcstore.database import Database
    from jdbcstore.record_tables.base import RecordTable, WriteFence

__all__ = ["record_table"]

# By the dialect's name.
KINDS: Final[dict[str, type[GenericTable]]] = {"mysql": MySqlTable, "sqlite": SqliteTable}


def record_table(database: Database, table: Table, fence: WriteFence | None) -> RecordTable:
    """The fastest way that this database's driver has."""
    if database.dialect.name == "postgresql":
        # Its driver need not be installed where nobody uses it.
        from jdbcstore.record_tables.postgresql import PostgresTable

        return PostgresTable(database, table, fence)
    kind = KINDS.get(database.dialect.name, GenericTable)
    return kind(database, table, fence)
