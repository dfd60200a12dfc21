"""MySQL and MariaDB by PyMySQL."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Final

import sqlalchemy.dialects.mysql
import sqlalchemy.exc

from jdbcstore.dialects.base import ColumnTypes, Dialect, NameCase
from jdbcstore.dialects.keepalive import set_probes
from jdbcstore.errors import Fault

if TYPE_CHECKING:
    from sqlalchemy import Connection, Table

    from jdbcstore.dialects.base import RawConnection

__all__ = ["MySQL"]

NO_SUCH_TABLE: Final = 1146
# Numbers of the servers' error message files; the ones from 2000 are the client's own.
LOST: Final = frozenset(
    {
        1040,  # Too many connections.
        1047,  # Galera: the node is not ready for queries.
        1053,  # Server shutdown in progress.
        1077,  # Normal shutdown.
        1079,  # Shutdown complete.
        1152,  # Aborted connection.
        1158,  # Network error on read.
        1159,  # Time-out on read.
        1160,  # Network error on write.
        1161,  # Time-out on write.
        1180,  # Error during COMMIT: Galera cannot say whether it counts.
        1184,  # Aborted connection.
        1203,  # The user has too many connections.
        1226,  # The user has used up a resource, such as connections.
        1290,  # The server runs with --read-only: the writer is elsewhere.
        1792,  # Read only transaction.
        1836,  # Running in read-only mode.
        1927,  # MariaDB: connection was killed.
        2002,
        2003,  # Cannot connect.
        2006,  # Server has gone away.
        2013,  # Lost connection during query.
        2014,  # Commands out of sync: half an answer was read.
        2055,  # Lost connection at a named point.
        3169,  # Session was killed.
        4031,  # Disconnected for inactivity.
    }
)
CONFLICT: Final = frozenset(
    {
        1020,  # MariaDB: the record has changed since last read.
        1021,  # Disk full.
        1037,
        1038,
        1041,  # Out of memory.
        1205,  # Lock wait time-out; the caller rolls back.
        1213,  # Deadlock.
        1317,  # Query execution was interrupted: KILL QUERY; see also StatementCancelled.
        1637,  # Too many active transactions.
        1969,  # MariaDB: max_statement_time exceeded.
        3024,  # MySQL: maximum statement execution time exceeded.
        3572,  # NOWAIT is set.
    }
)


class MySQL(Dialect):
    """MySQL 5.7 and MariaDB 10.5 and later, InnoDB tables."""

    name = "mysql"
    name_case = NameCase.LOWER
    max_blob_size = 1 << 32
    # Artemis's table has no key: InnoDB then keeps rows by a hidden number, in one tree more,
    # and a cluster (Group Replication, Galera) takes no such table, or replicates it row by row.
    artemis_has_key = False
    table_options: ClassVar[dict[str, Any]] = {"mysql_engine": "InnoDB", "mariadb_engine": "InnoDB"}
    # UTC_TIMESTAMP() is when the statement began, SYSDATE() when it is asked; set_up() makes UTC
    # the session's time zone.
    now_ms = "(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', SYSDATE(6)) DIV 1000)"

    def column_types(self) -> ColumnTypes:
        """LONGBLOB throughout; a plain BLOB ends at 64 KiB."""
        blob = sqlalchemy.dialects.mysql.LONGBLOB()
        return replace(
            super().column_types(),
            blob=blob,
            file_data=blob,
        )

    def connect_arguments(self, network_timeout_ms: int) -> dict[str, Any]:
        """Time-outs of the socket."""
        arguments: dict[str, Any] = {"charset": "utf8mb4"}
        if network_timeout_ms > 0:
            seconds = network_timeout_ms / 1000
            arguments |= {
                "connect_timeout": max(1, -(-network_timeout_ms // 1000)),
                "read_timeout": seconds,
                "write_timeout": seconds,
            }
        return arguments

    def engine_arguments(self) -> dict[str, Any]:
        """READ COMMITTED: deletes by id lock no gaps that another's inserts wait for."""
        return {"isolation_level": "READ COMMITTED"}

    def set_up(self, raw: RawConnection, network_timeout_ms: int) -> None:
        """UTC, errors instead of values cut short, and probes of the server.

        PyMySQL has no setting for probes, nor a name for its socket.
        """
        if network_timeout_ms > 0:
            set_probes(raw._sock, network_timeout_ms)  # type: ignore[attr-defined]
        cursor = raw.cursor()
        cursor.execute(
            "SET time_zone = '+00:00', sql_mode = CONCAT(@@sql_mode, ',STRICT_ALL_TABLES')"
        )
        cursor.close()

    def has_table(self, connection: Connection, table: Table) -> bool:
        """As an error says it: a list of tables could come empty when it is cancelled.

        See errors.StatementCancelled.
        """
        try:
            connection.exec_driver_sql(f"SELECT COUNT(*) FROM {self.quoted(table)} WHERE 1 = 0")
        except sqlalchemy.exc.DBAPIError as error:
            if error.orig is None or error.orig.args[:1] != (NO_SUCH_TABLE,):
                raise
            return False
        return True

    def lock_wait_sql(self, wait_ms: int) -> str | None:
        """By innodb_lock_wait_timeout, in whole seconds."""
        return f"SET SESSION innodb_lock_wait_timeout = {max(1, -(-int(wait_ms) // 1000))}"

    def idle_transaction_sql(self, idle_ms: int) -> str | None:
        """MariaDB has a setting; MySQL could only end every session that is idle."""
        if not getattr(self.engine_dialect, "is_mariadb", False):
            return None
        return f"SET SESSION idle_transaction_timeout = {max(1, -(-int(idle_ms) // 1000))}"

    def fault(self, exception: BaseException) -> Fault:
        """By the server's or client's number."""
        import pymysql

        if not isinstance(exception, pymysql.err.MySQLError):
            return Fault.FATAL
        number = exception.args[0] if exception.args else None
        if number in LOST:
            return Fault.LOST
        if isinstance(exception, pymysql.err.InterfaceError) and number == 0:
            return Fault.LOST  # The driver had closed the socket.
        return Fault.CONFLICT if number in CONFLICT else Fault.FATAL
