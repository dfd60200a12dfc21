"""The table of a journal on PostgreSQL: one round trip a batch, in the protocol's own bytes.

- A few rows: one prepared INSERT that reads from the fence, a transaction by itself.
- A few rows and deletes: a pipeline, BEGIN, fence, deletes, INSERT and COMMIT, sent together.
- Many rows: one simple query `fence; DELETE …; COPY …`, then the rows as COPY BINARY. Statements of
  one simple query are one transaction, committed before the last of them is reported as done
  (https://www.postgresql.org/docs/15/protocol-flow.html, "Multiple Statements in a Simple Query").

The driver's connection is spoken to by psycopg.pq, libpq's own calls: the cursors of psycopg do for
every row what is done here once a batch. No call here waits without the network timeout, and none
holds the GIL while it waits.
"""

from __future__ import annotations

import functools
import select
import time
from typing import TYPE_CHECKING, Final

import psycopg
from psycopg.pq import ExecStatus
from sqlalchemy import text

from jdbcstore.record_tables.base import id_runs
from jdbcstore.record_tables.copy_binary import (
    array_values,
    copy_rows,
    row_values,
    scanned_row,
)
from jdbcstore.record_tables.generic import GenericTable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from psycopg.pq.abc import PGconn, PGresult
    from sqlalchemy import Connection

    from jdbcstore.batch import Batch
    from jdbcstore.record_tables.base import FenceStatement
    from jdbcstore.rows import Row

__all__ = ["PostgresTable"]

# Above this COPY is faster than one INSERT from arrays, measured with rows of 1 KiB.
COPY_ROWS_MIN: Final = 48
DIVISION_BY_ZERO: Final = "22012"  # What the fence raises (lease_row.Fence).

SCAN_ROWS: Final = 1024
SCAN_SIZE: Final = 4 * 1024 * 1024  # Bytes handed out together, more only if one row is larger.
# What an INSERT selects, and what it selects from.
ONE_ROW: Final = (
    (
        "$1::bigint, $2::smallint, 0, $3::bigint, $4::smallint, $5::integer, $6::bytea,"
        " $7::integer, $8::bytea, 0, $9::bigint"
    ),
    "",
)
MANY_ROWS: Final = (
    "id, kind, 0, tx, type, length(body), body, length(data), data, 0, seq",
    (
        "unnest($1::bigint[], $2::smallint[], $3::bigint[], $4::smallint[], $5::bytea[],"
        " $6::bytea[], $7::bigint[]) AS row (id, kind, tx, type, body, data, seq)"
    ),
)
ERRORS: Final = (ExecStatus.FATAL_ERROR, ExecStatus.BAD_RESPONSE)


def insert_values(batch: Batch) -> tuple[tuple[str, str], list[bytes]]:
    """ONE_ROW or MANY_ROWS, and the values for it in binary."""
    if batch.insert_count == 1:
        return ONE_ROW, row_values(batch)
    return MANY_ROWS, array_values(batch)


class PostgresTable(GenericTable):
    """See RecordTable."""

    _pgconn: PGconn | None = None
    _poll: select.poll | None = None
    _prepared: dict[bytes, bytes]  # Names by statement.
    # (pid, when it began) of the session before this one, as long as it may be running.
    _old_session: tuple[int, object] | None = None
    _session: tuple[int, object] | None = None

    # --- the connection -----------------------------------------------------------------------

    def connect(self) -> None:
        """Connect, and end the session before, should it still be running."""
        if self._connection is not None:
            return
        connection = self.database.connect()
        try:
            self._end_old_session(connection)
            self.database.bound_idle_transactions(connection)
            self._session = self._session_of(connection)
            connection.rollback()
        except BaseException:
            connection.invalidate()
            connection.close()
            raise
        self._connection = connection
        driver: psycopg.Connection[tuple[object, ...]] | None = (
            connection.connection.driver_connection
        )
        assert driver is not None
        # What the driver has prepared by itself it throws away at a rollback, by DEALLOCATE ALL.
        driver.prepare_threshold = None
        self._pgconn = driver.pgconn
        self._prepared = {}
        self._poll = select.poll()
        self._poll.register(self._pgconn.socket, select.POLLIN)

    def disconnect(self) -> None:
        """Give up the connection, in whatever state it is."""
        if self._connection is not None and self._session is not None:
            self._old_session = self._session
        self._pgconn = self._poll = self._session = None
        super().disconnect()

    def _session_of(self, connection: Connection) -> tuple[int, object]:
        found = connection.execute(
            text("SELECT pid, backend_start FROM pg_stat_activity WHERE pid = pg_backend_pid()")
        ).one()
        return found[0], found[1]

    def _end_old_session(self, connection: Connection) -> None:
        """What was sent to it and not yet looked at must never be run."""
        if self._old_session is None:
            return
        deadline = time.monotonic() + self._timeout_s
        which = {"pid": self._old_session[0], "start": self._old_session[1]}
        while connection.execute(
            text(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE pid = :pid AND backend_start = :start"
            ),
            which,
        ).all():
            connection.rollback()
            if time.monotonic() > deadline:
                raise psycopg.OperationalError("the previous session in the database does not end")
            time.sleep(0.05)
        connection.rollback()
        self._old_session = None

    @functools.cached_property
    def _timeout_s(self) -> float:
        """Seconds that an answer may take."""
        timeout_ms = self.database.options.network_timeout_ms
        return timeout_ms / 1000 if timeout_ms >= 0 else 1e9

    # --- writing ------------------------------------------------------------------------------

    def write(self, batch: Batch) -> None:
        """Put one batch into the table in one transaction, behind the fence."""
        if batch.ends or self.fence is None:
            super().write(batch)
            return
        fence = self.fence.fence_statement()
        self.connect()
        try:
            if batch.insert_count >= COPY_ROWS_MIN:
                self._copy(fence, batch)
            elif batch.deleted_ids:
                self._pipeline(fence, batch)
            else:
                self._insert(fence, batch)
        except psycopg.Error as error:
            if error.sqlstate == DIVISION_BY_ZERO:
                raise self.fence.fenced() from error
            raise

    def _copy(self, fence: FenceStatement, batch: Batch) -> None:
        """One simple query, and the rows behind it."""
        pgconn = self._pgconn
        assert pgconn is not None
        deletes = "".join(f"{one};" for one in self._delete_texts(batch))
        into = self._insert_head.removeprefix("INSERT INTO ")
        query = f"{literal(fence)};{deletes}COPY {into} FROM STDIN (FORMAT BINARY)"
        pgconn.send_query(query.encode())
        data = copy_rows(batch)
        while True:
            result = self._result()
            if result is None:
                raise psycopg.OperationalError("the database did not start the COPY")
            if result.status == ExecStatus.COPY_IN:
                break
            if result.status in ERRORS:
                self._finish(result)
        pgconn.put_copy_data(data)
        pgconn.put_copy_end()
        self._finish(None)

    def _insert(self, fence: FenceStatement, batch: Batch) -> None:
        """One prepared statement, which the database commits before it is ready for another."""
        pgconn = self._pgconn
        assert pgconn is not None
        (columns, source), values = insert_values(batch)
        statement = self._fenced_inserts.get((fence.sql, source))
        if statement is None:
            # The fence's only row says 1, or there is an error instead of it.
            held = numbered(fence.sql, len(values) + 1)
            statement = (
                f"{self._insert_head} SELECT {columns} FROM ({held}) AS fence (holds)"
                f"{', ' if source else ''}{source} WHERE fence.holds = 1"
            ).encode()
            self._fenced_inserts[fence.sql, source] = statement
        values += [str(one).encode() for one in fence.parameters]
        formats = [1] * (len(values) - len(fence.parameters)) + [0] * len(fence.parameters)
        pgconn.send_query_prepared(self._prepare(statement), values, formats)
        self._finish(None)

    def _pipeline(self, fence: FenceStatement, batch: Batch) -> None:
        """Prepared statements, sent together and answered together."""
        pgconn = self._pgconn
        assert pgconn is not None
        fence_name = self._prepare(numbered(fence.sql).encode())
        begin, commit = self._prepare(b"BEGIN"), self._prepare(b"COMMIT")
        insert = b""
        if batch.insert_count:
            (columns, source), values = insert_values(batch)
            source = f" FROM {source}" if source else ""
            insert = self._prepare(f"{self._insert_head} SELECT {columns}{source}".encode())
        committed = False
        pgconn.enter_pipeline_mode()
        try:
            pgconn.send_query_prepared(begin, None)
            pgconn.send_query_prepared(fence_name, [str(one).encode() for one in fence.parameters])
            for delete in self._delete_texts(batch):
                pgconn.send_query_params(delete.encode(), None)
            if insert:
                pgconn.send_query_prepared(insert, values, [1] * len(values))
            pgconn.send_query_prepared(commit, None)
            pgconn.pipeline_sync()
            failed = None
            while (result := self._result(is_pipeline=True)) is not None:
                if result.status == ExecStatus.PIPELINE_SYNC:
                    break
                if result.status in ERRORS and failed is None:
                    failed = result
                # A COMMIT of a failed transaction says ROLLBACK.
                committed = committed or result.command_status == b"COMMIT"
        finally:
            if pgconn.status == psycopg.pq.ConnStatus.OK:
                pgconn.exit_pipeline_mode()
        if failed is not None:
            self._run(b"ROLLBACK")
            raise psycopg.errors.error_from_result(failed)
        if not committed:
            raise psycopg.OperationalError("the database did not confirm the commit")

    @functools.cached_property
    def _insert_head(self) -> str:
        table = self.database.dialect.quoted(self.table)
        return f"INSERT INTO {table} ({','.join(column.name for column in self.table.columns)})"

    @functools.cached_property
    def _fenced_inserts(self) -> dict[tuple[str, str], bytes]:
        """By the fence and by what is selected; the fence is nearly always the same."""
        return {}

    def _delete_texts(self, batch: Batch) -> list[str]:
        """DELETE statements; ids are numbers, so they stand in the text."""
        if not batch.deleted_ids:
            return []
        table = self.database.dialect.quoted(self.table)
        runs, rest = id_runs(batch.deleted_ids)
        texts = [
            f"DELETE FROM {table} WHERE id BETWEEN {first} AND {final} AND recordType IN (11,12)"
            for first, final in runs
        ]
        if rest:
            ids = ",".join(map(str, rest))
            texts.append(
                f"DELETE FROM {table} WHERE id = ANY ('{{{ids}}}'::bigint[])"
                " AND recordType IN (11,12)"
            )
        return texts

    # --- reading ------------------------------------------------------------------------------

    def scan(self, after: int | None = None) -> Iterator[Sequence[Row]]:
        """The rows by seq, some at a time, as COPY BINARY sends them.

        Memory: one row beside those that are handed out. The time that all of it takes has no
        limit, only the wait for the next row.
        """
        self.connect()
        pgconn = self._pgconn
        assert pgconn is not None
        source = self.database.dialect.quoted(self.table)
        if after is not None:
            source += f" WHERE seq > {int(after)}"
        pgconn.send_query(
            (
                "BEGIN; SET LOCAL statement_timeout = 0; COPY (SELECT id, recordType,"
                f" userRecordType, record, txId, txData, seq FROM {source} ORDER BY seq)"
                " TO STDOUT (FORMAT BINARY)"
            ).encode()
        )
        while (result := self._result()) is not None:
            if result.status == ExecStatus.COPY_OUT:
                break
            if result.status in ERRORS:
                self._finish(result)
        rows: list[Row] = []
        size = 0
        while True:
            count, data = pgconn.get_copy_data(1)
            if count > 0:
                row = scanned_row(data)
                if row is not None:
                    is_full = len(rows) >= SCAN_ROWS or size + count > SCAN_SIZE
                    if is_full and rows and rows[-1][6] != row[6]:
                        yield rows
                        rows, size = [], 0
                    rows.append(row)
                    size += count
            elif count == 0:
                self._wait(select.POLLIN)
                pgconn.consume_input()
            else:
                break
        self._finish(None)
        self._run(b"COMMIT")
        if rows:
            yield rows

    # --- libpq --------------------------------------------------------------------------------

    def _prepare(self, statement: bytes) -> bytes:
        """The name of a prepared statement."""
        name = self._prepared.get(statement)
        if name is None:
            assert self._pgconn is not None
            name = b"quiver%d" % len(self._prepared)
            self._pgconn.send_prepare(name, statement)
            self._finish(None)
            self._prepared[statement] = name
        return name

    def _run(self, statement: bytes) -> None:
        assert self._pgconn is not None
        self._pgconn.send_query(statement)
        self._finish(None)

    def _finish(self, failed: PGresult | None) -> None:
        """Take all answers to the last query; raises the first error among them."""
        while (result := self._result()) is not None:
            if result.status in ERRORS and failed is None:
                failed = result
        if failed is not None:
            raise psycopg.errors.error_from_result(failed)

    def _wait(self, for_what: int, deadline: float | None = None) -> int:
        """Wait until the connection can be read, or also written; what it can.

        Raises:
            psycopg.OperationalError: the network timeout passed.
        """
        pgconn, poll = self._pgconn, self._poll
        assert pgconn is not None
        assert poll is not None
        now = time.monotonic()
        wait_s = self._timeout_s if deadline is None else max(0.0, deadline - now)
        if for_what != select.POLLIN:
            poll.modify(pgconn.socket, for_what)
        events = poll.poll(min(int(wait_s * 1000) + 1, 1 << 30))
        if for_what != select.POLLIN:
            poll.modify(pgconn.socket, select.POLLIN)
        if not events:
            raise psycopg.OperationalError(
                f"no answer from the database for {self._timeout_s:.0f} s"
            )
        return events[0][1]

    def _result(self, *, is_pipeline: bool = False) -> PGresult | None:
        """The next answer, None after the last one to a query.

        Raises:
            psycopg.OperationalError: the connection is lost, or the network timeout passed.
        """
        pgconn = self._pgconn
        assert pgconn is not None
        deadline = time.monotonic() + self._timeout_s
        while True:
            unsent = pgconn.flush()
            if not unsent and not pgconn.is_busy():
                result = pgconn.get_result()
                if result is None and is_pipeline:
                    if pgconn.status != psycopg.pq.ConnStatus.OK:
                        raise psycopg.OperationalError("the connection was lost")
                    continue  # Between the answers to two statements of the pipeline.
                return result
            events = self._wait(
                select.POLLIN | select.POLLOUT if unsent else select.POLLIN, deadline
            )
            if events & ~select.POLLOUT:
                pgconn.consume_input()


def numbered(sql: str, first: int = 1) -> str:
    """A statement with psycopg's marks as libpq takes it.

    >>> numbered("SELECT 1 WHERE a = %s AND b LIKE 'x%%' AND c = %s", 4)
    "SELECT 1 WHERE a = $4 AND b LIKE 'x%' AND c = $5"
    """
    parts = [part.replace("%%", "%") for part in sql.split("%s")]
    return parts[0] + "".join(f"${number}{part}" for number, part in enumerate(parts[1:], first))


def literal(fence: FenceStatement) -> str:
    """The fence with its parameters in the text, for a simple query."""
    values = [quoted(one) for one in fence.parameters]
    parts = [part.replace("%%", "%") for part in fence.sql.split("%s")]
    return "".join(part + value for part, value in zip(parts, [*values, ""], strict=True))


def quoted(value: object) -> str:
    """A number or a text as a literal, whatever standard_conforming_strings says.

    >>> quoted("it's"), quoted(7)
    ("E'it''s'", '7')
    """
    if isinstance(value, int):
        return str(value)
    text_value = str(value)
    assert "\0" not in text_value
    return "E'" + text_value.replace("\\", "\\\\").replace("'", "''") + "'"
