"""Makes a broker's options of its configuration.

What is configured and has no effect is named by `effect`.
"""

from __future__ import annotations

import logging
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from broker.config.bootstrap import read_web_bindings
from broker.config.errors import ConfigError
from broker.config.ha import (
    Colocated,
    ReplicationBackup,
    ReplicationPrimary,
    SharedStoreBackup,
    SharedStorePrimary,
)
from broker.config.unsupported import NOTIFICATION_PLUGIN
from broker.model.routing_type import RoutingType
from broker.options import BrokerOptions, ManagementOptions, NotificationOptions, WebOptions
from broker.options.acceptors import acceptor_options
from broker.options.colocated import check_colocated
from broker.records.binding_records import Divert, Transformer
from broker.security.facade import SecurityFacade
from broker.security.login_config import read_login
from broker.security.manager import SecurityManager
from broker.sessions.resource_limits import UserLimits
from broker.settings.queue_defaults import QueueRequest
from broker.settings.settings_repository import SettingsRepository
from broker.settings.value_types import TEXTS
from broker.storage.open import REPLACEABLE, FileStoreOptions
from broker.transport.network_check import NetworkCheck
from journal.errors import OptionError

if TYPE_CHECKING:
    from broker.config.addressing import DivertConfig, QueueConfig
    from broker.config.ha import HaPolicy
    from broker.config.load import BrokerConfig
    from broker.model.address import WildcardConfiguration
    from jdbcstore.options import DatabaseStoreOptions

__all__ = [
    "broker_options",
    "memory_limit_bytes",
    "network_check_of",
    "security_of",
]

log = logging.getLogger("broker")

CGROUP_LIMIT: Final = Path("/sys/fs/cgroup/memory.max")


def broker_options(config: BrokerConfig) -> BrokerOptions:
    """What `broker.server.server.Broker` is started with.

    Raises:
        ConfigError: the engine refuses a value; a certificate cannot be read; an HA policy that
            this broker does not have.
    """
    general = config.general
    addressing = config.addressing
    policy = config.cluster.ha_policy
    pair = _pair(policy)
    backup = pair if isinstance(pair, SharedStoreBackup) else None
    settings = SettingsRepository(
        addressing.wildcards, general.literal_match_markers, general.namespace_of_uuids
    )
    settings.replace_all(addressing.address_settings)
    return BrokerOptions(
        name=general.name or "localhost",
        store=_store(config),
        is_backup=backup is not None,
        failover_on_shutdown=pair is not None and pair.failover_on_shutdown,
        shares_store=pair is not None,
        wait_for_activation=not isinstance(pair, SharedStorePrimary) or pair.wait_for_activation,
        allow_failback=backup is None or backup.allow_failback,
        failback_delay=0 if backup is None else backup.failback_delay_ms,
        restart_backup=backup is None or backup.restart_backup,
        colocated=policy if isinstance(policy, Colocated) else None,
        acceptors=tuple(acceptor_options(one, config) for one in config.cluster.acceptors),
        settings=settings,
        addresses=tuple((one.name, tuple(one.routing_types)) for one in addressing.addresses),
        queues=tuple(map(_queue_request, config.queues)),
        diverts=tuple(_divert(divert) for divert in config.diverts),
        bridges=config.cluster.bridges,
        wildcards=_wildcards(config),
        id_cache_size=general.id_cache_size,
        persist_id_cache=general.persist_id_cache,
        max_redelivery_records=config.persistence.max_redelivery_records,
        global_max_size=_global_max_size(config),
        global_max_messages=config.limits.global_max_messages,
        max_disk_usage=config.limits.max_disk_usage_percent,
        min_disk_free=config.limits.min_disk_free_bytes,
        disk_scan_period=config.limits.disk_scan_period_ms,
        purge_page_folders=config.persistence.purge_page_folders,
        page_max_concurrent_io=config.persistence.page_max_concurrent_io,
        transaction_timeout=general.transaction_timeout_ms,
        transaction_timeout_scan_period=general.transaction_timeout_scan_period_ms,
        message_expiry_scan_period=general.message_expiry_scan_period_ms,
        address_queue_scan_period=general.address_queue_scan_period_ms,
        connection_ttl_override=general.connection_ttl_override_ms,
        connection_ttl_check_interval=general.connection_ttl_check_interval_ms,
        mqtt_session_scan_interval=general.mqtt_session_scan_interval_ms,
        amqp_core_subscription_naming=general.amqp_use_core_subscription_naming,
        mqtt_subscription_persistence=general.mqtt_subscription_persistence_enabled,
        server_dump_interval=config.watch.server_dump_interval_ms,
        refresh_period=general.configuration_file_refresh_period_ms,
        management=_management(config),
        notifications=_notifications(config),
        web=_web(config),
        configuration=config,
        graceful_shutdown_timeout=general.graceful_shutdown_timeout_ms
        if general.graceful_shutdown_enabled
        else 0,
        populate_validated_user=config.security.populate_validated_user,
        reject_empty_validated_user=config.security.reject_empty_validated_user,
        persist_deliveries=config.persistence.persist_delivery_count_before_delivery,
        internal_naming_prefix=general.internal_naming_prefix,
        resource_limits={
            one.match: UserLimits(one.max_sessions, one.max_queues)
            for one in addressing.resource_limits
        },
    )


def security_of(config: BrokerConfig) -> SecurityFacade | None:
    """The security manager for this configuration; None where security is off.

    Users and roles are those of the instance's etc/.

    Raises:
        ConfigError: its login.config has no module that is known.
    """
    security = config.security
    if not security.security_enabled:
        return None
    etc = config.file.resolve().parent if config.file is not None else config.instance / "etc"
    try:
        login = read_login(etc)
    except ValueError as error:
        raise ConfigError(str(error)) from None
    for file in (login.users.users_file, login.users.roles_file):
        if not file.is_file():
            log.warning("%s is missing: only a guest can log in; see `broker user`", file)
    manager = SecurityManager(
        login.users,
        config.permissions.security_settings.permissions,
        cluster_user=security.cluster_user,
        cluster_password=security.cluster_password,
        guest=login.guest,
        certificates=login.certificates,
        invalidation_interval_ms=security.security_invalidation_interval_ms,
        authentication_cache_size=security.authentication_cache_size,
        authorization_cache_size=security.authorization_cache_size,
        wildcards=config.addressing.wildcards,
        literal_markers=config.general.literal_match_markers,
        uuid_namespace=config.general.namespace_of_uuids,
    )
    return SecurityFacade(manager)


def _wildcards(config: BrokerConfig) -> WildcardConfiguration:
    wildcards = config.addressing.wildcards
    if config.general.wild_card_routing_enabled:
        return wildcards
    return replace(wildcards, routing_enabled=False)


def network_check_of(config: BrokerConfig) -> NetworkCheck:
    """How this broker looks for its network."""
    watch = config.watch
    return NetworkCheck(
        hosts=TEXTS.parse(watch.network_check_list or ""),
        urls=TEXTS.parse(watch.network_check_url_list or ""),
        period_ms=watch.network_check_period_ms,
        timeout_ms=watch.network_check_timeout_ms,
        interface=watch.network_check_nic or None,
        ping=watch.network_check_ping_command or None,
        ping6=watch.network_check_ping6_command or None,
    )


def _management(config: BrokerConfig) -> ManagementOptions:
    management = config.management
    return ManagementOptions(
        address=management.management_address,
        rbac_prefix=management.management_rbac_prefix
        if management.management_message_rbac
        else None,
        view_pattern=management.view_permission_method_match_pattern,
    )


def _notifications(config: BrokerConfig) -> NotificationOptions:
    plugins = config.sections.broker_plugins
    flags: dict[str, bool] = {}
    for plugin in () if plugins is None else plugins.children:
        if plugin.attributes.get("class-name") == NOTIFICATION_PLUGIN:
            for item in plugin.children:
                name = item.attributes.get("key", "")
                # As Boolean.parseBoolean: everything else is false.
                flags[name] = item.attributes.get("value", "").lower() == "true"
    return NotificationOptions(
        address=config.management.management_notification_address,
        sessions=not config.general.suppress_session_notifications,
        connections=flags.get("SEND_CONNECTION_NOTIFICATIONS", False),
        addresses=flags.get("SEND_ADDRESS_NOTIFICATIONS", False),
        deliveries=flags.get("SEND_DELIVERED_NOTIFICATIONS", False),
        expiries=flags.get("SEND_EXPIRED_NOTIFICATIONS", False),
    )


def _web(config: BrokerConfig) -> tuple[WebOptions, ...]:
    if config.file is None:
        return ()
    bindings = read_web_bindings(config.file.resolve().parent, os.environ)
    return tuple(WebOptions(host=host, port=port) for host, port in bindings)


def memory_limit_bytes() -> int:
    """What this process may use: its control group's limit, or the machine's memory."""
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        text = CGROUP_LIMIT.read_text().strip()
    except OSError:
        return physical
    return min(physical, int(text)) if text.isdigit() else physical


def _global_max_size(config: BrokerConfig) -> int:
    """As configured, else a share of the memory (Artemis: of the JVM's)."""
    limits = config.limits
    if limits.global_max_size_bytes != -1:
        return limits.global_max_size_bytes
    return memory_limit_bytes() * limits.global_max_size_percent // 100


def _pair(policy: HaPolicy | None) -> SharedStorePrimary | SharedStoreBackup | None:
    """Give the policy of a pair on one store; None of a broker that is alone.

    Raises:
        ConfigError: it is of another kind. Served without it, clients would rely on a second node
            that is not there.
    """
    is_replicated = isinstance(policy, Colocated) and policy.is_replicated
    if is_replicated or isinstance(policy, ReplicationPrimary | ReplicationBackup):
        raise ConfigError(
            "<replication> of <ha-policy>: this broker does not copy its journal to another node. "
            "Take <shared-store> on a folder or a database that both nodes reach (a database may "
            "replicate itself), or a bridge to a second broker"
        )
    if isinstance(policy, Colocated):
        # Its backup's policy is that of the backups of others.
        policy = policy.primary
    return policy if isinstance(policy, SharedStorePrimary | SharedStoreBackup) else None


def _store(config: BrokerConfig) -> FileStoreOptions | DatabaseStoreOptions | None:
    persistence = config.persistence
    check_colocated(config)
    if not persistence.persistence_enabled:
        return None
    if persistence.database is not None:
        return persistence.database_options()
    # Artemis waits for ever for the lock. Outside of a pair no broker is going to release
    # it: a second start says who has it.
    waits = _pair(config.cluster.ha_policy) is not None
    timeout_ms = persistence.journal_lock_acquisition_timeout_ms
    lock = persistence.node_manager_lock_directory
    messages = persistence.journal_options(config.instance)
    bindings = persistence.bindings_options(config.instance)
    options = FileStoreOptions(
        bindings=bindings.replace(lock_acquisition_timeout_ms=0),
        messages=messages.replace(lock_acquisition_timeout_ms=0, replaceable_types=REPLACEABLE),
        large_messages=config.path(persistence.large_messages_directory),
        paging=config.path(persistence.paging_directory),
        lock_directory=None if lock is None else config.path(lock),
        lock_timeout_ms=(-1 if waits else 0) if timeout_ms is None else timeout_ms,
    )
    try:
        options.check_folders()
    except OptionError as error:
        raise ConfigError(f"{persistence.where}: {error}") from None
    return options


def _divert(divert: DivertConfig) -> Divert:
    transformer = divert.transformer
    if transformer is not None:
        stored = Transformer(transformer.class_name, transformer.properties)
    elif divert.transformer_class_name is not None:
        stored = Transformer(divert.transformer_class_name, ())
    else:
        stored = None
    return Divert(
        name=divert.name,
        address=divert.address,
        forwarding_address=divert.forwarding_address,
        routing_name=divert.routing_name or str(uuid4()),
        exclusive=divert.exclusive,
        filter=divert.filter,
        routing_type=RoutingType[divert.routing_type.name],
        transformer=stored,
    )


def _queue_request(queue: QueueConfig) -> QueueRequest:
    return QueueRequest(
        name=queue.name,
        address=queue.address or queue.name,
        filter=queue.filter,
        is_durable=queue.durable,
        is_configuration_managed=True,
        user=queue.user,
        auto_create_address=True,
        routing_type=queue.routing_type,
        max_consumers=queue.max_consumers,
        purge_on_no_consumers=queue.purge_on_no_consumers,
        exclusive=queue.exclusive,
        last_value=queue.last_value,
        last_value_key=queue.last_value_key,
        non_destructive=queue.non_destructive,
        consumers_before_dispatch=queue.consumers_before_dispatch,
        delay_before_dispatch=queue.delay_before_dispatch_ms,
        group_rebalance=queue.group_rebalance,
        group_rebalance_pause_dispatch=queue.group_rebalance_pause_dispatch,
        group_buckets=queue.group_buckets,
        group_first_key=queue.group_first_key,
        ring_size=queue.ring_size,
        enabled=queue.enabled,
    )
