"""Oracle by oracledb, thin mode.

An empty string of bytes is NULL to Oracle: readers of a record take NULL for empty.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import sqlalchemy
import sqlalchemy.dialects.oracle
from sqlalchemy import Identity

from jdbcstore.dialects.base import ColumnTypes, Dialect, NameCase
from jdbcstore.errors import Fault

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import Table

    from jdbcstore.dialects.base import RawConnection

__all__ = ["Oracle"]

# Numbers of Oracle Database Error Messages (ORA-) and of the driver (DPY-).
LOST: Final = frozenset(
    {
        "ORA-00028",  # The session was killed.
        "ORA-00600",  # An internal error; the session may be gone.
        "ORA-01012",  # Not logged on.
        "ORA-01033",  # The instance starts or stops.
        "ORA-01034",
        "ORA-01089",
        "ORA-01090",
        "ORA-01092",  # The instance ended.
        "ORA-02396",  # Idle for too long.
        "ORA-03113",  # End of file on the channel.
        "ORA-03114",  # Not connected.
        "ORA-03135",  # Connection lost contact.
        "ORA-12153",
        "ORA-12170",  # Time-out on connecting.
        "ORA-12514",  # The listener does not know the service (yet).
        "ORA-12516",
        "ORA-12518",
        "ORA-12519",
        "ORA-12520",
        "ORA-12521",
        "ORA-12528",
        "ORA-12537",
        "ORA-12541",  # No listener.
        "ORA-12547",
        "ORA-12570",
        "ORA-12571",
        "ORA-16000",  # Open for reading only: a standby.
        "ORA-16456",
        "ORA-25402",  # Fail-over: the transaction's fate is open.
        "ORA-25408",
        "DPY-1001",  # Not connected.
        "DPY-4011",  # The connection was closed.
        "DPY-4024",  # The call took longer than call_timeout.
        "DPY-6000",  # The listener refused.
        "DPY-6005",  # Cannot connect.
    }
)
CONFLICT: Final = frozenset(
    {
        "ORA-00054",  # Busy, and NOWAIT.
        "ORA-00060",  # Deadlock.
        "ORA-00018",  # Too many sessions.
        "ORA-00020",  # Too many processes.
        "ORA-01013",  # Cancelled.
        "ORA-01555",  # Snapshot too old.
        "ORA-02049",  # Time-out waiting for a lock.
        "ORA-04021",
        "ORA-08177",  # Cannot serialize.
        "ORA-30006",  # Busy, and WAIT ran out.
        "ORA-01653",  # No space for now.
        "ORA-01654",
        "ORA-01658",
        "ORA-01691",
    }
)


class Oracle(Dialect):
    """Oracle 12.1 and later; names of 30 characters, which 12.1 ends at."""

    name = "oracle"
    name_case = NameCase.UPPER
    max_blob_size = 1 << 32
    table_name_max = 30
    index_name_max = 30
    seq_is_key = False
    # SYSTIMESTAMP is one moment in a statement. Not CAST(... AS DATE), which may round.
    now_ms = (
        "(EXTRACT(DAY FROM {since}) * 86400000 + EXTRACT(HOUR FROM {since}) * 3600000"
        " + EXTRACT(MINUTE FROM {since}) * 60000 + TRUNC(EXTRACT(SECOND FROM {since}) * 1000))"
    ).format(since="(SYS_EXTRACT_UTC(SYSTIMESTAMP) - TIMESTAMP '1970-01-01 00:00:00')")
    from_nothing = " FROM DUAL"

    def column_types(self) -> ColumnTypes:
        """NUMBER throughout, as Artemis writes it."""
        number: Any = sqlalchemy.dialects.oracle.NUMBER
        return replace(
            super().column_types(),
            big=number(19, 0),
            integer=number(10, 0),
            small=number(5, 0),
            file_key=number(19, 0),
            seq=number(19, 0),
        )

    def file_identity(self) -> Identity | None:
        """BY DEFAULT ON NULL, as Artemis writes it."""
        return Identity(always=False, oracle_on_null=True)

    def connect_arguments(self, network_timeout_ms: int) -> dict[str, Any]:
        """How long to wait for a listener."""
        return {"tcp_connect_timeout": network_timeout_ms / 1000} if network_timeout_ms > 0 else {}

    def set_up(self, raw: RawConnection, network_timeout_ms: int) -> None:
        """How long to wait for an answer."""
        if network_timeout_ms > 0:
            raw.call_timeout = network_timeout_ms  # type: ignore[attr-defined]

    def insert_rows(
        self, raw: RawConnection, table: Table, rows: Sequence[tuple[object, ...]]
    ) -> None:
        """Array binding; BLOBs said to be so, else bodies beyond 32 KiB fail within an array."""
        import oracledb

        cursor: Any = raw.cursor()
        try:
            cursor.setinputsizes(
                *(
                    oracledb.DB_TYPE_BLOB
                    if isinstance(column.type, sqlalchemy.LargeBinary)
                    else None
                    for column in table.columns
                )
            )
            cursor.executemany(self.insert_sql(table), rows)
        finally:
            cursor.close()

    def fault(self, exception: BaseException) -> Fault:
        """By the database's or the driver's code."""
        import oracledb

        if not isinstance(exception, oracledb.Error):
            return Fault.FATAL
        error = exception.args[0] if exception.args else None
        code = getattr(error, "full_code", None)
        if code is None:
            found = re.search(r"\b(ORA-\d{5}|DPY-\d{4})\b", str(exception))
            code = found[1] if found else ""
        if code in LOST:
            return Fault.LOST
        return Fault.CONFLICT if code in CONFLICT else Fault.FATAL
