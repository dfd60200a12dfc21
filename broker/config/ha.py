"""ha-policy: alone, or in a pair on one store or with copies.

The older names (live-only, master, slave, check-for-live-server) are read as the newer ones.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias

from broker.config.xml_fields import (
    Context,
    check_names,
    child_attribute,
    custom,
    element,
    nested,
    optional,
    read,
    read_groups,
)
from broker.settings.value_types import BOOLEAN, INT, LONG, TEXT, at_least, minus_one_or_more_than

if TYPE_CHECKING:
    from collections.abc import Mapping

    from broker.config.document import Element

__all__ = [
    "Colocated",
    "HaPolicy",
    "PrimaryOnly",
    "ReplicationBackup",
    "ReplicationPrimary",
    "ScaleDown",
    "SharedStoreBackup",
    "SharedStorePrimary",
    "ha_policy",
]

_GT_0: Final = at_least(LONG, 1)
_MINUS_ONE_OR_MORE: Final = minus_one_or_more_than(INT, -1)


def _connector_refs(parent: Element, context: Context) -> tuple[str, ...]:
    check_names(parent, ("connector-ref",), (), context)
    return tuple(child.text for child in parent.children if child.name == "connector-ref")


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleDown:
    """Where messages go when this node stops for good."""

    enabled: bool = element("enabled", BOOLEAN, True)
    group_name: str | None = optional("group-name", TEXT)
    discovery_group_ref: str | None = child_attribute("discovery-group-ref", "discovery-group-name")
    connector_refs: tuple[str, ...] = custom("connectors", _connector_refs, ())
    commit_interval: int = element("commit-interval", minus_one_or_more_than(INT, 0), -1)


@dataclass(frozen=True, slots=True, kw_only=True)
class PrimaryOnly:
    """No pair."""

    scale_down: ScaleDown | None = nested("scale-down", ScaleDown)


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedStorePrimary:
    """The one that serves, of a pair on one store."""

    failover_on_shutdown: bool = element("failover-on-shutdown", BOOLEAN, False)
    wait_for_activation: bool = element("wait-for-activation", BOOLEAN, True)


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedStoreBackup:
    """The one that waits."""

    allow_failback: bool = element("allow-failback", BOOLEAN, True)
    failover_on_shutdown: bool = element("failover-on-shutdown", BOOLEAN, False)
    restart_backup: bool = element("restart-backup", BOOLEAN, True)
    failback_delay_ms: int = element("failback-delay", at_least(LONG, 0), 0)
    scale_down: ScaleDown | None = nested("scale-down", ScaleDown)


@dataclass(frozen=True, slots=True, kw_only=True)
class LockManager:
    """A service that says which node serves, in place of a vote."""

    class_name: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)


def _lock_manager(parent: Element, context: Context) -> LockManager:
    check_names(parent, ("class-name", "properties"), (), context)
    properties: dict[str, str] = {}
    class_name = None
    for child in parent.children:
        if child.name == "class-name":
            class_name = child.text
        elif child.name == "properties":
            check_names(child, ("property",), (), context)
            for item in child.children:
                check_names(item, (), ("key", "value"), context)
                properties[item.attributes.get("key", "")] = item.attributes.get("value", "")
    return LockManager(class_name=class_name, properties=properties)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicationPrimary:
    """The one that serves and sends copies."""

    manager: LockManager | None = custom("manager", _lock_manager, None)
    coordination_id: str | None = optional("coordination-id", TEXT)
    check_for_active_server: bool = element(
        "check-for-active-server", BOOLEAN, True, "check-for-live-server"
    )
    group_name: str | None = optional("group-name", TEXT)
    cluster_name: str | None = optional("cluster-name", TEXT)
    max_saved_replicated_journals_size: int = element(
        "max-saved-replicated-journals-size", _MINUS_ONE_OR_MORE, 2
    )
    initial_replication_sync_timeout_ms: int = element(
        "initial-replication-sync-timeout", _GT_0, 30_000
    )
    vote_on_replication_failure: bool = element("vote-on-replication-failure", BOOLEAN, False)
    quorum_size: int = element("quorum-size", minus_one_or_more_than(INT, 0), -1)
    vote_retries: int = element("vote-retries", _MINUS_ONE_OR_MORE, 12)
    vote_retry_wait_ms: int = element("vote-retry-wait", _GT_0, 5000)
    quorum_vote_wait_s: int = element("quorum-vote-wait", at_least(INT, 1), 30)
    retry_replication_wait_ms: int = element("retry-replication-wait", _GT_0, 2000)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicationBackup:
    """The one that gets them."""

    manager: LockManager | None = custom("manager", _lock_manager, None)
    allow_failback: bool = element("allow-failback", BOOLEAN, True)
    restart_backup: bool = element("restart-backup", BOOLEAN, True)
    group_name: str | None = optional("group-name", TEXT)
    cluster_name: str | None = optional("cluster-name", TEXT)
    max_saved_replicated_journals_size: int = element(
        "max-saved-replicated-journals-size", _MINUS_ONE_OR_MORE, 2
    )
    initial_replication_sync_timeout_ms: int = element(
        "initial-replication-sync-timeout", _GT_0, 30_000
    )
    scale_down: ScaleDown | None = nested("scale-down", ScaleDown)
    vote_on_replication_failure: bool = element("vote-on-replication-failure", BOOLEAN, False)
    quorum_size: int = element("quorum-size", minus_one_or_more_than(INT, 0), -1)
    vote_retries: int = element("vote-retries", _MINUS_ONE_OR_MORE, 12)
    vote_retry_wait_ms: int = element("vote-retry-wait", _GT_0, 5000)
    quorum_vote_wait_s: int = element("quorum-vote-wait", at_least(INT, 1), 30)
    retry_replication_wait_ms: int = element("retry-replication-wait", _GT_0, 2000)


@dataclass(frozen=True, slots=True, kw_only=True)
class _SharedColocated:
    primary: SharedStorePrimary | None = nested("primary", SharedStorePrimary, "master")
    backup: SharedStoreBackup | None = nested("backup", SharedStoreBackup, "slave")


@dataclass(frozen=True, slots=True, kw_only=True)
class _ReplicatedColocated:
    primary: ReplicationPrimary | None = nested("primary", ReplicationPrimary, "master")
    backup: ReplicationBackup | None = nested("backup", ReplicationBackup, "slave")


@dataclass(frozen=True, slots=True, kw_only=True)
class Colocated:
    """A primary that has the backup of another one in its process."""

    request_backup: bool = element("request-backup", BOOLEAN, False)
    backup_request_retries: int = element("backup-request-retries", _MINUS_ONE_OR_MORE, -1)
    backup_request_retry_interval_ms: int = element("backup-request-retry-interval", _GT_0, 5000)
    max_backups: int = element("max-backups", at_least(INT, 0), 1)
    backup_port_offset: int = element("backup-port-offset", at_least(INT, 1), 100)
    excludes: tuple[str, ...] = custom("excludes", _connector_refs, ())
    primary: SharedStorePrimary | ReplicationPrimary | None = None
    backup: SharedStoreBackup | ReplicationBackup | None = None


HaPolicy: TypeAlias = (
    "PrimaryOnly | SharedStorePrimary | SharedStoreBackup | ReplicationPrimary"
    " | ReplicationBackup | Colocated"
)
_ROLES: Final = {"master": "primary", "slave": "backup"}
_POLICIES: Final[Mapping[tuple[str, str], type]] = {
    ("shared-store", "primary"): SharedStorePrimary,
    ("shared-store", "backup"): SharedStoreBackup,
    ("replication", "primary"): ReplicationPrimary,
    ("replication", "backup"): ReplicationBackup,
}


def ha_policy(parent: Element, context: Context) -> HaPolicy:
    """The policy that stands in <ha-policy>; none is primary-only, as without <ha-policy>."""
    check_names(parent, ("live-only", "primary-only", "shared-store", "replication"), (), context)
    if not parent.children:
        return PrimaryOnly()
    if len(parent.children) != 1:
        raise parent.wrong("<ha-policy> takes one of primary-only, shared-store, replication")
    kind = parent.children[0]
    if kind.name in ("live-only", "primary-only"):
        return read(PrimaryOnly, kind, context)
    check_names(kind, ("primary", "backup", "master", "slave", "colocated"), (), context)
    if not kind.children:
        return PrimaryOnly()
    if len(kind.children) != 1:
        raise kind.wrong(f"<{kind.name}> takes one of primary, backup, colocated")
    role = kind.children[0]
    if role.name == "colocated":
        return _colocated(role, context, is_replicated=kind.name == "replication")
    policy: HaPolicy = read(_POLICIES[kind.name, _ROLES.get(role.name, role.name)], role, context)
    return policy


def _colocated(parent: Element, context: Context, *, is_replicated: bool) -> Colocated:
    pair_type: type = _ReplicatedColocated if is_replicated else _SharedColocated
    settings, pair = read_groups((Colocated, pair_type), parent, context)
    return Colocated(
        request_backup=settings.request_backup,
        backup_request_retries=settings.backup_request_retries,
        backup_request_retry_interval_ms=settings.backup_request_retry_interval_ms,
        max_backups=settings.max_backups,
        backup_port_offset=settings.backup_port_offset,
        excludes=settings.excludes,
        primary=pair.primary,
        backup=pair.backup,
    )
