"""A server that speaks TDS 7.4 as SQL Server does, for tests of what our dialect really sends.

No SQL Server is to be had, and Microsoft's own driver wants one to talk to. This one takes its
logins, statements, typed parameters and transactions, notes each of them, and lets SQLite do what
they ask for. So it shows what goes over the wire, in which transaction, and what an error of the
server's becomes; that SQL Server takes the statements is HSQLDB's to say (test_foreign_sql.py).

    server = SqlServerStub(folder)
    server.url                       # for DatabaseStoreOptions
    server.statements                # what came so far
    server.fail_next("INSERT", 1205) # the next statement with this text gets that error
    server.close()

One lock stands for all of SQL Server's: who writes, or reads with UPDLOCK, has it until the end of
the transaction. Others wait for it, as long as their driver has patience.
"""

import contextlib
import ctypes
import re
import select
import socket
import sqlite3
import threading
import time
from collections import deque
from dataclasses import dataclass, field

import pytest

from tests.jdbcstore import tds_wire as wire
from tests.jdbcstore.tsql import Answer, answer_from_catalogue, described_parameters, for_sqlite
from tests.servers import Database

USER, PASSWORD = "quiver", "secret"
VERSION = "Microsoft SQL Server 2022 - 16.0.1000.6 (stub)"
# sys.messages: (level, text). Errors of level 20 and above end the session.
MESSAGES = {
    208: (16, "Invalid object name 'MESSAGES'."),
    547: (16, "The INSERT statement conflicted with the CHECK constraint."),
    596: (21, "Cannot continue the execution because the session is in the kill state."),
    701: (17, "There is insufficient system memory in resource pool 'default' to run this query."),
    976: (
        14,
        (
            "The target database, 'quiver', is participating in an availability group and is"
            " currently not accessible for queries."
        ),
    ),
    978: (
        14,
        (
            "The target database ('quiver') is in an availability group and is currently accessible"
            " for connections when the application intent is set to read only."
        ),
    ),
    983: (
        14,
        (
            "Unable to access availability database 'quiver' because the database replica is not in"
            " the PRIMARY or SECONDARY role."
        ),
    ),
    1105: (
        17,
        (
            "Could not allocate space for object 'dbo.MESSAGES' in database 'quiver' because the"
            " 'PRIMARY' filegroup is full."
        ),
    ),
    1204: (
        19,
        (
            "The instance of the SQL Server Database Engine cannot obtain a LOCK resource at this"
            " time."
        ),
    ),
    1205: (
        13,
        (
            "Transaction (Process ID 52) was deadlocked on lock resources with another process and"
            " has been chosen as the deadlock victim. Rerun the transaction."
        ),
    ),
    1222: (16, "Lock request time out period exceeded."),
    2601: (14, "Cannot insert duplicate key row in object with unique index."),
    2627: (14, "Violation of PRIMARY KEY constraint. Cannot insert duplicate key."),
    3906: (16, 'Failed to update database "quiver" because the database is read-only.'),
    3908: (
        16,
        (
            "Could not run BEGIN TRANSACTION in database 'quiver' because the database is in"
            " emergency mode or is damaged and must be restarted."
        ),
    ),
    3960: (16, "Snapshot isolation transaction aborted due to update conflict."),
    4060: (
        11,
        'Cannot open database "quiver" requested by the login. The login failed.',
    ),
    9002: (17, "The transaction log for database 'quiver' is full due to 'LOG_BACKUP'."),
    18401: (
        14,
        (
            "Login failed for user 'quiver'. Reason: Server is in script upgrade mode. Only"
            " administrator can connect at this time."
        ),
    ),
    18456: (14, "Login failed for user 'quiver'."),
    40197: (17, "The service has encountered an error processing your request."),
    40501: (20, "The service is currently busy. Retry the request after 10 seconds."),
    40613: (17, "Database 'quiver' on server 'db' is not currently available."),
    49918: (16, "Cannot process request. Not enough resources to process request."),
}
ENDS_SESSION = 20
WAIT_S = 60
ROLLS_BACK = frozenset({1205, 3960})
# What Microsoft's ODBC driver is linked with, by Debian's package.
LIBRARIES = {"libltdl.so.7": "libltdl7", "libgssapi_krb5.so.2": "libgssapi-krb5-2"}
PROCEDURES = {10: "sp_executesql", 11: "sp_prepare", 12: "sp_execute", 13: "sp_prepexec"}
PROCEDURES |= {15: "sp_unprepare"}


def skip_without_driver():
    """Skip the test where mssql-python, or a library that Microsoft's driver needs, is missing."""
    pytest.importorskip("mssql_python", reason="no mssql-python here: quiver-mq[mssql] brings it")
    for library, package in LIBRARIES.items():
        try:
            ctypes.CDLL(library)
        except OSError:
            pytest.skip(f"Microsoft's ODBC driver needs {library}: install Debian's `{package}`")


class ServerError(Exception):
    """What a statement gets instead of an answer."""

    def __init__(self, number, text=None):
        self.number = number
        self.level, self.text = (16, text) if text else MESSAGES[number]
        super().__init__(number, self.text)


class Cancelled(Exception):
    """The driver has lost its patience and says so."""


@dataclass(frozen=True)
class Statement:
    """What a driver asked for.

    Attributes:
        session: number of its connection, counted from 1.
        transaction: number of the transaction it runs in; None outside.
        text: Transact-SQL.
        parameters: by name, such as `@P1`.
        procedure: that carried it; None for a batch.
    """

    session: int
    transaction: int | None
    text: str
    parameters: dict = field(default_factory=dict)
    procedure: str | None = None

    @property
    def types(self):
        """Of its parameters, in their order."""
        return [parameter.type for parameter in self.parameters.values()]


class WriteLock:
    """The lock of who writes; it is handed over in the order of asking."""

    def __init__(self):
        self._mutex = threading.Condition()
        self._owner = None
        self._waiting = deque()

    def take(self, session):
        """Take it, or wait for it, or for a word of the driver's.

        Raises:
            Cancelled: the driver does not want to wait any more.
        """
        with self._mutex:
            if self._owner in (None, session):
                self._owner = session
                return
            ours, theirs = socket.socketpair()
            self._waiting.append((session, theirs))
            self._mutex.notify_all()
        try:
            ready, _, _ = select.select([ours, session.connection], [], [])
            if ours in ready:
                return
            with self._mutex:
                if self._owner is session:  # Handed over at the last moment.
                    return
                self._waiting.remove((session, theirs))
            raise Cancelled
        finally:
            ours.close()
            theirs.close()

    def release(self, session):
        """Give it to the next; nothing if the session does not have it."""
        with self._mutex:
            if self._owner is not session:
                return
            self._owner = None
            if self._waiting:
                self._owner, bell = self._waiting.popleft()
                bell.send(b"!")

    def wait_for_waiting(self):
        """Return once a session waits for the lock."""
        with self._mutex:
            assert self._mutex.wait_for(lambda: self._waiting, WAIT_S), "no session waits"


class SqlServerStub:
    """The server: its port, what it was asked, and what it is to refuse.

    Attributes:
        statements: of all sessions, in the order they came.
        transactions: (session, number, "begin", "commit" or "rollback"), likewise.
        logins: as the drivers gave them.
        lock: that who writes has.
        faults: where the stub itself has failed.
    """

    def __init__(self, folder):
        self.file = folder / "server.db"
        self.statements, self.transactions, self.logins = [], [], []
        self.lock = WriteLock()
        self.faults = []
        self._failures = []
        self._commit_cuts = []
        self._sessions = []
        self._numbers = iter(range(1, 1 << 62))
        self._transaction_numbers = iter(range(1, 1 << 62))
        with contextlib.closing(self.storage()) as storage:
            storage.execute("PRAGMA journal_mode=WAL")
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._accept, name="sql-server-stub")
        self._thread.start()

    @property
    def url(self):
        """As SQLAlchemy takes it."""
        return (
            f"mssql+mssqlpython://{USER}:{PASSWORD}@127.0.0.1:{self.port}/quiver?Encrypt=optional"
        )

    @property
    def place(self):
        """The same as a place of the suites that run on every database."""
        return Database(url=self.url, jdbc_url=None, name="quiver")

    def storage(self):
        """A connection to what SQLite keeps for it."""
        storage = sqlite3.connect(self.file, isolation_level=None, check_same_thread=False)
        storage.execute("PRAGMA synchronous=OFF")
        storage.create_function("now_ms", 0, lambda: time.time_ns() // 1_000_000)
        storage.create_function("schema_name", 0, lambda: "dbo")
        storage.create_function("DATALENGTH", 1, _data_length)
        return storage

    def fail_next(self, text, number):
        """Let the next statement that holds `text` get an error; `login` is the next login."""
        self._failures.append((text, number))

    def failure_of(self, text):
        """The number to refuse this with, which is then used up; None: none."""
        for failure in self._failures:
            if failure[0] in text:
                self._failures.remove(failure)
                return failure[1]
        return None

    def cut_commit(self, *, is_done):
        """Hang up at the next commit, before it or after it, in place of an answer."""
        self._commit_cuts.append(is_done)

    def commit_cut(self):
        """Whether to hang up before (False) or after (True) this commit; None: neither."""
        return self._commit_cuts.pop(0) if self._commit_cuts else None

    def cut(self):
        """End every connection, as a server does that is killed."""
        for session in list(self._sessions):
            session.hang_up()

    def next_transaction(self):
        return next(self._transaction_numbers)

    def _accept(self):
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            session = Session(self, connection, next(self._numbers))
            self._sessions.append(session)
            session.thread.start()

    def stop_listening(self):
        """Refuse every login from now on."""
        with contextlib.suppress(OSError):  # Done before.
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()

    def close(self):
        """End it; every session's thread has ended.

        Raises:
            ExceptionGroup: what came was not understood.
        """
        self.stop_listening()
        self.cut()
        for session in self._sessions:
            session.thread.join()
        if self.faults:
            raise ExceptionGroup("the stub does not understand the driver", self.faults)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()


def _data_length(value):
    if value is None:
        return None
    return len(value) if isinstance(value, bytes) else len(str(value).encode())


class Session:
    """One connection of a driver, from its login to its end."""

    def __init__(self, server, connection, number):
        self.server = server
        self.connection = connection
        self.number = number
        self.thread = threading.Thread(target=self._serve, name=f"sql-server-stub-{number}")
        self._transaction = None
        self._storage = None
        self._prepared = {}

    def hang_up(self):
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)

    def _serve(self):
        try:
            self._storage = self.server.storage()
            while (message := wire.read_message(self.connection)) is not None:
                if not self._take(*message):
                    break
        except ConnectionError:
            pass  # Drivers may go without a word.
        except Exception as error:  # noqa: BLE001 - close() raises it.
            self.server.faults.append(error)
        finally:
            self._end_transaction(is_committed=False)
            self._storage.close()
            self.connection.close()

    def _take(self, kind, content):
        """Answer one message; whether the session goes on."""
        if kind == wire.PRELOGIN:
            wire.write_message(self.connection, wire.prelogin_answer())
            return True
        if kind == wire.LOGIN7:
            return self._log_in(wire.read_login(content))
        if kind == wire.ATTENTION:
            wire.write_message(self.connection, wire.done(wire.DONE, wire.CANCELLED))
            return True
        try:
            answer = {
                wire.SQL_BATCH: self._run_batch,
                wire.RPC: self._call,
                wire.TRANSACTION: self._manage_transaction,
            }[kind](wire.Reader(content))
        except ServerError as error:
            answer = self._refusal(error)
            wire.write_message(self.connection, answer)
            return error.level < ENDS_SESSION
        except Cancelled:
            return True  # What the driver says is the next message.
        wire.write_message(self.connection, answer)
        return True

    def _refusal(self, error):
        text = wire.error(error.number, error.level, error.text)
        ended = b""
        if error.number in ROLLS_BACK:
            ended = self._end_transaction(is_committed=False)
        return text + ended + wire.done(wire.DONE, wire.ERROR)

    def _log_in(self, login):
        self.server.logins.append(login)
        number = self.server.failure_of("login")
        if number is None and (login.user, login.password) != (USER, PASSWORD):
            number = 18456
        if number is not None:
            refused = wire.error(number, *MESSAGES[number])
            wire.write_message(self.connection, refused + wire.done(wire.DONE, wire.ERROR))
            return False
        wire.write_message(self.connection, wire.login_accepted(login.database))
        return True

    # Transactions.

    def _manage_transaction(self, reader):
        reader.skip_headers()
        kind = reader.number("<H")
        if kind == wire.BEGIN:
            return self._begin() + wire.done(wire.DONE)
        is_committed = kind == wire.COMMIT
        cut = self.server.commit_cut() if is_committed and self._storage.in_transaction else None
        if cut is False:
            raise ConnectionResetError
        ended = self._end_transaction(is_committed=is_committed)
        if cut:
            raise ConnectionResetError
        # A bit asks for the next transaction to begin at once.
        begins_next = reader.data[-1] & 1
        return ended + (self._begin() if begins_next else b"") + wire.done(wire.DONE)

    def _begin(self):
        self._transaction = self.server.next_transaction()
        self._note("begin")
        return wire.transaction_began(self._transaction)

    def _end_transaction(self, *, is_committed):
        if self._storage is not None and self._storage.in_transaction:
            self._storage.execute("COMMIT" if is_committed else "ROLLBACK")
        self.server.lock.release(self)
        if self._transaction is None:
            return b""
        number = self._transaction
        self._note("commit" if is_committed else "rollback")
        self._transaction = None
        return wire.transaction_ended(number, is_committed=is_committed)

    def _note(self, what):
        self.server.transactions.append((self.number, self._transaction, what))

    # Statements.

    def _run_batch(self, reader):
        reader.skip_headers()
        text = reader.data[reader.at :].decode("utf-16-le")
        return self._answer_to(text, {}, None, wire.DONE)

    def _call(self, reader):
        reader.skip_headers()
        answer = b""
        while not reader.is_at_end:
            size = reader.number("<H")
            if size == wire.NULL_16:
                name = PROCEDURES[reader.number("<H")]
            else:
                name = reader.take(2 * size).decode("utf-16-le")
            reader.take(2)
            parameters = []
            while not reader.is_at_end and reader.data[reader.at] != 0xFF:
                parameters.append(reader.parameter())
            has_more = not reader.is_at_end
            if has_more:
                reader.take(1)
            answer += self._procedure(name, parameters)
            answer += wire.done(wire.DONE_PROC, wire.MORE if has_more else 0)
        return answer

    def _procedure(self, name, parameters):
        values = [parameter.value for parameter in parameters]
        if name == "sp_describe_undeclared_parameters":
            described = described_parameters(self._storage, values[0])
            return _result(described, wire.DONE_IN_PROC) + wire.return_status()
        if name == "sp_executesql":
            return self._execute(name, values[0], values[1], parameters[2:]) + wire.return_status()
        if name == "sp_unprepare":
            self._prepared.pop(values[0], None)
            return wire.return_status()
        if name == "sp_execute":
            declared, text = self._prepared[values[0]]
            return self._execute(name, text, declared, parameters[1:]) + wire.return_status()
        assert name in ("sp_prepare", "sp_prepexec"), f"{name} is not known"
        if values[0] is not None:
            self._prepared.pop(values[0], None)
        handle = len(self._prepared) + 1 + self.number * 1000
        self._prepared[handle] = values[1], values[2]
        answer = b""
        if name == "sp_prepexec":
            answer = self._execute(name, values[2], values[1], parameters[3:])
        return answer + wire.return_status() + wire.returned_integer("@handle", handle)

    def _execute(self, procedure, text, declared, given):
        names = re.findall(r"@\w+", declared or "")
        parameters = dict(zip(names, given, strict=True))
        return self._answer_to(text, parameters, procedure, wire.DONE_IN_PROC)

    def _answer_to(self, text, parameters, procedure, done):
        self.server.statements.append(
            Statement(self.number, self._transaction, text, parameters, procedure)
        )
        if (number := self.server.failure_of(text)) is not None:
            raise ServerError(number)
        values = {name[1:]: parameter.value for name, parameter in parameters.items()}
        answer = self._run(text, values)
        return _result(answer, done)

    def _run(self, text, values):
        if "@@version" in text.lower():
            return Answer([("", "text")], [(VERSION,)])
        if (answer := answer_from_catalogue(self._storage, text, values)) is not None:
            return answer
        translated = for_sqlite(text)
        is_read = translated.lstrip().upper().startswith("SELECT")
        if (not is_read or "UPDLOCK" in text) and not self._storage.in_transaction:
            self.server.lock.take(self)
            self._storage.execute("BEGIN IMMEDIATE")
        try:
            cursor = self._storage.execute(translated, values)
            rows = cursor.fetchall()
        except sqlite3.IntegrityError as error:
            raise ServerError(2627) from error
        except sqlite3.OperationalError as error:
            raise ServerError(208 if "no such table" in str(error) else 102, str(error)) from error
        finally:
            if self._transaction is None:
                self._end_transaction(is_committed=True)
        if cursor.description is None:
            return Answer([], [], cursor.rowcount)
        kinds = [_kind([row[at] for row in rows]) for at in range(len(cursor.description))]
        names = [column[0] for column in cursor.description]
        return Answer(list(zip(names, kinds, strict=True)), rows)


def _kind(values):
    """How a column goes over the wire."""
    known = [value for value in values if value is not None]
    if any(isinstance(value, bytes) for value in known):
        return "bytes"
    return "text" if any(isinstance(value, str) for value in known) else "int"


def _result(answer, done):
    if not answer.columns:
        counted = wire.COUNT if answer.count >= 0 else 0
        return wire.done(done, counted, max(0, answer.count))
    rows = b"".join(wire.row(answer.columns, row) for row in answer.rows)
    return wire.columns(answer.columns) + rows + wire.done(done, wire.COUNT, len(answer.rows))
