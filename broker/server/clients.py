"""The clients of a broker: their connections, and their sessions by name.

    protocol ─▶ Clients ─▶ Session        what a protocol sees of the broker (`protocols.peer`)

Connections are here before the broker is active, too: an acceptor's handlers are made for it. No
session is made before, and none after.

Threads: the event loop's alone.
"""

from __future__ import annotations

import itertools
import logging
from typing import TYPE_CHECKING

from broker.errors import BrokerError, ErrorCode
from broker.notifications import IN_PROCESS, NotificationType
from journal.errors import JournalError

if TYPE_CHECKING:
    from collections.abc import Callable, KeysView

    from broker.cluster.cluster_manager import ClusterManager
    from broker.cluster.topology import ClusterTopology
    from broker.environment import Clock, Ids
    from broker.management.service import Management
    from broker.notifications import Origin, Subject
    from broker.options import BrokerOptions
    from broker.protocols.peer import BackupHost, Handler, Peer
    from broker.protocols.redirection import Redirection, RoutingRefusal
    from broker.queues.consumer import Consumer
    from broker.routers.connection_routers import ConnectionRouters
    from broker.server.composition import Parts
    from broker.server.lifecycle import Lifecycle
    from broker.server.session_making import SessionMaker
    from broker.sessions.producer import Producer
    from broker.sessions.session import Session, SessionOptions

__all__ = ["Clients"]

log = logging.getLogger("broker")


class Clients:
    """Implements `protocols.peer.Sessions`.

    Args:
        options: of the broker.
        lifecycle: whether it takes clients.
        clock: tells the time.
        ids: name producers.

    Attributes:
        clock: as given.
        ids: as given.
        node_id: of the broker, once its store is open.
        parts: of the broker. Set at each start, before it is active.
        management: answers messages to the management address. Set likewise.
        maker: makes sessions of both. Set likewise.
        cluster: topologies that clients are told of. Set likewise.
        routers: that acceptors name. Set likewise; None where there are none.
        sessions: open ones, by name.
        connections: that speak a protocol, by id.
        session_count_total: since the broker was made.
        connection_count_total: likewise.
        connection_ttl_override_ms: how long any connection may be silent; -1 leaves it to clients.
        amqp_core_subscription_naming: queues of AMQP's subscriptions are named as those of Core.
        mqtt_subscription_persistence: subscriptions of MQTT sessions are stored.
        own_addresses: of management and of notifications.
        scale_down_to: the node that this one's messages go to, when it stops for good.
        on_scaled_down: called with the id of a node whose messages are all here now.
        backups: of others in this process; None where it runs none.
    """

    parts: Parts
    management: Management
    maker: SessionMaker
    cluster: ClusterManager

    def __init__(
        self, options: BrokerOptions, lifecycle: Lifecycle, clock: Clock, ids: Ids
    ) -> None:
        self.node_id = ""
        self.connection_ttl_override_ms = options.connection_ttl_override
        self.amqp_core_subscription_naming = options.amqp_core_subscription_naming
        self.mqtt_subscription_persistence = options.mqtt_subscription_persistence
        self.own_addresses: tuple[str, ...] = (
            options.management.address,
            options.notifications.address,
        )
        self.scale_down_to: str | None = None
        self.on_scaled_down: Callable[[str], object] = lambda node_id: None
        self.backups: BackupHost | None = None
        self.routers: ConnectionRouters | None = None
        self.sessions: dict[str, Session] = {}
        self.connections: dict[str, Handler] = {}
        # In the order in which they came, as all that is gone through; a set has none.
        self._handlers: dict[Handler, None] = {}
        self._slow_listeners: list[Callable[[Consumer], object]] = []
        self.session_count_total = self.connection_count_total = 0
        self._lifecycle = lifecycle
        self.clock = clock
        self.ids = ids
        self._scales_down = options.configuration.cluster.scale_down_policy is not None
        self._cluster_user = options.configuration.security.cluster_user
        self._producer_numbers = itertools.count(1)

    @property
    def is_active(self) -> bool:
        """Whether clients may come."""
        return self._lifecycle.is_active

    @property
    def handlers(self) -> KeysView[Handler]:
        """Of all connections, as they come and go."""
        return self._handlers.keys()

    def authenticate(
        self, user: str | None, password: str | None, remote: str, principal: str | None = None
    ) -> str | None:
        """Give the name of who shows the right password, or a known certificate.

        Raises:
            BrokerError: the name and the password are refused.
        """
        try:
            return self.parts.security.authenticate(user, password, principal)
        except BrokerError:
            log.warning("AMQ222216: Security problem while authenticating %r from %s", user, remote)
            self.parts.notifications.wrong_login(user, remote)
            raise

    def authenticate_principal(self, principal: str, remote: str) -> str | None:
        """Give the name of the user that a certificate is for.

        Raises:
            BrokerError: no user has that certificate.
        """
        try:
            return self.parts.security.authenticate_principal(principal)
        except BrokerError:
            log.warning(
                "AMQ222216: Security problem while authenticating %r from %s", principal, remote
            )
            self.parts.notifications.wrong_login(principal, remote)
            raise

    def is_peer(self, user: str, password: str, remote: str) -> bool:
        """Whether another broker shows the credentials of the cluster; wrong ones are told of.

        Without security any will do, as in Artemis.
        """
        if not self.parts.security.is_enabled:
            return True
        try:
            name = self.authenticate(user, password, remote)
        except BrokerError:
            return False
        # A client of another name is not a broker, whatever it may do.
        return name == self._cluster_user

    def may_come(self, node_id: str | None) -> bool:
        """Whether a client of a node may go on here: see `protocols.peer.Sessions`."""
        if node_id in (None, self.node_id):
            return True
        if self._scales_down and not self.maker.has_scaled_down(node_id):
            return False
        return not self.cluster.has_gone_elsewhere(node_id)

    def scaled_down(self, node_id: str) -> None:
        """All messages of that node are here now; known over restarts."""
        self.maker.remember_scaled_down(node_id)
        log.info("node %s has scaled down to this one", node_id)
        self.on_scaled_down(node_id)

    def topology(self, cluster_connection: str) -> ClusterTopology:
        """Give the members that the clients of an acceptor are told of.

        Args:
            cluster_connection: that the acceptor names; empty for none.
        """
        return self.cluster.topology(cluster_connection)

    # --- connections --------------------------------------------------------------------------

    def connected(self, connection: Handler) -> None:
        """One more connection speaks a protocol."""
        origin = connection.origin
        self.connections[origin.connection_id] = connection
        self._handlers[connection] = None
        self.connection_count_total += 1
        self.parts.notifications.connection(NotificationType.CONNECTION_CREATED, origin)

    def disconnected(self, connection: Handler) -> None:
        """Its socket is gone; sessions of it may still be taken up on another one."""
        origin = connection.origin
        self.connections.pop(origin.connection_id, None)
        self._handlers.pop(connection, None)
        self.parts.notifications.connection(NotificationType.CONNECTION_DESTROYED, origin)

    def route(
        self, peer: Peer, client_id: str | None, user: str | None
    ) -> Redirection | RoutingRefusal | None:
        """Ask the connection router of an acceptor where a client is served; None is here."""
        # Another broker of the cluster has to reach this very one.
        if not peer.router or user == self._cluster_user:
            return None
        # A broker without routers does not load what they need.
        from broker.routers.keys import RoutedClient

        client = RoutedClient(
            remote=peer.remote,
            client_id=client_id,
            user=user,
            roles=self.parts.security.roles_of(user),
            sni_host=peer.sni_host,
        )
        assert self.routers is not None, "an acceptor names one of them"
        return self.routers.route(peer.router, client)

    # --- sessions -----------------------------------------------------------------------------

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
        if not self._lifecycle.is_active:
            raise BrokerError(ErrorCode.SESSION_CREATION_REJECTED, "AMQ229034: Server not started")
        if name in self.sessions:
            raise BrokerError(ErrorCode.SESSION_CREATION_REJECTED, f"session {name} exists")
        self.maker.check(user, (one.user for one in self.sessions.values()))
        session = self.new_session(name, user, options, temporary, origin)
        self.sessions[name] = session
        self.session_count_total += 1
        self.parts.notifications.session(NotificationType.SESSION_CREATED, session)
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
        return self.maker.session(name, user, options, temporary, origin)

    def internal_session(self, name: str) -> Session:
        """Make a session of the broker itself: without a user, and nothing is refused to it.

        It is not listed, and no protocol can ask for it. Its caller closes it.
        """
        return self.maker.internal_session(name)

    def new_producer(self, address: str | None) -> Producer:
        """Make a producer; None sends to several addresses."""
        return self.maker.producer(address, next(self._producer_numbers))

    def close_session(self, session: Session, *, has_failed: bool) -> None:
        """End a session and forget it.

        Args:
            session: that ends.
            has_failed: its connection is lost. An error of the storage is logged then, not raised.

        Raises:
            JournalError: the storage has failed, and the connection is there.
        """
        is_known = self.sessions.get(session.name) is session
        if is_known:
            del self.sessions[session.name]
        try:
            session.close(has_failed=has_failed)
        except JournalError as error:
            if not has_failed:
                raise
            # What was not acknowledged is on the disk as it is; the broker ends by that failure.
            log.debug("session %s: %s", session.name, error)
        if is_known:
            self.parts.notifications.session(NotificationType.SESSION_CLOSED, session)

    def close_all(self) -> None:
        """End all sessions: the broker stops."""
        for session in list(self.sessions.values()):
            self.close_session(session, has_failed=True)

    def has_metadata(self, session: Session, key: str, value: str) -> bool:
        """Whether another session says this of itself."""
        return any(
            other.metadata.get(key) == value
            for other in self.sessions.values()
            if other is not session
        )

    def delete_temporary(self, names: set[str]) -> None:
        """Remove the temporary queues of a connection that is gone."""
        for name in sorted(names):
            try:
                self.parts.administration.delete_temporary(name)
            except JournalError as error:
                # No start finds it; the broker ends by that failure.
                log.debug("temporary queue %s: %s", name, error)

    # --- slow consumers -----------------------------------------------------------------------

    def owners(self) -> dict[Consumer, Session]:
        """Give whose each consumer is."""
        return {
            consumer: session
            for session in self.sessions.values()
            for consumer in session.consumers.values()
        }

    def listen_slow(self, listener: Callable[[Consumer], object]) -> None:
        """Have slow consumers told of from now on that are not killed."""
        self._slow_listeners.append(listener)

    def tell_slow(self, consumer: Consumer) -> None:
        """Let protocols tell their clients that a consumer is slow."""
        for listener in self._slow_listeners:
            listener(consumer)

    def kill(self, owner: Subject) -> None:
        """End the connection of a session with a slow consumer."""
        session = self.sessions.get(owner.name)
        connection = self.connections.get(owner.origin.connection_id)
        if session is not None and connection is not None:
            connection.kill(session)
