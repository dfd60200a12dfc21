"""PostgreSQL by psycopg 3."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import sqlalchemy.dialects.postgresql

from jdbcstore.dialects.base import ColumnTypes, Dialect, NameCase
from jdbcstore.dialects.keepalive import probes
from jdbcstore.errors import Fault

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sqlalchemy import Table

    from jdbcstore.dialects.base import RawConnection

__all__ = ["PostgreSQL"]

# What PostgreSQL's auth.c, miscinit.c and postinit.c say with SQLSTATE 28000, 28P01, 3D000, 42501
# and 55000 (not accepting connections), and libpq without having asked.
REFUSED: Final = re.compile(
    r"password authentication failed|authentication failed for user|no password supplied"
    r"|no pg_hba\.conf entry|pg_hba\.conf rejects|is not permitted to log in"
    r"|(?:role|database) \".*\" does not exist|permission denied for database"
    r"|is not currently accepting connections"
)
# How often a server that works or waits for a lock looks whether its client is still there.
CLIENT_CHECK_MS: Final = 2000


class PostgreSQL(Dialect):
    """PostgreSQL 10 and later."""

    name = "postgresql"
    name_case = NameCase.LOWER
    max_blob_size = 1 << 30
    seq_is_key = False
    # now() is the transaction's beginning; clock_timestamp() is when it is asked. The epoch of a
    # timestamp with time zone does not depend on the session's.
    now_ms = "CAST(FLOOR(EXTRACT(EPOCH FROM clock_timestamp()) * 1000) AS BIGINT)"

    def column_types(self) -> ColumnTypes:
        """BYTEA for records, large objects for files."""
        return replace(
            super().column_types(),
            blob=sqlalchemy.dialects.postgresql.BYTEA(),
            file_data=sqlalchemy.dialects.postgresql.OID(),
        )

    def connect_arguments(self, network_timeout_ms: int) -> dict[str, Any]:
        """Peers that are gone are noticed by the kernel, silent ones by open_raw()'s connection.

        In a database with the encoding SQL_ASCII the client's would be SQL_ASCII too, and psycopg
        give texts as bytes.
        """
        arguments: dict[str, Any] = {"application_name": "quiver", "client_encoding": "UTF8"}
        if network_timeout_ms >= 0:
            seconds = max(2, -(-network_timeout_ms // 1000))  # libpq rounds 1 up to 2 itself.
            interval_s, unanswered = probes(network_timeout_ms)
            arguments |= {
                "connect_timeout": seconds,
                "tcp_user_timeout": network_timeout_ms,
                "keepalives_idle": interval_s,
                "keepalives_interval": interval_s,
                "keepalives_count": unanswered,
            }
        return arguments

    def engine_arguments(self) -> dict[str, Any]:
        """READ COMMITTED: a statement that waited for a row sees what the winner wrote."""
        return {"isolation_level": "READ COMMITTED"}

    def open_raw(
        self,
        url: sqlalchemy.URL,
        network_timeout_ms: int,
        args: Sequence[object],
        named: Mapping[str, object],
    ) -> RawConnection | None:
        """A connection that gives up when the server falls silent."""
        del url
        from jdbcstore.dialects import psycopg_timeout  # psycopg may not be installed.

        return psycopg_timeout.connect(network_timeout_ms, args, named)

    def set_up(self, raw: RawConnection, network_timeout_ms: int) -> None:
        """Let the server end what a client that vanished had begun (PostgreSQL 14 and later)."""
        del network_timeout_ms
        if raw.info.server_version >= 140000:  # type: ignore[attr-defined]
            cursor = raw.cursor()
            cursor.execute(f"SET client_connection_check_interval = {CLIENT_CHECK_MS}")
            cursor.close()
            raw.commit()

    def lock_wait_sql(self, wait_ms: int) -> str | None:
        """By lock_timeout; 0 would be for ever."""
        return f"SET lock_timeout = {max(1, int(wait_ms))}"

    def idle_transaction_sql(self, idle_ms: int) -> str | None:
        """By idle_in_transaction_session_timeout (9.6); 0 would be for ever."""
        return f"SET idle_in_transaction_session_timeout = {max(1, int(idle_ms))}"

    def end_lockers_sql(self, table: Table, condition: str) -> str | None:
        """By the row's xmax, the transaction that locks it.

        A session in the middle of a COPY is not idle, and heeds no time-out while it waits for
        its client; only being terminated. The user's own sessions may be, without any privilege.
        """
        return (
            f"SELECT pg_terminate_backend(lock.pid) FROM {self.quoted(table)} AS lease "
            "JOIN pg_locks AS lock ON lock.locktype = 'transactionid' AND lock.granted "
            f"AND lock.transactionid = lease.xmax WHERE {condition}"
        )

    def fault(self, exception: BaseException) -> Fault:
        """By SQLSTATE; an operational error without one comes from libpq: the connection broke."""
        import psycopg

        if isinstance(exception, psycopg.Error):
            if exception.sqlstate is not None:
                return super().fault(exception)
            if isinstance(exception, psycopg.OperationalError | psycopg.InterfaceError):
                return Fault.FATAL if is_login_refused(str(exception)) else Fault.LOST
        return Fault.FATAL


def is_login_refused(text: str) -> bool:
    """Whether libpq says that the server knows the user, his password or the database not.

    libpq keeps the SQLSTATE of a refused login to itself, so its text has to do; of a server that
    speaks another language than English nothing is known, and it is asked again. Where there are
    several servers, all must have refused.

    >>> is_login_refused('connection failed: FATAL:  password authentication failed for user "me"')
    True
    >>> is_login_refused("connection failed: FATAL:  the database system is starting up")
    False
    """
    attempts = text.split("\n- ")  # psycopg says first what the last one said.
    return all(REFUSED.search(one) for one in attempts)
