"""The broker: made of its options, started, stopped. Composition root.

    Broker(options) ─▶ start() ─▶ serving ─▶ stop()
                        │             └─▶ storage failed ─▶ `failure`, exit status 1
                        └ lock, bind, load, recover, listen

Everything else receives what it needs from here.

Threads: the event loop's alone, but for a database's lease, which tells of its loss from its own.
"""

from __future__ import annotations

import asyncio
import logging
import time
import traceback
import uuid
from typing import TYPE_CHECKING, Any, Final

from broker.core import Core
from broker.errors import BrokerError, ErrorCode
from broker.management.message_counters import MessageCounters
from broker.management.notifications import NotificationMessages
from broker.management.registry import Resources
from broker.management.service import Management
from broker.model.routing_type import RoutingType
from broker.notifications import IN_PROCESS, NotificationType
from broker.paging.paging import Paging
from broker.protocols.core.handler import CoreProtocol
from broker.queues.limits import Limits
from broker.queues.memory import GlobalMemory
from broker.queues.slow_consumers import SlowConsumers
from broker.recovery.images import BindingsImage
from broker.recovery.loaded_messages import LoadedMessages
from broker.recovery.recovery import recover, uncollected
from broker.routing.administration import Administration
from broker.routing.dead_letters import DeadLetters
from broker.routing.large_copies import LOOK_AGAIN_S
from broker.routing.postoffice import PostOffice
from broker.routing.retroactive import Retroactive
from broker.selector.filters import parse_filter
from broker.server.deployment import Deployment
from broker.server.disk import DiskMonitor
from broker.server.reload import Reload
from broker.server.scanner import AddressScanner, ExpiryScanner
from broker.server.server_dump import server_dump
from broker.server.stored_connectors import StoredConnectors
from broker.server.stored_permissions import StoredPermissions
from broker.server.stored_settings import StoredSettings
from broker.server.timers import Timers
from broker.sessions.resource_limits import ResourceLimits
from broker.sessions.send_marks import SendMarks
from broker.sessions.session import Session
from broker.storage.identifiers import IdGenerator
from broker.storage.manager import StorageManager
from broker.storage.null_storage import NullStorage
from broker.storage.open import Stores, open_stores
from broker.storage.page_work import ThreadWork
from broker.storage.page_writer import PageWriter
from broker.storage.pinned_files import PinnedFiles
from broker.storage.spill_file import SpillFile
from broker.storage.waiting import StartWait
from broker.transactions.xa import XaTransactions
from broker.transport.acceptor import Acceptor
from journal.errors import JournalError

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.core import Security
    from broker.management.web import WebServer
    from broker.notifications import Origin, Subject
    from broker.options import BrokerOptions
    from broker.protocols.peer import Handler
    from broker.queues.consumer import Consumer
    from broker.server.reload import ConfigurationSource
    from broker.sessions.session import SessionOptions
    from broker.storage.page_folders import PageFolders

__all__ = ["Broker"]

log = logging.getLogger("broker")

_PROGRESS_S: Final = 2.0  # Between two lines about a load.
_SLOW_CONSUMER_SCAN_MS: Final = 1000  # slow-consumer-check-period is whole seconds.
_OURS: Final = ("broker", "journal", "jdbcstore")


class Broker:
    """See the module's text.

    Args:
        options: what it is to be.
        security: who may do what; None lets everybody do everything.
        clock_ms: wall clock, ms since 1970.
        configuration: what is read again while it runs; None is never.

    Attributes:
        core: from start() on.
        node_id: from start() on.
        is_started: clients may come.
        is_stopping: it takes no new connections; clients may still be there for a while.
        sessions: open ones, by name.
        connections: that speak a protocol, by id.
        web: where metrics and health are told.
        started_ms: when it was made, ms since 1970.
        failure: what ended the storage, or the lease on it.
    """

    core: Core

    def __init__(
        self,
        options: BrokerOptions,
        *,
        security: Security | None = None,
        clock_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
        configuration: ConfigurationSource | None = None,
    ) -> None:
        self.options = options
        self._security = security
        self._clock_ms = clock_ms
        self._configuration = configuration
        self._reload: Reload | None = None
        self.node_id = ""
        self.is_started = self.is_stopping = False
        self.failure: Exception | None = None
        self.connection_ttl_override_ms = options.connection_ttl_override
        self.sessions: dict[str, Session] = {}
        self.connections: dict[str, Handler] = {}
        self.session_count_total = self.connection_count_total = 0
        self.started_ms = clock_ms()
        self.acceptors: list[Acceptor] = []
        self.web: list[WebServer] = []
        self._stores: Stores | None = None
        self._aside: SpillFile | None = None
        self._pinned: PinnedFiles | None = None
        self._failed = asyncio.Event()
        self._disconnects = asyncio.Event()
        self._timers: Timers | None = None
        # How far start() came: whether there is a core, and who speaks to clients.
        self._is_composed = False
        self._core_protocol: CoreProtocol | None = None

    # --- start --------------------------------------------------------------------------------

    async def start(self) -> None:
        """Take the lock and the ports, load, and listen.

        Raises:
            JournalError: the storage is in use, damaged, or cannot be reached.
            BrokerError: what was loaded or configured cannot be; an address to listen on is taken.
        """
        began_s = time.monotonic()
        self.is_stopping = False
        self._loop = asyncio.get_running_loop()
        self._loop.set_exception_handler(self._unhandled)
        protocol = self._core_protocol = CoreProtocol(self)
        try:
            for options in self.options.acceptors:
                self.acceptors.append(Acceptor(options, {"CORE": protocol.detect}))
            self._stores = await self._take_stores()
            with uncollected():
                self._open()
            self.administration = Administration(self.core)
            self._manage()
            self._deploy()
            await self._start_web()
            for acceptor in self.acceptors:
                if acceptor.options.auto_start:
                    await acceptor.start()
            if self._stores is not None:
                self._stores.activated()
        except BaseException:
            await self._give_up()
            raise
        self._start_timers(protocol)
        self.is_started = True
        log.info(
            "AMQ221007: Server is now active: %s, node %s, after %.1f s",
            self.options.name,
            self.node_id,
            time.monotonic() - began_s,
        )

    async def _start_web(self) -> None:
        if self.options.web:
            # A fifth of a second, and 25 MiB, that a broker without it does not pay.
            from broker.management.web import WebServer

            for options in self.options.web:
                server = WebServer(self, options)
                await server.start()
                self.web.append(server)

    async def _take_stores(self) -> Stores | None:
        """Wait for the lock and open the stores, in a thread: signals are answered meanwhile."""
        store = self.options.store
        if store is None:
            return None
        wait = StartWait()
        opening = asyncio.ensure_future(
            asyncio.to_thread(
                open_stores,
                store,
                on_lost=self._lost_lease,
                is_backup=self.options.is_backup,
                wait=wait,
            )
        )
        try:
            return await asyncio.shield(opening)
        except asyncio.CancelledError:
            wait.interrupt()
            try:
                (await opening).close(in_good_order=False)
            except JournalError as error:
                log.info("the start was ended: %s", error)
            raise

    def _open(self) -> None:
        options = self.options
        stores = self._stores
        if stores is None:
            self._bind()
            self.node_id = str(uuid.uuid1())
            self._compose(NullStorage())
            return
        # With the lock, and before what may take minutes.
        self._bind()
        self.node_id = stores.node_id
        ids = IdGenerator(stores.bindings)
        bindings = BindingsImage(ids)
        found = stores.bindings.load(bindings.take)
        ids.skip_to(found.max_id)
        aside = self._aside = SpillFile(stores.spill_folder)
        if stores.message_files is None:
            messages = LoadedMessages(aside)
            result = stores.messages.load(messages.take, progress=self._progress())
        else:
            self._pinned = PinnedFiles(stores.message_files, aside)
            messages = LoadedMessages(aside, self._pinned)
            result = stores.message_files.load(
                on_cursor=messages.take_journal, progress=self._progress()
            )
        aside.finish()
        ids.skip_to(result.max_id)
        ids.clean_up()
        storage = StorageManager(
            stores.bindings,
            stores.messages,
            ids,
            on_failure=self._storage_failed,
            max_redelivery_records=options.max_redelivery_records,
        )
        storage.start(self._loop)
        self._compose(storage)
        if stores.large is not None:
            stores.large.start(self._loop)
        self.core.large = stores.large
        self.core.history = stores.history
        self.stored_settings.load(bindings.settings)
        self.stored_permissions.load(bindings.settings)
        self.stored_connectors.load(bindings.settings)
        if stores.pages is not None:
            self.core.paging = self._paging(stores, stores.pages, storage)
        recover(self.core, bindings, messages, result.prepared)
        AddressScanner(self.core).scan(at_once=True)

    def _bind(self) -> None:
        """Take the ports; nothing can connect until the acceptors start."""
        for acceptor in self.acceptors:
            if acceptor.options.auto_start:
                acceptor.bind()

    @staticmethod
    def _progress() -> Callable[[int, int, int, int], None]:
        told_s = time.monotonic()

        def tell(files: int, file_count: int, done: int, total: int) -> None:
            nonlocal told_s
            now_s = time.monotonic()
            if now_s - told_s >= _PROGRESS_S and total:
                told_s = now_s
                log.info(
                    "loading messages: %d of %d files, %d %%",
                    files,
                    file_count,
                    done * 100 // total,
                )

        return tell

    def _compose(self, storage: StorageManager) -> None:
        options = self.options
        core = self.core = Core(
            storage=storage,
            loop=self._loop,
            clock_ms=self._clock_ms,
            settings=options.settings,
            parse_filter=parse_filter,
            id_cache_size=options.id_cache_size,
            persist_id_cache=options.persist_id_cache,
            marks=SendMarks(
                populates_user=options.populate_validated_user,
                requires_user=options.reject_empty_validated_user,
            ),
            resource_limits=ResourceLimits(options.resource_limits),
            persists_deliveries=options.persist_deliveries,
        )
        if self._security is not None:
            core.security = self._security
        self.stored_settings = StoredSettings(storage, options.settings)
        self.stored_permissions = StoredPermissions(storage, core.security.permissions)
        self.stored_connectors = StoredConnectors(storage, options.configuration.cluster.connectors)
        memory = GlobalMemory(options.global_max_size, options.global_max_messages)
        core.postoffice = PostOffice(core, memory, options.wildcards)
        core.security.on_change(core.postoffice.addresses.changed)
        core.dead_letters = DeadLetters(core)
        core.transactions = XaTransactions(core, options.transaction_timeout)
        core.limits = Limits(core)
        core.retroactive = Retroactive(
            core, options.internal_naming_prefix, options.wildcards.delimiter
        )
        self._is_composed = True

    def _paging(self, stores: Stores, folders: PageFolders, storage: StorageManager) -> Paging:
        writing = ThreadWork(self._loop, 1, "pages-write")
        writer = PageWriter(writing, storage.completions, self._loop.call_soon)
        storage.page_writer = writer
        return Paging(
            self.core,
            folders,
            storage.pages,
            writer,
            writing,
            ThreadWork(self._loop, max(1, self.options.page_max_concurrent_io), "pages-read"),
            page_size_max=stores.page_size_max,
            sync_transactional=stores.sync_transactional,
            sync_non_transactional=stores.sync_non_transactional,
            purges_folders=self.options.purge_page_folders,
        )

    def _manage(self) -> None:
        """Let it be managed by messages, and tell of what happens."""
        options, core = self.options, self.core
        address = options.notifications.address
        if address not in core.postoffice.addresses.by_name:
            # Where addresses are not created automatically, subscribers need it all the same.
            core.postoffice.addresses.create(address, [RoutingType.MULTICAST])
        management = options.configuration.management
        self.message_counters = MessageCounters(
            core,
            is_enabled=management.message_counter_enabled,
            sample_period_ms=management.message_counter_sample_period_ms,
            day_count_max=management.message_counter_max_day_history,
        )
        core.management = Management(core, options.management, Resources(self).find)
        core.notifications = NotificationMessages(
            core, self.node_id, options.notifications, lambda: self.is_started
        )

    def _deploy(self) -> None:
        """Make what the configuration names.

        Raises:
            BrokerError: a queue or a divert cannot be.
        """
        options = self.options
        deployment = Deployment(
            self.core,
            self.administration,
            kept=(options.notifications.address, options.management.address),
            deletes=options.deletes_unconfigured,
        )
        errors = deployment.apply(options.addresses, options.queues, options.diverts)
        if errors:
            raise errors[0]
        if self._configuration is not None:
            self._reload = Reload(
                self._configuration, self.stored_permissions, self.stored_settings, deployment
            )

    def _start_timers(self, protocol: CoreProtocol) -> None:
        options, core = self.options, self.core
        timers = self._timers = Timers(self._loop, self._storage_failed)
        context = core.storage.new_context()
        expiry, addresses = ExpiryScanner(core), AddressScanner(core)
        if self._stores is not None:
            disk = DiskMonitor(
                self._stores.folders,
                core.postoffice.addresses.memory,
                max_usage_percent=options.max_disk_usage,
                min_free=options.min_disk_free,
            )
            disk.look()
            timers.every(options.disk_scan_period, disk.look)
        timers.every(options.message_expiry_scan_period, expiry.scan)
        timers.every(options.address_queue_scan_period, addresses.scan)
        slow = SlowConsumers(core, self._owners, self._kill)
        timers.every(_SLOW_CONSUMER_SCAN_MS, lambda: self._look_for(slow))
        timers.every(
            options.transaction_timeout_scan_period, lambda: core.transactions.reap(context)
        )
        timers.every(options.connection_ttl_check_interval, protocol.check)
        timers.every(options.server_dump_interval, self._dump)
        if self._reload is not None:
            timers.every(options.refresh_period, self._reload.look)

    def _dump(self) -> None:
        log.info("AMQ221004: %s", server_dump(self.core, len(self.connections)))

    def _look_for(self, slow: SlowConsumers) -> None:
        """Look at all queues only if any setting asks for it: there may be very many."""
        if any(one.slow_consumer_threshold >= 0 for _, one in self.options.settings.items()):
            slow.look()

    def _owners(self) -> dict[Consumer, Session]:
        """Give whose each consumer is."""
        return {
            consumer: session
            for session in self.sessions.values()
            for consumer in session.consumers.values()
        }

    def _kill(self, owner: Subject) -> None:
        """End the connection of a session with a slow consumer."""
        session = self.sessions.get(owner.name)
        connection = self.connections.get(owner.origin.connection_id)
        if session is not None and connection is not None:
            connection.kill(session)

    # --- failure ------------------------------------------------------------------------------

    def _lost_lease(self, error: Exception) -> None:
        """From the lease's thread."""
        self._loop.call_soon_threadsafe(self._storage_failed, error)

    def _unhandled(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Stop the broker if a turn of the loop, or a timer, raised what no code caught.

        A queue's turn that ended in the middle leaves messages that are not delivered any more. As
        for a callback of the storage, the broker stops, and its next start has all that is durable.
        What a socket's transport reports, and what the loop itself raises, is only logged.
        """
        error = context.get("exception")
        loop.default_exception_handler(context)
        if isinstance(error, Exception) and "handle" in context and _is_ours(error):
            self._storage_failed(error)

    def _storage_failed(self, error: Exception) -> None:
        if self.failure is None:
            if isinstance(error, JournalError):
                log.critical("AMQ222010: the storage has failed, the broker stops: %s", error)
            else:
                log.critical("AMQ222010: a fault of the broker itself, it stops: %r", error)
            self.failure = error
            self.is_started = False
            self._failed.set()

    async def failed(self) -> Exception:
        """Wait until the storage has failed, and give why."""
        await self._failed.wait()
        assert self.failure is not None, "it says why"
        return self.failure

    # --- stop ---------------------------------------------------------------------------------

    async def stop(self) -> None:
        """Disconnect everybody, make everything durable, give the lock up. Idempotent.

        With graceful-shutdown-enabled it first waits until clients have left; see `stop_waiting()`.

        Raises:
            JournalError: the storage had failed, or fails now.
        """
        self.is_stopping = True
        for acceptor in self.acceptors:
            await acceptor.stop()
        if self.is_started:
            await self._let_clients_go()
        self.is_started = False
        if self._timers is not None:
            self._timers.cancel()
            self.message_counters.stop()
        if self._core_protocol is not None:
            self._core_protocol.disconnect_all()
        for session in list(self.sessions.values()):
            self._close_at_stop(session)
        for acceptor in self.acceptors:
            acceptor.close_connections()
        self.acceptors.clear()
        # What was written goes out in the next turns.
        await asyncio.sleep(0)
        if self._is_composed:
            await self._moved()
        await self._give_up()

    def stop_waiting(self) -> None:
        """Let a stop, under way or to come, wait for no client (graceful-shutdown-enabled).

        From the event loop. Nothing is lost: the stop disconnects clients, and makes everything
        durable, as it does behind that wait.
        """
        self._disconnects.set()

    async def _let_clients_go(self) -> None:
        """Wait until clients have left by themselves, at most so long as the options say."""
        timeout_ms = self.options.graceful_shutdown_timeout
        if timeout_ms == 0 or not any(one.connections for one in self.acceptors):
            return
        log.info("the broker stops when its clients have left (graceful-shutdown-enabled)")
        waits = [asyncio.ensure_future(one.wait_until_left()) for one in self.acceptors]
        done = asyncio.gather(*waits)
        failed = asyncio.ensure_future(self._failed.wait())
        told = asyncio.ensure_future(self._disconnects.wait())
        try:
            await asyncio.wait(
                (done, failed, told),
                timeout=None if timeout_ms < 0 else timeout_ms / 1000,
                return_when=asyncio.FIRST_COMPLETED,
            )
        finally:
            for one in (done, failed, told):
                one.cancel()
            await asyncio.gather(done, failed, told, return_exceptions=True)

    def _close_at_stop(self, session: Session) -> None:
        try:
            self.close_session(session, has_failed=True)
        except JournalError as error:
            # The storage has failed: what was not acknowledged is on the disk as it is.
            log.debug("session %s: %s", session.name, error)

    async def _moved(self) -> None:
        """Wait for what is on its way to another address: it was delivered too often already."""
        while self.core.dead_letters.is_moving and self.failure is None:  # noqa: ASYNC110 - rare.
            await asyncio.sleep(LOOK_AGAIN_S)
        self.core.dead_letters.give_up()

    async def _give_up(self) -> None:
        stores, self._stores = self._stores, None
        for acceptor in self.acceptors:
            await acceptor.stop()
        for server in self.web:
            await server.stop()
        self.web.clear()
        try:
            if stores is not None:
                self._close(stores)
        finally:
            if self._aside is not None:
                self._aside.close()
            if self._pinned is not None:
                self._pinned.close()
            if self._is_composed:
                if self.core.retroactive is not None:
                    self.core.retroactive.close()
                self.core.postoffice.close()

    def _close(self, stores: Stores) -> None:
        in_good_order = self.failure is None and self._is_composed
        paging = self.core.paging if self._is_composed else None
        try:
            if in_good_order:
                if paging is not None:
                    paging.stop()
                self.core.storage.stop()
        finally:
            if paging is not None:
                paging.close()
            is_final = not self.options.failover_on_shutdown
            stores.close(in_good_order=in_good_order and is_final)
        log.info("AMQ221002: %s, node %s, stopped", self.options.name, self.node_id)

    # --- the configuration --------------------------------------------------------------------

    def reload_configuration(self) -> None:
        """Read the configuration again, and apply what needs no restart.

        Raises:
            BrokerError: there is none, or it is wrong: nothing has changed.
        """
        if self._reload is None:
            raise BrokerError(ErrorCode.ILLEGAL_STATE, "the broker has no configuration file")
        try:
            self._reload.apply()
        except ValueError as error:
            raise BrokerError(ErrorCode.ILLEGAL_STATE, str(error)) from None

    # --- what connections need ----------------------------------------------------------------

    def authenticate(self, user: str | None, password: str | None, remote: str) -> str | None:
        """Give the name of who shows the right password.

        Raises:
            BrokerError: the name and the password are refused.
        """
        try:
            return self.core.security.authenticate(user, password)
        except BrokerError:
            log.warning("AMQ222216: Security problem while authenticating %r from %s", user, remote)
            self.core.notifications.wrong_login(user, remote)
            raise

    def connected(self, connection: Handler) -> None:
        """One more connection speaks a protocol."""
        origin = connection.origin
        self.connections[origin.connection_id] = connection
        self.connection_count_total += 1
        self.core.notifications.connection(NotificationType.CONNECTION_CREATED, origin)

    def disconnected(self, connection: Handler) -> None:
        """Its socket is gone; sessions of it may still be taken up on another one."""
        origin = connection.origin
        self.connections.pop(origin.connection_id, None)
        self.core.notifications.connection(NotificationType.CONNECTION_DESTROYED, origin)

    def create_session(
        self,
        name: str,
        user: str | None,
        options: SessionOptions,
        temporary: set[str],
        origin: Origin = IN_PROCESS,
    ) -> Session:
        """Make a session for a user who was authenticated.

        Raises:
            BrokerError: the broker takes none now, or there is one of that name.
        """
        if not self.is_started:
            raise BrokerError(ErrorCode.SESSION_CREATION_REJECTED, "AMQ229034: Server not started")
        if name in self.sessions:
            raise BrokerError(ErrorCode.SESSION_CREATION_REJECTED, f"session {name} exists")
        self.core.resource_limits.check_session(user, (one.user for one in self.sessions.values()))
        session = Session(self.core, self.administration, name, user, options, temporary, origin)
        self.sessions[name] = session
        self.session_count_total += 1
        self.core.notifications.session(NotificationType.SESSION_CREATED, session)
        return session

    def close_session(self, session: Session, *, has_failed: bool) -> None:
        """End a session and forget it."""
        is_known = self.sessions.get(session.name) is session
        if is_known:
            del self.sessions[session.name]
        session.close(has_failed=has_failed)
        if is_known:
            self.core.notifications.session(NotificationType.SESSION_CLOSED, session)

    def has_metadata(self, session: Session, key: str, value: str) -> bool:
        """Whether another session says this of itself."""
        return any(
            other.metadata.get(key) == value
            for other in self.sessions.values()
            if other is not session
        )

    def delete_temporary(self, names: set[str]) -> None:
        """Remove the temporary queues of a connection that is gone."""
        for name in names:
            self.administration.delete_temporary(name)


def _is_ours(error: Exception) -> bool:
    """Whether it was raised in, or came through, code of this broker."""
    return any(
        frame.f_globals.get("__name__", "").partition(".")[0] in _OURS
        for frame, _ in traceback.walk_tb(error.__traceback__)
    )
