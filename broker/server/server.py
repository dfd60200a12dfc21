"""The broker: made of its options, started in two steps, stopped. Composition root.

    Broker(options) ─▶ start() ─▶ active ─▶ stop()
                        │          ▲  ├─▶ storage failed ─▶ `failure`, exit status 1
                        │          └──┴── a backup gives its place back, and waits again
                        ├ step one   web port, log; the lock is asked for
                        └ step two   bind, load, recover, listen

Everything else receives what it needs from here; `composition` makes the parts, `lifecycle` says
how far it has come.

Threads: the event loop's alone, but for a database's lease, which tells of its loss from its own.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING, Final

from broker.environment import Environment
from broker.errors import BrokerError, ErrorCode
from broker.security.allow_all import AllowAll
from broker.selector.filters import parse_filter
from broker.server.activation import Activation
from broker.server.clients import Clients
from broker.server.colocation import Colocation
from broker.server.failback import fail_back
from broker.server.faults import exception_handler
from broker.server.jms_bridges import JMSBridges
from broker.server.lifecycle import Lifecycle, ServerState
from broker.server.opening import open_when_free
from broker.server.scale_down_choice import ScaleDownChoice
from broker.server.steps import Steps
from broker.server.web import start_web, stop_web
from broker.storage.waiting import StartWait
from journal.errors import JournalClosed, JournalError

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Mapping

    from broker.bridges.jms.control import JMSBridgeControl
    from broker.cluster.cluster_manager import ClusterManager
    from broker.management.web import WebServer
    from broker.options import BrokerOptions
    from broker.ports import Security
    from broker.queues.filter import Filter
    from broker.server.bridging import Bridging
    from broker.server.composition import Managing, Parts
    from broker.server.opening import OpenStores
    from broker.server.reload import ConfigurationSource
    from broker.server.scale_down import ScaleDown
    from broker.storage.open import Ownership
    from broker.transport.acceptor import Acceptor

__all__ = ["Broker"]

log = logging.getLogger("broker")

_ANSWER_S: Final = 0.1  # For the answer to who has a broker stop by management.


def _nobody_is_told() -> None:
    """Of a broker whose owner asks for nothing."""


class Broker:
    """See the module's text.

    Args:
        options: what it is to be.
        security: who may do what; None lets everybody do everything.
        environment: clock, ids, chance, network, threads; None is the machine's.
        configuration: what is read again while it runs; None is never.
        open_stores: gives the stores of the options, once their lock is free.
        is_guest: it runs in the process of another broker, which is told of faults.

    Attributes:
        lifecycle: how far it has come: started, active, a backup, ready.
        clients: connections and sessions.
        node_id: from when its store is open.
        settings: of addresses.
        environment: as given, or the machine's.
        clock_ms: wall clock, ms since 1970.
        ids: of the environment.
        parse_filter: a selector's text to a Filter.
        acceptors: where clients connect.
        web: where metrics and health are told.
        started_ms: when it was made, ms since 1970.
        loop: the event loop that it was started in; None before.
        scale_down_choice: where everything goes at a stop for good, and what came of that.
        on_active: called each time that it has become active, in the event loop.
        parts: what it is made of, from when its store is loaded.
        managing: how it is managed by messages, likewise.
        bridges: core bridges, likewise.
        cluster: it as one of several, likewise.
        colocation: backups of others in its process; None of a broker that is not colocated.
    """

    parts: Parts
    managing: Managing
    bridges: Bridging
    cluster: ClusterManager

    def __init__(
        self,
        options: BrokerOptions,
        *,
        security: Security | None = None,
        environment: Environment | None = None,
        configuration: ConfigurationSource | None = None,
        open_stores: OpenStores = open_when_free,
        is_guest: bool = False,
    ) -> None:
        self.options = options
        self.settings = options.settings
        self.environment = environment = environment or Environment()
        self.clock_ms = clock_ms = environment.clock.now_ms
        self.ids = environment.ids
        self.parse_filter: Callable[[str], Filter | None] = parse_filter
        self._steps = Steps("backup" if options.is_backup else "primary")
        self.lifecycle = Lifecycle(
            is_backup=options.is_backup,
            is_pair=options.shares_store,
            now_ms=clock_ms,
            on_step=self._steps.add,
        )
        self.on_active: Callable[[], object] = _nobody_is_told
        self.clients = Clients(options, self.lifecycle, environment.clock, self.ids)
        self.node_id = ""
        self.started_ms = clock_ms()
        self.acceptors: list[Acceptor] = []
        self.web: list[WebServer] = []
        self._given_security = security
        self._configuration = configuration
        self._open_stores = open_stores
        self.loop: asyncio.AbstractEventLoop | None = None
        self._jms_bridges = JMSBridges(options.jms_bridges, self)
        self._failed = asyncio.Event()
        self._disconnects = asyncio.Event()
        self.scale_down_choice = ScaleDownChoice(
            options.configuration.cluster.scale_down_policy, self._disconnects
        )
        # While start() runs: what interrupts it, and who waits for its end.
        self._wait = StartWait()
        self._told_to_stop = asyncio.Event()
        self._is_start_over = asyncio.Event()
        self._is_start_over.set()
        self._stop_lock = asyncio.Lock()
        self._later: asyncio.Task[None] | None = None
        self._failing_back: asyncio.Task[None] | None = None
        # A scale-down was not complete: what it has left is served.
        self._has_rest = False
        self._activation: Activation | None = None
        self._is_guest = is_guest
        make = partial(Broker, environment=environment, open_stores=open_stores, is_guest=True)
        self.colocation = Colocation.of(options, self.clients, environment, security, make)

    @property
    def is_started(self) -> bool:
        """Whether it runs, as Artemis's isStarted: a backup that waits does as well."""
        return self.lifecycle.is_started

    @property
    def is_active(self) -> bool:
        """Whether clients may come."""
        return self.lifecycle.is_active

    @property
    def jms_bridges(self) -> Mapping[str, JMSBridgeControl]:
        """What management has of its JMS bridges, by name."""
        return self._jms_bridges.controls

    @property
    def failure(self) -> Exception | None:
        """What ended the storage, the lease on it, or the broker itself."""
        return self.lifecycle.failure

    @property
    def ownership(self) -> Ownership | None:
        """Of its stores, while it has them; None also where no other broker can want them."""
        return None if self._activation is None else self._activation.ownership

    # --- start --------------------------------------------------------------------------------

    async def start(self) -> None:
        """Start, and return once the broker is active: clients may come.

        Without wait-for-activation it returns at once, and what then goes wrong is told by
        failed().

        Step one opens the web server. Step two takes the lock, for which it may have to wait, and
        the ports, loads, and listens. If it fails, nothing of it stays.

        Raises:
            JournalError: the storage is in use, damaged, or cannot be reached.
            JournalClosed: stop() was called meanwhile.
            BrokerError: what was loaded or configured cannot be; an address to listen on is taken;
                the broker was started already.
        """
        if self.lifecycle.state is not ServerState.STOPPED or not self._is_start_over.is_set():
            raise BrokerError(ErrorCode.ILLEGAL_STATE, "the broker was started already")
        self.loop = self._loop = asyncio.get_running_loop()
        if not self._is_guest:
            self._loop.set_exception_handler(exception_handler(self._storage_failed))
        self._wait = StartWait()
        self._told_to_stop.clear()
        self._failed.clear()
        self._is_start_over.clear()
        self.lifecycle.starting()
        log.info(
            "AMQ221000: %s Message Broker is starting: %s",
            "backup" if self.options.is_backup else "primary",
            self.options.name,
        )
        is_over = True
        try:
            await start_web(self, self.options.web, self.web)
            if self.options.wait_for_activation:
                await self._activate()
            else:
                is_over = False
                self._later = asyncio.create_task(self._activate_later())
        except BaseException:
            await stop_web(self.web)
            self.lifecycle.stopped()
            raise
        finally:
            if is_over:
                self._is_start_over.set()

    async def _activate_later(self) -> None:
        """Step two, which start() did not wait for: what goes wrong is a failure of the broker."""
        try:
            await self._activate()
        except (BrokerError, JournalError) as error:
            is_ended = isinstance(error, JournalClosed) and self._told_to_stop.is_set()
            if not is_ended:
                self._storage_failed(error)
        finally:
            self._is_start_over.set()

    async def _activate(self) -> None:
        """Step two; if it fails, everything of it is closed."""
        clock = self.environment.clock
        began_s = clock.monotonic_s()
        activation = self._activation = Activation(
            self.options,
            security=AllowAll() if self._given_security is None else self._given_security,
            environment=self.environment,
            configuration=self._configuration,
            lifecycle=self.lifecycle,
            clients=self.clients,
            acceptors=self.acceptors,
            jms_bridges=self._jms_bridges,
            loop=self._loop,
            wait=self._wait,
            on_failure=self._storage_failed,
            on_lost=self._lost_lease,
            on_certain=lambda: self._steps.tell(self.parts.notifications),
        )
        try:
            self.parts = await activation.load(self._open_stores)
            self.node_id = self.clients.node_id
            self.managing = activation.active.prepare(self)
            self.bridges, self.cluster = activation.active.bridges, activation.active.cluster
            await activation.serve()
        except BaseException:
            await self._give_up(hands_over=self.options.failover_on_shutdown)
            raise
        log.info(
            "AMQ221007: Server is now active: %s, node %s, after %.1f s",
            self.options.name,
            self.node_id,
            clock.monotonic_s() - began_s,
        )
        self._steps.tell(self.parts.notifications)
        ownership = self.ownership
        if self.options.is_backup and self.options.allow_failback and ownership is not None:
            self._failing_back = asyncio.create_task(
                fail_back(ownership, self.options.failback_delay, self._restart)
            )
        if self.options.is_backup and self.scale_down_choice.is_automatic and not self._has_rest:
            self._later = asyncio.create_task(
                self.scale_down_choice.of_backup(activation, self._restart)
            )
        if self.colocation is not None:
            self.colocation.start(self.cluster)
        self.on_active()

    # --- clients of this process --------------------------------------------------------------

    async def accept_in_process(self, connected: socket.socket) -> None:
        """Serve a client of this process at the other end of a connected socket (vm://).

        Args:
            connected: does not block; closed with the connection.

        Raises:
            BrokerError: the broker is not active.
        """
        acceptor = None if self._activation is None else self._activation.in_process
        if acceptor is None or not self.is_active:
            raise BrokerError(ErrorCode.ILLEGAL_STATE, "the broker is not active")
        await acceptor.accept_in_process(connected)

    # --- failure ------------------------------------------------------------------------------

    def _lost_lease(self, error: Exception) -> None:
        """From the lease's thread: no client is served from this moment, and the broker stops."""
        if self.lifecycle.fail(error):
            self._loop.call_soon_threadsafe(self._tell_failure, error)

    def _storage_failed(self, error: Exception) -> None:
        if self.lifecycle.fail(error):
            self._tell_failure(error)

    def _tell_failure(self, error: Exception) -> None:
        if isinstance(error, JournalError):
            log.critical("AMQ222010: the storage has failed, the broker stops: %s", error)
        else:
            log.critical("AMQ222010: a fault of the broker itself, it stops: %r", error)
        self._failed.set()

    async def failed(self) -> Exception:
        """Wait until the storage has failed, and give why."""
        await self.ended()
        assert self.failure is not None, "it says why"
        return self.failure

    async def ended(self) -> None:
        """Wait until the storage has failed, or it gave its place back for good."""
        await self._failed.wait()

    # --- stop ---------------------------------------------------------------------------------

    async def stop(self) -> None:
        """Disconnect everybody, make everything durable, give the lock up. Idempotent.

        With graceful-shutdown-enabled it first waits until clients have left; see `stop_waiting()`.
        If start() has not returned, that ends with JournalClosed, at once where it waits for the
        lock. Afterwards start() may be called again.

        Raises:
            JournalError: the storage had failed, or fails now.
        """
        self._told_to_stop.set()
        if not self._is_start_over.is_set():
            self.lifecycle.stopping()
            self._wait.interrupt()
            await self._is_start_over.wait()
        async with self._stop_lock:
            if self.lifecycle.state is ServerState.STOPPED:
                return
            try:
                chosen = await self.scale_down_choice.at_stop(
                    self._activation, is_active=self.is_active
                )
                hands_over = self.options.failover_on_shutdown
                await self._deactivate("it was told to stop", chosen, hands_over=hands_over)
            finally:
                await stop_web(self.web)
                self.lifecycle.stopped()

    async def scale_down(self, connector: str | None = None, *, is_forced: bool = False) -> str:
        """Move everything to another node of the cluster, and stop for good; which node.

        It begins behind the answer; the report of `scale_down_choice` has what came of it.

        Args:
            connector: name of one of the configuration; None takes a node by the policy.
            is_forced: any node will do, where none of the group is there.

        Raises:
            BrokerError: no such node is reached: nothing has happened.
        """
        if self._activation is None or not self.is_active:
            raise BrokerError(ErrorCode.ILLEGAL_STATE, "the broker is not active")
        target_id = await self.scale_down_choice.by_operator(
            self._activation, connector, is_forced=is_forced
        )

        async def stop() -> None:
            # Who asked gets the answer first.
            await asyncio.sleep(_ANSWER_S)
            try:
                await self.stop()
            except JournalError as error:
                self._storage_failed(error)
            self._failed.set()

        self._later = asyncio.create_task(stop())
        return target_id

    async def _restart(
        self,
        reason: str,
        scale_down: ScaleDown | None = None,
        *,
        is_failback: bool = False,
        hands_over: bool = True,
        stays: bool | None = None,
    ) -> None:
        """Stop all but the web server, and be active once the lock is to be had again.

        Args:
            reason: why it stops.
            scale_down: everything goes there before.
            is_failback: the primary asks.
            hands_over: another one of the pair may take over, whatever failover-on-shutdown.
            stays: if not, the broker has stopped for good when this returns; None is as
                restart-backup says.
        """
        async with self._stop_lock:
            if not self.is_active or self._told_to_stop.is_set():
                return
            if is_failback:
                self.lifecycle.failing_back(reason)
            try:
                await self._deactivate(reason, scale_down, hands_over=hands_over)
            except JournalError as error:
                self._storage_failed(error)
                return
            self._has_rest = scale_down is not None and not scale_down.report.is_complete
            if self._told_to_stop.is_set():
                return
            if not (self.options.restart_backup if stays is None else stays):
                await stop_web(self.web)
                self.lifecycle.stopped()
                self._failed.set()
                return
            self._is_start_over.clear()
            self._wait = StartWait()
            self.lifecycle.begin("starting")
        await self._activate_later()

    def give_place(self) -> None:
        """Stop, and let the other one of the pair take over, as management's forceFailover."""

        async def give() -> None:
            # Who asked gets the answer first.
            await asyncio.sleep(_ANSWER_S)
            await self._restart("it was told to give its place (forceFailover)", stays=False)

        self._later = asyncio.create_task(give())

    async def _deactivate(
        self, reason: str, scale_down: ScaleDown | None, *, hands_over: bool
    ) -> None:
        """Undo step two, whatever of it was done.

        Args:
            reason: why it stops.
            scale_down: everything goes there before; None keeps it here.
            hands_over: another one of the pair may take over, unless nothing is left.
        """
        failing_back, self._failing_back = self._failing_back, None
        if failing_back is not None and failing_back is not asyncio.current_task():
            failing_back.cancel()
        self.lifecycle.stopping(reason)
        if self.is_active:
            self._steps.tell(self.parts.notifications)
        if self.colocation is not None:
            await self.colocation.stop()
        if self._activation is not None:
            await self._activation.leave((self._failed, self._disconnects), scale_down)
        is_empty = scale_down is not None and scale_down.report.is_complete
        await self._give_up(hands_over=hands_over and not is_empty)

    def stop_waiting(self) -> None:
        """Let a stop, under way or to come, wait for no client (graceful-shutdown-enabled).

        From the event loop. Nothing is lost: the stop disconnects clients, and makes everything
        durable, as it does behind that wait.
        """
        self._disconnects.set()
        if self.colocation is not None:
            self.colocation.stop_waiting()

    async def _give_up(self, *, hands_over: bool) -> None:
        """Close what step two opened, as far as it came; `hands_over` as of _deactivate()."""
        activation, self._activation = self._activation, None
        if activation is not None:
            await activation.close(is_final=not hands_over)

    # --- the configuration --------------------------------------------------------------------

    def reload_configuration(self) -> None:
        """Read the configuration again, and apply what needs no restart.

        Raises:
            BrokerError: there is none, or it is wrong: nothing has changed.
        """
        if self._configuration is None:
            raise BrokerError(ErrorCode.ILLEGAL_STATE, "the broker has no configuration file")
        if self._activation is None or self._activation.reload is None:
            raise BrokerError(ErrorCode.ILLEGAL_STATE, "the broker is not active")
        self._activation.reload.apply()
