"""The scalar elements of <core>, by what they are about; defaults of ActiveMQDefaultConfiguration.

Durations are in milliseconds unless the name says otherwise. What only a JVM has (thread pools,
JMX, the critical analyzer) is read and kept, so that a file of Artemis can be used as it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

from broker.config.xml_fields import element, optional, secret, unused
from broker.security.cluster_user import DEFAULT_CLUSTER_PASSWORD, DEFAULT_CLUSTER_USER
from broker.settings.value_types import (
    BOOLEAN,
    INT,
    LONG,
    SIZE,
    TEXT,
    at_least,
    between,
    choice,
    minus_one_or_more_than,
)

__all__ = [
    "DEFAULT_CLUSTER_PASSWORD",
    "DEFAULT_CLUSTER_USER",
    "GeneralConfig",
    "LimitsConfig",
    "ManagementConfig",
    "SecurityConfig",
    "WatchConfig",
]

DEFAULT_CODEC: Final = "org.apache.activemq.artemis.utils.DefaultSensitiveStringCodec"

_GT_0: Final = at_least(LONG, 1)
_GE_0: Final = at_least(LONG, 0)
_OFF_OR_MORE: Final = minus_one_or_more_than(LONG, 0)
_POOL: Final = minus_one_or_more_than(INT, 0)


class CriticalAnalyzerPolicy(Enum):
    """What a broker that hangs does about it."""

    HALT = "HALT"
    SHUTDOWN = "SHUTDOWN"
    LOG = "LOG"


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneralConfig:
    """Name, timers, transactions, addresses as such."""

    name: str | None = optional("name", TEXT)
    """Name of the broker, in logs, metrics and management."""
    system_property_prefix: str = element("system-property-prefix", TEXT, "brokerconfig.")
    """Prefix of the JVM's system properties that override this file in Artemis."""
    resolve_protocols: bool = element("resolve-protocols", BOOLEAN, True)
    """Whether Artemis loads protocols from its class path. Here entry points name them."""
    graceful_shutdown_enabled: bool = element("graceful-shutdown-enabled", BOOLEAN, False)
    """Whether a stop waits until clients have left; new ones are refused meanwhile."""
    graceful_shutdown_timeout_ms: int = element(
        "graceful-shutdown-timeout", minus_one_or_more_than(LONG, -1), -1
    )
    """How long such a stop waits; -1 without limit."""
    configuration_file_refresh_period_ms: int = element(
        "configuration-file-refresh-period", _OFF_OR_MORE, 5000
    )
    """How often this file is looked at for changes; -1 never."""
    scheduled_thread_pool_max_size: int = element(
        "scheduled-thread-pool-max-size", at_least(INT, 1), 5
    )
    """Threads for scheduled work of Artemis."""
    thread_pool_max_size: int = element("thread-pool-max-size", _POOL, 30)
    """Threads of Artemis; -1 without limit."""
    async_connection_execution_enabled: bool = element(
        "async-connection-execution-enabled", BOOLEAN, True
    )
    """Whether Artemis handles packets on threads of its pool."""
    connection_ttl_override_ms: int = element("connection-ttl-override", _OFF_OR_MORE, -1)
    """Silence that ends a connection, in place of what the client asked for; -1 leaves it to the
    client."""
    connection_ttl_check_interval_ms: int = element("connection-ttl-check-interval", _GT_0, 2000)
    """How often connections are looked at for silence."""
    transaction_timeout_ms: int = element("transaction-timeout", _GT_0, 300_000)
    """Age at which an XA transaction that was not prepared is rolled back."""
    transaction_timeout_scan_period_ms: int = element(
        "transaction-timeout-scan-period", _GT_0, 1000
    )
    """How often transactions are looked at for their age."""
    message_expiry_scan_period_ms: int = element("message-expiry-scan-period", _OFF_OR_MORE, 30_000)
    """How often queues are searched for expired messages; -1 never. Messages also expire when they
    are about to be delivered."""
    address_queue_scan_period_ms: int = element("address-queue-scan-period", _OFF_OR_MORE, 30_000)
    """How often unused queues and addresses are looked for, to delete those that were created
    automatically; -1 never."""
    id_cache_size: int = element("id-cache-size", at_least(INT, 0), 20_000)
    """Duplicate ids that each address remembers; the oldest is forgotten first."""
    persist_id_cache: bool = element("persist-id-cache", BOOLEAN, True)
    """Whether duplicate ids are stored, so that a restarted broker still knows them."""
    wild_card_routing_enabled: bool = element("wild-card-routing-enabled", BOOLEAN, True)
    """Older form of `routing-enabled` in `wildcard-addresses`."""
    literal_match_markers: str | None = optional(
        "literal-match-markers", TEXT.within(lambda text: len(text) == 2, "two characters")
    )
    """Two characters; a match between them, such as `(a.#)`, means exactly that address. Without,
    every match may have wildcards."""
    temporary_queue_namespace: str = element("temporary-queue-namespace", TEXT, "")
    """Older name of `uuid-namespace`."""
    uuid_namespace: str = element("uuid-namespace", TEXT, "")
    """Prefix that settings of addresses see before names which are UUIDs: temporary queues."""
    internal_naming_prefix: str = element("internal-naming-prefix", TEXT, "$.artemis.internal.")
    """Prefix of the addresses and queues that the broker makes for itself."""
    amqp_use_core_subscription_naming: bool = element(
        "amqp-use-core-subscription-naming", BOOLEAN, False
    )
    """Whether the queues of AMQP's subscriptions are named as those of Core."""
    suppress_session_notifications: bool = element("suppress-session-notifications", BOOLEAN, False)
    """Whether SESSION_CREATED and SESSION_CLOSED are left out of notifications."""
    mqtt_session_scan_interval_ms: int = element("mqtt-session-scan-interval", _GT_0, 5000)
    """How often MQTT sessions that have expired are looked for."""
    mqtt_session_state_persistence_timeout_ms: int = element(
        "mqtt-session-state-persistence-timeout", _GT_0, 5000
    )
    """Read, and of no effect, as in Artemis: how long storing the state of an MQTT session might
    take."""
    mqtt_subscription_persistence_enabled: bool = element(
        "mqtt-subscription-persistence-enabled", BOOLEAN, True
    )
    """Whether subscriptions of MQTT sessions are stored. If not, a client subscribes again after a
    restart."""
    mirror_page_transaction: bool = element("mirror-page-transaction", BOOLEAN, False)
    """Whether mirroring stores its state for pages in transactions."""
    mirror_ack_manager_page_attempts: int = element(
        "mirror-ack-manager-page-attempts", at_least(INT, 1), 2
    )
    """How often a mirrored acknowledgement is looked for in pages."""
    mirror_ack_manager_queue_attempts: int = element(
        "mirror-ack-manager-queue-attempts", at_least(INT, 1), 5
    )
    """How often a mirrored acknowledgement is looked for in memory."""
    mirror_ack_manager_retry_delay_ms: int = element(
        "mirror-ack-manager-retry-delay", at_least(INT, 1), 100
    )
    """Wait between these attempts."""
    mirror_ack_manager_warn_unacked: bool = element(
        "mirror-ack-manager-warn-unacked", BOOLEAN, False
    )
    """Whether a mirrored acknowledgement without its message is logged."""
    obsolete: None = unused("log-delegate-factory-class-name", "message-expiry-thread-priority")

    @property
    def namespace_of_uuids(self) -> str:
        """uuid-namespace, which was called temporary-queue-namespace before."""
        return self.uuid_namespace or self.temporary_queue_namespace


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitsConfig:
    """Memory and disk of the whole broker."""

    # -1: half of what the machine has, see global_max_size_percent.
    global_max_size_bytes: int = element("global-max-size", minus_one_or_more_than(SIZE, 0), -1)
    """Bytes of messages in memory, of all addresses together, from which each address does what its
    `address-full-policy` says. -1: `global-max-size-percent-of-jvm-max-memory`."""
    global_max_size_percent: int = element(
        "global-max-size-percent-of-jvm-max-memory", at_least(INT, 1), 50
    )
    """Percentage of the machine's memory, or of its container's, that `global-max-size` is without
    a value."""
    global_max_messages: int = element("global-max-messages", _OFF_OR_MORE, -1)
    """Messages in memory, of all addresses together, from which each address does what its policy
    says; -1 without limit."""
    max_disk_usage_percent: int = element(
        "max-disk-usage", INT.within(lambda value: -1 <= value <= 100, "from 0 to 100, or -1"), 90
    )
    """Percentage of the disk in use from which producers block; -1 never."""
    min_disk_free_bytes: int = element("min-disk-free", minus_one_or_more_than(SIZE, 0), -1)
    """Free bytes of the disk below which producers block, in place of `max-disk-usage`; -1 off."""
    disk_scan_period_ms: int = element("disk-scan-period", _POOL, 5000)
    """How often the disk is looked at; -1 never."""
    memory_warning_threshold_percent: int = element(
        "memory-warning-threshold", between(INT, 0, 100), 25
    )
    """Percentage of free memory of a JVM below which Artemis logs a warning."""
    memory_measure_interval_ms: int = element("memory-measure-interval", _OFF_OR_MORE, -1)
    """How often Artemis measures the memory of its JVM; -1 never."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SecurityConfig:
    """Whether and how users are checked; the permissions are elsewhere."""

    security_enabled: bool = element("security-enabled", BOOLEAN, True)
    """Whether users, passwords and permissions are checked."""
    security_invalidation_interval_ms: int = element(
        "security-invalidation-interval", _GE_0, 10_000
    )
    """How long answers about logins and permissions are remembered; 0 asks each time."""
    authentication_cache_size: int = element("authentication-cache-size", _GE_0, 1000)
    """Logins that are remembered."""
    authorization_cache_size: int = element("authorization-cache-size", _GE_0, 1000)
    """Permissions that are remembered."""
    cluster_user: str = element("cluster-user", TEXT, DEFAULT_CLUSTER_USER)
    """User as which brokers of a cluster and bridges log in to each other."""
    cluster_password: str = secret("cluster-password", DEFAULT_CLUSTER_PASSWORD)
    """Password of `cluster-user`; brokers of one cluster have the same."""
    # None: a text ENC(…) is masked; True: every password is; False: none is.
    mask_password: bool | None = optional("mask-password", BOOLEAN)
    """Whether passwords in this file are masked. Without: those written `ENC(…)` are."""
    password_codec: str = element("password-codec", TEXT, DEFAULT_CODEC)
    """Class of Artemis's codec for masked passwords, and its parameters. The default codec is the
    one that works here."""
    populate_validated_user: bool = element("populate-validated-user", BOOLEAN, False)
    """Whether a message gets the name of the user who sent it, as `_AMQ_VALIDATED_USER`."""
    reject_empty_validated_user: bool = element("reject-empty-validated-user", BOOLEAN, False)
    """Whether messages of clients without a user name are refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagementConfig:
    """Management by messages and JMX, counters."""

    management_address: str = element("management-address", TEXT, "activemq.management")
    """Address that requests to management are sent to."""
    management_notification_address: str = element(
        "management-notification-address", TEXT, "activemq.notifications"
    )
    """Address that notifications are sent to."""
    management_message_rbac: bool = element("management-message-rbac", BOOLEAN, False)
    """Whether requests also need the permission `view` or `edit` at the resource."""
    management_rbac_prefix: str = element("management-rbac-prefix", TEXT, "mops")
    """First word of the addresses that these permissions are set for."""
    view_permission_method_match_pattern: str = element(
        "view-permission-method-match-pattern", TEXT, "^(get|is|count|list|browse|query).*$"
    )
    """Regular expression of the operations that need `view`; others need `edit`."""
    jmx_management_enabled: bool = element("jmx-management-enabled", BOOLEAN, True)
    """Whether Artemis registers its controls in JMX."""
    jmx_domain: str = element("jmx-domain", TEXT, "org.apache.activemq.artemis")
    """Domain of Artemis's names in JMX."""
    jmx_use_broker_name: bool = element("jmx-use-broker-name", BOOLEAN, True)
    """Whether names in JMX have the broker's name."""
    message_counter_enabled: bool = element("message-counter-enabled", BOOLEAN, False)
    """Whether a counter samples each queue."""
    message_counter_sample_period_ms: int = element("message-counter-sample-period", _GT_0, 10_000)
    """How often the counters sample."""
    message_counter_max_day_history: int = element(
        "message-counter-max-day-history", at_least(INT, 1), 10
    )
    """Days that the counters remember."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchConfig:
    """How the broker watches itself and its network."""

    server_dump_interval_ms: int = element("server-dump-interval", _OFF_OR_MORE, -1)
    """How often the log gets a line about the broker's state; -1 never."""
    # Not of Artemis.
    stranded_message_period_ms: int = element("stranded-message-period", _OFF_OR_MORE, 60_000)
    """How long a message may wait in a cluster although a consumer takes it, until the log has a
    warning; -1 never.
    """
    critical_analyzer: bool = element("critical-analyzer", BOOLEAN, True)
    """Whether Artemis watches its own threads."""
    critical_analyzer_timeout_ms: int = element("critical-analyzer-timeout", _GE_0, 120_000)
    """How long a critical part of Artemis may take."""
    # 0: half of the timeout.
    critical_analyzer_check_period_ms: int = element("critical-analyzer-check-period", _GE_0, 0)
    """How often this is looked at; 0 is half of the timeout."""
    critical_analyzer_policy: CriticalAnalyzerPolicy = element(
        "critical-analyzer-policy", choice(CriticalAnalyzerPolicy), CriticalAnalyzerPolicy.LOG
    )
    """What Artemis does when a part takes longer."""
    network_check_list: str | None = optional("network-check-list", TEXT)
    """Addresses, separated by commas, that are pinged; the broker stops while none of them answers.
    """
    network_check_url_list: str | None = optional("network-check-URL-list", TEXT)
    """Likewise URLs that are fetched."""
    network_check_period_ms: int = element("network-check-period", _GT_0, 5000)
    """How often they are asked."""
    network_check_timeout_ms: int = element("network-check-timeout", at_least(INT, 1), 1000)
    """How long an answer may take."""
    network_check_nic: str | None = optional("network-check-NIC", TEXT)
    """Network interface that the ping goes out of."""
    network_check_ping_command: str | None = optional("network-check-ping-command", TEXT)
    """Command that pings an IPv4 address; `%d` is the timeout in seconds, `%s` the address."""
    network_check_ping6_command: str | None = optional("network-check-ping6-command", TEXT)
    """Likewise an IPv6 address."""
