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
    system_property_prefix: str = element("system-property-prefix", TEXT, "brokerconfig.")
    resolve_protocols: bool = element("resolve-protocols", BOOLEAN, True)
    graceful_shutdown_enabled: bool = element("graceful-shutdown-enabled", BOOLEAN, False)
    graceful_shutdown_timeout_ms: int = element(
        "graceful-shutdown-timeout", minus_one_or_more_than(LONG, -1), -1
    )
    configuration_file_refresh_period_ms: int = element(
        "configuration-file-refresh-period", _OFF_OR_MORE, 5000
    )
    scheduled_thread_pool_max_size: int = element(
        "scheduled-thread-pool-max-size", at_least(INT, 1), 5
    )
    thread_pool_max_size: int = element("thread-pool-max-size", _POOL, 30)
    async_connection_execution_enabled: bool = element(
        "async-connection-execution-enabled", BOOLEAN, True
    )
    connection_ttl_override_ms: int = element("connection-ttl-override", _OFF_OR_MORE, -1)
    connection_ttl_check_interval_ms: int = element("connection-ttl-check-interval", _GT_0, 2000)
    transaction_timeout_ms: int = element("transaction-timeout", _GT_0, 300_000)
    transaction_timeout_scan_period_ms: int = element(
        "transaction-timeout-scan-period", _GT_0, 1000
    )
    message_expiry_scan_period_ms: int = element("message-expiry-scan-period", _OFF_OR_MORE, 30_000)
    address_queue_scan_period_ms: int = element("address-queue-scan-period", _OFF_OR_MORE, 30_000)
    id_cache_size: int = element("id-cache-size", at_least(INT, 0), 20_000)
    persist_id_cache: bool = element("persist-id-cache", BOOLEAN, True)
    wild_card_routing_enabled: bool = element("wild-card-routing-enabled", BOOLEAN, True)
    literal_match_markers: str | None = optional(
        "literal-match-markers", TEXT.within(lambda text: len(text) == 2, "two characters")
    )
    temporary_queue_namespace: str = element("temporary-queue-namespace", TEXT, "")
    uuid_namespace: str = element("uuid-namespace", TEXT, "")
    internal_naming_prefix: str = element("internal-naming-prefix", TEXT, "$.artemis.internal.")
    amqp_use_core_subscription_naming: bool = element(
        "amqp-use-core-subscription-naming", BOOLEAN, False
    )
    suppress_session_notifications: bool = element("suppress-session-notifications", BOOLEAN, False)
    mqtt_session_scan_interval_ms: int = element("mqtt-session-scan-interval", _GT_0, 5000)
    mqtt_session_state_persistence_timeout_ms: int = element(
        "mqtt-session-state-persistence-timeout", _GT_0, 5000
    )
    mqtt_subscription_persistence_enabled: bool = element(
        "mqtt-subscription-persistence-enabled", BOOLEAN, True
    )
    mirror_page_transaction: bool = element("mirror-page-transaction", BOOLEAN, False)
    mirror_ack_manager_page_attempts: int = element(
        "mirror-ack-manager-page-attempts", at_least(INT, 1), 2
    )
    mirror_ack_manager_queue_attempts: int = element(
        "mirror-ack-manager-queue-attempts", at_least(INT, 1), 5
    )
    mirror_ack_manager_retry_delay_ms: int = element(
        "mirror-ack-manager-retry-delay", at_least(INT, 1), 100
    )
    mirror_ack_manager_warn_unacked: bool = element(
        "mirror-ack-manager-warn-unacked", BOOLEAN, False
    )
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
    global_max_size_percent: int = element(
        "global-max-size-percent-of-jvm-max-memory", at_least(INT, 1), 50
    )
    global_max_messages: int = element("global-max-messages", _OFF_OR_MORE, -1)
    max_disk_usage_percent: int = element(
        "max-disk-usage", INT.within(lambda value: -1 <= value <= 100, "from 0 to 100, or -1"), 90
    )
    min_disk_free_bytes: int = element("min-disk-free", minus_one_or_more_than(SIZE, 0), -1)
    disk_scan_period_ms: int = element("disk-scan-period", _POOL, 5000)
    memory_warning_threshold_percent: int = element(
        "memory-warning-threshold", between(INT, 0, 100), 25
    )
    memory_measure_interval_ms: int = element("memory-measure-interval", _OFF_OR_MORE, -1)


@dataclass(frozen=True, slots=True, kw_only=True)
class SecurityConfig:
    """Whether and how users are checked; the permissions are elsewhere."""

    security_enabled: bool = element("security-enabled", BOOLEAN, True)
    security_invalidation_interval_ms: int = element(
        "security-invalidation-interval", _GE_0, 10_000
    )
    authentication_cache_size: int = element("authentication-cache-size", _GE_0, 1000)
    authorization_cache_size: int = element("authorization-cache-size", _GE_0, 1000)
    cluster_user: str = element("cluster-user", TEXT, DEFAULT_CLUSTER_USER)
    cluster_password: str = secret("cluster-password", DEFAULT_CLUSTER_PASSWORD)
    # None: a text ENC(…) is masked; True: every password is; False: none is.
    mask_password: bool | None = optional("mask-password", BOOLEAN)
    password_codec: str = element("password-codec", TEXT, DEFAULT_CODEC)
    populate_validated_user: bool = element("populate-validated-user", BOOLEAN, False)
    reject_empty_validated_user: bool = element("reject-empty-validated-user", BOOLEAN, False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagementConfig:
    """Management by messages and JMX, counters."""

    management_address: str = element("management-address", TEXT, "activemq.management")
    management_notification_address: str = element(
        "management-notification-address", TEXT, "activemq.notifications"
    )
    management_message_rbac: bool = element("management-message-rbac", BOOLEAN, False)
    management_rbac_prefix: str = element("management-rbac-prefix", TEXT, "mops")
    view_permission_method_match_pattern: str = element(
        "view-permission-method-match-pattern", TEXT, "^(get|is|count|list|browse|query).*$"
    )
    jmx_management_enabled: bool = element("jmx-management-enabled", BOOLEAN, True)
    jmx_domain: str = element("jmx-domain", TEXT, "org.apache.activemq.artemis")
    jmx_use_broker_name: bool = element("jmx-use-broker-name", BOOLEAN, True)
    message_counter_enabled: bool = element("message-counter-enabled", BOOLEAN, False)
    message_counter_sample_period_ms: int = element("message-counter-sample-period", _GT_0, 10_000)
    message_counter_max_day_history: int = element(
        "message-counter-max-day-history", at_least(INT, 1), 10
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchConfig:
    """How the broker watches itself and its network."""

    server_dump_interval_ms: int = element("server-dump-interval", _OFF_OR_MORE, -1)
    critical_analyzer: bool = element("critical-analyzer", BOOLEAN, True)
    critical_analyzer_timeout_ms: int = element("critical-analyzer-timeout", _GE_0, 120_000)
    # 0: half of the timeout.
    critical_analyzer_check_period_ms: int = element("critical-analyzer-check-period", _GE_0, 0)
    critical_analyzer_policy: CriticalAnalyzerPolicy = element(
        "critical-analyzer-policy", choice(CriticalAnalyzerPolicy), CriticalAnalyzerPolicy.LOG
    )
    network_check_list: str | None = optional("network-check-list", TEXT)
    network_check_url_list: str | None = optional("network-check-URL-list", TEXT)
    network_check_period_ms: int = element("network-check-period", _GT_0, 5000)
    network_check_timeout_ms: int = element("network-check-timeout", at_least(INT, 1), 1000)
    network_check_nic: str | None = optional("network-check-NIC", TEXT)
    network_check_ping_command: str | None = optional("network-check-ping-command", TEXT)
    network_check_ping6_command: str | None = optional("network-check-ping6-command", TEXT)
