"""A broker that stops for good: all it has goes to another node of its cluster first.

    choose() ─▶ clients and peers are told and left ─▶ run(): queues ─▶ duplicate ids ─▶ messages
             ─▶ prepared transactions ─▶ counted: nothing is left ─▶ announced to the target

Where it ends in the middle nothing is lost, and nothing doubled: what has not left stays in the
store, and the next scale-down goes on with it, to the same node, which is recorded before anything
is sent: it knows what it has had without an answer. Another one gets it by force only.

Threads: the event loop's alone.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from broker.bridges.core.target import transport_of
from broker.client.errors import BrokerRefused, ClientError
from broker.cluster.introduction import Identity, is_same_place
from broker.errors import BrokerError, ErrorCode
from broker.routing.duplicates import BRIDGE_PREFIX, KeptNames
from broker.routing.remote_bindings import STORE_AND_FORWARD, sf_owner
from broker.server.scale_down_messages import ScaleDownMessages, ScaleDownStopped
from broker.server.scale_down_notes import NOTES
from broker.server.scale_down_target import ScaleDownTarget
from broker.server.scale_down_transactions import move_transactions
from broker.storage.durable import durable
from journal.errors import JournalError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from broker.cluster.cluster_connection import ClusterConnection
    from broker.cluster.cluster_manager import ClusterManager
    from broker.cluster.unanswered import Unanswered
    from broker.config.ha import ScaleDown as ScaleDownConfig
    from broker.discovery.topology import Member
    from broker.model.transport_configuration import TransportConfiguration
    from broker.queues.queue import Queue
    from broker.routing.duplicates import DuplicateCache
    from broker.server.bridging import Bridging
    from broker.server.composition import Parts

__all__ = ["ScaleDown", "ScaleDownReport"]

log = logging.getLogger("broker")

# How long a node of the group may take to be seen (Artemis: ScaleDownPolicy waits as long).
WAIT_S: Final = 10.0
_LOOK_S: Final = 0.05
# A target that is not reached any more is tried again for so long.
RETRY_S: Final = 30.0
_RETRY_AGAIN_S: Final = 0.5
# What KeptNames calls the node that a scale-down has begun to send to.
_BEGUN: Final = "scale-down-target"


@dataclass(slots=True)
class ScaleDownReport:
    """What a scale-down did, and what it left.

    Attributes:
        target: node id; empty where there was none.
        where: host and port of it.
        messages: that went; one in several queues counts in each.
        transactions: prepared ones that went.
        duplicate_ids: that were told to the target.
        left: messages that are still here, by queue.
        left_transactions: prepared ones that are still here.
        error: why it ended; empty where nothing was in the way.
        duration_s: seconds that it took.
    """

    target: str = ""
    where: str = ""
    messages: int = 0
    transactions: int = 0
    duplicate_ids: int = 0
    left: dict[str, int] = field(default_factory=dict)
    left_transactions: int = 0
    error: str = ""
    duration_s: float = 0.0

    @property
    def is_complete(self) -> bool:
        """Whether nothing is left here."""
        return not (self.error or self.left or self.left_transactions)

    def __str__(self) -> str:
        """Give it in one line."""
        left = sum(self.left.values())
        text = (
            f"{self.messages} messages, {self.transactions} prepared transactions and "
            f"{self.duplicate_ids} duplicate ids went to node {self.target} ({self.where}) in "
            f"{self.duration_s:.1f} s; left are {left} messages in {len(self.left)} queues and "
            f"{self.left_transactions} prepared transactions"
        )
        return f"{text}: {self.error}" if self.error else text


class ScaleDown:
    """See the module's text.

    Args:
        config: of the policy, enabled or not.
        cluster: of the broker, started.
        parts: of the broker.
        bridging: who knows the node id and the machine.
        cluster_user: of the configuration.
        cluster_password: likewise.

    Attributes:
        report: of run().

    Raises:
        BrokerError: the broker has no cluster connection.
    """

    def __init__(
        self,
        config: ScaleDownConfig,
        *,
        cluster: ClusterManager,
        parts: Parts,
        bridging: Bridging,
        cluster_user: str,
        cluster_password: str,
    ) -> None:
        self._config = config
        self._fixed = None if config.target is None else transport_of(config.target)
        self._parts = parts
        self._bridging = bridging
        self._cluster = cluster
        self._connection = self._connection_of(config.cluster_name)
        topology = self._connection.topology
        self._identity = Identity(
            topology.node_id,
            None,
            cluster_user,
            cluster_password,
            topology.event_id_after,
        )
        self._target: ScaleDownTarget | None = None
        self._connections = dict(cluster.connections)
        self._begun = KeptNames(parts.postoffice.duplicates, _BEGUN)
        # Names of queues that the target does not take, told once each.
        self._refused: set[str] = set()
        self.report = ScaleDownReport()

    def _connection_of(self, name: str | None) -> ClusterConnection:
        connections = self._cluster.connections
        found = next(iter(connections.values()), None) if name is None else connections.get(name)
        if found is None:
            raise BrokerError(
                ErrorCode.ILLEGAL_STATE,
                "scale-down needs a cluster-connection"
                + ("" if name is None else f" of the name {name!r}"),
            )
        return found

    @property
    def target_id(self) -> str:
        """The node id of the target; empty before choose()."""
        return "" if self._target is None else self._target.node_id

    # --- where to -----------------------------------------------------------------------------

    async def choose(
        self,
        connector: str | None = None,
        *,
        is_forced: bool = False,
        wait_s: float | None = None,
        told_to_end: asyncio.Event | None = None,
    ) -> None:
        """Find the node that gets everything, and connect to it.

        Args:
            connector: name of one of the configuration; None takes a node by the policy.
            is_forced: any node will do, where none of the group is there, or where an earlier
                scale-down has begun to send to one that is gone: what that one has had without
                an answer may be doubled then.
            wait_s: how long one may take to be seen; None as `WAIT_S` says.
            told_to_end: ends that wait.

        Raises:
            BrokerError: no such node is reached.
        """
        loop = asyncio.get_running_loop()
        end_s = loop.time() + (WAIT_S if wait_s is None else wait_s)
        tried: dict[str, str] = {}
        while True:
            for member in self._candidates(connector, is_forced=is_forced):
                target = self._made(member)
                try:
                    await target.connect()
                    await target.begin()
                except ClientError as error:
                    tried[member.node_id] = str(error)
                    continue
                self._target = target
                self.report.target, self.report.where = target.node_id, target.where
                return
            if loop.time() >= end_s or (told_to_end is not None and told_to_end.is_set()):
                break
            await asyncio.sleep(_LOOK_S)
        group = self._config.group_name
        wanted = f"of group {group!r} " if group and not is_forced else ""
        why = "; ".join(f"{node}: {error}" for node, error in tried.items()) or "none is known"
        if begun := self._begun.names():
            why += (
                f"; node {begun[-1]} may have some of them, so another one gets them by force only"
            )
        raise BrokerError(
            ErrorCode.ILLEGAL_STATE,
            f"no node {wanted}of cluster-connection {self._connection.config.name} takes the "
            f"messages of this one: {why}",
        )

    def _candidates(self, connector: str | None, *, is_forced: bool) -> list[Member]:
        """Give nodes that may get it, those of the policy's connectors first."""
        config = self._config
        topology = self._connection.topology
        others = [
            one
            for one in topology.members
            if one.node_id != topology.node_id and one.primary is not None
        ]
        begun = self._begun.names()
        if begun and not is_forced:
            others = [one for one in others if one.node_id in begun]
        place = self._connector(connector) if connector is not None else self._fixed
        if place is not None:
            others = [one for one in others if _is_at(one, (place,))]
        else:
            group = config.group_name
            if group:
                of_group = [one for one in others if one.scale_down_group_name == group]
                others = of_group or (others if is_forced else [])
            if config.connector_refs or config.discovery_group_ref:
                # Where Artemis begins to look; those come first, others of the cluster behind.
                places = tuple(self._places(config))
                others.sort(key=lambda one: not _is_at(one, places))
        return others

    def _places(self, config: ScaleDownConfig) -> Iterable[TransportConfiguration]:
        for name in config.connector_refs:
            yield self._connector(name)
        group = self._cluster.discovery_groups.get(config.discovery_group_ref or "")
        for entry in () if group is None else group.entries:
            yield from entry.connectors

    def _connector(self, name: str) -> TransportConfiguration:
        found = self._parts.stored_connectors.by_name.get(name)
        if found is None:
            raise BrokerError(ErrorCode.ILLEGAL_STATE, f"no connector is called {name!r}")
        return transport_of(found)

    def _made(self, member: Member) -> ScaleDownTarget:
        config = self._connection.config
        return ScaleDownTarget(
            self._connection.bridge_config("scale-down"),
            member,
            self._identity,
            self._bridging.environment,
            config.call_timeout_ms / 1000,
        )

    # --- the work -----------------------------------------------------------------------------

    async def run(self, told_to_end: asyncio.Event) -> ScaleDownReport:
        """Move everything, and see that nothing is left; clients have been left before.

        Args:
            told_to_end: ends it between two messages.
        """
        target, report = self._target, self.report
        assert target is not None, "choose() was before"
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        log.info("scale-down to node %s (%s) begins", target.node_id, target.where)
        try:
            await self._begin(target)
            await self._reaching(target, lambda: self._move_all(target, told_to_end))
        except (BrokerError, ClientError, JournalError, ScaleDownStopped) as error:
            report.error = str(error)
        report.duration_s = loop.time() - began_s
        report.left = {one.name: one.message_count for one in self._queues() if one.message_count}
        report.left_transactions = len(self._parts.transactions.prepared())
        if report.is_complete:
            self._begun.discard(target.node_id)
            target.announce()
            log.info("AMQ221063: scale-down is complete: %s", report)
        else:
            log.error("scale-down is not complete, what is left stays in the store: %s", report)
        await target.close()
        return report

    async def _begin(self, target: ScaleDownTarget) -> None:
        """Record where everything goes, before anything does."""
        if target.node_id in self._begun:
            return
        for earlier in self._begun.names():
            self._begun.discard(earlier)
        self._begun.add(target.node_id)
        await durable(self._parts.storage.new_context())

    async def _reaching(self, target: ScaleDownTarget, work: Callable[[], object]) -> None:
        """Do the work, again behind a lost connection."""
        loop = asyncio.get_running_loop()
        lost_s: float | None = None
        before = -1
        while True:
            try:
                await work()  # type: ignore[misc] # a coroutine
                return
            except BrokerRefused:
                # Said about one message: a queue that is full, for example.
                if self.report.messages == before and lost_s is not None:
                    if loop.time() - lost_s > RETRY_S:
                        raise
                elif self.report.messages != before:
                    lost_s = loop.time()
                before = self.report.messages
                await asyncio.sleep(_RETRY_AGAIN_S)
            except ClientError as error:
                log.warning("scale-down: the target is lost, it is tried again: %s", error)
                await self._again(target, error)

    async def _again(self, target: ScaleDownTarget, error: ClientError) -> None:
        loop = asyncio.get_running_loop()
        end_s = loop.time() + RETRY_S
        attempt = 0
        while loop.time() < end_s:
            try:
                await target.connect(attempt)
                return
            except ClientError as failure:
                error = failure
                attempt += 1
                await asyncio.sleep(_RETRY_AGAIN_S)
        raise error

    async def _move_all(self, target: ScaleDownTarget, told_to_end: asyncio.Event) -> None:
        caches = [one for one in self._parts.postoffice.duplicates.all() if one.ids()]
        await self._make_queues(target, {one.address.removeprefix(BRIDGE_PREFIX) for one in caches})
        await self._tell_duplicate_ids(target, caches)
        messages = ScaleDownMessages(
            target,
            own_node=self._bridging.node_uuid.bytes,
            storage=self._parts.storage,
            unanswered=self._unanswered,
            told_to_end=told_to_end,
        )
        before = self.report.messages
        try:
            # Removing the last message may delete a queue, and its address with it.
            for queue in self._queues():
                if queue.message_count and not queue.is_deleted:
                    await messages.move(queue)
        finally:
            self.report.messages = before + messages.moved_count
        self.report.transactions += await move_transactions(
            target,
            self._parts.transactions,
            self._parts.storage,
            self._parts.postoffice.addresses.queues_by_id,
            self._bridging.node_uuid.bytes,
            self._parts.postoffice.duplicates.of(NOTES),
        )

    async def _make_queues(self, target: ScaleDownTarget, with_ids: set[str]) -> None:
        """Before the ids: Artemis forgets those of an address with the last binding to it.

        Until it sees the end of this node, that may be its binding to a queue here. One that is
        refused keeps nothing else here: its messages stay, and are reported.
        """
        for queue in self._queues():
            is_needed = queue.message_count or (
                queue.is_durable and queue.binding.address in with_ids
            )
            if not is_needed or queue.name.startswith(STORE_AND_FORWARD):
                continue
            try:
                await target.queue_id(queue, queue.binding.address)
            except BrokerRefused as error:
                if queue.name not in self._refused:
                    self._refused.add(queue.name)
                    log.warning(
                        "scale-down: the target does not take queue %s: %s", queue.name, error
                    )

    async def _tell_duplicate_ids(
        self, target: ScaleDownTarget, caches: Iterable[DuplicateCache]
    ) -> None:
        """First: a queue that goes with its last message takes the ids of its address with it."""
        told = 0
        for cache in caches:
            ids = cache.ids()
            await target.add_duplicate_ids(cache.address, ids)
            told += len(ids)
        self.report.duplicate_ids = told

    def _queues(self) -> list[Queue]:
        """Give the queues to be moved: by address, those with most messages first there."""
        found = [
            one for one in self._parts.postoffice.addresses.queues.values() if not one.is_temporary
        ]
        found.sort(key=lambda one: (one.binding.address, -one.message_count, -one.queue_id))
        return found

    def _unanswered(self, queue: Queue) -> tuple[Unanswered, str] | None:
        owner = sf_owner(queue.name)
        if owner is not None and (connection := self._connections.get(owner[0])) is not None:
            return connection.unanswered(owner[1], queue), owner[1]
        # Of a cluster connection that is not configured any more.
        return None


def _is_at(member: Member, places: Iterable[TransportConfiguration]) -> bool:
    return any(
        is_same_place(one, place)
        for one in (member.primary, member.backup)
        if one is not None
        for place in places
    )
