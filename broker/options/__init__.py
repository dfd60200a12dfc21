"""The options of a broker, as plain values; `from_config` makes them of a broker.xml."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from broker.config import BrokerConfig
from broker.model.address import DEFAULT_WILDCARDS, WildcardConfiguration
from broker.settings.settings_repository import SettingsRepository
from broker.transport.acceptor import AcceptorOptions

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from broker.config.cluster import BridgeConfig
    from broker.config.ha import Colocated
    from broker.model.routing_type import RoutingType
    from broker.records.binding_records import Divert
    from broker.sessions.resource_limits import UserLimits
    from broker.settings.queue_defaults import QueueRequest
    from broker.storage.open import FileStoreOptions
    from jdbcstore.options import DatabaseStoreOptions

__all__ = ["BrokerOptions", "ManagementOptions", "NotificationOptions", "WebOptions"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagementOptions:
    """How a broker is managed.

    Attributes:
        address: requests go there (management-address).
        rbac_prefix: permissions `view` and `edit` are looked up at PREFIX.resource.operation
            (management-message-rbac, management-rbac-prefix); None looks up none.
        view_pattern: operations that only look (view-permission-method-match-pattern).
    """

    address: str = "activemq.management"
    rbac_prefix: str | None = None
    view_pattern: str = "^(get|is|count|list|browse|query).*$"


@dataclass(frozen=True, slots=True, kw_only=True)
class NotificationOptions:
    """The optional notifications; all others are always sent.

    Attributes:
        address: where to (management-notification-address).
        sessions: SESSION_CREATED, _CLOSED (suppress-session-notifications is the contrary).
        connections: CONNECTION_CREATED, _DESTROYED (SEND_CONNECTION_NOTIFICATIONS).
        addresses: ADDRESS_ADDED, _REMOVED (SEND_ADDRESS_NOTIFICATIONS).
        deliveries: MESSAGE_DELIVERED (SEND_DELIVERED_NOTIFICATIONS).
        expiries: MESSAGE_EXPIRED (SEND_EXPIRED_NOTIFICATIONS).
    """

    address: str = "activemq.notifications"
    sessions: bool = True
    connections: bool = False
    addresses: bool = False
    deliveries: bool = False
    expiries: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class WebOptions:
    """Where metrics and health are told over HTTP.

    Attributes:
        host: address or name.
        port: 0 lets the system choose.
    """

    host: str = "localhost"
    port: int = 8161


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerOptions:
    """See the module's text. Names and defaults are broker.xml's; times in ms.

    Attributes:
        name: of the broker.
        store: files or a database; None keeps nothing (persistence-enabled false).
        is_backup: of a pair on one store: it waits until the primary fails.
        failover_on_shutdown: the other one of the pair takes over at a stop in good order, too.
        shares_store: it is one of a pair on one store: the primary asks a backup that serves for
            its place.
        wait_for_activation: a start ends once clients may come; if not, it ends at once.
        allow_failback: a backup that serves gives its place to the primary that asks for it.
        failback_delay: milliseconds that it lets the primary ask before.
        restart_backup: it waits again afterwards; if not, it stops.
        colocated: it is a primary that runs backups of others in its process; None is not.
        acceptors: where it listens.
        settings: of addresses.
        addresses: that are there when it has started, with their routing types.
        queues: likewise; what is there with other attributes is changed.
        diverts: configured ones.
        bridges: core bridges, likewise; None for tools that open an instance: none runs, those
            that operators made neither.
        wildcards: how patterns of addresses are written.
        id_cache_size: duplicate ids an address remembers.
        persist_id_cache: and keeps over a restart.
        max_redelivery_records: delivery counts above this one are not recorded; -1 all are.
        global_max_size: bytes that all messages in memory may take; -1 without limit.
        global_max_messages: how many; -1 without limit.
        max_disk_usage: percent of a disk from which on producers are blocked; -1 never.
        min_disk_free: bytes below which they are, instead of that; -1 never.
        disk_scan_period: between two looks at the disks.
        purge_page_folders: an address that leaves paging keeps no folder for pages.
        page_max_concurrent_io: pages that are read at the same time.
        transaction_timeout: of an XA transaction that is not prepared.
        transaction_timeout_scan_period: between two looks for such.
        message_expiry_scan_period: between two looks for expired messages; -1 never.
        address_queue_scan_period: between two looks for unused queues; -1 never.
        connection_ttl_override: silence that ends a connection, whatever it asks for; -1 its own.
        connection_ttl_check_interval: between two looks for such.
        mqtt_session_scan_interval: between two looks for MQTT sessions that have expired.
        amqp_core_subscription_naming: queues of AMQP's subscriptions are named as those of Core.
        mqtt_subscription_persistence: subscriptions of MQTT sessions are stored.
        server_dump_interval: between two lines about the broker's state in the log; -1 never.
        refresh_period: between two looks whether the configuration has changed; -1 never.
        deletes_unconfigured: config-delete-* is obeyed; off for tools that open an instance.
        graceful_shutdown_timeout: a stop waits so long for clients to go; 0 not at all, -1 as long
            as they take.
        populate_validated_user: messages say which user sent them.
        reject_empty_validated_user: those that do not are refused.
        persist_deliveries: delivery counts are recorded before a message is written.
        internal_naming_prefix: of names of the broker's own.
        resource_limits: sessions and queues that a user may have, by user.
        management: requests by messages.
        notifications: what is told by messages.
        web: metrics and health over HTTP; none is served without.
        jms_bridges: folder with a .toml for each JMS bridge that runs in the broker; None has none.
        configuration: what a broker.xml says, for operators to read; every default without one.
    """

    name: str = "localhost"
    store: FileStoreOptions | DatabaseStoreOptions | None = None
    is_backup: bool = False
    failover_on_shutdown: bool = False
    shares_store: bool = False
    wait_for_activation: bool = True
    allow_failback: bool = True
    failback_delay: int = 0
    restart_backup: bool = True
    colocated: Colocated | None = None
    acceptors: tuple[AcceptorOptions, ...] = (AcceptorOptions(),)
    settings: SettingsRepository = field(default_factory=SettingsRepository)
    addresses: tuple[tuple[str, tuple[RoutingType, ...]], ...] = ()
    queues: tuple[QueueRequest, ...] = ()
    diverts: tuple[Divert, ...] = ()
    bridges: tuple[BridgeConfig, ...] | None = ()
    wildcards: WildcardConfiguration = DEFAULT_WILDCARDS
    id_cache_size: int = 20000
    persist_id_cache: bool = True
    max_redelivery_records: int = 10
    global_max_size: int = -1
    global_max_messages: int = -1
    max_disk_usage: int = -1
    min_disk_free: int = -1
    disk_scan_period: int = 5000
    purge_page_folders: bool = False
    page_max_concurrent_io: int = 5
    transaction_timeout: int = 300_000
    transaction_timeout_scan_period: int = 1000
    message_expiry_scan_period: int = 30_000
    address_queue_scan_period: int = 30_000
    connection_ttl_override: int = -1
    connection_ttl_check_interval: int = 2000
    mqtt_session_scan_interval: int = 5000
    amqp_core_subscription_naming: bool = False
    mqtt_subscription_persistence: bool = True
    server_dump_interval: int = -1
    refresh_period: int = 5000
    deletes_unconfigured: bool = True
    graceful_shutdown_timeout: int = 0
    populate_validated_user: bool = False
    reject_empty_validated_user: bool = False
    persist_deliveries: bool = False
    internal_naming_prefix: str = "$.artemis.internal."
    resource_limits: Mapping[str, UserLimits] = field(default_factory=dict)
    management: ManagementOptions = field(default_factory=ManagementOptions)
    notifications: NotificationOptions = field(default_factory=NotificationOptions)
    web: tuple[WebOptions, ...] = ()
    jms_bridges: Path | None = None
    configuration: BrokerConfig = field(default_factory=BrokerConfig)
