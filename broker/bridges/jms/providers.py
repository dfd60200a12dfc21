"""What a bridge needs of a messaging provider: Protocols that every source and target implements.

    ConnectionFactoryFactory() ─▶ ConnectionFactory.connect() ─▶ Connection.session(kind)
                                                                     │
                                              receiver(destination)  │  sender(destination)

The names are those of JMS. Methods are coroutines of the bridge's event loop. A provider whose
methods block implements `BlockingConnectionFactory` and its parts instead: the bridge calls it in a
thread of its own (`broker/bridges/jms/blocking/`).

A factory, and whatever it makes, may raise any exception: the bridge takes it for a failed
connection and tries again. `BridgeConfigError` says that trying again does not help.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Protocol, TypeAlias, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from broker.bridges.jms.message import JMSMessage
    from broker.model.xid import Xid

__all__ = [
    "AskedConnection",
    "BatchReceiver",
    "BatchSender",
    "BatchSession",
    "Capabilities",
    "Connection",
    "ConnectionFactory",
    "ConnectionFactoryFactory",
    "Credentials",
    "Destination",
    "DestinationFactory",
    "DestinationKind",
    "Done",
    "Receiver",
    "Sender",
    "Session",
    "SessionKind",
    "Subscription",
    "TwoPhaseSession",
]


class DestinationKind(Enum):
    """Who gets a message."""

    QUEUE = "queue"
    """One consumer."""
    TOPIC = "topic"
    """Every subscription."""


@dataclass(frozen=True, slots=True)
class Destination:
    """Where messages come from or go to.

    Attributes:
        name: of the queue or topic, as its provider has it.
        kind: which of the two.
        native: the provider's own object, where it needs one.
    """

    name: str
    kind: DestinationKind = DestinationKind.QUEUE
    native: object | None = None

    @classmethod
    def queue(cls, name: str) -> Destination:
        """Name a queue."""
        return cls(name)

    @classmethod
    def topic(cls, name: str) -> Destination:
        """Name a topic."""
        return cls(name, DestinationKind.TOPIC)

    def __str__(self) -> str:
        return f"{self.kind.value} {self.name!r}"


class SessionKind(Enum):
    """What sends and acknowledgements of a session count for."""

    AUTO = "auto"
    """Each send counts once the provider has confirmed it; nothing is received."""
    CLIENT = "client"
    """Received messages are acknowledged by `acknowledge()`; nothing is sent."""
    TRANSACTED = "transacted"
    """`commit()` makes what was sent and received count."""
    TWO_PHASE = "two-phase"
    """A branch of a distributed transaction does; see `TwoPhaseSession`."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """Who the bridge is for one provider.

    Attributes:
        user_name: None is anonymous.
        password: of the user.
        client_id: JMS client id of durable subscriptions; None is none.
    """

    user_name: str | None = None
    password: str | None = None
    client_id: str | None = None

    def __repr__(self) -> str:
        """Without the password."""
        return f"Credentials(user_name={self.user_name!r}, client_id={self.client_id!r})"


@dataclass(frozen=True, slots=True)
class Subscription:
    """A durable subscription on a topic.

    Attributes:
        name: of the subscription.
        client_id: of its owner.
    """

    name: str
    client_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What a provider can do, as it is once it is connected.

    Attributes:
        node_id: names the broker for good, through restarts; None if that is not known.
        without_name: what a source does that has none, in words.
        names_messages: received messages have a `position`.
        keeps_duplicate_ids: it stores `duplicate_id` with the message, and drops a second message
            that has the same.
        without_ids: what a target does that does not, in words.
        two_phase: sessions of SessionKind.TWO_PHASE can be had.
    """

    node_id: str | None = None
    without_name: str = "does not name its messages for good"
    names_messages: bool = False
    keeps_duplicate_ids: bool = False
    without_ids: str = "keeps no duplicate ids"
    two_phase: bool = False


class Receiver(Protocol):
    """Receives from one destination."""

    async def receive(self, timeout_s: float) -> JMSMessage | None:
        """Give the next message, None if none came in time. The bridge never cancels it.

        Args:
            timeout_s: seconds to wait; a fraction of one.
        """


class Sender(Protocol):
    """Sends to one destination, in the order of the calls."""

    async def send(self, message: JMSMessage) -> None:
        """Hand one message over; it need not have arrived when this returns."""

    async def confirmed(self) -> None:
        """Return once every message since the last call has been confirmed by the provider.

        What was sent durable is on the provider's disk then. In a transaction it may return at
        once: the commit confirms.
        """


class Session(Protocol):
    """One line of work, of one kind."""

    async def receiver(
        self, destination: Destination, selector: str | None, subscription: Subscription | None
    ) -> Receiver:
        """Begin to receive.

        Args:
            destination: from where.
            selector: only messages for which it holds; None is all.
            subscription: durable, if the destination is a topic.
        """

    async def sender(self, destination: Destination) -> Sender:
        """Give what sends there.

        Args:
            destination: where to.
        """

    async def stop(self) -> None:
        """Let no further message be delivered, until `start()`."""

    async def start(self) -> None:
        """Let messages be delivered again."""

    async def acknowledge(self) -> None:
        """Acknowledge all messages received so far; returns once the provider has done so."""

    async def commit(self) -> None:
        """Make what was sent and received since the last commit count."""

    async def close(self) -> None:
        """Undo what was not acknowledged or committed, and end."""


Done: TypeAlias = "Callable[[Exception | None], object]"
"""Called once with what came of something that was begun: None, or why it failed."""


@runtime_checkable
class BatchReceiver(Receiver, Protocol):
    """A receiver that need not be asked for each message; a provider may do without it."""

    async def receive_many(self, count_max: int, timeout_s: float) -> Sequence[JMSMessage]:
        """Give the next message and those behind it that are here; none if none came in time.

        Args:
            count_max: how many at most.
            timeout_s: seconds to wait for the first one; a fraction of one.
        """

    async def acknowledge_until(self, message: JMSMessage) -> None:
        """Acknowledge it and all that were received before it; returns once that counts.

        Args:
            message: of this receiver, in a session of SessionKind.CLIENT.
        """


class BatchSender(Protocol):
    """Sends batches without waiting, in the order of the calls; a provider may do without it."""

    def send_batch(self, messages: Sequence[JMSMessage], done: Done) -> None:
        """Send a batch; the messages are the caller's again once `done` is called.

        Args:
            messages: one or more; in a session of SessionKind.TRANSACTED one transaction.
            done: with None once all count at the provider, on its disk if they are durable. With
                an error for this batch and all later ones, of which some may count.
        """


@runtime_checkable
class BatchSession(Session, Protocol):
    """A session that gives BatchSenders."""

    async def batch_sender(self, destination: Destination) -> BatchSender | None:
        """Give what sends batches there; None where a setting of the provider does not let it.

        Args:
            destination: where to.
        """


@runtime_checkable
class TwoPhaseSession(Session, Protocol):
    """A session for branches of distributed transactions: the verbs of the XA standard.

    Every one raises `XaError` if the provider refuses.
    """

    async def xa_start(self, xid: Xid) -> None:
        """Begin a branch: what is sent and received from now on belongs to it."""

    async def xa_end(self, xid: Xid, *, failed: bool = False) -> None:
        """Do no more work in the branch; `failed` lets it only be rolled back."""

    async def xa_prepare(self, xid: Xid) -> None:
        """Prepare the branch: it survives a restart of the provider until its end."""

    async def xa_commit(self, xid: Xid, *, one_phase: bool = False) -> None:
        """Commit the branch; `one_phase` without a prepare before."""

    async def xa_rollback(self, xid: Xid) -> None:
        """Roll the branch back; messages received in it come again."""

    async def xa_forget(self, xid: Xid) -> None:
        """Let the provider forget a branch that its operator has ended."""

    async def xa_recover(self) -> tuple[Xid, ...]:
        """Give the branches that are prepared."""


class BranchSender(Protocol):
    """Sends batches without waiting, each in a branch of its own, in the order of the calls."""

    def send_branch(self, xid: Xid, messages: Sequence[JMSMessage], done: Done) -> None:
        """Begin a branch, send a batch in it, end and prepare it.

        Args:
            xid: of the branch.
            messages: one or more; the caller's again once `done` is called.
            done: with None once it is prepared. An error says nothing of later ones, of which none
                must be decided.
        """

    def commit_branch(self, xid: Xid, done: Done) -> None:
        """Commit a branch, whatever later ones wait for.

        Args:
            xid: of a prepared one.
            done: with None once that is durable.
        """


@runtime_checkable
class BranchReceiver(BatchReceiver, Protocol):
    """Receives outside of any branch, and acknowledges in one later."""

    def take_branch(self, xid: Xid, message: JMSMessage, done: Done) -> None:
        """Begin a branch, acknowledge a message and all before it in it, end and prepare it.

        Args:
            xid: of the branch.
            message: of this receiver.
            done: with None once it is prepared.
        """

    def commit_branch(self, xid: Xid, done: Done) -> None:
        """Commit a branch.

        Args:
            xid: of a prepared one.
            done: with None once that is durable.
        """


@runtime_checkable
class BranchSession(TwoPhaseSession, Protocol):
    """A session that has several branches on their way at once; a provider may do without it."""

    async def branch_sender(self, destination: Destination) -> BranchSender | None:
        """Give what sends there; None where a setting of the provider does not let it.

        Args:
            destination: where to.
        """

    async def branch_receiver(
        self, destination: Destination, selector: str | None, subscription: Subscription | None
    ) -> BranchReceiver:
        """Begin to receive; see `Session.receiver`.

        Args:
            destination: from where.
            selector: only messages for which it holds; None is all.
            subscription: durable, if the destination is a topic.
        """


class Connection(Protocol):
    """A connection to one provider."""

    @property
    def capabilities(self) -> Capabilities:
        """What the provider can do."""

    @property
    def lost(self) -> Exception | None:
        """Why the connection has ended by itself; None while it works."""

    async def session(self, kind: SessionKind) -> Session:
        """Give a session; one of SessionKind.TWO_PHASE is a `TwoPhaseSession`.

        Args:
            kind: what its work counts for.
        """

    async def duplicate_ids_max(self, destination: Destination) -> int | None:
        """Give how many duplicate ids a destination keeps; None if that cannot be found out."""

    async def close(self) -> None:
        """Close sessions and connection; what has not counted yet is undone."""


@runtime_checkable
class AskedConnection(Connection, Protocol):
    """A connection that finds out more where it is asked; a provider may do without it."""

    async def ask_as_source(self) -> None:
        """Complete `capabilities` for duplicate ids of what comes from here."""

    async def ask_as_target(self) -> None:
        """Complete `capabilities` for duplicate ids of what goes there."""

    async def deliveries_max(self, destination: Destination) -> int | None:
        """Give how often the provider delivers a message before it is a dead letter.

        None where deliveries to a bridge do not count, or it does not tell.

        Args:
            destination: where messages come from.
        """


class ConnectionFactory(Protocol):
    """Connects to one provider. Equal factories lead to the same one."""

    async def connect(self, credentials: Credentials) -> Connection:
        """Connect.

        Args:
            credentials: who the bridge is.
        """


ConnectionFactoryFactory: TypeAlias = "Callable[[], object]"
"""Gives a ConnectionFactory or a BlockingConnectionFactory; called before each connection, in a
thread of its own, so it may block, as a look-up in a directory does."""

DestinationFactory: TypeAlias = "Callable[[], Destination]"
"""Gives the destination; called as a ConnectionFactoryFactory is."""
