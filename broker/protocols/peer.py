"""What a protocol, a socket and the broker want of each other; none knows more than this.

socket ─▶ Handler ─▶ Sessions (the broker) ─▶ Session
▲────── Peer ◀──┘
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from broker.discovery.topology import Departure, Member, MemberUpdate
    from broker.environment import Clock, Ids
    from broker.notifications import Origin
    from broker.protocols.redirection import Redirection, RoutingRefusal
    from broker.queues.consumer import Consumer
    from broker.sessions.producer import Producer
    from broker.sessions.session import Session, SessionOptions

__all__ = [
    "BackupHost",
    "Handler",
    "Peer",
    "Receiver",
    "Sessions",
    "ToldTopology",
    "WantedBackup",
]


class Peer(Protocol):
    """The socket, as a protocol sees it."""

    connection_id: str
    """8 hexadecimal digits, as long as the broker runs."""
    remote: str
    """Address of the other side, for logs."""
    local: str
    """Address of ours."""
    principal: str | None
    """Who the other side's certificate is for, verified by TLS; None without one."""
    sni_host: str | None
    """Host name that a client of TLS has asked for; None without one."""
    router: str
    """Connection router of its acceptor; empty for none."""
    created_ms: int
    """When it came, ms since 1970."""
    handshake_timeout_s: float
    """How long somebody unknown may take for what he begins; 0 for ever."""

    @property
    def is_paused(self) -> bool:
        """The other side does not read what it was sent."""

    @property
    def is_open(self) -> bool:
        """Whether anything written may still arrive."""

    @property
    def silent_s(self) -> float:
        """Seconds since the last byte came."""

    def hold_reading(self) -> None:
        """Read no more from the socket, until release_reading() was called as often."""

    def release_reading(self) -> None:
        """Read again, unless another holder is left."""

    def write(self, data: bytes) -> None:
        """Send bytes, in the order of the calls; dropped where the connection is gone."""

    def close(self) -> None:
        """Send what was written, then close."""

    def abort(self) -> None:
        """Close at once."""


class Receiver(Protocol):
    """What a socket calls. Never waits."""

    def receive(self, data: bytes) -> None:
        """Take the next bytes; any exception closes the connection."""

    def pause(self) -> None:
        """The peer does not read: deliver nothing until go_on()."""

    def go_on(self) -> None:
        """The peer reads again."""

    def lost(self, error: Exception | None) -> None:
        """The connection is gone; None where either side closed it in good order."""


class Handler(Receiver, Protocol):
    """What speaks one protocol on one connection. Never waits."""

    @property
    def origin(self) -> Origin:
        """What sessions, and those who manage the broker, know of the connection."""

    def fail(self) -> None:
        """End it with all its sessions: an operator wants it so."""

    def close_session(self, session: Session) -> None:
        """End one of its sessions, and tell its client: an operator wants it so."""

    def kill(self, session: Session) -> None:
        """End it with all its sessions, and tell the client that one of them is too slow."""

    def check(self) -> None:
        """From time to time: end the connection if it was silent for longer than it may be."""

    def disconnect(self) -> None:
        """The broker stops: tell the client, then close."""


class ToldTopology(Protocol):
    """The members of a cluster: the one place that protocols tell their clients of it from."""

    @property
    def members(self) -> tuple[Member, ...]:
        """All of them, this broker among them."""

    def listen(self, listener: Callable[[Member | Departure], object]) -> None:
        """Have every change told from now on: a member as a whole, or that it is gone."""

    def unlisten(self, listener: Callable[[Member | Departure], object]) -> None:
        """Have nothing told any more. Idempotent."""

    def announced(self, update: MemberUpdate, connection: Hashable) -> bool:
        """Take what a peer says of itself, as long as the connection lasts; whether it counts."""

    def disconnected(self, connection: Hashable) -> None:
        """The connection of peers is lost."""


class WantedBackup(NamedTuple):
    """A backup that another node asks this one to run. Folders are absolute, None are not told.

    Attributes:
        backup_count: backups that this node has, as the other one was told.
        node_id: of the other one; None from Artemis.
        journal: of its messages.
        bindings: of its bindings.
        large_messages: of its large messages.
        paging: of its pages.
    """

    backup_count: int
    node_id: str | None
    journal: str | None
    bindings: str | None
    large_messages: str | None
    paging: str | None


class BackupHost(Protocol):
    """Runs backups of other nodes in this process."""

    @property
    def count(self) -> int:
        """How many there are."""

    @property
    def takes_more(self) -> bool:
        """Whether it runs one more."""

    def holds(self, node_id: str) -> bool:
        """Whether the backup of a node is here."""

    def request(self, wanted: WantedBackup, answer: Callable[[bool], object]) -> None:
        """Run a backup. Never waits.

        Args:
            wanted: whose.
            answer: called, now or later, with whether it runs.
        """


class Sessions(Protocol):
    """The broker, as a protocol sees it: who may connect, and a session for each client.

    A handler calls `connected()` when it is made and `disconnected()` when its socket is gone.
    In between the broker has it in the list of connections, calls its `check()`, and at a stop its
    `disconnect()`.
    """

    node_id: str
    clock: Clock
    """For what takes too long."""
    ids: Ids
    """For queues of which a client wants no name."""
    connection_ttl_override_ms: int
    """How long any connection may be silent; -1 leaves it to the client."""
    amqp_core_subscription_naming: bool
    """Whether queues of AMQP's subscriptions are named as those of Core."""
    mqtt_subscription_persistence: bool
    """Whether subscriptions of MQTT sessions are stored."""
    own_addresses: tuple[str, ...]
    """Of management and of notifications: patterns that clients subscribe to do not mean these."""
    scale_down_to: str | None
    """The node that this one's messages go to, when it stops for good."""
    backups: BackupHost | None
    """Backups of others in this process; None where it runs none."""

    @property
    def is_active(self) -> bool:
        """Whether clients may come."""

    def connected(self, connection: Handler) -> None:
        """One more connection speaks a protocol."""

    def disconnected(self, connection: Handler) -> None:
        """Its socket is gone."""

    def create_session(
        self,
        name: str,
        user: str | None,
        options: SessionOptions,
        temporary: set[str],
        origin: Origin,
    ) -> Session:
        """Make a session for a user who was authenticated.

        Args:
            name: unique in the broker.
            user: from authenticate().
            options: how the client wants it.
            temporary: takes the names of temporary queues; see delete_temporary().
            origin: of the connection.

        Raises:
            BrokerError: the broker takes none now, or there is one of that name.
        """

    def route(
        self, peer: Peer, client_id: str | None, user: str | None
    ) -> Redirection | RoutingRefusal | None:
        """Ask the connection router of the acceptor where a client is served.

        Args:
            peer: the socket.
            client_id: as the client says; None without one.
            user: as authenticated, else as the client says.

        Returns:
            None: by this broker, as without a router. What else there is has to be told to the
            client; its connection ends then.
        """

    def new_session(
        self, name: str, user: str | None, options: SessionOptions, temporary: set[str]
    ) -> Session:
        """Make one without notifications: a protocol's own, or of a client that has gone.

        Who made it closes it.
        """

    def authenticate(
        self, user: str | None, password: str | None, remote: str, principal: str | None = None
    ) -> str | None:
        """Give the name of a user that shows the right password; None for an anonymous one.

        Args:
            user: as the client says; None without one.
            password: likewise.
            remote: address of the peer.
            principal: of `Peer`; whose certificate is known needs no password.

        Raises:
            BrokerError: no user has that name and password, or that certificate.
        """

    def authenticate_principal(self, principal: str, remote: str) -> str | None:
        """Give the name of the user that a certificate is for.

        Args:
            principal: of `Peer`.
            remote: address of the peer.

        Raises:
            BrokerError: no user has that certificate.
        """

    def is_peer(self, user: str, password: str, remote: str) -> bool:
        """Whether another broker shows the credentials of the cluster; wrong ones are told of."""

    def may_come(self, node_id: str | None) -> bool:
        """Whether a client that was connected to a node may go on here, as in Artemis.

        A node that hands its messages to another one when it stops for good takes clients of those
        that have done so to it, and of no others. Where a node's messages are known to have gone
        to a third one, its clients are to go there.

        Args:
            node_id: None where the client does not know it.
        """

    def scaled_down(self, node_id: str) -> None:
        """All messages of that node are here now."""

    def topology(self, cluster_connection: str) -> ToldTopology:
        """Give the members that the clients of an acceptor are told of.

        Args:
            cluster_connection: that the acceptor names; empty for none.
        """

    def listen_slow(self, listener: Callable[[Consumer], object]) -> None:
        """Have consumers told of from now on that are slow, and that the settings do not kill."""

    def new_producer(self, address: str | None) -> Producer:
        """Make what counts for a producer of a session; None sends to several addresses."""

    def close_session(self, session: Session, *, has_failed: bool) -> None:
        """End a session and forget it."""

    def has_metadata(self, session: Session, key: str, value: str) -> bool:
        """Whether another session says this of itself."""

    def delete_temporary(self, names: set[str]) -> None:
        """Remove the temporary queues of a connection that is gone."""
