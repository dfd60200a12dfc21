"""A pair of brokers on one database: the real leases, and record stores behind their fence.

    jdbcstore/lease, lease_renewal, lease_row, node, node_table, outage   the real code
    jdbcstore/reconnecting                                                likewise
    SqlServer                                                             the database
    SqlStore here                                                         what SqlStore there is

Each group of a store is one transaction of the database: the lease is proved, the records are
written, both or neither. What was committed stays, whatever ends. Pages and bodies of large
messages are in the database too: they ask for the lease before they change, at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import itertools
from typing import TYPE_CHECKING, Any, NamedTuple

import sqlalchemy
from sqlalchemy import event
from sqlalchemy.pool import NullPool

from broker.storage.node_state import NodeState
from broker.storage.open import take_lease
from jdbcstore.dialects.sqlite import SQLite
from jdbcstore.environment import Environment
from jdbcstore.errors import LeaseLost, classify
from jdbcstore.node import NodeManager
from jdbcstore.options import DatabaseStoreOptions
from jdbcstore.reconnecting import ReconnectingWriter
from jdbcstore.schema import PRIMARY_LOCK_ROW
from journal.errors import JournalError, JournalIOError
from tests.sim.files import MemoryBodies, MemoryFolders
from tests.sim.node import SYNC_S, memory_stores
from tests.sim.record_log import Disk, Entry, RecordLog
from tests.sim.sql_server import Driver, SqlConnection, SqlServer
from tests.sim.store import MemoryStore

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from sqlalchemy import Connection

    from broker.options import BrokerOptions
    from broker.storage.open import Stores
    from broker.storage.waiting import StartWait
    from jdbcstore.lease import Lease
    from tests.sim.loop import Process
    from tests.sim.network import Host, Network
    from tests.sim.node import SeededIds
    from tests.sim.threads import Threads

# Short ones: a story takes a few seconds.
OPTIONS = DatabaseStoreOptions(
    connection_url="sqlite:///simulated",
    network_timeout_ms=400,
    lock_renew_period_ms=300,
    lock_expiration_ms=1_500,
    ride_out_ms=4_000,
)


class _Dialect(SQLite):
    """Of a server: its clock, and rows that are locked one by one."""

    name = "sqlite"
    now_ms = "now_ms()"
    write_locks_all = False

    def lock_wait_sql(self, wait_ms: int) -> str | None:
        """The server has a limit of its own."""
        del wait_ms
        return None


class SimDatabase:
    """In the place of jdbcstore.database.Database, as far as leases ask for it."""

    def __init__(self, driver: Driver, environment: Environment) -> None:
        self.options = OPTIONS
        self.environment = environment
        self.engine = sqlalchemy.create_engine(
            "sqlite://", creator=driver.connect, poolclass=NullPool
        )
        self.dialect = _Dialect(self.engine.dialect)
        self._driver = driver
        event.listen(self.engine, "begin", _begin)

    def connect(self) -> Connection:
        return self.engine.connect()

    def bound_idle_transactions(self, connection: Connection) -> None:
        """The server ends the transactions of who is gone by itself."""

    def raw(self) -> SqlConnection:
        return self._driver.connect()

    def close(self) -> None:
        self.engine.dispose()


def _begin(connection: Connection) -> None:
    connection.exec_driver_sql("BEGIN IMMEDIATE")


class Batch(NamedTuple):
    """What one transaction writes; see jdbcstore.batch."""

    number: int = 0
    entries: Sequence[Entry] = ()
    is_void: bool = False


class SqlTable:
    """The table of one store, as far as ReconnectingWriter asks for it; see RecordTable.

    Args:
        database: where it is.
        name: of the table.
        lease: that every transaction begins with.
    """

    def __init__(self, database: SimDatabase, name: str, lease: Lease) -> None:
        self.name = name
        self.lease = lease
        self._database = database
        self._raw: SqlConnection | None = None

    def connect(self) -> None:
        if self._raw is None:
            self._raw = self._database.raw()

    def disconnect(self) -> None:
        raw, self._raw = self._raw, None
        if raw is not None:
            raw.close()

    def write(self, batch: Batch) -> None:
        raw = self._begun()
        try:
            self.hold_fence(raw)
            raw.append(self.name, batch.number, batch.entries, self.lease.holder_id)
        except BaseException:
            self._roll_back(raw)
            raise

    def holds(self, batch: Batch) -> bool:
        raw = self._begun()
        try:
            self.hold_fence(raw)
            found = raw.ask(lambda session: session.has(self.name, batch.number))
        finally:
            self._roll_back(raw)
        return bool(found.rows)

    def read(self) -> Sequence[Entry]:
        """All entries, if the lease holds."""
        self.connect()
        raw = self._begun()
        try:
            self.hold_fence(raw)
            return raw.ask(lambda session: session.scan(self.name)).rows
        finally:
            self._roll_back(raw)

    def hold_fence(self, raw: SqlConnection) -> None:
        """Prove the lease until the transaction ends.

        Raises:
            LeaseLost: it is not held.
        """
        fence = self.lease.fence_statement(may_raise=False)
        if not fence.holds(raw.execute(fence.sql, fence.parameters)):  # type: ignore[arg-type]
            raise self.lease.fenced()

    def _begun(self) -> SqlConnection:
        if self._raw is None:
            raise ConnectionResetError(errno.ECONNRESET, "not connected")
        self._raw.execute("BEGIN IMMEDIATE")
        return self._raw

    def _roll_back(self, raw: SqlConnection) -> None:
        try:
            raw.rollback()
        except OSError:
            self.disconnect()


class SqlStore(MemoryStore):
    """A store whose groups are transactions of a database.

    Args:
        table: where to.
        disk: of the node; what it refuses is refused here.
        threads: of the loop; one writes at a time.
        numbers: of batches, of the whole pair.
    """

    def __init__(
        self,
        table: SqlTable,
        disk: Disk,
        threads: Threads,
        numbers: Iterator[int],
        **options: Any,
    ) -> None:
        super().__init__(RecordLog(disk), **options)
        # What waits inside of it keeps its process from coming in again.
        self._lock = contextlib.nullcontext()  # type: ignore[assignment]
        self._table = table
        self._threads = threads
        self._numbers = numbers
        self._is_busy = False
        self._is_free = threads.event()
        database = table._database
        self._writer = ReconnectingWriter(
            table,  # type: ignore[arg-type] # by its methods.
            OPTIONS.ride_out_ms / 1000,
            lambda error: classify(error, database.dialect),
            table.lease.renew,
            sleep=threads.sleep,
            clock=database.environment.clock,
        )

    def open(self) -> None:
        self._writer.run(self._table.connect)
        super().open()

    def load(self, *arguments: Any, **options: Any) -> Any:
        entries = self._writer.run(self._table.read)
        self.log.entries[:] = entries
        self.log.written = self.log.synced = len(entries)
        return super().load(*arguments, **options)

    def close(self) -> None:
        try:
            super().close()
        finally:
            self._table.disconnect()

    def _begin_write(self) -> None:
        if not self._is_usable():
            self._is_writing = False
            return
        self.log.disk.writes += 1
        self._threads.start_thread(self._write_group, "writer")

    def _write_group(self) -> None:
        self._write_until(len(self.log.entries))
        if self._loop is not None:
            self._loop.call_soon(self._is_written)

    def _is_written(self) -> None:
        self._is_writing = False
        self.reap()
        if self._wanted > self.log.synced and self._is_usable():
            self._want(self._wanted)

    def _synced(self, position: int) -> None:
        """Write them: the base says so where nothing is written beside the loop."""
        self._write_until(position)

    def _sync_now(self, position: int) -> None:
        self._deadline = None
        self._write_until(max(position, len(self.log.entries)))
        if self.failure is not None:
            raise self.failure
        self._reap_soon()

    def _write_until(self, position: int) -> None:
        """Return once all up to there is committed, or the store has failed."""
        log = self.log
        while log.synced < position and self.failure is None:
            if self._is_busy:
                self._is_free.wait()
                continue
            self._is_busy = True
            self._is_free.clear()
            end = len(log.entries)
            try:
                self._writer.write(
                    Batch(next(self._numbers), tuple(log.entries[log.synced : end]))  # type: ignore[arg-type]
                )
            except JournalError as error:
                self.failure = error  # type: ignore[assignment] # a lost lease is one, too.
            else:
                log.written = log.synced = end
            finally:
                self._is_busy = False
                self._is_free.set()


class _FencedDisk(Disk):
    """What a node has of files in the database.

    Args:
        storage: of the node.
    """

    def __init__(self, seeded: random.Random, storage: SqlStorage, lease: Lease) -> None:
        super().__init__(seeded)
        self._storage = storage
        self._lease = lease

    def check(self, what: str) -> None:
        pair = self._storage.pair
        if not pair.hears(self._storage.host):
            raise JournalIOError(errno.ETIMEDOUT, what, "the database")
        if pair.server.holder_of(PRIMARY_LOCK_ROW) != self._lease.holder_id:
            raise LeaseLost(f"{what}: another broker has the database")


class SqlPair:
    """What two nodes have in common.

    Attributes:
        server: the database.
        disk: of the database.
        activations: how often one of them got it.
        storage_type: of the nodes; a subclass, with a fault in it.
    """

    storage_type: type[SqlStorage]
    stale_count = 0
    lease_s = OPTIONS.lock_expiration_ms / 1000

    def __init__(self, network: Network, name: str, seeded: random.Random) -> None:
        self.storage_type = SqlStorage
        disk = self.disk = Disk(seeded)
        disk.sync_s = seeded.choice(SYNC_S)
        self.server = SqlServer(network, name, self.lease_s, disk)
        self.seeded = seeded
        self.activations = 0
        self.batch_numbers = itertools.count(1)
        self.pages, self.large = MemoryFolders(disk), MemoryBodies(disk)

    @property
    def host(self) -> Host:
        """Of the store."""
        return self.server.host

    @property
    def process(self) -> Process | None:
        """Of the database."""
        return self.server.process

    async def start(self) -> None:
        """Start what the nodes need."""
        if not self.server.host.is_up:
            self.server.network.power_on(self.server.host)
        if self.server.process is None:
            await self.server.start()

    @property
    def is_up(self) -> bool:
        """Whether the database runs."""
        return self.server.process is not None

    @property
    def is_odd(self) -> bool:
        """Whether its clock is wrong, or has made a lease longer; or a COMMIT takes too long."""
        remaining_ms = self.server.lease_ends_ms() - self.host.clock_ms()
        is_slow = self.disk.sync_s[1] * 1000 > OPTIONS.network_timeout_ms
        is_wrong = bool(self.host.clock_offset_ms)
        return is_slow or is_wrong or remaining_ms > OPTIONS.lock_expiration_ms

    def hears(self, host: Host) -> bool:
        """Whether a machine and the database reach each other."""
        is_open, there = self.server.network.is_open, self.server.host
        return self.is_up and is_open(host, there) and is_open(there, host)

    def node_state(self) -> NodeState:
        """What row 0 says; without the network."""
        return NodeState.of(self.server.state().encode())

    def double_writes(self, runs_since_s: Mapping[str, float]) -> list[str]:
        """What was written, since the last call, by who had not the lease: there has to be none."""
        del runs_since_s
        found, self.server.double = self.server.double, []
        return found

    def keeper(self) -> None:
        """None: a lease ends by itself."""

    def kill(self, *, is_power: bool) -> None:
        """End it; start() brings it back."""
        self.server.kill(is_power=is_power)

    def storage(self, host: Host, ids: SeededIds) -> SqlStorage:
        """Give what one of the nodes has of it."""
        return self.storage_type(self, host, ids)


class SqlStorage:
    """What a node of a pair has; see NodeStorage.

    Attributes:
        activation: which activation of the pair the node's last one was.
        store_type, table_type, node_type: to be replaced by types with a fault.
    """

    store_type = SqlStore
    table_type = SqlTable
    node_type = NodeManager

    def __init__(self, pair: SqlPair, host: Host, ids: SeededIds) -> None:
        threads = pair.server.loop.threads
        assert threads is not None, "the loop has threads"
        self.pair = pair
        self.host = host
        self.disk = Disk(pair.seeded)
        self.activation = 0
        self._threads: Threads = threads
        self._driver: Driver | None = None
        self._stores: list[SqlStore] = []
        self._environment = Environment(
            clock=threads.loop.time,
            wall_clock=host.clock_s,
            random_uuid=ids.random_uuid,
            time_uuid=ids.time_uuid,
            new_lock=threads.lock,
            new_event=threads.event,
            start_thread=threads.start_thread,
        )

    async def open_stores(
        self, options: BrokerOptions, *, on_lost: Callable[[Exception], object], wait: StartWait
    ) -> Stores:
        """Wait for the lease and open them; see Broker."""
        return await asyncio.to_thread(self._open, options.is_backup, on_lost, wait)

    def _open(
        self, is_backup: bool, on_lost: Callable[[Exception], object], wait: StartWait
    ) -> Stores:
        pair, server = self.pair, self.pair.server
        self.ended()
        timeout_s = OPTIONS.network_timeout_ms / 1000
        driver = self._driver = Driver(server, self.host, self._threads, timeout_s)
        database = SimDatabase(driver, self._environment)
        node = self.node_type(database, on_lost=on_lost)  # type: ignore[arg-type]
        wait.on_interrupt(node.interrupt)
        try:
            take_lease(node, is_backup=is_backup, wait=wait)
            self._stores = [
                self.store_type(
                    self.table_type(database, name, node.primary_lease),
                    self.disk,
                    self._threads,
                    pair.batch_numbers,
                    clock=self._environment.clock,
                )
                for name in (OPTIONS.bindings_table_name, OPTIONS.message_table_name)
            ]
            for store in self._stores:
                store.open()
        except BaseException:
            node.stop()
            database.close()
            raise
        pair.activations += 1
        self.activation = pair.activations
        disk = _FencedDisk(pair.seeded, self, node.primary_lease)
        pair.pages, pair.large = pair.pages.taken_over(disk), pair.large.taken_over(disk)
        return memory_stores(
            *self._stores,
            node_id=node.node_id,
            pages=pair.pages,
            large=pair.large,
            is_shared=True,
            activated=node.activated,
            paused=node.pause_primary,
            closers=[node.stop, database.close],
            ownership=node,
        )

    def ended(self) -> None:
        """The node's process is no more: nor are its sockets."""
        if self._driver is not None:
            self._driver.kill()
            self._driver = None

    def crash(self, *, is_power: bool) -> int:
        """The process is no more; how many records it had not written."""
        del is_power
        lost = 0
        for store in self._stores:
            store.is_dead = True
            lost += len(store.log.entries) - store.log.synced
        self._stores = []
        return lost
