"""A primary that runs backups of other nodes in its process: what such a backup is made of.

    configuration of the host ─▶ + number, folders of the other node ─▶ configuration of the backup

As in Artemis (ColocatedHAManager) a backup has all that its host's broker.xml says, but its name,
its folders and its ports. Those of its acceptors and connectors are `backup-port-offset` higher for
the first one, twice as much for the second one. Connectors in `excludes` are other nodes', and
stay. No file of the other node but its data is read.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from broker.config.errors import ConfigError
from broker.config.ha import Colocated
from broker.config.transport import PORT_MAX

if TYPE_CHECKING:
    from collections.abc import Mapping

    from broker.config.cluster import ClusterConfig
    from broker.config.cluster_connections import ClusterConnection
    from broker.config.ha import ReplicationBackup, SharedStoreBackup
    from broker.config.load import BrokerConfig
    from broker.config.transport import TransportConfig
    from broker.protocols.peer import WantedBackup

__all__ = ["Folders", "backup_configuration", "backup_name", "check_colocated"]

log = logging.getLogger("broker")

_DEFAULT_PORT: Final = 61616
_NAME: Final = "<colocated> of <ha-policy>"


class Folders(NamedTuple):
    """Where a node keeps its data; absolute.

    Attributes:
        journal: of its messages, where the lock of its node lies, too.
        bindings: of its bindings.
        large_messages: of its large messages.
        paging: of its pages.
    """

    journal: Path
    bindings: Path
    large_messages: Path
    paging: Path

    @classmethod
    def of(cls, config: BrokerConfig) -> Folders:
        """Give those of a node's own configuration."""
        found = config.persistence
        return cls(
            *(
                config.path(one).absolute()
                for one in (
                    found.journal_directory,
                    found.bindings_directory,
                    found.large_messages_directory,
                    found.paging_directory,
                )
            )
        )

    @classmethod
    def wanted(cls, wanted: WantedBackup) -> Folders | None:
        """Give those that another node tells; None where it does not tell all, or relative ones."""
        told = (wanted.journal, wanted.bindings, wanted.large_messages, wanted.paging)
        found = [Path(one) for one in told if one and Path(one).is_absolute()]
        return cls(*found) if len(found) == len(told) else None


def check_colocated(config: BrokerConfig) -> None:
    """See that a <colocated>, if there is one, can work.

    Raises:
        ConfigError: another node could not be told where the data lie, or cannot be found.
    """
    policy = config.cluster.ha_policy
    if not isinstance(policy, Colocated):
        return
    persistence = config.persistence
    if not persistence.persistence_enabled or persistence.database is not None:
        raise ConfigError(
            f"{_NAME} needs a store in a folder: a node tells another one the folders of its data, "
            "and nothing else. On a database run the backup as a process of its own, with "
            "<shared-store><backup>"
        )
    if policy.request_backup and persistence.node_manager_lock_directory is not None:
        raise ConfigError(
            f"<node-manager-lock-directory> with <request-backup> of {_NAME}: another node is not "
            "told of it, and looks for the lock in <journal-directory>. Remove it"
        )
    if policy.request_backup and not config.cluster.cluster_connections:
        raise ConfigError(
            f"<request-backup> of {_NAME} needs a <cluster-connection>: nodes of it are asked"
        )
    _warn_of_moved(config.cluster, policy)


def _warn_of_moved(cluster: ClusterConfig, policy: Colocated) -> None:
    """Connectors of others that a backup would look for elsewhere."""
    for connection in cluster.cluster_connections:
        static = connection.static_connectors
        refs = () if static is None else static.connector_refs
        moved = [name for name in refs if name not in (*policy.excludes, connection.connector_ref)]
        if moved:
            log.warning(
                "%s: connector %s of cluster-connection %s is not in <excludes>: a backup that "
                "runs here looks for that node at a port that is %d higher",
                _NAME,
                moved[0],
                connection.name,
                policy.backup_port_offset,
            )


def backup_name(number: int) -> str:
    """Give the name of a backup: the n-th of its process."""
    return f"colocated_backup_{number}"


def backup_configuration(
    config: BrokerConfig, policy: Colocated, number: int, folders: Folders
) -> BrokerConfig:
    """Give the configuration of a backup of another node.

    Args:
        config: of the node that runs it.
        policy: likewise.
        number: 1 for the first backup in this process.
        folders: of the other node.

    Raises:
        ConfigError: a port would be too high.
    """
    offset = number * policy.backup_port_offset
    cluster = config.cluster
    by_name = {one.name: one for one in cluster.connectors}
    return replace(
        config,
        general=replace(config.general, name=backup_name(number)),
        persistence=replace(
            config.persistence,
            journal_directory=str(folders.journal),
            bindings_directory=str(folders.bindings),
            large_messages_directory=str(folders.large_messages),
            paging_directory=str(folders.paging),
            node_manager_lock_directory=None,
            # It is the host's; the other node's is not told.
            retention=None,
        ),
        cluster=replace(
            cluster,
            # The system chooses a port 0 anew.
            acceptors=tuple(_moved(one, offset) if one.port else one for one in cluster.acceptors),
            connectors=tuple(
                one if one.name in policy.excludes else _moved(one, offset)
                for one in cluster.connectors
            ),
            cluster_connections=tuple(
                _with_host(one, by_name.get(one.connector_ref))
                for one in cluster.cluster_connections
            ),
            ha_policy=_scaling_down(policy.backup, cluster.cluster_connections, by_name),
        ),
    )


def _moved(transport: TransportConfig, offset: int) -> TransportConfig:
    if transport.parameters.get("httpUpgradeEnabled", "").lower() == "true":
        # As in Artemis: the port is another server's, which knows brokers by their names.
        return transport
    port = (transport.port or _DEFAULT_PORT) + offset
    if port > PORT_MAX:
        raise ConfigError(
            f"{transport.where}: {transport.name!r} of a backup would have the port {port}, which "
            f"is more than {PORT_MAX}: make <backup-port-offset> or <max-backups> smaller"
        )
    return replace(transport, port=port)


def _with_host(connection: ClusterConnection, host: TransportConfig | None) -> ClusterConnection:
    """Let a backup know the node whose process it runs in: no connector of that one names it."""
    if host is None:
        return connection
    return replace(connection, members=(*connection.members, host))


def _scaling_down(
    policy: SharedStoreBackup | ReplicationBackup,
    connections: tuple[ClusterConnection, ...],
    by_name: Mapping[str, TransportConfig],
) -> SharedStoreBackup | ReplicationBackup:
    """Let a backup hand everything to the node whose process it runs in, as in Artemis."""
    found = policy.scale_down
    if found is None:
        return policy
    own = (one for one in connections if found.cluster_name in (None, one.name))
    host = next((by_name.get(one.connector_ref) for one in own), None)
    return replace(policy, scale_down=replace(found, target=host))
