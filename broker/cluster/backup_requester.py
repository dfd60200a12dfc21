"""A colocated primary that asks the nodes of its cluster for one that runs a backup of it.

    QUORUM_VOTE to each member ─▶ the one with the fewest backups ─▶ BACKUP_REQUEST ─▶ granted
             ▲                                                                          │
             └── backup-request-retry-interval: none has room, or it refuses ◀──────────┤
             └── its node has left the cluster ◀────────────────────────────────────────┘

A member that has the backup already, as after a failback, answers so and is taken first. If the
topology names a backup and no member says that it has it, nothing is asked: it runs in a process of
Artemis's, or of its own.

Unlike Artemis, which asks no more once a node has agreed, and retries for ever.

Threads: the event loop's alone.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import TYPE_CHECKING, Final, NamedTuple

from broker.client.aio.connection import AsyncConnection
from broker.client.aio.waiting import settled
from broker.client.errors import ClientError, NotConnected
from broker.client.options import ClientOptions
from broker.client.topology import Topology
from broker.cluster.introduction import authorize
from broker.cluster.seeking import SeekingClient
from broker.model.encoding import RecordFormatError
from broker.protocols.core.backup_vote import BACKUP_HANDLER, HELD, BackupVote
from broker.protocols.core.packet_cluster import (
    BackupRequest,
    BackupRequestResponse,
    QuorumVote,
    QuorumVoteReply,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from broker.client.channel import Channel
    from broker.cluster.introduction import Identity
    from broker.cluster.topology import ClusterTopology
    from broker.config.cluster_connections import ClusterConnection
    from broker.config.ha import Colocated
    from broker.discovery.topology import Departure, Member
    from broker.environment import Environment
    from broker.model.transport_configuration import TransportConfiguration
    from broker.options.colocated import Folders

__all__ = ["BackupRequester", "Offer"]

log = logging.getLogger("broker")

# Members come one after the other, and the backup of before may be at any of them.
_FIRST_S: Final = 1.0
# A node of Artemis's without <colocated> does not answer at all.
_ANSWER_S: Final = 5.0


class Offer(NamedTuple):
    """What a member has answered that would run a backup.

    Attributes:
        backup_count: that it runs; HELD if the one that is asked for is there.
        node_id: of it.
        connector: how it is reached.
    """

    backup_count: int
    node_id: str
    connector: TransportConfiguration


class BackupRequester:
    """See the module's text.

    Args:
        policy: how often it asks.
        connection: cluster connection whose members are asked.
        topology: of that.
        identity: who we are.
        folders: that a backup is told of.
        environment: clock, ids, chance and network.

    Attributes:
        granted_by: node id of the member that runs the backup; None before, and when it has left.
    """

    def __init__(
        self,
        policy: Colocated,
        *,
        connection: ClusterConnection,
        topology: ClusterTopology,
        identity: Identity,
        folders: Folders,
        environment: Environment,
    ) -> None:
        self.granted_by: str | None = None
        self._policy = policy
        self._connection = connection
        self._topology = topology
        self._identity = identity
        self._folders = folders
        self._environment = environment
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        # How the backup was reached whose node has left: the topology goes on naming it.
        self._lost_backup: TransportConfiguration | None = None
        self._told = ""

    def start(self) -> None:
        """Ask until a member agrees, and again once that one has left."""
        self._topology.listen(self._hear)
        self._task = asyncio.get_running_loop().create_task(self._run())
        self._task.add_done_callback(self._ended)

    async def stop(self) -> None:
        """Ask no more. Idempotent."""
        task, self._task = self._task, None
        self._topology.unlisten(self._hear)
        if task is not None:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("no backup is asked for any more: an error", exc_info=error)

    def _hear(self, told: Member | Departure) -> None:
        self._changed.set()

    # --- the steps ----------------------------------------------------------------------------

    async def _run(self) -> None:
        await asyncio.sleep(_FIRST_S)
        retries = self._policy.backup_request_retries
        interval_s = self._policy.backup_request_retry_interval_ms / 1000
        attempts = 0
        while True:
            self._changed.clear()
            self._look_after_granted()
            if self.granted_by is not None:
                await self._changed.wait()
                continue
            if await self._ask():
                attempts = 0
                continue
            if not self._has_backup:
                attempts += 1
                if -1 < retries < attempts:
                    log.warning(
                        "no backup: no node has agreed to run one after %d requests "
                        "(backup-request-retries): this node has none until its next start",
                        attempts,
                    )
                    return
            await asyncio.sleep(interval_s)

    def _look_after_granted(self) -> None:
        node_id = self.granted_by
        if node_id is None or any(one.node_id == node_id for one in self._topology.members):
            return
        log.warning("node %s, which ran the backup of this one, has left the cluster", node_id)
        self.granted_by = None
        self._lost_backup = self._backup

    @property
    def _backup(self) -> TransportConfiguration | None:
        own = self._identity.node_id
        found = (one.backup for one in self._topology.members if one.node_id == own)
        return next(found, None)

    @property
    def _has_backup(self) -> bool:
        """Whether the topology names a backup that is not known to be lost."""
        return self._backup not in (None, self._lost_backup)

    async def _ask(self) -> bool:
        """Ask all members once; whether one runs the backup now."""
        others = [
            (one.node_id, one.primary)
            for one in self._topology.members
            if one.primary is not None and one.node_id != self._identity.node_id
        ]
        answers = await asyncio.gather(*(self._offer(*one) for one in others))
        offers = [
            one
            for one in answers
            if one is not None and (one.backup_count == HELD or not self._has_backup)
        ]
        if not offers:
            if not self._has_backup:
                self._tell(
                    f"no backup yet: of {len(others)} other nodes none takes one; asked again each "
                    f"{self._policy.backup_request_retry_interval_ms} ms"
                )
            return False
        best = min(offers, key=lambda one: (one.backup_count, one.node_id))
        return await self._request(best)

    def _tell(self, text: str) -> None:
        """Log what has changed since the last time."""
        if text != self._told:
            self._told = text
            log.info("%s", text)

    async def _offer(self, node_id: str, connector: TransportConfiguration) -> Offer | None:
        """Ask one member whether it has room; None where it has none, or does not answer."""
        asked = BackupVote(HELD, self._identity.node_id, is_available=False)
        try:
            async with self._channel(connector) as channel:
                vote = QuorumVote(BACKUP_HANDLER, asked.encode())
                reply = await settled(
                    channel.call(vote, QuorumVoteReply), _ANSWER_S, "the answer to a vote"
                )
            assert isinstance(reply, QuorumVoteReply), "a channel gives what was expected"
            answer = BackupVote.decode(reply.vote)
        except (ClientError, RecordFormatError) as error:
            log.debug("node %s was not asked for a backup: %s", node_id, error)
            return None
        if not answer.is_available:
            return None
        return Offer(answer.backup_count, node_id, connector)

    async def _request(self, offer: Offer) -> bool:
        """Have one member run the backup; whether it does."""
        where = f"node {offer.node_id} at {offer.connector.host}:{offer.connector.port}"
        journal, bindings, large_messages, paging = map(str, self._folders)
        wanted = BackupRequest(
            offer.backup_count,
            journal,
            bindings,
            large_messages,
            paging,
            node_id=self._identity.node_id,
        )
        timeout_s = self._connection.call_timeout_ms / 1000
        try:
            async with self._channel(offer.connector) as channel:
                reply = await settled(
                    channel.call(wanted, BackupRequestResponse), timeout_s, "the backup's start"
                )
        except ClientError as error:
            self._tell(f"no backup yet: {where} was asked for one: {error}")
            return False
        assert isinstance(reply, BackupRequestResponse), "a channel gives what was expected"
        if not reply.backup_started:
            self._tell(f"no backup yet: {where} was asked for one, and refuses; its log says why")
            return False
        self.granted_by = offer.node_id
        self._lost_backup = None
        self._tell(f"{where} runs the backup of this one")
        self._told = ""
        return True

    @contextlib.asynccontextmanager
    async def _channel(self, connector: TransportConfiguration) -> AsyncIterator[Channel]:
        """Connect, show the credentials of the cluster, disconnect.

        Raises:
            ClientError: the other broker is not reached, or refuses.
        """
        options = ClientOptions(
            connection_ttl=self._connection.connection_ttl_ms,
            check_period=self._connection.check_period_ms,
            call_timeout=self._connection.call_timeout_ms,
        )
        client = SeekingClient(options, self._environment, Topology())
        connection = AsyncConnection(client, connector)
        try:
            await connection.open_to(connector)
            yield await authorize(connection, self._identity, _ANSWER_S)
        finally:
            connection.fail(NotConnected("not needed any more"))
