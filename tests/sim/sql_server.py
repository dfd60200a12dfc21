"""A database server on a simulated machine: SQLite in memory, behind the simulated network.

    SqlConnection (in a thread of a node) ── TCP in memory ──▶ _Session ─▶ one sqlite3 connection

Statements and answers take their time on the way. A link that is cut holds them, and they are lost
with a machine. So whether a COMMIT was done may stay unknown, and it may be done after the end of
the process that sent it. The clock is that of the server's machine, with its clock steps.

One transaction at a time: BEGIN waits for the one before, as on a locked row, and no longer than
`LOCK_WAIT_S`. Who does nothing in a transaction for `idle_s` is disconnected, as PostgreSQL does by
idle_in_transaction_session_timeout: a process that stands still would keep all others out.

What was committed outlives the server's process. The network carries as many bytes as statements
would have; what they ask for goes beside it.
"""

from __future__ import annotations

import asyncio
import errno
import itertools
import sqlite3
import struct
from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple

from jdbcstore.schema import PRIMARY_LOCK_ROW, STATE_ROW
from tests.sim.threads import ProcessKilledError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.sim.loop import Process
    from tests.sim.network import Host, Network
    from tests.sim.record_log import Disk, Entry
    from tests.sim.threads import Threads

PORT = 5432
LOCK_WAIT_S = 0.3
_FRAME = struct.Struct(">QI")


class Answer(NamedTuple):
    """Of one statement."""

    description: Any = None
    rows: Sequence[Any] = ()
    rowcount: int = -1


class SqlServer:
    """The server.

    Args:
        network: it is part of.
        name: of its machine.
        idle_s: seconds that a session may do nothing in a transaction.
        disk: that each COMMIT waits for.

    Attributes:
        tables: entries of each table that stores write to, by its name.
        written: numbers of the batches in each table.
        double: what was written by who had not the lease, as text.
    """

    def __init__(self, network: Network, name: str, idle_s: float, disk: Disk) -> None:
        self.network = network
        self.name = name
        self.host = network.host(name)
        self.idle_s = idle_s
        self.disk = disk
        self.tables: dict[str, list[Entry]] = {}
        self.written: dict[str, set[int]] = {}
        self.double: list[str] = []
        self.calls: dict[int, Callable[[_Session], Any]] = {}
        self.answers: dict[int, Any] = {}
        self._numbers = itertools.count(1)
        self.raw = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        self.raw.create_function("now_ms", 0, self.host.clock_ms)
        network.closers.append(self.raw.close)
        self.process: Process | None = None
        # Who has the transaction, and who waits for it.
        self.holder: _Session | None = None
        self.waiting: deque[_Session] = deque()

    @property
    def loop(self) -> Any:
        return self.network.loop

    async def start(self) -> None:
        """Start its process."""
        assert self.process is None, "it runs"
        process = self.process = self.loop.process(self.name, self.host)

        async def listen() -> None:
            await self.loop.create_server(lambda: _Session(self), "0.0.0.0", PORT)

        await process.spawn(listen())

    def kill(self, *, is_power: bool = False) -> None:
        """End its process, or take its machine's power: what was not committed is gone."""
        process, self.process = self.process, None
        if process is None:
            return
        process.kill()
        self.waiting.clear()
        if self.holder is not None:
            self.end(self.holder)
        if is_power:
            self.network.power_off(self.host)
        else:
            self.network.process_ended(process)

    def register(self, work: Callable[[_Session], Any]) -> int:
        """Give a number to what a request asks for."""
        number = next(self._numbers)
        self.calls[number] = work
        return number

    def holder_of(self, row_id: int) -> Any:
        """Who has a lease now, by the row; without the network."""
        return self._cell("HOLDER_ID", row_id)

    def lease_ends_ms(self) -> int:
        """When the primary's lease ends, by the row; 0 where it is free. Without the network."""
        return self._cell("HOLDER_EXPIRATION_TIME", PRIMARY_LOCK_ROW) or 0

    def state(self) -> str:
        """The state of the node, by the row. Without the network."""
        return self._cell("STATE", STATE_ROW) or ""

    def _cell(self, column: str, row_id: int) -> Any:
        try:
            found = self.raw.execute(
                f"SELECT {column} FROM NODE_MANAGER_STORE WHERE ID = ?", (row_id,)
            ).fetchone()
        except sqlite3.OperationalError:
            return None  # The table is not made yet.
        return None if found is None else found[0]

    # --- transactions -------------------------------------------------------------------------

    def begin(self, session: _Session) -> bool:
        """Give the transaction to a session; False if it has to wait for it."""
        if self.holder is None:
            self.holder = session
            self.raw.execute("BEGIN")
            return True
        self.waiting.append(session)
        return False

    def commit(self, session: _Session) -> None:
        """Make what a session did count."""
        assert self.holder is session, "it began one"
        for table, number, entries, writer in session.staged:
            if writer != self.holder_of(PRIMARY_LOCK_ROW):
                self.double.append(f"batch {number} of {table} at {self.loop.time():.2f} s")
            self.tables.setdefault(table, []).extend(entries)
            self.written.setdefault(table, set()).add(number)
        session.staged.clear()
        self.raw.execute("COMMIT")
        self._free()

    def end(self, session: _Session) -> None:
        """Forget what a session did not commit."""
        session.staged.clear()
        if session in self.waiting:
            self.waiting.remove(session)
        if self.holder is session:
            self.raw.execute("ROLLBACK")
            self._free()

    def _free(self) -> None:
        self.holder = None
        if self.waiting:
            session = self.waiting.popleft()
            self.holder = session
            self.raw.execute("BEGIN")
            session.go_on()


class _Session(asyncio.Protocol):
    """The server's side of one connection."""

    def __init__(self, server: SqlServer) -> None:
        self.server = server
        self.staged: list[tuple[str, int, Sequence[Entry], str]] = []
        self._transport: Any = None
        self._buffer = bytearray()
        # The request that waits for the transaction, and what ends its wait.
        self._pending: int | None = None
        self._timer: asyncio.TimerHandle | None = None
        # The disk has what the transaction wrote.
        self._may_commit = False

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def connection_lost(self, error: Exception | None) -> None:
        self._stop_timer()
        self.server.end(self)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while len(self._buffer) >= _FRAME.size:
            number, size = _FRAME.unpack_from(self._buffer)
            if len(self._buffer) < _FRAME.size + size:
                return
            del self._buffer[: _FRAME.size + size]
            self._stop_timer()
            self._do(number)

    def _do(self, number: int) -> None:
        work = self.server.calls.pop(number)
        try:
            answer = work(self)
        except _MustWaitError:
            self.server.calls[number] = work
            self._pending = number
            self._timer = self.server.loop.call_later(LOCK_WAIT_S, self._is_too_late)
            return
        except _MustSyncError:
            self.server.calls[number] = work
            disk = self.server.disk
            wait_s = disk.duration(disk.sync_s)
            self._timer = self.server.loop.call_later(wait_s, self._is_synced, number)
            return
        except sqlite3.Error as error:
            answer = error
        self._answer(number, answer)

    def _is_synced(self, number: int) -> None:
        self._timer, self._may_commit = None, True
        self._do(number)

    def go_on(self) -> None:
        """The transaction is this session's now."""
        self._stop_timer()
        number, self._pending = self._pending, None
        assert number is not None, "it waits"
        self.server.loop.call_soon(self._do, number)

    def _is_too_late(self) -> None:
        number, self._pending = self._pending, None
        assert number is not None, "it waits"
        self.server.waiting.remove(self)
        del self.server.calls[number]
        error = sqlite3.OperationalError("database is locked")
        error.sqlite_errorcode = sqlite3.SQLITE_BUSY
        self._answer(number, error)

    def _answer(self, number: int, answer: Any) -> None:
        self.server.answers[number] = answer
        size = 20 * len(answer.rows) if isinstance(answer, Answer) else 20
        self._transport.write(_FRAME.pack(number, size) + bytes(size))
        if self.server.holder is self:
            self._timer = self.server.loop.call_later(self.server.idle_s, self._transport.abort)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    # --- what requests ask for ----------------------------------------------------------------

    def execute(self, begins: bool, sql: str, parameters: Any) -> Answer:
        """Run a statement, perhaps as the first one of a transaction."""
        server = self.server
        if begins and server.holder is not self and not server.begin(self):
            raise _MustWaitError
        cursor = server.raw.execute(sql, parameters)
        rows = cursor.fetchall() if cursor.description else ()
        return Answer(cursor.description, rows, cursor.rowcount)

    def commit(self) -> Answer:
        if not self._may_commit:
            raise _MustSyncError
        self._may_commit = False
        self.server.commit(self)
        return Answer()

    def rollback(self) -> Answer:
        self.server.end(self)
        return Answer()

    def append(self, table: str, number: int, entries: Sequence[Entry], writer: str) -> Answer:
        """Put entries into a table, and commit."""
        if not self._may_commit:
            self.staged.append((table, number, entries, writer))
        return self.commit()

    def scan(self, table: str) -> Answer:
        """All entries of a table."""
        return Answer(rows=tuple(self.server.tables.get(table, ())))

    def has(self, table: str, number: int) -> Answer:
        """Whether a batch is in a table."""
        return Answer(rows=(number,) if number in self.server.written.get(table, ()) else ())


class _MustWaitError(Exception):
    """Another session has the transaction."""


class _MustSyncError(Exception):
    """The disk has not what the transaction wrote."""


class Driver:
    """The sockets of a node's process to a server, as the system has them beside the process.

    Args:
        server: of the other side.
        host: the node's machine.
        threads: of the loop.
        timeout_s: that an answer may take.
    """

    def __init__(self, server: SqlServer, host: Host, threads: Threads, timeout_s: float) -> None:
        self.server = server
        self.threads = threads
        self.timeout_s = timeout_s
        self.process = server.loop.process(f"{host.name}-sockets", host)

    def connect(self) -> SqlConnection:
        """Connect, from a thread.

        Raises:
            OSError: nothing listens there, or nothing came back in time.
        """
        if not self.process.is_alive:
            raise ProcessKilledError
        client = _Client(self)

        async def connecting() -> None:
            await self.server.loop.create_connection(lambda: client, self.server.name, PORT)

        task = self.process.spawn(connecting())
        done = self.threads.event()
        task.add_done_callback(lambda _: done.set(), context=self.process.context.copy())
        if not done.wait(self.timeout_s):
            task.cancel()
            raise TimeoutError(errno.ETIMEDOUT, "the database did not answer")
        task.result()
        return SqlConnection(client)

    def kill(self) -> None:
        """The node's process is no more."""
        self.process.kill()
        self.server.network.process_ended(self.process)


class _Client(asyncio.Protocol):
    """The node's side of one connection."""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        self.transport: Any = None
        self.is_lost = False
        self._buffer = bytearray()
        self._asked = 0
        self._answered = driver.threads.event()

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def connection_lost(self, error: Exception | None) -> None:
        self.is_lost = True
        self._answered.set()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while len(self._buffer) >= _FRAME.size:
            number, size = _FRAME.unpack_from(self._buffer)
            if len(self._buffer) < _FRAME.size + size:
                return
            del self._buffer[: _FRAME.size + size]
            if number == self._asked:
                self._answered.set()

    def ask(self, work: Callable[[_Session], Any], size: int) -> Answer:
        """Have something done, and give the answer.

        Raises:
            OSError: the connection is lost, or nothing came back in time: perhaps it was done.
            sqlite3.Error: as the server says.
        """
        server = self.driver.server
        if self.is_lost:
            raise ConnectionResetError(errno.ECONNRESET, "the connection to the database is lost")
        number = self._asked = server.register(work)
        self._answered.clear()
        self.transport.write(_FRAME.pack(number, size) + bytes(size))
        is_answered = self._answered.wait(self.driver.timeout_s)
        answer = server.answers.pop(number, None)
        if not is_answered:
            self.transport.abort()
            raise TimeoutError(errno.ETIMEDOUT, "the database did not answer")
        if self.is_lost:
            raise ConnectionResetError(errno.ECONNRESET, "the connection to the database is lost")
        if isinstance(answer, Exception):
            raise answer
        assert isinstance(answer, Answer)
        return answer


class SqlConnection:
    """What a driver of Python gives, as far as SQLAlchemy and the stores ask for it."""

    isolation_level: str | None = None

    def __init__(self, client: _Client) -> None:
        self._client = client
        self._begins = False
        self._is_begun = False

    def create_function(self, *arguments: Any, **options: Any) -> None:
        """Nothing: the server has its own."""

    def cursor(self) -> SqlCursor:
        return SqlCursor(self)

    def execute(self, sql: str, parameters: Any = ()) -> SqlCursor:
        return self.cursor().execute(sql, parameters)

    def ask(self, work: Callable[[_Session], Any], size: int = 50) -> Answer:
        """See _Client.ask(); what comes after BEGIN takes that with it."""
        return self._client.ask(work, size)

    def run(self, sql: str, parameters: Any) -> Answer:
        """Run a statement; BEGIN goes with the next one."""
        if sql.startswith("BEGIN"):
            self._begins = True
            return Answer()
        begins, self._begins = self._begins, False
        self._is_begun |= begins
        return self.ask(lambda session: session.execute(begins, sql, parameters), len(sql))

    def commit(self) -> None:
        self._begins = False
        if self._is_begun:
            self._is_begun = False
            self.ask(_Session.commit)

    def rollback(self) -> None:
        self._begins = False
        if self._is_begun:
            self._is_begun = False
            self.ask(_Session.rollback)

    def append(self, table: str, number: int, entries: Sequence[Entry], writer: str) -> None:
        """Put entries into a table, and commit the transaction; `writer` has the lease."""
        self._is_begun = False
        size = sum(50 + len(one.body) for one in entries)
        self.ask(lambda session: session.append(table, number, entries, writer), size)

    def close(self) -> None:
        self._client.transport.abort()


class SqlCursor:
    """Of one statement at a time."""

    arraysize = 1
    lastrowid = None

    def __init__(self, connection: SqlConnection) -> None:
        self._connection = connection
        self._answer = Answer()
        self._rows: deque[Any] = deque()

    @property
    def description(self) -> Any:
        return self._answer.description

    @property
    def rowcount(self) -> int:
        return self._answer.rowcount

    def execute(self, sql: str, parameters: Any = ()) -> SqlCursor:
        self._answer = self._connection.run(sql, parameters)
        self._rows = deque(self._answer.rows)
        return self

    def executemany(self, sql: str, parameters: Sequence[Any]) -> SqlCursor:
        for one in parameters:
            self.execute(sql, one)
        return self

    def fetchone(self) -> Any:
        return self._rows.popleft() if self._rows else None

    def fetchmany(self, size: int = 1) -> list[Any]:
        return [self._rows.popleft() for _ in range(min(size, len(self._rows)))]

    def fetchall(self) -> list[Any]:
        found, self._rows = list(self._rows), deque()
        return found

    def close(self) -> None:
        """Nothing is held."""
