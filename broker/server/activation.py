"""What a broker has from when it asks for the lock of its store until it gives the lock back.

    Activation ─▶ load() ─▶ Active.prepare() ─▶ serve() ─▶ … ─▶ leave() ─▶ close()
                  lock,     management,         listen,         clients    stores,
                  ports,    bridges,            timers,         go         lock
                  data      addresses           cluster

One is made for each time that the broker becomes active. close() undoes what was done, however far
it came. What reads and what serves is imported behind the lock: a backup that waits for years does
without those 15 MB, and takes some 0.3 s longer, once, to take over.

Threads: the event loop's alone.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from broker.errors import BrokerError, ErrorCode
from broker.recovery.uncollected import uncollected
from broker.server import listening
from broker.server.announcing import announced_as_backup
from broker.server.doubt import Doubt
from broker.server.faults import while_alive
from broker.server.opening import activate
from broker.server.protocols import Protocols
from broker.transport.acceptor import AcceptorOptions

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.environment import Environment
    from broker.model.transport_configuration import TransportConfiguration
    from broker.options import BrokerOptions
    from broker.ports import Security
    from broker.server.active import Active
    from broker.server.clients import Clients
    from broker.server.composition import Parts
    from broker.server.jms_bridges import JMSBridges
    from broker.server.lifecycle import Lifecycle
    from broker.server.loading import StoredData
    from broker.server.opening import OpenStores
    from broker.server.reload import ConfigurationSource, Reload
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
        on_lost: a method, told from another thread that the lock is lost.
        on_certain: told that its lease, which was in doubt, was renewed.

    Attributes:
        stores: None before the lock is there, and where nothing is stored.
        data: what was read of them.
    """

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
        on_certain: Callable[[], object],
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
        self._on_certain = on_certain
        self.stores: Stores | None = None
        self.data: StoredData | None = None
        # How far it came.
        self._protocols: Protocols | None = None
        self._in_process: Acceptor | None = None
        self._active: Active | None = None
        self._doubt: Doubt | None = None
        self._backups: dict[str, TransportConfiguration] = {}

    @property
    def ownership(self) -> Ownership | None:
        """Of the stores, while it has them; None also where no other broker can want them."""
        return None if self.stores is None else self.stores.ownership

    @property
    def reload(self) -> Reload | None:
        """What reads the configuration again; None where there is none, and before prepare()."""
        return None if self._active is None else self._active.reload

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
        async with announced_as_backup(self._options, self._environment, self._wait) as served_at:
            stores = self.stores = await open_stores(
                self._options, on_lost=while_alive(self._on_lost), wait=self._wait
            )
        if not self._options.is_backup:
            # The one that gave its place waits now: clients know of it before it says so.
            self._backups = served_at
        self._wait.check()
        # With the lock, and before what may take minutes.
        listening.bind(self._acceptors)
        ownership = self.ownership
        self._lifecycle.last_sign_ms = None if ownership is None else ownership.last_sign_ms
        self._lifecycle.loading("" if ownership is None else ownership.reason)
        with uncollected():
            if stores is None:
                return self._make_active(protocols).make()
            return await self._read(stores, protocols)

    async def _read(self, stores: Stores, protocols: Protocols) -> Parts:
        from broker.server.loading import StoredData

        data = self.data = StoredData(stores, self._environment.clock)
        reading = asyncio.ensure_future(data.read(self._wait))
        try:
            # Its thread reads; here are the modules of what serves imported meanwhile.
            await asyncio.sleep(0)
            active = self._make_active(protocols)
        except BaseException:
            reading.cancel()
            await asyncio.wait((reading,))
            raise
        await reading
        self._lifecycle.recovering()
        return active.load(stores, data)

    def _make_active(self, protocols: Protocols) -> Active:
        """Make what serves: see the module's text."""
        from broker.server.active import Active

        protocols.start(self._clients)
        active = self._active = Active(
            self._options,
            security=self._security,
            environment=self._environment,
            configuration=self._configuration,
            lifecycle=self._lifecycle,
            clients=self._clients,
            protocols=protocols,
            loop=self._loop,
            on_failure=self._on_failure,
            backups=self._backups,
        )
        return active

    @property
    def active(self) -> Active:
        """What serves, from load() on."""
        assert self._active is not None, "load() made it"
        return self._active

    async def serve(self) -> None:
        """Listen, and return once clients may come.

        Raises:
            JournalError: the storage has failed, or the lock is lost.
            JournalClosed: it was interrupted.
            BrokerError: an address to listen on is taken; a transaction log cannot be opened.
        """
        active = self.active
        self._check_starting()
        if self.stores is not None:
            await activate(self.stores, self._wait)
        active.start_timers(self.stores)
        self._check_starting()
        # Before the acceptors: a session that came between the two would be refused.
        self._lifecycle.listening()
        await listening.listen(self._acceptors)
        self._check_starting()
        self._lifecycle.activated()
        self._watch_lease()
        active.bridges.start()
        await self._jms_bridges.start()
        # Others are told of it when they can be served.
        await active.start_cluster()

    def _check_starting(self) -> None:
        self._wait.check()
        self._lifecycle.check_starting()

    # --- it ends ------------------------------------------------------------------------------

    def scale_down(self) -> ScaleDown:
        """Give what moves everything to another node of the cluster, when this one stops for good.

        Raises:
            BrokerError: the broker is not active, or in no cluster.
        """
        if self._active is None:
            raise BrokerError(ErrorCode.ILLEGAL_STATE, "the broker is not active")
        return self._active.scale_down()

    async def leave(
        self, ends: tuple[asyncio.Event, asyncio.Event], scale_down: ScaleDown | None = None
    ) -> None:
        """Disconnect everybody, and wait for what is on its way.

        Args:
            ends: failed, and told to wait no more: each ends the wait of graceful-shutdown-enabled,
                and a scale-down.
            scale_down: has chosen where to; None keeps everything here.
        """
        self._stop_doubting()
        self._clients.scale_down_to = None if scale_down is None else scale_down.target_id
        active = self._active
        if active is not None:
            await active.leave_cluster()
        await self._jms_bridges.stop()
        for acceptor in self._acceptors:
            await acceptor.stop()
        if self._lifecycle.is_active:
            timeout_ms = self._options.graceful_shutdown_timeout
            await listening.wait_until_left(self._acceptors, timeout_ms, *ends)
        if active is not None:
            await active.stop_bridges()
        self._lifecycle.deactivated()
        if active is not None:
            active.stop_timers()
        if self._protocols is not None:
            self._protocols.disconnect_all()
        self._clients.close_all()
        await self._close_acceptors()
        # What was written goes out in the next turns.
        await asyncio.sleep(0)
        if active is not None:
            await active.moved()
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
        self._stop_doubting()
        await self._jms_bridges.stop()
        self._lifecycle.deactivated()
        active, self._active = self._active, None
        if active is not None:
            await active.stop_bridges()
            active.stop_timers()
            await active.leave_cluster()
        stores, self.stores = self.stores, None
        data, self.data = self.data, None
        await self._close_acceptors()
        try:
            if stores is not None:
                self._close_stores(stores, active, is_final=is_final)
        finally:
            if data is not None:
                data.close()
            if active is not None:
                active.close()

    def _watch_lease(self) -> None:
        ownership = self.ownership
        is_leased = self.stores is not None and self.stores.is_shared
        if self._options.shares_store and is_leased and ownership is not None:
            told = self._on_certain, self._on_failure
            self._doubt = Doubt(ownership, self._acceptors, self._lifecycle, *told)

    def _stop_doubting(self) -> None:
        doubt, self._doubt = self._doubt, None
        if doubt is not None:
            doubt.stop()

    def _close_stores(self, stores: Stores, active: Active | None, *, is_final: bool) -> None:
        is_composed = active is not None and active.is_composed
        in_good_order = self._lifecycle.failure is None and is_composed
        try:
            if active is not None:
                active.stop_writing(in_good_order=in_good_order)
        finally:
            stores.close(in_good_order=in_good_order and is_final)
        log.info("AMQ221002: %s, node %s, stopped", self._options.name, self._clients.node_id)

    async def _close_acceptors(self) -> None:
        await listening.close(self._acceptors)
        in_process, self._in_process = self._in_process, None
        if in_process is not None:
            in_process.close_connections()
