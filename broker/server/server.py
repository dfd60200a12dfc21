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

from broker.errors import BrokerError, ErrorCode
from broker.management.message_counters import MessageCounters
from broker.management.notifications import NotificationMessages
from broker.management.registry import Resources
from broker.management.service import Management
from broker.model.routing_type import RoutingType
from broker.notifications import IN_PROCESS, NotificationType
from broker.paging.paging import Paging
from broker.queues.counters import Counters
from broker.queues.factory import QueueFactory
from broker.queues.limits import Limits
from broker.queues.memory import GlobalMemory
from broker.recovery.images import BindingsImage
from broker.recovery.loaded_messages import LoadedMessages
from broker.recovery.recovery import recover, uncollected
from broker.recovery.replay import Replay
from broker.routing.addresses import Addresses
from broker.routing.administration import Administration
from broker.routing.dead_letters import DeadLetters
from broker.routing.duplicates import DuplicateCaches
from broker.routing.large_copies import LOOK_AGAIN_S
from broker.routing.message_copies import MessageCopies
from broker.routing.postoffice import PostOffice
from broker.routing.retroactive import Retroactive
from broker.security.allow_all import AllowAll
from broker.selector.filters import parse_filter
from broker.server.deployment import Deployment
from broker.server.disk import DiskMonitor
from broker.server.protocols import Protocols
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
from broker.sessions.slow_consumers import SlowConsumers
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

    from broker.management.web import WebServer
    from broker.notifications import Origin, Subject
    from broker.options import BrokerOptions
    from broker.ports import Security
    from broker.protocols.peer import Handler
    from broker.queues.consumer import Consumer
    from broker.queues.filter import Filter
    from broker.server.reload import ConfigurationSource
    from broker.sessions.session import SessionOptions
    from broker.storage.history import MessageHistory
    from broker.storage.large_bodies import LargeBodies
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
        node_id: from start() on.
        settings: of addresses.
        clock_ms: wall clock, ms since 1970.
        parse_filter: a selector's text to a Filter.
        is_started: clients may come.
        is_stopping: it takes no new connections; clients may still be there for a while.
        sessions: open ones, by name.
        connections: that speak a protocol, by id.
        web: where metrics and health are told.
        started_ms: when it was made, ms since 1970.
        failure: what ended the storage, or the lease on it.
        storage: where records go; this and all that follows from start() on.
        large: bodies of large messages; None without storage for them.
        history: of the message journal; None where none is kept.
        counters: for metrics.
        security: who may do what.
        notifications: who tells of what happens.
        transactions: of transaction managers.
        paging: addresses whose messages wait in pages; None where nothing is kept.
        postoffice: addresses, bindings, queues.
        dead_letters: moves messages that are rejected, redelivered too often, or expired.
        limits: what producers may send when something is full.
        retroactive: messages for queues to come.
        replay: sends again what the history has.
        administration: makes queues and addresses on request.
        management: answers messages to the management address.
    """

    storage: StorageManager
    large: LargeBodies | None
    history: MessageHistory | None
    counters: Counters
    security: Security
    notifications: NotificationMessages
    transactions: XaTransactions
    paging: Paging | None
    postoffice: PostOffice
    dead_letters: DeadLetters
    limits: Limits
    retroactive: Retroactive
    replay: Replay
    administration: Administration
    management: Management

    def __init__(
        self,
        options: BrokerOptions,
        *,
        security: Security | None = None,
        clock_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
        configuration: ConfigurationSource | None = None,
    ) -> None:
        self.options = options
        self.settings = options.settings
        self.clock_ms = clock_ms
        self.parse_filter: Callable[[str], Filter | None] = parse_filter
        self._given_security = security
        self._marks = SendMarks(
            populates_user=options.populate_validated_user,
            requires_user=options.reject_empty_validated_user,
        )
        self._resource_limits = ResourceLimits(options.resource_limits)
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
        # How far start() came: whether its parts are there, and who speaks to clients.
        self._is_composed = False
        self._protocols: Protocols | None = None

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
        protocols = self._protocols = Protocols(self)
        try:
            for options in self.options.acceptors:
                self.acceptors.append(Acceptor(options, protocols.for_acceptor(options)))
            self._stores = await self._take_stores()
            with uncollected():
                self._open()
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
        self._start_timers(protocols)
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
            self._compose(NullStorage(), None)
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
        self._compose(storage, stores)
        if stores.large is not None:
            stores.large.start(self._loop)
        self.stored_settings.load(bindings.settings)
        self.stored_permissions.load(bindings.settings)
        self.stored_connectors.load(bindings.settings)
        recover(
            bindings,
            messages,
            result.prepared,
            postoffice=self.postoffice,
            transactions=self.transactions,
            storage=storage,
            large=self.large,
            parse_filter=parse_filter,
        )
        AddressScanner(self.postoffice.addresses, self.settings, self.clock_ms).scan(at_once=True)

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

    def _compose(self, storage: StorageManager, stores: Stores | None) -> None:
        """Make the parts, each of those it uses; the lower ones first.

        Where two need each other, the second is set into the first: the post office into the
        notifications, the dead letters into the queues, paging into the addresses.
        """
        options, settings, clock_ms, loop = self.options, self.settings, self.clock_ms, self._loop
        self.storage = storage
        self.large = None if stores is None else stores.large
        self.history = None if stores is None else stores.history
        counters = self.counters = Counters()
        self.security = AllowAll() if self._given_security is None else self._given_security
        self.stored_settings = StoredSettings(storage, settings)
        self.stored_permissions = StoredPermissions(storage, self.security.permissions)
        self.stored_connectors = StoredConnectors(storage, options.configuration.cluster.connectors)
        notifications = self.notifications = NotificationMessages(
            storage, clock_ms, self.node_id, options.notifications, lambda: self.is_started
        )
        queue_factory = QueueFactory(
            storage=storage,
            timers=loop,
            clock_ms=clock_ms,
            settings=settings,
            parse_filter=parse_filter,
            records_deliveries=options.persist_deliveries,
        )
        duplicates = DuplicateCaches(
            storage,
            settings,
            size=options.id_cache_size,
            is_persistent=options.persist_id_cache,
        )
        addresses = Addresses(
            storage=storage,
            clock_ms=clock_ms,
            settings=settings,
            notifications=notifications,
            queue_factory=queue_factory,
            duplicates=duplicates,
            memory=GlobalMemory(options.global_max_size, options.global_max_messages),
            wildcards=options.wildcards,
        )
        copies = MessageCopies(storage)
        self.paging = None
        if stores is not None and stores.pages is not None:
            self.paging = self._make_paging(stores, stores.pages, addresses, copies)
        addresses.paging = self.paging
        transactions = self.transactions = XaTransactions(
            storage=storage,
            clock_ms=clock_ms,
            counters=counters,
            timeout_ms=options.transaction_timeout,
        )
        postoffice = self.postoffice = PostOffice(
            addresses=addresses,
            duplicates=duplicates,
            paging=self.paging,
            storage=storage,
            clock_ms=clock_ms,
            settings=settings,
            transactions=transactions,
            copies=copies,
            counters=counters,
        )
        notifications.postoffice = postoffice
        self.security.on_change(addresses.changed)
        self.dead_letters = queue_factory.dead_letters = DeadLetters(
            postoffice=postoffice,
            transactions=transactions,
            copies=copies,
            storage=storage,
            timers=loop,
            clock_ms=clock_ms,
            settings=settings,
            counters=counters,
            notifications=notifications,
            large=self.large,
        )
        self.limits = Limits(
            settings=settings,
            addresses=addresses.by_name,
            memory=addresses.memory,
            pages={} if self.paging is None else self.paging.stores,
            counters=counters,
            management_address=options.management.address,
        )
        self.retroactive = addresses.listener = Retroactive(
            postoffice=postoffice,
            storage=storage,
            timers=loop,
            settings=settings,
            notifications=notifications,
            parse_filter=parse_filter,
            prefix=options.internal_naming_prefix,
            delimiter=options.wildcards.delimiter,
        )
        self.replay = Replay(
            history=self.history,
            postoffice=postoffice,
            storage=storage,
            large=self.large,
            clock_ms=clock_ms,
            parse_filter=parse_filter,
        )
        self.administration = Administration(addresses, settings)
        self._is_composed = True

    def _make_paging(
        self, stores: Stores, folders: PageFolders, addresses: Addresses, copies: MessageCopies
    ) -> Paging:
        storage = self.storage
        writing = ThreadWork(self._loop, 1, "pages-write")
        writer = PageWriter(writing, storage.completions, self._loop.call_soon)
        storage.page_writer = writer
        return Paging(
            folders,
            writer,
            writing,
            ThreadWork(self._loop, max(1, self.options.page_max_concurrent_io), "pages-read"),
            storage=storage,
            timers=self._loop,
            settings=self.settings,
            addresses=addresses,
            copy_of=copies.copy_of,
            large=self.large,
            history=self.history,
            page_size_max=stores.page_size_max,
            sync_transactional=stores.sync_transactional,
            sync_non_transactional=stores.sync_non_transactional,
            purges_folders=self.options.purge_page_folders,
        )

    def _manage(self) -> None:
        """Let it be managed by messages."""
        options, addresses = self.options, self.postoffice.addresses
        address = options.notifications.address
        if address not in addresses.by_name:
            # Where addresses are not created automatically, subscribers need it all the same.
            addresses.create(address, [RoutingType.MULTICAST])
        management = options.configuration.management
        self.message_counters = MessageCounters(
            queues=addresses.queues,
            timers=self._loop,
            clock_ms=self.clock_ms,
            is_enabled=management.message_counter_enabled,
            sample_period_ms=management.message_counter_sample_period_ms,
            day_count_max=management.message_counter_max_day_history,
        )
        self.management = Management(
            postoffice=self.postoffice,
            security=self.security,
            storage=self.storage,
            timers=self._loop,
            options=options.management,
            resource=Resources(self).find,
        )

    def _deploy(self) -> None:
        """Make what the configuration names.

        Raises:
            BrokerError: a queue or a divert cannot be.
        """
        options = self.options
        deployment = Deployment(
            self.administration,
            kept=(options.notifications.address, options.management.address),
            addresses=self.postoffice.addresses,
            settings=self.settings,
            storage=self.storage,
            notifications=self.notifications,
            retroactive=self.retroactive,
            parse_filter=parse_filter,
            deletes=options.deletes_unconfigured,
        )
        errors = deployment.apply(options.addresses, options.queues, options.diverts)
        if errors:
            raise errors[0]
        if self._configuration is not None:
            self._reload = Reload(
                self._configuration, self.stored_permissions, self.stored_settings, deployment
            )

    def _start_timers(self, protocols: Protocols) -> None:
        options, all_addresses = self.options, self.postoffice.addresses
        timers = self._timers = Timers(self._loop, self._storage_failed)
        context = self.storage.new_context()
        expiry = ExpiryScanner(self._loop, all_addresses.queues)
        addresses = AddressScanner(all_addresses, self.settings, self.clock_ms)
        if self._stores is not None:
            disk = DiskMonitor(
                self._stores.folders,
                all_addresses.memory,
                max_usage_percent=options.max_disk_usage,
                min_free=options.min_disk_free,
            )
            disk.look()
            timers.every(options.disk_scan_period, disk.look)
        timers.every(options.message_expiry_scan_period, expiry.scan)
        timers.every(options.address_queue_scan_period, addresses.scan)
        slow = SlowConsumers(
            self.clock_ms, all_addresses.queues, self.notifications, self._owners, self._kill
        )
        timers.every(_SLOW_CONSUMER_SCAN_MS, lambda: self._look_for(slow))
        timers.every(
            options.transaction_timeout_scan_period, lambda: self.transactions.reap(context)
        )
        timers.every(options.connection_ttl_check_interval, protocols.check)
        timers.every(options.server_dump_interval, self._dump)
        if self._reload is not None:
            timers.every(options.refresh_period, self._reload.look)

    def _dump(self) -> None:
        memory, count = self.postoffice.addresses.memory, len(self.connections)
        log.info("AMQ221004: %s", server_dump(memory, self.paging, count))

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
        if self._protocols is not None:
            self._protocols.disconnect_all()
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
        while self.dead_letters.is_moving and self.failure is None:  # noqa: ASYNC110 - rare.
            await asyncio.sleep(LOOK_AGAIN_S)
        self.dead_letters.give_up()

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
                self.retroactive.close()
                self.postoffice.close()

    def _close(self, stores: Stores) -> None:
        in_good_order = self.failure is None and self._is_composed
        paging = self.paging if self._is_composed else None
        try:
            if in_good_order:
                if paging is not None:
                    paging.stop()
                self.storage.stop()
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
            return self.security.authenticate(user, password)
        except BrokerError:
            log.warning("AMQ222216: Security problem while authenticating %r from %s", user, remote)
            self.notifications.wrong_login(user, remote)
            raise

    def connected(self, connection: Handler) -> None:
        """One more connection speaks a protocol."""
        origin = connection.origin
        self.connections[origin.connection_id] = connection
        if self._protocols is not None:
            self._protocols.handlers.add(connection)
        self.connection_count_total += 1
        self.notifications.connection(NotificationType.CONNECTION_CREATED, origin)

    def disconnected(self, connection: Handler) -> None:
        """Its socket is gone; sessions of it may still be taken up on another one."""
        origin = connection.origin
        self.connections.pop(origin.connection_id, None)
        if self._protocols is not None:
            self._protocols.handlers.discard(connection)
        self.notifications.connection(NotificationType.CONNECTION_DESTROYED, origin)

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
        self._resource_limits.check_session(user, (one.user for one in self.sessions.values()))
        session = self.new_session(name, user, options, temporary, origin)
        self.sessions[name] = session
        self.session_count_total += 1
        self.notifications.session(NotificationType.SESSION_CREATED, session)
        return session

    def new_session(
        self,
        name: str,
        user: str | None,
        options: SessionOptions,
        temporary: set[str],
        origin: Origin = IN_PROCESS,
    ) -> Session:
        """Make a session that is not listed; its caller closes it."""
        return Session(
            name,
            user,
            options,
            temporary,
            origin,
            postoffice=self.postoffice,
            administration=self.administration,
            dead_letters=self.dead_letters,
            transactions=self.transactions,
            limits=self.limits,
            marks=self._marks,
            resource_limits=self._resource_limits,
            security=self.security,
            management=self.management,
            notifications=self.notifications,
            storage=self.storage,
            large=self.large,
            history=self.history,
            clock_ms=self.clock_ms,
            settings=self.settings,
            parse_filter=parse_filter,
        )

    def close_session(self, session: Session, *, has_failed: bool) -> None:
        """End a session and forget it."""
        is_known = self.sessions.get(session.name) is session
        if is_known:
            del self.sessions[session.name]
        session.close(has_failed=has_failed)
        if is_known:
            self.notifications.session(NotificationType.SESSION_CLOSED, session)

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
