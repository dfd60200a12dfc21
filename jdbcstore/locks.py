"""Shows the node manager's table of any broker, and ends leases that holders do not release."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import sqlalchemy

from jdbcstore.lease_row import LeaseRow
from jdbcstore.node_table import NodeTable
from jdbcstore.schema import BACKUP_LOCK_ROW, NODE_ID_ROW, PRIMARY_LOCK_ROW, STATE_ROW
from jdbcstore.snapshot import refuse_missing_file
from journal.errors import OptionError

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from jdbcstore.database import Database
    from jdbcstore.lease_row import LeaseView

__all__ = ["LOCK_NAMES", "Locks", "break_lock", "read_locks"]

LOCK_NAMES: Final = {PRIMARY_LOCK_ROW: "primary", BACKUP_LOCK_ROW: "backup"}


@dataclass(frozen=True, slots=True)
class Locks:
    """What the table said at one moment.

    Attributes:
        table: its name in the database.
        now_ms: the database's clock, milliseconds since 1970 UTC.
        skew_ms: that clock less this machine's.
        node_id: of the pair of brokers; None before one was set up.
        state: letter of the shared state; None for a broker that never started.
        leases: what each row of LOCK_NAMES says; None for a row that is not there.
    """

    table: str
    now_ms: int
    skew_ms: int
    node_id: str | None
    state: str | None
    leases: dict[int, LeaseView | None]


def read_locks(database: Database) -> Locks:
    """Look, in one transaction, and change nothing.

    Raises:
        OptionError: the database has no such table, or is a file that is not there.
        JournalIOError: the database fails.
    """
    refuse_missing_file(database)
    node_table = NodeTable(database)
    table = node_table.table

    def read(connection: Connection) -> Locks:
        if not sqlalchemy.inspect(connection).has_table(table.name):
            raise OptionError(
                f"table {table.name} does not exist: no broker with a lease was ever started here, "
                "or its node-manager-store-table-name is another"
            )
        rows = {row: LeaseRow(table, database.dialect, row) for row in LOCK_NAMES}
        before_ms = time.time() * 1000
        now_ms = rows[PRIMARY_LOCK_ROW].now_ms(connection)
        middle_ms = (before_ms + time.time() * 1000) / 2
        return Locks(
            table=str(table.name),
            now_ms=now_ms,
            skew_ms=round(now_ms - middle_ms),
            node_id=_text(connection, table, "NODE_ID", NODE_ID_ROW),
            state=_text(connection, table, "STATE", STATE_ROW),
            leases={row: lease.look(connection) for row, lease in rows.items()},
        )

    try:
        return node_table.ask(read, read_only=True)
    finally:
        node_table.close()


def _text(connection: Connection, table: sqlalchemy.Table, column: str, row: int) -> str | None:
    query = sqlalchemy.select(table.c[column]).where(table.c["ID"] == row)
    found = connection.execute(query).scalar_one_or_none()
    return None if found is None else str(found).strip() or None


def break_lock(database: Database, row: int, holder: str) -> bool:
    """End the lease of a row if `holder` still has it; False if he does not.

    Its holder, if he lives, finds out before he writes anything more, and stops.

    Args:
        database: whose table it is.
        row: a key of LOCK_NAMES.
        holder: the id that was shown to the operator who decided.

    Raises:
        OptionError: such a row holds no lease.
        JournalIOError: the database fails.
    """
    if row not in LOCK_NAMES:
        known = " or ".join(f"{one} ({name})" for one, name in LOCK_NAMES.items())
        raise OptionError(f"row {row} holds no lease; {known} does")
    node_table = NodeTable(database)
    lease = LeaseRow(node_table.table, database.dialect, row)
    try:
        return node_table.ask(lambda connection: lease.release(connection, holder))
    finally:
        node_table.close()
