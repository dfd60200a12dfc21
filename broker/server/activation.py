"""What a broker has from when it asks for the lock of its store until it gives the lock back.

    Activation ─▶ load() ─▶ prepare() ─▶ serve() ─▶ … ─▶ leave() ─▶ close()
                  lock,     management,  listen,         clients    stores,
                  ports,    bridges,     timers,         go         lock
                  data      addresses    cluster

One is made for each time that the broker becomes active. close() undoes what was done, however far
it came.

Threads: the event loop's alone.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from broker.cluster.cluster_manager import ClusterManager
from broker.errors import BrokerError, ErrorCode
from broker.recovery.recovery import uncollected
from broker.routing.large_copies import LOOK_AGAIN_S
from broker.security.cluster_user import is_default_pair
from broker.selector.filters import parse_filter
from broker.server import listening
from broker.server.announcing import announced_as_backup
from broker.server.bridging import Bridging
from broker.server.clustering import Clustering
from broker.server.composition import compose, manage
from broker.server.deployment import Deployment
from broker.server.loading import StoredData, activate
from broker.server.periodic import Periodic
from broker.server.protocols import Protocols
from broker.server.reload import Reload
from broker.server.routers import make_routers
from broker.server.scale_down_notes import finish
from broker.server.scanner import AddressScanner
from broker.storage.manager import StorageManager
from broker.storage.null_storage import NullStorage
from broker.transport.acceptor import AcceptorOptions

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.environment import Environment
    from broker.management.access import ManagedBroker
    from broker.options import BrokerOptions
    from broker.ports import Security
    from broker.routers.connection_routers import ConnectionRouters
    from broker.server.clients import Clients
    from broker.server.composition import Managing, Parts
    from broker.server.jms_bridges import JMSBridges
    from broker.server.lifecycle import Lifecycle
    from broker.server.loading import OpenStores
    from broker.server.reload import ConfigurationSource
    from broker.server.scale_down import ScaleDown
    from broker.storage.open import Ownership, Stores
    from broker.storage.waiting import StartWait
    from broker.transport.acceptor import Acceptor

__all__ = ["Activation"]

log = logging.getLogger("broker")

IN_PROCESS: Final = "in-process"  # Name of the acceptor that has no port.


class Activation:
    """See the module's text.

    Args:
        options: of the broker.
        security: who may do what.
        environment: clock, ids, chance, network, threads.
        configuration: what is read again while the broker runs; None is never.
        lifecycle: told how far it has come.
        clients: connections and sessions.
        acceptors: of the broker; filled and emptied here.
        jms_bridges: started and stopped with it.
        loop: whose turns it takes.
        wait: what interrupts it before it serves.
        on_failure: told what ended the storage.
        on_lost: told from another thread that the lock is lost.

    Attributes:
        stores: None before the lock is there, and where nothing is stored.
        data: what was read of them.
        bridges: set by prepare().
        cluster: set by prepare().
        reload: reads the configuration again; None where there is none.
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
        acceptors: list[Acceptor],
        jms_bridges: JMSBridges,
        loop: asyncio.AbstractEventLoop,
        wait: StartWait,
        on_failure: Callable[[Exception], object],
        on_lost: Callable[[Exception], object],
    ) -> None:
        self._options = options
        self._security = security
        self._environment = environment
        self._configuration = configuration
        self._lifecycle = lifecycle
        self._clients = clients
        self._acceptors = acceptors
        self._jms_bridges = jms_bridges
        self._loop = loop
        self._wait = wait
        self._on_failure = on_failure
        self._on_lost = on_lost
        self.stores: Stores | None = None
        self.data: StoredData | None = None
        self.reload: Reload | None = None
        # How far it came.
        self._parts: Parts | None = None
        self._protocols: Protocols | None = None
        self._in_process: Acceptor | None = None
        self._managing: Managing | None = None
        self._bridging: Bridging | None = None
        self._member: ClusterManager | None = None
        self._routers: ConnectionRouters | None = None
        self._clustering: Clustering | None = None
        self._periodic: Periodic | None = None

    @property
    def ownership(self) -> Ownership | None:
        """Of the stores, while it has them; None also where no other broker can want them."""
        return None if self.stores is None else self.stores.ownership

    @property
    def in_process(self) -> Acceptor | None:
        """Takes clients of this process; None before load() and behind close()."""
        return self._in_process

    # --- it begins ----------------------------------------------------------------------------

    async def load(self, open_stores: OpenStores) -> Parts:
        """Take the lock, for which it may have to wait, and the ports; read what is stored.

        Args:
            open_stores: gives the stores of the options, once their lock is free.

        Raises:
            JournalError: the storage is in use, damaged, or cannot be reached.
            JournalClosed: it was interrupted.
            BrokerError: what was loaded cannot be; an address to listen on is taken.
        """
        self._jms_bridges.read()
        protocols = self._protocols = Protocols(self._clients.handlers)
        self._acceptors += listening.make_acceptors(
            self._options.acceptors, protocols, self._environment
        )
        self._in_process = listening.make_acceptors(
            (AcceptorOptions(name=IN_PROCESS),), protocols, self._environment
        )[0]
        self._lifecycle.waiting_for_lock()
        async with announced_as_backup(self._options, self._environment, self._wait):
            stores = self.stores = await open_stores(
                self._options, on_lost=self._on_lost, wait=self._wait
            )
        self._wait.check()
        # With the lock, and before what may take minutes.
        listening.bind(self._acceptors)
        ownership = self.ownership
        self._lifecycle.loading("" if ownership is None else ownership.reason)
        with uncollected():
            if stores is None:
                node_id = str(self._environment.ids.time_uuid())
                protocols.start(self._clients)
                return self._compose(node_id, NullStorage(), None)
            return await self._read(stores, protocols)

    async def _read(self, stores: Stores, protocols: Protocols) -> Parts:
        data = self.data = StoredData(stores, self._environment.clock)
        reading = asyncio.ensure_future(data.read(self._wait))
        try:
            # Its thread reads; here are the modules of the protocols imported meanwhile.
            await asyncio.sleep(0)
            protocols.start(self._clients)
        except BaseException:
            reading.cancel()
            await asyncio.wait((reading,))
            raise
        await reading
        self._lifecycle.recovering()
        storage = StorageManager(
            stores.bindings,
            stores.messages,
            data.ids,
            on_failure=self._on_failure,
            check=None if stores.ownership is None else stores.ownership.check,
            max_redelivery_records=self._options.max_redelivery_records,
            sync_non_transactional=stores.sync_non_transactional,
        )
        storage.start(self._loop)
        parts = self._compose(stores.node_id, storage, stores)
        if stores.large is not None:
            stores.large.start(self._loop, self._environment.executor)
        data.recover(parts)
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

    def prepare(self, broker: ManagedBroker, parts: Parts) -> Managing:
        """Make management, bridges, and what the configuration names.

        Args:
            broker: that is managed.
            parts: as load() gave them.

        Raises:
            JournalError: the storage has failed.
            BrokerError: a queue, a divert or a bridge cannot be.
        """
        managing = self._managing = manage(broker, parts, self._loop)
        self._clients.management = managing.management
        recorded = () if self.data is None else self.data.settings
        node_id = self._clients.node_id
        self._clients.on_scaled_down = self._scaled_down_here
        self.bridges = self._bridging = Bridging(
            self._options, parts, self._clients, node_id, self._environment, recorded
        )
        self._deploy(parts)
        self.cluster = self._member = self._clients.cluster = self._cluster_manager(
            parts, node_id, self._bridging
        )
        self._routers = make_routers(
            self._options, parts, self._clients, self._environment, recorded
        )
        return managing

    def _scaled_down_here(self, node_id: str) -> None:
        """What waited for a node goes on here: all that it had is here now."""
        member, clustering = self._member, self._clustering
        if member is None or clustering is None:
            return
        for connection in member.connections.values():
            clustering.scaled_down(connection, node_id, self._clients.node_id)

    def _cluster_manager(self, parts: Parts, node_id: str, bridging: Bridging) -> ClusterManager:
        configuration = self._options.configuration
        security = configuration.security
        if configuration.cluster.cluster_connections:
            recorded = () if self.data is None else self.data.settings
            assert self._protocols is not None, "load() made them"
            self._clustering = Clustering(
                *(self._options, parts, bridging, node_id, recorded),
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
        )

    def _deploy(self, parts: Parts) -> None:
        options = self._options
        deployment = Deployment(
            parts.administration,
            kept=(options.notifications.address, options.management.address),
            addresses=parts.postoffice.addresses,
            settings=options.settings,
            storage=parts.storage,
            notifications=parts.notifications,
            retroactive=parts.retroactive,
            parse_filter=parse_filter,
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

    async def serve(self, parts: Parts) -> None:
        """Listen, and return once clients may come.

        Raises:
            JournalError: the storage has failed, or the lock is lost.
            JournalClosed: it was interrupted.
            BrokerError: an address to listen on is taken; a transaction log cannot be opened.
        """
        assert self._protocols is not None, "load() made them"
        self._check_starting()
        if self.stores is not None:
            await activate(self.stores, self._wait)
        self._periodic = Periodic(
            self._options,
            parts,
            self._clients,
            self._protocols,
            self.stores,
            self.reload,
            loop=self._loop,
            clock_ms=self._environment.clock.now_ms,
            on_failure=self._on_failure,
        )
        self._check_starting()
        # Before the acceptors: a session that came between the two would be refused.
        self._lifecycle.listening()
        await listening.listen(self._acceptors)
        self._check_starting()
        self._lifecycle.activated()
        self.bridges.start()
        await self._jms_bridges.start()
        # Others are told of it when they can be served.
        await self.cluster.start()
        if self._routers is not None:
            await self._routers.start()

    def _check_starting(self) -> None:
        self._wait.check()
        self._lifecycle.check_starting()

    # --- it ends ------------------------------------------------------------------------------

    def scale_down(self) -> ScaleDown:
        """Give what moves everything to another node of the cluster, when this one stops for good.

        Raises:
            BrokerError: the broker is not active, or in no cluster.
        """
        from broker.server.scale_down import ScaleDown

        parts, bridging, member = self._parts, self._bridging, self._member
        if parts is None or bridging is None or member is None:
            raise BrokerError(ErrorCode.ILLEGAL_STATE, "the broker is not active")
        security = self._options.configuration.security
        return ScaleDown(
            self._options.configuration.cluster.scale_down_config,
            cluster=member,
            parts=parts,
            bridging=bridging,
            cluster_user=security.cluster_user,
            cluster_password=security.cluster_password,
        )

    async def leave(
        self, ends: tuple[asyncio.Event, asyncio.Event], scale_down: ScaleDown | None = None
    ) -> None:
        """Disconnect everybody, and wait for what is on its way.

        Args:
            ends: failed, and told to wait no more: each ends the wait of graceful-shutdown-enabled,
                and a scale-down.
            scale_down: has chosen where to; None keeps everything here.
        """
        self._clients.scale_down_to = None if scale_down is None else scale_down.target_id
        await self._leave_cluster()
        await self._jms_bridges.stop()
        for acceptor in self._acceptors:
            await acceptor.stop()
        if self._lifecycle.is_active:
            timeout_ms = self._options.graceful_shutdown_timeout
            await listening.wait_until_left(self._acceptors, timeout_ms, *ends)
        if self._bridging is not None:
            await self._bridging.stop()
        self._lifecycle.deactivated()
        self._stop_timers()
        if self._protocols is not None:
            self._protocols.disconnect_all()
        self._clients.close_all()
        await self._close_acceptors()
        # What was written goes out in the next turns.
        await asyncio.sleep(0)
        if self._parts is not None:
            await self._moved(self._parts)
            if scale_down is not None:
                await scale_down.run(ends[1])
        self._clients.scale_down_to = None

    async def close(self, *, is_final: bool) -> None:
        """Close what was opened, as far as it came; give the lock back. Idempotent.

        Args:
            is_final: the other one of a pair is not to take over.

        Raises:
            JournalError: the storage fails.
        """
        await self._jms_bridges.stop()
        self._lifecycle.deactivated()
        bridging, self._bridging = self._bridging, None
        if bridging is not None:
            await bridging.stop()
        stores, self.stores = self.stores, None
        data, self.data = self.data, None
        parts, self._parts = self._parts, None
        self._stop_timers()
        await self._leave_cluster()
        await self._close_acceptors()
        try:
            if stores is not None:
                self._close_stores(stores, parts, is_final=is_final)
        finally:
            if data is not None:
                data.close()
            if parts is not None:
                parts.retroactive.close()
                parts.postoffice.close()

    def _close_stores(self, stores: Stores, parts: Parts | None, *, is_final: bool) -> None:
        in_good_order = self._lifecycle.failure is None and parts is not None
        paging = None if parts is None else parts.paging
        try:
            if in_good_order and parts is not None:
                if paging is not None:
                    paging.stop()
                parts.storage.stop()
        finally:
            if paging is not None:
                paging.close()
            stores.close(in_good_order=in_good_order and is_final)
        log.info("AMQ221002: %s, node %s, stopped", self._options.name, self._clients.node_id)

    async def _leave_cluster(self) -> None:
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

    def _stop_timers(self) -> None:
        periodic, self._periodic = self._periodic, None
        managing, self._managing = self._managing, None
        if periodic is not None:
            periodic.cancel()
        if managing is not None:
            managing.message_counters.stop()

    async def _moved(self, parts: Parts) -> None:
        """Wait for what is on its way to another address: it was delivered too often already."""
        while parts.dead_letters.is_moving and self._lifecycle.failure is None:  # noqa: ASYNC110 - rare.
            await asyncio.sleep(LOOK_AGAIN_S)
        parts.dead_letters.give_up()

    async def _close_acceptors(self) -> None:
        await listening.close(self._acceptors)
        in_process, self._in_process = self._in_process, None
        if in_process is not None:
            in_process.close_connections()
