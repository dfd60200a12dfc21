"""A pair of brokers on one shared folder: the real wait for its lock, on a file server in memory.

    broker/storage/node_lock.NodeLock     the real code, but for the calls of the system
    MemoryStore, MemoryFolders            what lies in the folder

The file server keeps a lock as NFS 4 does: as long as the machine that has it is there. It goes
with the process, or `LEASE_S` after the machine was heard of last. Then the machine has lost its
open files with it: whatever it still does to them fails, and what it had not synced is gone. A
process that is paused keeps its lock.

A server that forgets its locks is what NFS 3 may come to when its lock daemon is started again: the
files stay open. Who had the lock takes it again with its next look, unless another was faster.
Then nothing keeps it from writing but what `NodeLock` itself sees, twice a second and before it
answers. What it still writes is in a file that the new owner has read already: it is counted, and
not seen.

While the server is away, or cut off, what is written and synced waits, and pages and bodies of
large messages fail.
"""

from __future__ import annotations

import asyncio
import errno
import uuid
from typing import TYPE_CHECKING, Any, NamedTuple

from broker.storage.node_owner import TOUCH_S
from broker.storage.node_state import NodeState
from broker.storage.node_view import BACKUP_FILE, PRIMARY_FILE
from broker.storage.open import LOCKED_PAUSE_S
from journal.errors import JournalIOError, JournalLocked
from tests.sim.files import MemoryBodies, MemoryFolders
from tests.sim.folder_lock import FolderLock
from tests.sim.node import SYNC_S, memory_stores
from tests.sim.record_log import Disk, RecordLog
from tests.sim.store import MemoryStore

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Mapping

    from broker.options import BrokerOptions
    from broker.storage.open import Stores
    from broker.storage.waiting import StartWait
    from tests.sim.loop import Process
    from tests.sim.network import Host, Network
    from tests.sim.node import SeededIds
    from tests.sim.threads import Threads

LEASE_S = 2.0
# Between two looks of the server, and of a client that waits for it.
LOOK_S = 0.1
# An owner that runs has looked after its lock by then.
LOOKS_S = TOUCH_S + 3 * LOOK_S


class StaleWrite(NamedTuple):
    """What a machine wrote at a moment, though another one was the owner since an earlier one."""

    moment_s: float
    host: Host
    lost_s: float


class FolderDisk(Disk):
    """A mount of the folder.

    Attributes:
        is_revoked: its open files are lost.
    """

    is_revoked = False
    _fails = False

    def __init__(self, pair: FolderPair, host: Host) -> None:
        super().__init__(pair.seeded)
        self._pair = pair
        self._host = host

    @property
    def fails(self) -> bool:
        return self._fails or self.is_revoked

    @fails.setter
    def fails(self, value: bool) -> None:
        self._fails = value

    def duration(self, bounds: tuple[float, float]) -> float:
        """Of a sync as long as the server's disk takes."""
        return super().duration(self._pair.disk.sync_s if bounds is self.sync_s else bounds)

    @property
    def is_away(self) -> bool:
        """Whether the server does not answer."""
        return not self._pair.hears(self._host)

    def tell_stale(self, lost_s: float) -> None:
        """Something was written whose writer is the owner no more, since a moment."""
        self._pair.stale_writes.append(StaleWrite(self._pair.clock(), self._host, lost_s))

    def check(self, what: str) -> None:
        if self.is_away:
            raise JournalIOError(errno.ETIMEDOUT, what, "the file server")
        super().check(what)


class FolderStore(MemoryStore):
    """Waits as long as the server is away.

    Args:
        threads: of the loop.
    """

    def __init__(self, log: RecordLog, threads: Threads, **options: Any) -> None:
        super().__init__(log, **options)
        self._threads = threads
        self._lost_s: float | None = None

    @property
    def _disk(self) -> FolderDisk:
        disk = self.log.disk
        assert isinstance(disk, FolderDisk), "it is open"
        return disk

    def _write(self, position: int) -> None:
        if self._loop is not None and self._disk.is_away and self._is_usable():
            self._loop.call_later(LOOK_S, self._write, position)
        else:
            super()._write(position)

    def _sync(self, position: int) -> None:
        if self._loop is not None and self._disk.is_away and self._is_usable():
            self._loop.call_later(LOOK_S, self._sync, position)
        else:
            super()._sync(position)

    def _sync_now(self, position: int) -> None:
        while self._disk.is_away:
            self._threads.sleep(LOOK_S)
        super()._sync_now(position)

    def _synced(self, position: int) -> None:
        if self._lost_s is not None and position > self.log.synced:
            self._disk.tell_stale(self._lost_s)
        super()._synced(position)

    def lose(self) -> None:
        """The file is another machine's: what is done to it from now on is not seen."""
        self._lost_s = self._clock()
        log, self.log = self.log, RecordLog(self.log.disk)
        self.log.entries[:] = log.entries
        self.log.written, self.log.synced = log.written, log.synced
        log.owner = None


class FolderPair:
    """The folder, and what two nodes have in common.

    Attributes:
        disk: of the server.
        holders: who has which lock, by the name of its file.
        state: as the first byte of server.lock.
        activations: how often one of them got the folder: the epoch of its owner.
        stale_writes: of who did not see yet that its lock was forgotten, and taken by another.
        stale_count: how many there were.
        lock_type: of the nodes; a subclass, with a fault in it.
    """

    # A lock goes with its process, at once.
    lease_s = 0.0
    # No clock makes a lock last.
    is_odd = False

    def __init__(self, network: Network, name: str, seeded: random.Random) -> None:
        self.lock_type: type[FolderLock] = FolderLock
        self.network = network
        self.host = network.host(name)
        self.seeded = seeded
        self.node_id = str(uuid.UUID(int=seeded.getrandbits(128), version=1))
        assert network.loop.threads is not None, "the loop has threads"
        self.threads: Threads = network.loop.threads
        self.holders: dict[str, FolderStorage] = {}
        self.state = b"0"
        self.activations = 0
        self.stale_writes: list[StaleWrite] = []
        self.stale_count = 0
        self.clock = network.loop.time
        disk = self.disk = Disk(seeded)
        disk.sync_s = seeded.choice(SYNC_S)
        self.bindings, self.messages = RecordLog(disk), RecordLog(disk)
        self.pages, self.large = MemoryFolders(disk), MemoryBodies(disk)
        self._process: Process | None = None
        self._storages: list[FolderStorage] = []

    @property
    def is_up(self) -> bool:
        """Whether the server runs."""
        return self._process is not None

    async def start(self) -> None:
        """Start the server."""
        if not self.host.is_up:
            self.network.power_on(self.host)
        if self._process is None:
            self._process = self.network.loop.process(self.host.name, self.host)
            for one in self._storages:
                one.heard_s = self.clock()
            self._process.spawn(self._watch())

    def kill(self, *, is_power: bool) -> None:
        """End it; what was written is there when it is back, and so are the locks."""
        if self._process is not None:
            self._process.kill()
            self._process = None
        if is_power:
            self.network.power_off(self.host)

    def forget_locks(self) -> None:
        """Know no more who had them."""
        self.holders.clear()

    def storage(self, host: Host, ids: SeededIds) -> FolderStorage:
        """Give what one of the nodes has of it."""
        del ids
        made = FolderStorage(self, host)
        self._storages.append(made)
        return made

    def hears(self, host: Host) -> bool:
        """Whether a machine and the server reach each other."""
        is_open = self.network.is_open
        return self.is_up and is_open(host, self.host) and is_open(self.host, host)

    def await_server(self, host: Host) -> None:
        """Wait as the mount of a machine does, and the process with it."""
        while not self.hears(host):
            self.threads.sleep(LOOK_S)

    def node_state(self) -> NodeState:
        """What server.lock says; without the network."""
        return NodeState.of(self.state)

    def keeper(self) -> FolderStorage | None:
        """Who has the primary's lock."""
        return self.holders.get(PRIMARY_FILE)

    def double_writes(self, runs_since_s: Mapping[str, float]) -> list[str]:
        """What was written, since the last call, by who could know that it is the owner no more.

        Args:
            runs_since_s: moment since when a machine's process has not stood still.
        """
        found, self.stale_writes = self.stale_writes, []
        self.stale_count += len(found)
        return [
            f"{one.host.name} wrote at {one.moment_s:.2f} s, and lost its lock at {one.lost_s:.2f}"
            for one in found
            if one.moment_s > max(one.lost_s, runs_since_s[one.host.name]) + LOOKS_S
        ]

    def take(self, name: str, storage: FolderStorage) -> bool:
        """Whether a node has a lock from now on."""
        return self.holders.setdefault(name, storage) is storage

    def give(self, name: str, storage: FolderStorage) -> None:
        """Have a node have a lock no more."""
        if self.holders.get(name) is storage:
            del self.holders[name]

    async def _watch(self) -> None:
        """Take the locks away from a machine that is not there any more."""
        loop = self.network.loop
        while True:
            await asyncio.sleep(LOOK_S)
            for one in self._storages:
                if self.hears(one.host):
                    one.heard_s = loop.time()
                    if one.is_gone:
                        one.give_locks()
                elif loop.time() - one.heard_s > LEASE_S:
                    one.revoked()

    def crash(self, *, is_power: bool) -> int:
        """Leave one of the states that the end of who had the lock may; how much was lost."""
        lost = self.bindings.crash(self.seeded, is_power=is_power)
        lost += self.messages.crash(self.seeded, is_power=is_power)
        self.pages.crash(self.seeded, is_power=is_power)
        self.large.crash(self.seeded, is_power=is_power)
        return lost


class FolderStorage:
    """What a node of a pair has; see NodeStorage.

    Attributes:
        activation: which activation of the pair the node's last one was.
        heard_s: when the server heard the machine last.
        is_gone: the process that had locks is no more.
    """

    def __init__(self, pair: FolderPair, host: Host) -> None:
        self.pair = pair
        self.host = host
        self.disk = FolderDisk(pair, host)
        self.activation = 0
        self.heard_s = 0.0
        self.is_gone = False
        self._threads = pair.threads
        self._stores: list[FolderStore] = []

    async def open_stores(
        self, options: BrokerOptions, *, on_lost: Callable[[Exception], object], wait: StartWait
    ) -> Stores:
        """Wait for the lock and open them; see Broker."""
        return await asyncio.to_thread(self._open, options.is_backup, on_lost, wait)

    def _open(
        self, is_backup: bool, on_lost: Callable[[Exception], object], wait: StartWait
    ) -> Stores:
        def sleep(seconds: float) -> None:
            self._threads.sleep(seconds)
            wait.check()

        pair = self.pair
        if self.is_gone and pair.hears(self.host):
            # The machine tells that it was started again, or which files it has closed.
            self.give_locks()
        lock = pair.lock_type(self, is_backup=is_backup, on_lost=on_lost)
        clock = pair.clock
        try:
            while True:
                lock.await_free(-1, clock=clock, sleep=sleep)
                try:
                    lock.acquire()
                except JournalLocked:
                    sleep(LOCKED_PAUSE_S)
                    continue
                break
        except BaseException:
            lock.release()
            raise
        self.activation = lock.epoch
        return self._opened(lock)

    def _opened(self, lock: FolderLock) -> Stores:
        pair = self.pair
        owners = [log.owner for log in (pair.bindings, pair.messages)]
        for owner in owners:
            if isinstance(owner, FolderStore):
                # Its lock was forgotten.
                owner.lose()
        if any(owners):
            pair.crash(is_power=True)
        pair.bindings.disk = pair.messages.disk = self.disk
        pair.pages, pair.large = pair.pages.taken_over(self.disk), pair.large.taken_over(self.disk)
        clock = pair.clock
        self._stores = [
            FolderStore(log, self._threads, clock=clock) for log in (pair.bindings, pair.messages)
        ]
        for store in self._stores:
            store.open()
        return memory_stores(
            *self._stores,
            node_id=lock.node_id,
            pages=pair.pages,
            large=pair.large,
            activated=lock.activated,
            paused=lock.paused,
            closers=[lock.release],
            check_lock=lock.look_after,
            ownership=lock,
        )

    @property
    def _is_owner(self) -> bool:
        """Whether its open files are the last that were opened, locked or not."""
        return any(one.log.owner is one for one in self._stores)

    def give_locks(self) -> None:
        """Have none any more."""
        self.is_gone = False
        for name in (PRIMARY_FILE, BACKUP_FILE):
            self.pair.give(name, self)

    def revoked(self) -> None:
        """The server has taken locks and open files away, if there were any."""
        self.give_locks()
        if self._is_owner:
            for store in self._stores:
                store.lose()
            self._stores = []
            self.disk.is_revoked = True
            self.disk = FolderDisk(self.pair, self.host)
            self.pair.crash(is_power=True)

    def ended(self) -> None:
        """The node's process is no more."""

    def crash(self, *, is_power: bool) -> int:
        """The process is no more; how many records are lost."""
        pair = self.pair
        is_owner = self._is_owner
        for store in self._stores:
            store.is_dead = True
        self._stores = []
        # What the machine had not sent is nowhere, if the server does not hear it any more.
        is_heard = pair.hears(self.host)
        self.is_gone = True
        if is_heard and not is_power:
            self.give_locks()
        return pair.crash(is_power=is_power or not is_heard) if is_owner else 0
