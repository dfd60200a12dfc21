"""The parts of a broker, made of its options and its open stores; the lower ones first.

    options, stores ─▶ compose() ─▶ Parts ─▶ (recovery fills them) ─▶ manage() ─▶ Managing

Each gets those it uses. Where two need each other, the second is set into the first: the post
office into the notifications, the dead letters into the queues, paging and its listener into the
addresses.

Threads: the event loop's alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from broker.management.message_counters import MessageCounters
from broker.management.notifications import NotificationMessages
from broker.management.registry import Resources
from broker.management.service import Management
from broker.model.routing_type import RoutingType
from broker.paging.paging import Paging
from broker.queues.counters import Counters
from broker.queues.factory import QueueFactory
from broker.queues.flow_control import FlowControl
from broker.queues.memory import GlobalMemory
from broker.recovery.replay import Replay
from broker.routing.addresses import Addresses
from broker.routing.administration import Administration
from broker.routing.dead_letters import DeadLetters
from broker.routing.duplicates import DuplicateCaches
from broker.routing.message_copies import MessageCopies
from broker.routing.postoffice import PostOffice
from broker.routing.retroactive import Retroactive
from broker.selector.filters import parse_filter
from broker.server.stored_connectors import StoredConnectors
from broker.server.stored_permissions import StoredPermissions
from broker.server.stored_settings import StoredSettings
from broker.storage.page_work import ThreadWork
from broker.storage.page_writer import PageWriter
from broker.transactions.xa import XaTransactions

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable
    from concurrent.futures import Executor

    from broker.environment import Environment
    from broker.management.access import ManagedBroker
    from broker.options import BrokerOptions
    from broker.ports import Security
    from broker.storage.history import MessageHistory
    from broker.storage.large_bodies import LargeBodies
    from broker.storage.manager import StorageManager
    from broker.storage.open import Stores

__all__ = ["Managing", "Parts", "compose", "manage"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What a broker is made of, from one start to the next stop.

    Attributes:
        storage: where records go.
        large: bodies of large messages; None without storage for them.
        history: of the message journal; None where none is kept.
        counters: for metrics.
        security: who may do what.
        stored_settings: address settings, the recorded ones over the configured ones.
        stored_permissions: permissions, likewise.
        stored_connectors: connectors, likewise.
        notifications: who tells of what happens.
        transactions: of transaction managers.
        paging: addresses whose messages wait in pages; None where nothing is kept.
        postoffice: addresses, bindings, queues.
        dead_letters: moves messages that are rejected, redelivered too often, or expired.
        flow_control: what producers may send when something is full.
        retroactive: messages for queues to come.
        replay: sends again what the history has.
        administration: makes queues and addresses on request.
    """

    storage: StorageManager
    large: LargeBodies | None
    history: MessageHistory | None
    counters: Counters
    security: Security
    stored_settings: StoredSettings
    stored_permissions: StoredPermissions
    stored_connectors: StoredConnectors
    notifications: NotificationMessages
    transactions: XaTransactions
    paging: Paging | None
    postoffice: PostOffice
    dead_letters: DeadLetters
    flow_control: FlowControl
    retroactive: Retroactive
    replay: Replay
    administration: Administration


@dataclass(frozen=True, slots=True)
class Managing:
    """How a broker is managed by messages.

    Attributes:
        management: answers messages to the management address.
        message_counters: what queues had on earlier days.
    """

    management: Management
    message_counters: MessageCounters


def compose(
    options: BrokerOptions,
    storage: StorageManager,
    stores: Stores | None,
    *,
    security: Security,
    node_id: str,
    environment: Environment,
    loop: asyncio.AbstractEventLoop,
    is_active: Callable[[], bool],
) -> Parts:
    """Make the parts; nothing is in them yet.

    Args:
        options: what the broker is to be.
        storage: where records go.
        stores: what that writes to; None keeps nothing.
        security: who may do what.
        node_id: UUID as text.
        environment: clock, chance and threads.
        loop: whose turns they work in.
        is_active: whether clients may come.
    """
    settings = options.settings
    clock_ms = environment.clock.now_ms
    large = None if stores is None else stores.large
    history = None if stores is None else stores.history
    counters = Counters()
    notifications = NotificationMessages(
        storage, clock_ms, node_id, options.notifications, is_active
    )
    queue_factory = QueueFactory(
        storage=storage,
        timers=loop,
        clock_ms=clock_ms,
        clock_s=environment.clock.now_s,
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
    paging = _paging(options, storage, stores, addresses, copies, loop, environment.executor)
    addresses.paging = paging
    transactions = XaTransactions(
        storage=storage,
        clock_ms=clock_ms,
        monotonic_s=environment.clock.monotonic_s,
        counters=counters,
        timeout_ms=options.transaction_timeout,
    )
    postoffice = PostOffice(
        addresses=addresses,
        duplicates=duplicates,
        paging=paging,
        storage=storage,
        clock_ms=clock_ms,
        monotonic_s=environment.clock.monotonic_s,
        settings=settings,
        transactions=transactions,
        copies=copies,
        counters=counters,
    )
    notifications.postoffice = postoffice
    security.on_change(addresses.changed)
    dead_letters = queue_factory.dead_letters = DeadLetters(
        postoffice=postoffice,
        transactions=transactions,
        copies=copies,
        storage=storage,
        timers=loop,
        clock_ms=clock_ms,
        settings=settings,
        counters=counters,
        notifications=notifications,
        large=large,
        random_number=environment.chance.random,
    )
    flow_control = FlowControl(
        settings=settings,
        addresses=addresses.by_name,
        memory=addresses.memory,
        pages={} if paging is None else paging.stores,
        counters=counters,
        clock_s=environment.clock.monotonic_s,
        management_address=options.management.address,
    )
    retroactive = addresses.listener = Retroactive(
        postoffice=postoffice,
        storage=storage,
        timers=loop,
        settings=settings,
        notifications=notifications,
        parse_filter=parse_filter,
        prefix=options.internal_naming_prefix,
        delimiter=options.wildcards.delimiter,
    )
    replay = Replay(
        history=history,
        postoffice=postoffice,
        storage=storage,
        large=large,
        clock_ms=clock_ms,
        parse_filter=parse_filter,
    )
    return Parts(
        storage=storage,
        large=large,
        history=history,
        counters=counters,
        security=security,
        stored_settings=StoredSettings(storage, settings),
        stored_permissions=StoredPermissions(storage, security.permissions),
        stored_connectors=StoredConnectors(storage, options.configuration.cluster.connectors),
        notifications=notifications,
        transactions=transactions,
        paging=paging,
        postoffice=postoffice,
        dead_letters=dead_letters,
        flow_control=flow_control,
        retroactive=retroactive,
        replay=replay,
        administration=Administration(addresses, settings),
    )


def _paging(
    options: BrokerOptions,
    storage: StorageManager,
    stores: Stores | None,
    addresses: Addresses,
    copies: MessageCopies,
    loop: asyncio.AbstractEventLoop,
    executor: Callable[[int, str], Executor],
) -> Paging | None:
    if stores is None or stores.pages is None:
        return None
    writing = ThreadWork(loop, executor(1, "pages-write"))
    writer = PageWriter(writing, storage.completions, loop.call_soon)
    storage.page_writer = writer
    return Paging(
        stores.pages,
        writer,
        writing,
        ThreadWork(loop, executor(max(1, options.page_max_concurrent_io), "pages-read")),
        storage=storage,
        timers=loop,
        settings=options.settings,
        addresses=addresses,
        copy_of=copies.copy_of,
        large=stores.large,
        history=stores.history,
        page_size_max=stores.page_size_max,
        sync_transactional=stores.sync_transactional,
        sync_non_transactional=stores.sync_non_transactional,
        purges_folders=options.purge_page_folders,
    )


def manage(broker: ManagedBroker, parts: Parts, timers: asyncio.AbstractEventLoop) -> Managing:
    """Let a broker be managed by messages, and told of by notifications; after its recovery.

    Args:
        broker: that is managed.
        parts: of it.
        timers: whose turns it works in.

    Raises:
        JournalError: the storage has failed.
    """
    options, addresses = broker.options, parts.postoffice.addresses
    address = options.notifications.address
    if address not in addresses.by_name:
        # Where addresses are not created automatically, subscribers need it all the same.
        addresses.create(address, [RoutingType.MULTICAST])
    configured = options.configuration.management
    counters = MessageCounters(
        queues=addresses.queues,
        timers=timers,
        clock_ms=broker.clock_ms,
        is_enabled=configured.message_counter_enabled,
        sample_period_ms=configured.message_counter_sample_period_ms,
        day_count_max=configured.message_counter_max_day_history,
    )
    management = Management(
        postoffice=parts.postoffice,
        security=parts.security,
        storage=parts.storage,
        timers=timers,
        options=options.management,
        resource=Resources(broker).find,
    )
    return Managing(management, counters)
