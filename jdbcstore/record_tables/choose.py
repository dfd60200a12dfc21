"""Chooses the record table for a database."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jdbcstore.record_tables.generic import GenericTable
from jdbcstore.record_tables.sqlite import SqliteTable

if TYPE_CHECKING:
    from sqlalchemy import Table

    from jdbcstore.database import Database
    from jdbcstore.record_tables.base import RecordTable, WriteFence

__all__ = ["record_table"]


def record_table(database: Database, table: Table, fence: WriteFence | None) -> RecordTable:
    """The fastest way that this database's driver has."""
    # Drivers are imported here only: each is an extra of its own.
    kind: type[GenericTable] = GenericTable
    match database.dialect.name:
        case "postgresql":
            from jdbcstore.record_tables.postgresql import PostgresTable

            return PostgresTable(database, table, fence)
        case "mysql":
            from jdbcstore.record_tables.mysql import MySqlTable

            kind = MySqlTable
        case "sqlite":
            kind = SqliteTable
    return kind(database, table, fence)
