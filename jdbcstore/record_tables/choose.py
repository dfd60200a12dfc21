"""Which way of writing a database gets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from jdbcstore.record_tables.generic import GenericTable
from jdbcstore.record_tables.mysql import MySqlTable

if TYPE_CHECKING:
    from sqlalchemy import Table

    from jdbcstore.database import Database
    from jdbcstore.record_tables.base import RecordTable, WriteFence

__all__ = ["record_table"]

# By the dialect's name.
KINDS: Final[dict[str, type[GenericTable]]] = {"mysql": MySqlTable}


def record_table(database: Database, table: Table, fence: WriteFence | None) -> RecordTable:
    """The fastest way that this database's driver has."""
    kind = KINDS.get(database.dialect.name, GenericTable)
    return kind(database, table, fence)
