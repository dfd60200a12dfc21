"""ha-policy: alone, or in a pair on one store or with copies.

The older names (live-only, master, slave, check-for-live-server) are read as the newer ones.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from broker.config.xml_fields import (
    Context,
    check_names,
    child_attribute,
    custom,
    element,
    line,
    nested,
    optional,
    read,
    read_groups,
)
from broker.settings.value_types import BOOLEAN, INT, LONG, TEXT, at_least, minus_one_or_more_than

if TYPE_CHECKING:
    from collections.abc import Mapping

    from broker.config.document import Element
    from broker.config.transport import TransportConfig

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
    "scale_down_of",
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
    """Whether messages are moved when the broker stops."""
    group_name: str | None = optional("group-name", TEXT)
    """Brokers that may take part have the same name."""
    discovery_group_ref: str | None = child_attribute("discovery-group-ref", "discovery-group-name")
    """Discovery group that finds the target."""
    connector_refs: tuple[str, ...] = custom("connectors", _connector_refs, ())
    """Connectors of targets."""
    cluster_name: str | None = optional("scale-down-clustername", TEXT)
    """Cluster connection that finds the target; the first one without."""
    commit_interval: int = element("commit-interval", minus_one_or_more_than(INT, 0), -1)
    """Read, and not needed: each message leaves as soon as the target has it."""
    # In place of the elements: of a colocated backup, the node in whose process it runs.
    target: TransportConfig | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PrimaryOnly:
    """No pair."""

    scale_down: ScaleDown | None = nested("scale-down", ScaleDown)
    """Where messages go when this broker stops for good."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedStorePrimary:
    """The one that serves, of a pair on one store."""

    failover_on_shutdown: bool = element("failover-on-shutdown", BOOLEAN, False)
    """Whether the backup takes over when the broker is stopped in order, too."""
    wait_for_activation: bool = element("wait-for-activation", BOOLEAN, True)
    """Whether a start waits until the broker serves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedStoreBackup:
    """The one that waits."""

    allow_failback: bool = element("allow-failback", BOOLEAN, True)
    """Whether it gives way when its primary comes back."""
    failover_on_shutdown: bool = element("failover-on-shutdown", BOOLEAN, False)
    """Whether the backup takes over when the broker is stopped in order, too."""
    restart_backup: bool = element("restart-backup", BOOLEAN, True)
    """Whether it becomes a backup again then."""
    failback_delay_ms: int = element("failback-delay", at_least(LONG, 0), 0)
    """Wait before it gives way."""
    scale_down: ScaleDown | None = nested("scale-down", ScaleDown)
    """Where messages go when this broker stops for good."""


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
    """Lock manager that says which broker serves, in place of a vote."""
    coordination_id: str | None = optional("coordination-id", TEXT)
    """Identity of the pair for the lock manager."""
    check_for_active_server: bool = element(
        "check-for-active-server", BOOLEAN, True, "check-for-live-server"
    )
    """Whether a start asks whether the backup serves now."""
    group_name: str | None = optional("group-name", TEXT)
    """Brokers that may take part have the same name."""
    cluster_name: str | None = optional("cluster-name", TEXT)
    """Cluster connection that is used."""
    max_saved_replicated_journals_size: int = element(
        "max-saved-replicated-journals-size", _MINUS_ONE_OR_MORE, 2
    )
    """Older copies of the journal that are kept; -1 all."""
    initial_replication_sync_timeout_ms: int = element(
        "initial-replication-sync-timeout", _GT_0, 30_000
    )
    """How long the first copy may take to be confirmed."""
    vote_on_replication_failure: bool = element("vote-on-replication-failure", BOOLEAN, False)
    """Whether a primary that loses its backup asks the cluster whether it may go on."""
    quorum_size: int = element("quorum-size", minus_one_or_more_than(INT, 0), -1)
    """Votes that are needed; -1 is half of the cluster and one."""
    vote_retries: int = element("vote-retries", _MINUS_ONE_OR_MORE, 12)
    """How often a vote is repeated."""
    vote_retry_wait_ms: int = element("vote-retry-wait", _GT_0, 5000)
    """Wait before the next vote."""
    quorum_vote_wait_s: int = element("quorum-vote-wait", at_least(INT, 1), 30)
    """How long a vote may take."""
    retry_replication_wait_ms: int = element("retry-replication-wait", _GT_0, 2000)
    """Wait before a backup tries again to copy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicationBackup:
    """The one that gets them."""

    manager: LockManager | None = custom("manager", _lock_manager, None)
    """Lock manager that says which broker serves, in place of a vote."""
    allow_failback: bool = element("allow-failback", BOOLEAN, True)
    """Whether it gives way when its primary comes back."""
    restart_backup: bool = element("restart-backup", BOOLEAN, True)
    """Whether it becomes a backup again then."""
    group_name: str | None = optional("group-name", TEXT)
    """Brokers that may take part have the same name."""
    cluster_name: str | None = optional("cluster-name", TEXT)
    """Cluster connection that is used."""
    max_saved_replicated_journals_size: int = element(
        "max-saved-replicated-journals-size", _MINUS_ONE_OR_MORE, 2
    )
    """Older copies of the journal that are kept; -1 all."""
    initial_replication_sync_timeout_ms: int = element(
        "initial-replication-sync-timeout", _GT_0, 30_000
    )
    """How long the first copy may take to be confirmed."""
    scale_down: ScaleDown | None = nested("scale-down", ScaleDown)
    """Where messages go when this broker stops for good."""
    vote_on_replication_failure: bool = element("vote-on-replication-failure", BOOLEAN, False)
    """Whether a primary that loses its backup asks the cluster whether it may go on."""
    quorum_size: int = element("quorum-size", minus_one_or_more_than(INT, 0), -1)
    """Votes that are needed; -1 is half of the cluster and one."""
    vote_retries: int = element("vote-retries", _MINUS_ONE_OR_MORE, 12)
    """How often a vote is repeated."""
    vote_retry_wait_ms: int = element("vote-retry-wait", _GT_0, 5000)
    """Wait before the next vote."""
    quorum_vote_wait_s: int = element("quorum-vote-wait", at_least(INT, 1), 30)
    """How long a vote may take."""
    retry_replication_wait_ms: int = element("retry-replication-wait", _GT_0, 2000)
    """Wait before a backup tries again to copy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _SharedColocated:
    primary: SharedStorePrimary | None = nested("primary", SharedStorePrimary, "master")
    """The primary of this process."""
    backup: SharedStoreBackup | None = nested("backup", SharedStoreBackup, "slave")
    """The backup of another primary in this process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _ReplicatedColocated:
    primary: ReplicationPrimary | None = nested("primary", ReplicationPrimary, "master")
    """The primary of this process."""
    backup: ReplicationBackup | None = nested("backup", ReplicationBackup, "slave")
    """The backup of another primary in this process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Colocated:
    """A primary that has the backup of another one in its process."""

    request_backup: bool = element("request-backup", BOOLEAN, False)
    """Whether it asks others of the cluster to run a backup of it."""
    backup_request_retries: int = element("backup-request-retries", _MINUS_ONE_OR_MORE, -1)
    """How often it asks again; -1 without limit."""
    backup_request_retry_interval_ms: int = element("backup-request-retry-interval", _GT_0, 5000)
    """Wait before it asks again."""
    max_backups: int = element("max-backups", at_least(INT, 0), 1)
    """Backups of others that this process runs at most."""
    backup_port_offset: int = element("backup-port-offset", at_least(INT, 1), 100)
    """What is added to the ports of the first backup's acceptors and connectors, twice to those of
    the second one, and so on."""
    excludes: tuple[str, ...] = custom("excludes", _connector_refs, ())
    """Connectors whose ports stay as they are: those of other nodes."""
    primary: SharedStorePrimary | ReplicationPrimary = field(default_factory=SharedStorePrimary)
    backup: SharedStoreBackup | ReplicationBackup = field(default_factory=SharedStoreBackup)
    where: str = line()

    @property
    def is_replicated(self) -> bool:
        """Whether its pairs copy their journals; else they share a store."""
        return isinstance(self.primary, ReplicationPrimary)


HaPolicy: TypeAlias = (
    "PrimaryOnly | SharedStorePrimary | SharedStoreBackup | ReplicationPrimary"
    " | ReplicationBackup | Colocated"
)


def scale_down_of(policy: HaPolicy | None) -> ScaleDown | None:
    """Give what a policy says of scale-down, enabled or not; None where it says nothing."""
    if isinstance(policy, PrimaryOnly | SharedStoreBackup):
        return policy.scale_down
    return None


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
    settings: Colocated
    pair: Any
    settings, pair = read_groups((Colocated, pair_type), parent, context)
    primary_type = ReplicationPrimary if is_replicated else SharedStorePrimary
    backup_type = ReplicationBackup if is_replicated else SharedStoreBackup
    return Colocated(
        request_backup=settings.request_backup,
        backup_request_retries=settings.backup_request_retries,
        backup_request_retry_interval_ms=settings.backup_request_retry_interval_ms,
        max_backups=settings.max_backups,
        backup_port_offset=settings.backup_port_offset,
        excludes=settings.excludes,
        primary=pair.primary or primary_type(),
        backup=pair.backup or backup_type(),
        where=settings.where,
    )
