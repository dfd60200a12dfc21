"""Which way of writing a database gets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jdbcstore.record_tables.generic import GenericTable

if TYPE_CHECKING:
    from sqlalchemy import Table

    from jdbcstore.database import Database
    from jdbcstore.record_tables.base import RecordTable

__all__ = ["record_table"]


def record_table(database: Database, table: Table, fence: object) -> RecordTable:
    """The fastest way that this database's driver has."""
    return GenericTable(database, table, fence)
