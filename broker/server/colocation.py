"""A primary with <colocated>: its backups of others, and its request for one of its own.

start(), once it serves ─▶ takes requests; asks others (request-backup)
stop(), before it stops ─▶ asks no more; the backups stop
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from broker.cluster.connectors import told_connector
from broker.options.colocated import Folders
from broker.options.from_config import broker_options, security_of
from broker.security.facade import SecurityFacade
from broker.server.colocated_backups import ColocatedBackups

if TYPE_CHECKING:
    from broker.cluster.backup_requester import BackupRequester
    from broker.cluster.cluster_manager import ClusterManager
    from broker.config import BrokerConfig
    from broker.config.ha import Colocated
    from broker.environment import Environment
    from broker.options import BrokerOptions
    from broker.ports import Security
    from broker.server.clients import Clients
    from broker.server.colocated_backups import GuestBroker

__all__ = ["Colocation", "MakeGuest"]


class MakeGuest(Protocol):
    """Makes a broker that runs in the process of another one."""

    def __call__(self, options: BrokerOptions, *, security: Security | None) -> GuestBroker:
        """Make it.

        Args:
            options: what it is to be.
            security: who may do what.
        """


class Colocation:
    """See the module's text.

    Args:
        options: of the broker.
        policy: of it.
        clients: that may ask for a backup.
        environment: clock, ids, chance and network.
        security: of the broker.
        make: gives a backup.

    Attributes:
        backups: of other nodes.
        requester: asks for a backup of this one; None while it does not serve, or wants none.
    """

    def __init__(
        self,
        options: BrokerOptions,
        policy: Colocated,
        clients: Clients,
        environment: Environment,
        security: Security | None,
        make: MakeGuest,
    ) -> None:
        self._config = options.configuration
        self._policy = policy
        self._environment = environment
        self._security = security
        self._make = make
        self.requester: BackupRequester | None = None
        self.backups = clients.backups = ColocatedBackups(self._config, policy, self._guest)

    @classmethod
    def of(
        cls,
        options: BrokerOptions,
        clients: Clients,
        environment: Environment,
        security: Security | None,
        make: MakeGuest,
    ) -> Colocation | None:
        """Give that of a broker; None of one that is not colocated."""
        policy = options.colocated
        if policy is None:
            return None
        return cls(options, policy, clients, environment, security, make)

    def _guest(self, config: BrokerConfig) -> GuestBroker:
        given = self._security
        # Permissions that operators have changed are recorded in each node's store.
        security = security_of(config) if isinstance(given, SecurityFacade) else given
        # The host's web server tells of the host; a file that changes is read by that one.
        return self._make(replace(broker_options(config), web=()), security=security)

    def start(self, cluster: ClusterManager) -> None:
        """Take requests, and ask for a backup of this node.

        Args:
            cluster: that it is in now.
        """
        self.backups.open()
        if not self._policy.request_backup:
            return
        from broker.cluster.backup_requester import BackupRequester
        from broker.cluster.introduction import Identity

        connection = self._config.cluster.cluster_connections[0]
        topology = cluster.topology(connection.name)
        security = self._config.security
        by_name = {one.name: one for one in self._config.cluster.connectors}
        own = by_name.get(connection.connector_ref)
        self.requester = BackupRequester(
            self._policy,
            connection=connection,
            topology=topology,
            identity=Identity(
                topology.node_id,
                None if own is None else told_connector(own),
                security.cluster_user,
                security.cluster_password,
                topology.event_id_after,
            ),
            folders=Folders.of(self._config),
            environment=self._environment,
        )
        self.requester.start()

    def stop_waiting(self) -> None:
        """Let the backups' stops, under way or to come, wait for no client."""
        for broker in self.backups.brokers:
            broker.stop_waiting()

    async def stop(self) -> None:
        """End all of it, as far as it began. Idempotent."""
        requester, self.requester = self.requester, None
        if requester is not None:
            await requester.stop()
        await self.backups.stop()
