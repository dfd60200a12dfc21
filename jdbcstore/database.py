"""A database: an engine with its connection pool, and the dialect."""

from __future__ import annotations

import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import sqlalchemy
from sqlalchemy import event
from sqlalchemy.pool import QueuePool

from jdbcstore.dialects import RawConnection, dialect_of
from jdbcstore.environment import Environment
from jdbcstore.errors import Fault, classify, one_line
from jdbcstore.pool import PoolOptions
from jdbcstore.url import connection_url
from journal.errors import OptionError
from journal.extras import DATABASES, extra_of_url, install_line, missing_package

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sqlalchemy import Connection, Engine
    from sqlalchemy.pool import ConnectionPoolEntry, PoolProxiedConnection, PoolResetState

    from jdbcstore.options import DatabaseStoreOptions

__all__ = ["Database"]

Taken = TypeVar("Taken")

log = logging.getLogger("jdbcstore")

READ_ONLY: Final = "quiver_read_only"
# What one waits for a connection of the pool before that is worth a line.
_POOL_TIMEOUT_S: Final = 10.0
# Kept with a driver's connection: bound_idle_transactions() was done.
_IS_BOUNDED: Final = "quiver_is_bounded"


class Database:
    """Connections to the database of one broker.

    Threads: any number; each connection belongs to one thread at a time. Nothing is connected
    before the first use.

    Attributes:
        options: as given.
        environment: as given, or the machine's.
        engine: SQLAlchemy's; its connections have the network timeout applied.
        dialect: what is special about this database.
    """

    def __init__(
        self, options: DatabaseStoreOptions, *, environment: Environment | None = None
    ) -> None:
        """Prepare the pool.

        Args:
            options: of the database.
            environment: of the leases on it; None is the machine's.

        Raises:
            OptionError: the URL is not understood, or its driver not installed.
        """
        self.options = options
        self.environment = environment or Environment()
        url = connection_url(options)
        pool = self._pool = PoolOptions.from_properties(options.data_source_properties)
        if url.get_backend_name() == "sqlite" and url.database in (None, "", ":memory:"):
            raise OptionError("jdbc-connection-url: a SQLite database in memory keeps nothing")
        try:
            self.dialect = dialect_of(url.get_dialect()())
            self.engine: Engine = sqlalchemy.create_engine(
                url,
                connect_args=self.dialect.connect_arguments(options.network_timeout_ms),
                poolclass=QueuePool,
                pool_reset_on_return=None,
                **pool.engine_arguments(_POOL_TIMEOUT_S),
                **self.dialect.engine_arguments(),
            )
        except sqlalchemy.exc.NoSuchModuleError as error:
            # Dialects of other distributions: the package is missing, or the name is unknown.
            extra = extra_of_url(url.drivername)
            if extra != "sql":
                more = f"{error}: type {install_line(extra)}"
            else:
                more = f"no database is called {url.drivername!r}; known are {', '.join(DATABASES)}"
            raise OptionError(f"jdbc-connection-url: {more}") from None
        except ModuleNotFoundError as error:
            extra = extra_of_url(url.drivername)
            raise OptionError(f"{url.drivername}: {missing_package(error, extra)}") from error
        self.dialect = dialect_of(self.engine.dialect)
        self.dialect.opened(url)
        self._is_open = True
        self._first_statements = pool.first_statements
        event.listen(self.engine, "do_connect", self._open)
        event.listen(self.engine, "connect", self._set_up)
        event.listen(self.engine, "reset", self._roll_back)
        if self.dialect.name == "sqlite":
            event.listen(self.engine, "begin", _begin_sqlite)

    def _open(self, engine_dialect: object, record: object, args: Any, named: Any) -> Any:  # noqa: ANN401 - as SQLAlchemy calls it.
        del engine_dialect, record
        return self.dialect.open_raw(self.engine.url, self.options.network_timeout_ms, args, named)

    def _set_up(self, raw: Any, record: object) -> None:  # noqa: ANN401 - as SQLAlchemy calls it.
        del record
        self.dialect.set_up(raw, self.options.network_timeout_ms)
        for statement in self._first_statements:
            _run(raw, statement)

    def _roll_back(self, raw: Any, record: ConnectionPoolEntry, state: PoolResetState) -> None:  # noqa: ANN401 - as SQLAlchemy calls it.
        """A connection comes back to the pool; one that has ended meanwhile leaves it.

        SQLAlchemy's own way is the same, but logs a traceback for each connection when a database
        is restarted.
        """
        if state.transaction_was_reset:
            return
        try:
            self.engine.dialect.do_rollback(raw)
        except Exception as error:  # noqa: BLE001 - drivers have their own.
            log.info("a connection to the database has ended: %s", one_line(error))
            record.invalidate(error)

    def connect(self, *, read_only: bool = False) -> Connection:
        """A connection of SQLAlchemy's, to be used in a `with` block.

        Args:
            read_only: nothing will be written, so other writers are not blocked (SQLite).

        Raises:
            sqlalchemy.exc.DBAPIError: none is to be had, for `errors.classify`.
        """
        connection = self._from_pool(self.engine.connect)
        return connection.execution_options(**{READ_ONLY: read_only})

    def _from_pool(self, take: Callable[[], Taken]) -> Taken:
        """Take a connection, waiting for one as long as maxWaitMillis says."""
        is_told = False
        while True:
            try:
                return take()
            except sqlalchemy.exc.TimeoutError:
                total, wait_ms = self._pool.total_max, self._pool.wait_ms
                busy = f"all {total} connections are in use: raise data-source-property maxTotal"
                if wait_ms >= 0:
                    raise sqlalchemy.exc.TimeoutError(
                        f"{busy}, or maxWaitMillis ({wait_ms})"
                    ) from None
                if not is_told:
                    is_told = True
                    log.warning("waiting for a connection to the database; %s", busy)

    def bound_idle_transactions(self, connection: Connection) -> None:
        """Let the server end this session if it does nothing in a transaction for a lease's time.

        For a connection that locks a lease's row, to write behind a fence or to renew: a process
        that stops in the middle of a transaction would keep it locked, and no other broker could
        take over.

        Raises:
            Exception: the driver's, if the connection fails, for `errors.classify`.
        """
        self._bound(connection.connection)

    @contextmanager
    def raw(self, *, is_fenced: bool = False) -> Iterator[RawConnection]:
        """A driver's own connection, for the fast paths.

        Whatever is not committed when the block ends is rolled back. After an error that says
        the connection is lost it is thrown away, else it goes back to the pool.

        Args:
            is_fenced: it writes behind a fence, see bound_idle_transactions().
        """
        proxied = self._from_pool(self.engine.raw_connection)
        try:
            if is_fenced:
                self._bound(proxied)
            yield cast("RawConnection", proxied.driver_connection)
        except BaseException as error:
            if not isinstance(error, Exception) or classify(error, self.dialect) is Fault.LOST:
                proxied.invalidate()
            raise
        finally:
            proxied.close()

    def _bound(self, proxied: PoolProxiedConnection) -> None:
        sql = self.dialect.idle_transaction_sql(self.options.lock_expiration_ms)
        if sql is not None and _IS_BOUNDED not in proxied.info:
            _run(cast("RawConnection", proxied.driver_connection), sql)
            proxied.info[_IS_BOUNDED] = True

    def close(self) -> None:
        """Close every connection that is not in use. Idempotent."""
        self.engine.dispose()
        if self._is_open:
            self._is_open = False
            self.dialect.closed(self.engine.url)


def _run(raw: RawConnection, statement: str) -> None:
    """Run a statement that returns nothing, in a transaction of its own."""
    cursor = raw.cursor()
    try:
        cursor.execute(statement)
    finally:
        cursor.close()
    raw.commit()


def _begin_sqlite(connection: Connection) -> None:
    """Begin a transaction of SQLAlchemy's, since set_up() took that from the driver."""
    read_only = connection.get_execution_options().get(READ_ONLY, False)
    connection.exec_driver_sql("BEGIN" if read_only else "BEGIN IMMEDIATE")
