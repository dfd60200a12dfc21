"""The table of a journal on MySQL and MariaDB: prepared INSERTs of many rows, packed here.

A literal of bytes is looked at byte by byte three times: where the driver escapes it, where the
server's lexer finds its end, and where that copies it. A parameter of a prepared statement is
copied. PyMySQL has no call for prepared statements, but lends its connection for the two commands
that are needed (https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_com_stmt_execute.html).

Rows of transactions that have not ended are few, and go as literals.
"""

from __future__ import annotations

import struct
import time
from typing import TYPE_CHECKING, Any, Final

import pymysql
import sqlalchemy.exc
from sqlalchemy import delete, func, select, text, update

from jdbcstore.batch import Batch
from jdbcstore.errors import StatementCancelled
from jdbcstore.record_tables.base import id_runs
from jdbcstore.record_tables.generic import IN_LIST_MAX, GenericTable
from jdbcstore.record_tables.mysql_commands import Commands, plain_rows
from jdbcstore.record_tables.mysql_exchange import exchange
from jdbcstore.rows import signed_byte

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement, Connection

    from jdbcstore.rows import Row

__all__ = ["MySqlTable", "literal"]

QUERY: Final = b"\x03"  # COM_QUERY
COM_STMT_PREPARE: Final = 0x16
# Rows of one INSERT, from the most down: 6 parameters each, of 65,535. Powers of two, so that any
# number of rows takes few statements, and there are few to prepare.
ROWS_PER_INSERT: Final = tuple(1 << power for power in range(9, -1, -1))
ROW: Final = b"(?,?,0,0,?,?,?,0,'',0,?)"
PARAMETERS_PER_ROW: Final = 6
PACKET_MAX: Final = 0xFFFFFF
# ER_NO_SUCH_THREAD: it has ended by itself.
UNKNOWN_THREAD: Final = 1094
# What a packet holds beside the bodies, at most: types and numbers of 512 rows.
PACKET_MARGIN: Final = 64 * 1024


def literal(value: bytes) -> bytes:
    """A literal of bytes, in hexadecimal: what it means depends on no sql_mode.

    >>> literal(b"a'b"), literal(b"")
    (b"x'612762'", b"x''")
    """
    return b"x'%b'" % value.hex().encode("ascii")


def is_plain_socket(driver: Any, commands: Commands) -> bool:  # noqa: ANN401 - As below.
    """Whether exchange() can send them: without TLS, and each is one packet."""
    return not driver._secure and commands.longest < PACKET_MAX


def execute(
    driver: Any,  # noqa: ANN401 - PyMySQL has no types.
    commands: Commands,
    *,
    is_fenced: bool = False,
) -> list[Any]:
    """Send commands together, and take the answers in their order; the results.

    Args:
        driver: PyMySQL's connection.
        commands: to send.
        is_fenced: the first one is the fence. If it returns no row, errors of the others are not
            told: the new owner may have written what they write.

    Raises:
        pymysql.err.MySQLError: the first that failed. The others were run all the same: the caller
            rolls back.
    """
    results: list[Any] = []
    failed = None
    is_refused = False
    # A longer command goes as several packets; then the driver cuts it.
    is_long = commands.longest >= PACKET_MAX
    if not is_long:
        driver._write_bytes(commands.packets())
    for place in range(len(commands)):
        try:
            if is_long:
                driver._execute_command(commands[place][0], commands[place][1:])
            else:
                driver._next_seq_id = 1
            driver._read_query_result()
            results.append(driver._result)
            is_refused = is_refused or (is_fenced and place == 0 and not driver._result.rows)
        except Exception as error:
            if not driver.open:
                raise
            failed = failed or error
        if is_long and (failed or is_refused):
            break
    if failed is not None and not is_refused:
        raise failed
    return results


def execute_all(driver: Any, commands: Commands, timeout_ms: int) -> tuple[int, int]:  # noqa: ANN401 - As above.
    """Run a fence and commands; (rows they returned, how many of the others changed nothing).

    Raises:
        pymysql.err.MySQLError: as execute().
    """
    del timeout_ms  # The driver's own.
    rows = idle = 0
    for result in execute(driver, commands, is_fenced=True):
        if result.rows is None:
            idle += result.affected_rows == 0
        else:
            rows += len(result.rows)
    return rows, idle


def exchange_all(driver: Any, commands: Commands, timeout_ms: int) -> tuple[int, int]:  # noqa: ANN401 - As above.
    """The same, and commit if there was a row and no command that changed nothing.

    Raises:
        OSError: the connection failed; it is closed.
        pymysql.err.MySQLError: as execute(), or the commit failed.
    """
    try:
        rows, idle, failed = exchange(
            driver._sock.fileno(),
            commands,
            timeout_ms if timeout_ms > 0 else -1,
        )
    except BaseException:
        # Half an answer may have been read.
        driver._force_close()
        raise
    if failed is not None:
        pymysql.err.raise_mysql_exception(failed)
    return rows, idle


class MySqlTable(GenericTable):
    """See RecordTable."""

    _packet_size_max = 0
    # Prepared INSERTs of this connection: statement by number of rows.
    _inserts: dict[int, int]
    # What write() sends; its memory is used again.
    _commands: Commands
    # (id, when it began) of this session, and of the one before as long as it may be running.
    _session: tuple[int, float] | None = None
    _old_session: tuple[int, float] | None = None

    # --- the connection -----------------------------------------------------------------------

    def connect(self) -> None:
        """Connect, and end the session before, should it still be running."""
        if self._connection is not None:
            return
        connection = self.database.connect()
        try:
            self._end_old_session(connection)
            self.database.bound_idle_transactions(connection)
            number = connection.execute(text("SELECT CONNECTION_ID()")).scalar_one()
            connection.rollback()
        except BaseException:
            connection.invalidate()
            connection.close()
            raise
        self._session = (int(number), time.monotonic())
        self._inserts = {}
        self._commands = Commands()
        self._connection = connection

    def disconnect(self) -> None:
        """Give up the connection, in whatever state it is."""
        if self._session is not None:
            self._old_session = self._session
        self._session = None
        super().disconnect()

    def _end_old_session(self, connection: Connection) -> None:
        """What was sent to it and not yet looked at must never be run."""
        if self._old_session is None:
            return
        number, began = self._old_session
        uptime = connection.execute(text("SHOW GLOBAL STATUS LIKE 'Uptime'")).one()[1]
        # A server that was restarted since counts its sessions anew.
        if int(uptime) + 2 >= time.monotonic() - began:
            deadline = time.monotonic() + max(1, self.database.options.network_timeout_ms) / 1000
            listed = text("SELECT ID FROM information_schema.PROCESSLIST WHERE ID = :id")
            while connection.execute(listed, {"id": number}).first() is not None:
                if time.monotonic() > deadline:
                    raise TimeoutError("the previous session in the database does not end")
                try:
                    connection.execute(text(f"KILL CONNECTION {int(number)}"))
                except sqlalchemy.exc.OperationalError as error:
                    if error.orig is None or error.orig.args[0] != UNKNOWN_THREAD:
                        raise
                time.sleep(0.05)
        connection.rollback()
        self._old_session = None

    @property
    def body_size_max(self) -> int:
        """Half a packet, since every byte of a literal takes two."""
        return min(super().body_size_max, (self.packet_size_max - PACKET_MARGIN) // 2)

    @property
    def packet_size_max(self) -> int:
        """The server's max_allowed_packet, in bytes."""
        if not self._packet_size_max:
            with self.connection.begin():
                self._packet_size_max = int(
                    self.connection.execute(text("SELECT @@max_allowed_packet")).scalar_one()
                )
        return self._packet_size_max

    # --- writing ------------------------------------------------------------------------------

    def write(self, batch: Batch) -> None:
        """Put one batch into the table in one transaction, behind the fence.

        Everything up to the COMMIT is sent at once, and answered in that order.
        """
        if batch.ends or self.fence is None:
            super().write(batch)
            return
        fence = self.fence.fence_statement(may_raise=False)
        driver: Any = self.connection.connection.driver_connection
        which = self._deleted(batch)
        commands = self._commands
        commands.clear()
        commands.add(QUERY + driver.cursor().mogrify(fence.sql, fence.parameters).encode())
        for one in which:
            commands.add(QUERY + self._delete_head + one)
        self._add_inserts(commands, driver, batch)
        run = exchange_all if is_plain_socket(driver, commands) else execute_all
        is_committed = False
        try:
            rows, idle = run(driver, commands, self.database.options.network_timeout_ms)
            if not rows:
                raise self.fence.fenced()
            if idle:
                self._check_deleted(driver, which, batch.first_seq)
            is_committed = run is exchange_all and not idle
        except BaseException:
            # Whatever was run behind a statement that failed must not be committed later.
            if driver.open:
                driver.rollback()
            raise
        if not is_committed:
            driver.commit()

    def _check_deleted(
        self,
        driver: Any,  # noqa: ANN401 - As below.
        which: list[bytes],
        first_seq: int | None,
    ) -> None:
        """Some DELETE has found nothing, which is right only where there is nothing.

        Args:
            driver: behind all commands of the batch.
            which: conditions of the DELETEs.
            first_seq: rows from here on were inserted behind them, perhaps with the same ids.
        """
        table = self.database.dialect.quoted(self.table)
        older = b"" if first_seq is None else b" AND seq < %d" % first_seq
        for one in which:
            driver.query(f"SELECT COUNT(*) FROM {table} ".encode() + one + older)
            if driver._result.rows != ((0,),):
                raise StatementCancelled("a DELETE was cancelled without an error")

    def update_rows(
        self,
        which: ColumnElement[bool],
        values: dict[Any, Any],
        parameters: list[dict[str, int]],
    ) -> None:
        """Change rows, and see that none is left; see StatementCancelled.

        What is left of a transaction is deleted next: a record that counts must not be among it.
        """
        remaining = select(func.count()).select_from(self.table).where(which)
        for one in parameters:
            self.connection.execute(update(self.table).where(which).values(values), one)
            if self.connection.execute(remaining, one).scalar_one():
                raise StatementCancelled("an UPDATE was cancelled without an error")

    def delete_rows(self, which: ColumnElement[bool], parameters: list[dict[str, int]]) -> None:
        """Delete rows, and see that they are gone; see StatementCancelled."""
        remaining = select(func.count()).select_from(self.table).where(which)
        for values in parameters:
            deleted = self.connection.execute(delete(self.table).where(which), values).rowcount
            if not deleted and self.connection.execute(remaining, values).scalar_one():
                raise StatementCancelled("a DELETE was cancelled without an error")

    def _add_inserts(self, commands: Commands, driver: Any, batch: Batch) -> None:  # noqa: ANN401 - As below.
        """Add what inserts the rows of a batch."""
        room = self.packet_size_max - PACKET_MARGIN
        start = done = 0
        while found := plain_rows(batch, start, ROWS_PER_INSERT[0], room):
            count = next(one for one in ROWS_PER_INSERT if one <= found)
            statement = self._inserts.get(count)
            if statement is None:
                statement = self._inserts[count] = self._prepare(driver, count)
            start = commands.add_rows(batch, start, count, statement)
            done += count
        if done < batch.insert_count:
            staged = [row for row in batch.live_rows() if row[4] or row[5]]
            for one in self.statements(staged):
                commands.add(QUERY + one)

    def insert_rows(self, rows: list[Row]) -> None:
        """Insert rows, inside a transaction."""
        driver: Any = self.connection.connection.driver_connection
        batch = Batch()
        for row in rows:
            batch.stage(row)
        commands = Commands()
        self._add_inserts(commands, driver, batch)
        execute(driver, commands)

    def _deleted(self, batch: Batch) -> list[bytes]:
        """Conditions of DELETE statements; ids are numbers, so they stand in the text."""
        runs, rest = id_runs(batch.deleted_ids)
        texts = [f"id BETWEEN {first} AND {final}" for first, final in runs]
        texts += [
            f"id IN ({','.join(map(str, rest[start : start + IN_LIST_MAX]))})"
            for start in range(0, len(rest), IN_LIST_MAX)
        ]
        return [f"WHERE {one} AND recordType IN (11,12)".encode() for one in texts]

    @property
    def _delete_head(self) -> bytes:
        return f"DELETE FROM {self.database.dialect.quoted(self.table)} ".encode()

    def _prepare(self, driver: Any, count: int) -> int:  # noqa: ANN401 - As above.
        """The server's number of an INSERT of `count` rows."""
        driver._execute_command(COM_STMT_PREPARE, self._insert_head + b",".join([ROW] * count))
        answer = driver._read_packet().get_all_data()
        for _ in range(PARAMETERS_PER_ROW * count + 1):
            driver._read_packet()  # What it knows of the parameters, and the end of that.
        return int(struct.unpack_from("<I", answer, 1)[0])

    @property
    def _insert_head(self) -> bytes:
        names = ",".join(column.name for column in self.table.columns)
        return f"INSERT INTO {self.database.dialect.quoted(self.table)} ({names}) VALUES ".encode()

    def statements(self, rows: list[Row]) -> list[bytes]:
        """INSERT statements with literals, each smaller than a packet."""
        made: list[bytes] = []
        values: list[bytes] = []
        size = 0
        head = self._insert_head
        room = self.packet_size_max - len(head) - 1024
        for record_id, record_type, user_type, body, tx_id, tx_data, seq in rows:
            value = b"(%d,%d,0,%d,%d,%d,%b,%d,%b,0,%d)" % (
                record_id,
                record_type,
                tx_id,
                signed_byte(user_type),
                len(body),
                literal(body),
                len(tx_data),
                literal(tx_data),
                seq,
            )
            if size + len(value) > room and values:
                made.append(head + b",".join(values))
                values, size = [], 0
            values.append(value)
            size += len(value) + 1
        made.append(head + b",".join(values))
        return made
