"""Microsoft SQL Server by mssql-python, or by pymssql if the URL says so."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import sqlalchemy

from jdbcstore.dialects.base import ColumnTypes, Dialect
from jdbcstore.errors import Fault, fault_of_sqlstate
from journal.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sqlalchemy import Table

    from jdbcstore.dialects.base import RawConnection

__all__ = ["SQLServer"]

# Numbers of sys.messages, as pymssql reports them; 20,000 and above are FreeTDS's own.
LOST: Final = frozenset(
    {
        *(596, 6005, 6006),  # The session was killed; the server is shut down.
        18401,  # The login failed, since the server upgrades itself.
        *(976, 978, 983),  # An availability group's replica that takes no connections now.
        *(3906, 3908),  # The database is read only, or recovers.
        *(10053, 10054, 10060, 64, 121, 233),  # The network.
        *(40197, 40501, 40613, 49918, 49919, 49920),  # Azure: busy, or moving.
        *(20002, 20003, 20004, 20006, 20009, 20047),
    }
)
WRONG_LOGIN: Final = re.compile(r"\b18456\b|Login failed for user")
CONFLICT: Final = frozenset({1204, 1205, 1222, 3960, 701, 1105, 9002})
# mssql-python tells no number, and Microsoft's ODBC driver files most errors of the server under
# SQLSTATE 42000 (wrong syntax). What is left is the text, as sys.messages has it in English.
TEXTS: Final = (
    (Fault.LOST, re.compile(r"Server is in script upgrade mode")),  # 18401
    (Fault.LOST, re.compile(r"in an availability group and is currently")),  # 976, 978
    (Fault.LOST, re.compile(r"replica is not in the PRIMARY or SECONDARY role")),  # 983
    (Fault.LOST, re.compile(r"because the database is read-only")),  # 3906
    (Fault.LOST, re.compile(r"Could not run BEGIN TRANSACTION in database")),  # 3908
    (Fault.LOST, re.compile(r"The service has encountered an error processing")),  # 40197
    (Fault.LOST, re.compile(r"The service is currently busy")),  # 40501
    (Fault.LOST, re.compile(r"Database '.*' on server '.*' is not currently available")),  # 40613
    (Fault.LOST, re.compile(r"Cannot process (?:create or update )?request\.")),  # 49918 to 49920
    (Fault.CONFLICT, re.compile(r"cannot obtain a LOCK resource at this time")),  # 1204
    (Fault.CONFLICT, re.compile(r"Lock request time out period exceeded")),  # 1222
    (Fault.CONFLICT, re.compile(r"Snapshot isolation transaction aborted")),  # 3960
    (Fault.CONFLICT, re.compile(r"There is insufficient system memory")),  # 701
    (Fault.CONFLICT, re.compile(r"Could not allocate space for object")),  # 1105
    (Fault.CONFLICT, re.compile(r"The transaction log for database '.*' is full")),  # 9002
)
# SQLSTATEs that mssql-python turns into texts of its own, and no longer shows.
SQLSTATES: Final = (
    *("08001", "08002", "08003", "08007", "08S01", "40001", "40003", "HYT00", "HYT01", "57014"),
)


# What mssql-python says where a library is missing that Microsoft's driver is linked with.
NOT_LOADED: Final = "Failed to load the driver"


class SQLServer(Dialect):
    """SQL Server 2016 and later."""

    name = "mssql"
    max_blob_size = 2_147_483_647
    table_name_max = 121  # 128, less the suffix of an index.
    index_name_max = 128
    now_ms = "DATEDIFF_BIG(MILLISECOND, CAST('1970-01-01' AS DATETIME2), SYSUTCDATETIME())"
    # FOR UPDATE exists for cursors only.
    row_lock = ""
    row_lock_hint = " WITH (UPDLOCK, ROWLOCK, HOLDLOCK)"

    def column_types(self) -> ColumnTypes:
        """VARBINARY(max)."""
        blob = sqlalchemy.VARBINARY("max")  # type: ignore[arg-type]
        return replace(super().column_types(), blob=blob, file_data=blob)

    def placeholder(self, number: int = 1) -> str:
        """A question mark: in the paramstyle that mssql-python names, values have names."""
        if self.engine_dialect.driver == "pymssql":
            return super().placeholder(number)
        return "?"

    def connect_arguments(self, network_timeout_ms: int) -> dict[str, Any]:
        """How long to wait for an answer, in whole seconds."""
        if network_timeout_ms <= 0:
            return {}
        seconds = -(-network_timeout_ms // 1000)
        if self.engine_dialect.driver == "pymssql":
            return {"timeout": seconds, "login_timeout": seconds}
        return {"timeout": seconds}

    def set_up(self, raw: RawConnection, network_timeout_ms: int) -> None:
        """How long to wait for a statement: what connect() takes is of the login alone."""
        if network_timeout_ms > 0 and self.engine_dialect.driver != "pymssql":
            raw.timeout = -(-network_timeout_ms // 1000)  # type: ignore[attr-defined]

    def open_raw(
        self,
        url: sqlalchemy.URL,
        network_timeout_ms: int,
        args: Sequence[object],
        named: Mapping[str, object],
    ) -> RawConnection | None:
        """Connect by the driver; libraries that Microsoft's driver lacks are named in the error.

        Raises:
            OptionError: it cannot be loaded.
        """
        del url, network_timeout_ms
        if self.engine_dialect.driver == "pymssql":
            return None
        import mssql_python

        connect: Any = mssql_python.connect
        try:
            connection: RawConnection = connect(*args, **named)
        except mssql_python.exceptions.Exception as error:
            if NOT_LOADED not in str(error):
                raise
            raise OptionError(
                "mssql-python cannot load Microsoft's ODBC driver, which needs libltdl and "
                "Kerberos: apt-get install libltdl7 libgssapi-krb5-2"
            ) from error
        return connection

    def insert_rows(
        self, raw: RawConnection, table: Table, rows: Sequence[tuple[object, ...]]
    ) -> None:
        """As elsewhere; pymssql would write bytes that look like text as text."""
        if self.engine_dialect.driver == "pymssql":
            rows = [tuple(bytearray(v) if isinstance(v, bytes) else v for v in row) for row in rows]
        super().insert_rows(raw, table, rows)

    def fault(self, exception: BaseException) -> Fault:
        """By the server's number, or by the text and what mssql-python leaves of the SQLSTATE."""
        number = exception.args[0] if exception.args else None
        if isinstance(number, tuple) and number:
            number = number[0]  # pymssql wraps number and text once more when connecting fails.
        if isinstance(number, int):
            if number in LOST:
                # FreeTDS may put its own "connection failed" before what the server said.
                return Fault.FATAL if WRONG_LOGIN.search(str(exception)) else Fault.LOST
            return Fault.CONFLICT if number in CONFLICT else Fault.FATAL
        text = getattr(exception, "driver_error", None)
        if text is not None:
            said = str(getattr(exception, "ddbc_error", ""))
            for fault, pattern in TEXTS:
                if pattern.search(said):
                    return fault
            from mssql_python.exceptions import sqlstate_to_exception

            for sqlstate in SQLSTATES:
                known = sqlstate_to_exception(sqlstate, "")
                if known is not None and known.driver_error == text:
                    return fault_of_sqlstate(sqlstate)
        return Fault.FATAL
