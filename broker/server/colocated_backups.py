"""Backups of other nodes in this process: begun when a node asks, ended with this one.

    BACKUP_REQUEST ─▶ checked ─▶ Broker of its own ─▶ waits ─▶ serves ─▶ waits again (failback)
                          └▶ refused, and the log says why

As in Artemis (ColocatedHAManager), with these differences. Folders that this machine does not see,
or in which the node that asks has no lock, are refused: a backup on a folder of its own would wait
for ever. A backup goes on to wait after a failback, unless `restart-backup` is false. A node that
asks again, after a failback or a lost connection, is told that its backup is here.

Threads: the event loop's alone; folders are looked at in one of its executor's.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from broker.config.errors import ConfigError
from broker.errors import BrokerError
from broker.options.colocated import Folders, backup_configuration, backup_name
from broker.storage.node_owner import read_owner
from broker.storage.node_view import stored_node_id
from journal.errors import JournalClosed, JournalError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from broker.config import BrokerConfig
    from broker.config.ha import Colocated
    from broker.protocols.peer import WantedBackup
    from broker.transport.acceptor import Acceptor

__all__ = ["ColocatedBackups", "GuestBroker"]

log = logging.getLogger("broker")

_REFUSED: Final = "AMQ222189: Failed to activate a backup of another node: %s"


class GuestBroker(Protocol):
    """A backup, as its host sees it: see `broker.server.server.Broker`."""

    acceptors: list[Acceptor]
    on_active: Callable[[], object]

    @property
    def failure(self) -> Exception | None:
        """What ended it."""

    async def start(self) -> None:
        """Start it; returns once it serves."""

    async def ended(self) -> None:
        """Wait until it has failed, or gave its place back for good."""

    async def stop(self) -> None:
        """Stop it."""

    def stop_waiting(self) -> None:
        """Let its stop wait for no client."""


class _Hosted(NamedTuple):
    """One backup.

    Attributes:
        node_id: whose.
        folders: of that node.
        broker: that waits, or serves.
    """

    node_id: str
    folders: Folders
    broker: GuestBroker


class ColocatedBackups:
    """See the module's text. Implements `broker.protocols.peer.BackupHost`.

    Args:
        config: of this node.
        policy: of this node.
        make: gives a broker of a backup's configuration.
    """

    def __init__(
        self, config: BrokerConfig, policy: Colocated, make: Callable[[BrokerConfig], GuestBroker]
    ) -> None:
        self._config = config
        self._policy = policy
        self._make = make
        self._own = Folders.of(config)
        self._hosted: dict[int, _Hosted] = {}
        self._runs: dict[int, asyncio.Task[None]] = {}
        self._requests: set[asyncio.Task[None]] = set()
        self._is_stopped = False

    # --- what is asked ------------------------------------------------------------------------

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self._hosted)

    @property
    def takes_more(self) -> bool:
        """Whether it runs one more."""
        return not self._is_stopped and self.count < self._policy.max_backups

    @property
    def brokers(self) -> Sequence[GuestBroker]:
        """All of them, the first one first."""
        return [one.broker for _, one in sorted(self._hosted.items())]

    def holds(self, node_id: str) -> bool:
        """Whether the backup of a node is here."""
        return any(one.node_id == node_id for one in self._hosted.values())

    # --- one begins ---------------------------------------------------------------------------

    def request(self, wanted: WantedBackup, answer: Callable[[bool], object]) -> None:
        """Run a backup; `answer` is told whether it runs. Never waits."""
        task = asyncio.get_running_loop().create_task(self._answer(wanted, answer))
        self._requests.add(task)
        task.add_done_callback(self._requests.discard)

    async def _answer(self, wanted: WantedBackup, answer: Callable[[bool], object]) -> None:
        try:
            await self._begin(wanted)
        except (ConfigError, BrokerError, JournalError, OSError) as error:
            log.warning(_REFUSED, error)
            answer(False)
        else:
            answer(True)

    async def _begin(self, wanted: WantedBackup) -> None:
        """Run a backup, unless it is here.

        Raises:
            ConfigError: it cannot be; the text says why.
            OSError: its folders cannot be looked at.
        """
        folders = Folders.wanted(wanted)
        if folders is None:
            raise ConfigError(
                "it has not told where its data lie, as a node with <replication> does: a backup "
                "here needs a folder that both nodes reach"
            )
        if self._has(folders):
            return
        if folders.journal == self._own.journal:
            raise ConfigError(f"{folders.journal} is the journal of this node itself")
        node_id = await asyncio.to_thread(_node_that_serves, folders, wanted.node_id)
        # What follows does not wait: two requests cannot take the same place.
        if self._has(folders):
            return
        if not self.takes_more:
            raise ConfigError(
                f"node {node_id} asks, and {self.count} run here: <max-backups> is "
                f"{self._policy.max_backups}"
            )
        if wanted.backup_count != self.count:
            raise ConfigError(
                f"node {node_id} was told of {wanted.backup_count} backups here, and now there are "
                f"{self.count}: it asks again"
            )
        self._start(node_id, folders)

    def _has(self, folders: Folders) -> bool:
        return any(one.folders == folders for one in self._hosted.values())

    def _start(self, node_id: str, folders: Folders) -> None:
        number = next(one for one in range(1, self.count + 2) if one not in self._hosted)
        config = backup_configuration(self._config, self._policy, number, folders)
        broker = self._make(config)
        broker.on_active = lambda: _tell_active(number, node_id, broker)
        self._hosted[number] = _Hosted(node_id, folders, broker)
        run = self._runs[number] = asyncio.get_running_loop().create_task(self._run(number))
        run.add_done_callback(_look_at)
        log.info(
            "AMQ221050: %s of node %s begins, on %s", backup_name(number), node_id, folders.journal
        )

    async def _run(self, number: int) -> None:
        """Wait and serve, until it fails, gives its place back for good, or is stopped."""
        node_id, _, broker = self._hosted[number]
        name = backup_name(number)
        try:
            try:
                await broker.start()
                await broker.ended()
            finally:
                await broker.stop()
            if broker.failure is not None:
                log.error("%s of node %s has failed: %s", name, node_id, broker.failure)
                return
        except JournalClosed as error:
            # Also of one that was stopped while it waited.
            log.info("%s of node %s has ended: %s", name, node_id, error)
        except (BrokerError, JournalError) as error:
            log.error("%s of node %s has failed: %s", name, node_id, error)
        else:
            log.info("%s of node %s has ended", name, node_id)
        finally:
            self._hosted.pop(number, None)
            self._runs.pop(number, None)

    # --- all end ------------------------------------------------------------------------------

    def open(self) -> None:
        """Take requests, once more behind stop()."""
        self._is_stopped = False

    async def stop(self) -> None:
        """Stop all of them, and take no request. Idempotent."""
        self._is_stopped = True
        for request in tuple(self._requests):
            request.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await request
        hosted, runs = dict(self._hosted), tuple(self._runs.values())
        if hosted:
            log.info("backups of other nodes in this process stop with it: %d", len(hosted))
        stops = (one.broker.stop() for one in hosted.values())
        for number, error in zip(
            hosted, await asyncio.gather(*stops, return_exceptions=True), strict=True
        ):
            if error is not None:
                log.error("%s has not stopped in good order: %s", backup_name(number), error)
        # What is left of them waits for an end, or has not begun.
        for run in runs:
            run.cancel()
        await asyncio.gather(*runs, return_exceptions=True)
        self._hosted.clear()
        self._runs.clear()


def _look_at(run: asyncio.Task[None]) -> None:
    """Tell of what no backup should end with: a fault of this code."""
    if not run.cancelled() and (error := run.exception()) is not None:
        log.error("a backup of another node has ended", exc_info=error)


def _tell_active(number: int, node_id: str, broker: GuestBroker) -> None:
    places = ", ".join(f"{one.options.host}:{one.port}" for one in broker.acceptors)
    log.info("%s serves in place of node %s, at %s", backup_name(number), node_id, places)


def _node_that_serves(folders: Folders, node_id: str | None) -> str:
    """Give the id of the node whose data these are; in a thread.

    Raises:
        ConfigError: they are not there, or another node's, or their broker is in this process.
        OSError: they cannot be looked at.
    """
    found = stored_node_id(folders.journal)
    if found is None:
        raise ConfigError(
            f"{folders.journal} has no data of a node here: the folder has to be reached by the "
            "same path on both machines"
        )
    if node_id is not None and found != node_id:
        raise ConfigError(
            f"{folders.journal} is of node {found} here, and node {node_id} asks: the folder has "
            "to be the same one on both machines"
        )
    owner = read_owner(folders.journal)
    if owner is not None and owner.is_this_process:
        # A process always gets a lock that it has: both would serve.
        raise ConfigError(f"node {found} runs in this process: a backup of it would never wait")
    return found
