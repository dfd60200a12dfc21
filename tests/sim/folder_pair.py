"""A pair of brokers on one shared folder: the real wait for its lock, on a file server in memory.

    broker/storage/node_lock.NodeLock     the real code, but for the calls of the system
    MemoryStore, MemoryFolders            what lies in the folder

The file server keeps a lock as NFS 4 does: as long as the machine that has it is there. It goes
with the process, or `LEASE_S` after the machine was heard of last. Then the machine has lost its
open files with it: whatever it still does to them fails, and what it had not synced is gone. A
process that is paused keeps its lock.

While the server is away, or cut off, what is written and synced waits, and pages and bodies of
large messages fail.
"""

from __future__ import annotations

import asyncio
import errno
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

from broker.storage.node_lock import NodeLock
from broker.storage.node_state import NodeState
from broker.storage.open import LOCKED_PAUSE_S
from journal.errors import JournalIOError, JournalLocked
from tests.sim.files import MemoryBodies, MemoryFolders
from tests.sim.node import memory_stores
from tests.sim.record_log import Disk, RecordLog
from tests.sim.store import MemoryStore

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

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

    @property
    def is_away(self) -> bool:
        """Whether the server does not answer."""
        return not self._pair.hears(self._host)

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

    def lose(self) -> None:
        """The file is another machine's: what is done to it from now on is not seen."""
        log, self.log = self.log, RecordLog(self.log.disk)
        self.log.entries[:] = log.entries
        self.log.written, self.log.synced = log.written, log.synced
        log.owner = None


class FolderPair:
    """The folder, and what two nodes have in common.

    Attributes:
        holder: who has the lock.
        state: as the first byte of server.lock.
        activations: how often one of them got the folder.
    """

    def __init__(self, network: Network, name: str, seeded: random.Random) -> None:
        self.network = network
        self.host = network.host(name)
        self.seeded = seeded
        self.node_id = str(uuid.UUID(int=seeded.getrandbits(128), version=1))
        assert network.loop.threads is not None, "the loop has threads"
        self.threads: Threads = network.loop.threads
        self.holder: FolderStorage | None = None
        self.state = b"0"
        self.activations = 0
        disk = Disk(seeded)
        self.bindings, self.messages = RecordLog(disk), RecordLog(disk)
        self.pages, self.large = MemoryFolders(disk), MemoryBodies(disk)
        self._process: Process | None = None
        self._heard_s = 0.0

    async def start(self) -> None:
        """Start the server."""
        if not self.host.is_up:
            self.network.power_on(self.host)
        if self._process is None:
            self._process = self.network.loop.process(self.host.name, self.host)
            self._heard_s = self.network.loop.time()
            self._process.spawn(self._watch())

    def kill(self, *, is_power: bool) -> None:
        """End it; what was written is there when it is back, and so are the locks."""
        if self._process is not None:
            self._process.kill()
            self._process = None
        if is_power:
            self.network.power_off(self.host)

    def storage(self, host: Host, ids: SeededIds) -> FolderStorage:
        """Give what one of the nodes has of it."""
        del ids
        return FolderStorage(self, host)

    def hears(self, host: Host) -> bool:
        """Whether a machine and the server reach each other."""
        is_open = self.network.is_open
        return self._process is not None and is_open(host, self.host) and is_open(self.host, host)

    async def _watch(self) -> None:
        """Take the lock away from a machine that is not there any more."""
        loop = self.network.loop
        while True:
            await asyncio.sleep(LOOK_S)
            if self.holder is None or self.hears(self.holder.host):
                self._heard_s = loop.time()
            elif loop.time() - self._heard_s > LEASE_S:
                self.holder.revoked()
                self.holder = None

    def crash(self, *, is_power: bool) -> int:
        """Leave one of the states that the end of who had the lock may; how much was lost."""
        lost = self.bindings.crash(self.seeded, is_power=is_power)
        lost += self.messages.crash(self.seeded, is_power=is_power)
        self.pages.crash(self.seeded, is_power=is_power)
        self.large.crash(self.seeded, is_power=is_power)
        return lost


class _Lock(NodeLock):
    """The lock of the folder, as one process has it; see NodeLock."""

    def __init__(self, storage: FolderStorage, *, is_backup: bool) -> None:
        super().__init__(Path("/shared"), is_backup=is_backup)
        self._storage = storage

    @property
    def _pair(self) -> FolderPair:
        self._storage.disk.check("cannot lock the broker's folder")
        return self._storage.pair

    def _read_state(self) -> NodeState:
        return NodeState.of(self._pair.state)

    def _holder(self) -> str | None:
        return None if self._pair.holder in (None, self._storage) else "the other node"

    def _take_backup_lock(self) -> bool:
        return True

    def acquire(self, *, sleep: Callable[[float], None] = time.sleep) -> None:
        del sleep
        pair = self._pair
        if pair.holder not in (None, self._storage):
            raise JournalLocked("the folder is in use by another broker")
        pair.holder = self._storage
        self.node_id = pair.node_id

    def check(self) -> None:
        pair = self._storage.pair
        # The mount waits for a server that does not answer, and its process with it.
        while not pair.hears(self._storage.host):
            pair.threads.sleep(LOOK_S)
        if pair.holder is not self._storage:
            raise JournalIOError(errno.ENOLCK, "the lock was lost", "serverlock.1")

    def _write_state(self, state: NodeState) -> None:
        pair = self._pair
        if pair.holder is not self._storage:
            raise JournalIOError(errno.ESTALE, "cannot write the broker's state", "server.lock")
        pair.state = state.value

    def release(self) -> None:
        pair = self._storage.pair
        if pair.holder is self._storage and pair.hears(self._storage.host):
            pair.holder = None


class FolderStorage:
    """What a node of a pair has; see NodeStorage.

    Attributes:
        activation: which activation of the pair the node's last one was.
    """

    def __init__(self, pair: FolderPair, host: Host) -> None:
        self.pair = pair
        self.host = host
        self.disk = FolderDisk(pair, host)
        self.activation = 0
        self._threads = pair.threads
        self._stores: list[FolderStore] = []

    async def open_stores(
        self, options: BrokerOptions, *, on_lost: Callable[[Exception], object], wait: StartWait
    ) -> Stores:
        """Wait for the lock and open them; see Broker."""
        del on_lost
        return await asyncio.to_thread(self._open, options.is_backup, wait)

    def _open(self, is_backup: bool, wait: StartWait) -> Stores:
        def sleep(seconds: float) -> None:
            self._threads.sleep(seconds)
            wait.check()

        pair = self.pair
        lock = _Lock(self, is_backup=is_backup)
        clock = pair.network.loop.time
        while True:
            lock.await_free(-1, clock=clock, sleep=sleep)
            try:
                lock.acquire()
            except JournalLocked:
                sleep(LOCKED_PAUSE_S)
                continue
            break
        pair.activations += 1
        self.activation = pair.activations
        pair.bindings.disk = pair.messages.disk = self.disk
        pair.pages, pair.large = pair.pages.taken_over(self.disk), pair.large.taken_over(self.disk)
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
            check_lock=lock.check,
        )

    def revoked(self) -> None:
        """The server has taken lock and open files away."""
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
        stores, self._stores = self._stores, []
        for store in stores:
            store.is_dead = True
        if pair.holder is not self:
            return 0
        # What the machine had not sent is nowhere, if the server does not hear it any more.
        is_heard = pair.hears(self.host)
        if is_heard and not is_power:
            pair.holder = None
        return pair.crash(is_power=is_power or not is_heard)
