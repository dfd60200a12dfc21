"""What a broker has only while it is active: parts, management, bridges, its place in a cluster.

    Active ─▶ load() ─▶ prepare() ─▶ start_timers() ─▶ start() ─▶ … ─▶ leave_cluster() ─▶ stop()
              parts,    management,  periodic work     bridges,
              recovery  addresses                      cluster

`Activation` has the store and the ports, calls this in its order, and imports it when it has the
lock: a backup that waits, perhaps for years, does without (see docs/guide/failover.md).

Threads: the event loop's alone.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from broker.cluster.cluster_manager import ClusterManager
from broker.cluster.peer_rows import left_names
from broker.errors import BrokerError, ErrorCode
from broker.recovery.recovery import recover
from broker.routing.large_copies import LOOK_AGAIN_S
from broker.security.cluster_user import is_default_pair
from broker.selector.filters import parse_filter
from broker.server.bridging import Bridging
from broker.server.clustering import Clustering
from broker.server.composition import compose, manage
from broker.server.deployment import Deployment
from broker.server.periodic import Periodic
from broker.server.reload import Reload
from broker.server.routers import make_routers
from broker.server.scale_down_notes import finish
from broker.server.scanner import AddressScanner
from broker.server.session_making import SessionMaker
from broker.storage.manager import StorageManager
from broker.storage.null_storage import NullStorage

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from broker.environment import Environment
    from broker.management.access import ManagedBroker
    from broker.model.transport_configuration import TransportConfiguration
    from broker.model.wire import WireRecord
    from broker.options import BrokerOptions
    from broker.ports import Security
    from broker.routers.connection_routers import ConnectionRouters
    from broker.server.clients import Clients
    from broker.server.composition import Managing, Parts
    from broker.server.lifecycle import Lifecycle
    from broker.server.loading import StoredData
    from broker.server.protocols import Protocols
    from broker.server.reload import ConfigurationSource
    from broker.server.scale_down import ScaleDown
    from broker.storage.open import Stores

__all__ = ["Active"]

log = logging.getLogger("broker")


class Active:
    """See the module's text.

    Args:
        options: of the broker.
        security: who may do what.
        environment: clock, ids, chance, network, threads.
        configuration: what is read again while the broker runs; None is never.
        lifecycle: whether the broker is active, or has failed.
        clients: get what they use of it.
        protocols: that the broker speaks.
        loop: whose turns it takes.
        on_failure: told what ended the storage.
        backups: as of ClusterManager.

    Attributes:
        bridges: set by prepare().
        cluster: set by prepare().
        reload: reads the configuration again; None where there is none, and before prepare().
    """

    bridges: Bridging
    cluster: ClusterManager

    def __init__(
        self,
        options: BrokerOptions,
        *,
        security: Security,
        environment: Environment,
        configuration: ConfigurationSource | None,
        lifecycle: Lifecycle,
        clients: Clients,
        protocols: Protocols,
        loop: asyncio.AbstractEventLoop,
        on_failure: Callable[[Exception], object],
        backups: Mapping[str, TransportConfiguration],
    ) -> None:
        self._options = options
        self._security = security
        self._environment = environment
        self._configuration = configuration
        self._lifecycle = lifecycle
        self._clients = clients
        self._protocols = protocols
        self._loop = loop
        self._on_failure = on_failure
        self._backups = backups
        self.reload: Reload | None = None
        self._recorded: Sequence[tuple[int, WireRecord]] = ()
        # How far it came.
        self._parts: Parts | None = None
        self._managing: Managing | None = None
        self._bridging: Bridging | None = None
        self._member: ClusterManager | None = None
        self._routers: ConnectionRouters | None = None
        self._clustering: Clustering | None = None
        self._periodic: Periodic | None = None
        self._deployment: Deployment | None = None

    @property
    def is_composed(self) -> bool:
        """Whether it has its parts."""
        return self._parts is not None

    @property
    def parts(self) -> Parts:
        """What the broker is made of, from load() on."""
        assert self._parts is not None, "load() made them"
        return self._parts

    # --- it begins ----------------------------------------------------------------------------

    def make(self) -> Parts:
        """Make the parts of a broker that keeps nothing."""
        return self._compose(str(self._environment.ids.time_uuid()), NullStorage(), None)

    def load(self, stores: Stores, data: StoredData) -> Parts:
        """Make the parts, and of what was read what they had.

        Args:
            stores: open.
            data: that was read of them.

        Raises:
            JournalError: the storage fails.
            BrokerError: what was read cannot be.
        """
        storage = StorageManager(
            stores.bindings,
            stores.messages,
            data.ids,
            on_failure=self._on_failure,
            check=None if stores.ownership is None else stores.ownership.check,
            clock=self._environment.clock.monotonic_s,
            max_redelivery_records=self._options.max_redelivery_records,
            sync_non_transactional=stores.sync_non_transactional,
        )
        storage.start(self._loop)
        parts = self._compose(stores.node_id, storage, stores)
        if stores.large is not None:
            stores.large.start(self._loop, self._environment.executor)
        self._recover(data, parts)
        finish(parts.postoffice, parts.transactions, storage)
        AddressScanner(
            parts.postoffice.addresses, self._options.settings, self._environment.clock.now_ms
        ).scan(at_once=True)
        return parts

    def _compose(self, node_id: str, storage: StorageManager, stores: Stores | None) -> Parts:
        self._clients.node_id = node_id
        parts = self._parts = self._clients.parts = compose(
            self._options,
            storage,
            stores,
            security=self._security,
            node_id=node_id,
            environment=self._environment,
            loop=self._loop,
            is_active=lambda: self._lifecycle.is_active,
        )
        return parts

    def _recover(self, data: StoredData, parts: Parts) -> None:
        found = data.take()
        self._recorded = recorded = found.bindings.settings
        parts.stored_settings.load(recorded)
        parts.stored_permissions.load(recorded)
        parts.stored_connectors.load(recorded)
        recover(
            found.bindings,
            found.messages,
            found.prepared,
            postoffice=parts.postoffice,
            transactions=parts.transactions,
            storage=parts.storage,
            large=parts.large,
            parse_filter=parse_filter,
        )

    def prepare(self, broker: ManagedBroker) -> Managing:
        """Make management, bridges, and what the configuration names.

        Args:
            broker: that is managed.

        Raises:
            JournalError: the storage has failed.
            BrokerError: a queue, a divert or a bridge cannot be.
        """
        parts, options, clients = self.parts, self._options, self._clients
        managing = self._managing = manage(broker, parts, self._loop)
        clients.management = managing.management
        clients.maker = SessionMaker(
            options, parts, managing.management, clients.clock, clients.ids
        )
        clients.on_scaled_down = self._scaled_down_here
        self.bridges = self._bridging = Bridging(
            *(options, parts, clients, clients.node_id, self._environment, self._recorded)
        )
        self._deploy(parts)
        self.cluster = self._member = clients.cluster = self._cluster_manager(parts)
        self._routers = make_routers(options, parts, clients, self._environment, self._recorded)
        return managing

    def _scaled_down_here(self, node_id: str) -> None:
        """What waited for a node goes on here: all that it had is here now."""
        member, clustering = self._member, self._clustering
        if member is None or clustering is None:
            return
        for connection in member.connections.values():
            clustering.scaled_down(connection, node_id, self._clients.node_id)

    def _cluster_manager(self, parts: Parts) -> ClusterManager:
        configuration = self._options.configuration
        security = configuration.security
        node_id = self._clients.node_id
        connections = configuration.cluster.cluster_connections
        in_use = {one.name for one in connections}
        for name in left_names(parts.postoffice.addresses.queues, in_use):
            log.warning(
                "store-and-forward queues of cluster-connection %s are here, which is not in use: "
                "`broker cluster status` shows them, `broker cluster sf` moves what is in there",
                name,
            )
        if connections:
            self._clustering = Clustering(
                *(self._options, parts, self.bridges, node_id, self._recorded),
                self._protocols.connected_elsewhere,
            )
        return ClusterManager(
            configuration.cluster,
            connectors=parts.stored_connectors.by_name,
            node_id=node_id,
            environment=self._environment,
            notifications=parts.notifications,
            has_default_credentials=is_default_pair(
                security.cluster_user, security.cluster_password
            ),
            broker=self._clustering,
            backups=self._backups,
        )

    def _deploy(self, parts: Parts) -> None:
        options = self._options
        deployment = self._deployment = Deployment(
            parts.administration,
            kept=(options.notifications.address, options.management.address),
            addresses=parts.postoffice.addresses,
            settings=options.settings,
            storage=parts.storage,
            notifications=parts.notifications,
            retroactive=parts.retroactive,
            parse_filter=parse_filter,
            loop=self._loop,
            on_failure=self._on_failure,
            deletes=options.deletes_unconfigured,
        )
        errors = deployment.apply(options.addresses, options.queues, options.diverts)
        if errors:
            raise errors[0]
        self.bridges.prepare()
        if self._configuration is not None:
            self.reload = Reload(
                self._configuration,
                parts.stored_permissions,
                parts.stored_settings,
                deployment,
                parts.stored_connectors,
                self.bridges,
            )

    def start_timers(self, stores: Stores | None) -> None:
        """Begin what is done from time to time.

        Args:
            stores: open; None where nothing is stored.
        """
        self._periodic = Periodic(
            self._options,
            self.parts,
            self._clients,
            self._protocols,
            stores,
            self.reload,
            loop=self._loop,
            clock_ms=self._environment.clock.now_ms,
            on_failure=self._on_failure,
        )

    async def start_cluster(self) -> None:
        """Tell others of the broker: it can be served by now."""
        await self.cluster.start()
        if self._routers is not None:
            await self._routers.start()

    # --- it ends ------------------------------------------------------------------------------

    def scale_down(self) -> ScaleDown:
        """Give what moves everything to another node of the cluster, when this one stops for good.

        Raises:
            BrokerError: the broker is not active, or in no cluster.
        """
        from broker.server.scale_down import ScaleDown

        bridging, member = self._bridging, self._member
        if bridging is None or member is None:
            raise BrokerError(ErrorCode.ILLEGAL_STATE, "the broker is not active")
        security = self._options.configuration.security
        return ScaleDown(
            self._options.configuration.cluster.scale_down_config,
            cluster=member,
            parts=self.parts,
            bridging=bridging,
            cluster_user=security.cluster_user,
            cluster_password=security.cluster_password,
        )

    async def leave_cluster(self) -> None:
        """Do not attract clients or peers any more. Idempotent."""
        routers, self._routers = self._routers, None
        if routers is not None:
            await routers.stop()
        member, self._member = self._member, None
        if member is not None:
            if self._clustering is not None:
                self._clustering.leave()
            await member.stop()
        clustering, self._clustering = self._clustering, None
        if clustering is not None:
            clustering.stop()

    async def stop_bridges(self) -> None:
        """Move nothing to other brokers any more. Idempotent."""
        if self._bridging is not None:
            await self._bridging.stop()

    def stop_timers(self) -> None:
        """Do nothing from time to time any more. Idempotent."""
        periodic, self._periodic = self._periodic, None
        managing, self._managing = self._managing, None
        if periodic is not None:
            periodic.cancel()
        if managing is not None:
            managing.message_counters.stop()
        if self._deployment is not None:
            self._deployment.close()

    async def moved(self) -> None:
        """Wait for what is on its way to another address: it was delivered too often already."""
        if self._parts is None:
            return
        dead_letters = self._parts.dead_letters
        while dead_letters.is_moving and self._lifecycle.failure is None:  # noqa: ASYNC110 - rare.
            await asyncio.sleep(LOOK_AGAIN_S)
        dead_letters.give_up()

    def stop_writing(self, *, in_good_order: bool) -> None:
        """Write what is left to the stores, which are closed next.

        Args:
            in_good_order: nothing has failed; if not, nothing is written.

        Raises:
            JournalError: the storage fails.
        """
        if self._parts is None:
            return
        paging = self._parts.paging
        try:
            if in_good_order:
                if paging is not None:
                    paging.stop()
                self._parts.storage.stop()
        finally:
            if paging is not None:
                paging.close()

    def close(self) -> None:
        """Free what the parts have."""
        if self._parts is not None:
            self._parts.retroactive.close()
            self._parts.postoffice.close()
