"""What is looked at to say why a message waits: a queue, a message and consumers, as values.

Nothing here refers to the running broker, so the rules are functions of it (rules.py). Times are in
ms since 1970 unless the name says otherwise.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum

__all__ = [
    "ConsumerState",
    "Forwarding",
    "MessageState",
    "Place",
    "QueueState",
    "Reason",
    "RemoteState",
    "command",
    "time_text",
]


def command(*words: object) -> str:
    """Give the command line that calls an operation of management.

    >>> command("queue.a b", "resume")
    "broker manage 'queue.a b' resume"
    """
    return shlex.join(["broker", "manage", *map(str, words)])


def time_text(at_ms: int) -> str:
    """Give a time for people, in UTC, to the second.

    >>> time_text(0)
    '1970-01-01 00:00:00 UTC'
    """
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a message waits.

    Attributes:
        code: for programs; docs/guide/why.md lists all.
        text: one sentence, for people.
        action: what to do about it: one sentence, with the command where there is one.
    """

    code: str
    text: str
    action: str


class Place(Enum):
    """Where a message of a queue is."""

    WAITING = "waiting"
    SCHEDULED = "scheduled"
    DELIVERING = "delivering"
    ACKNOWLEDGED_IN_TRANSACTION = "acknowledged in a transaction"
    SENT_IN_TRANSACTION = "sent in a transaction"
    PAGED = "paged"
    STORED = "not read since the start"
    ABSENT = "absent"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerState:
    """A consumer of the queue.

    Attributes:
        name: who it is, for people.
        number: its id in the broker.
        session: of it; None: it is the broker's own, as are the four that follow.
        connection: id of that.
        remote: where the client is.
        client_id: that the client gave, if it did.
        user: that the session belongs to, if any.
        protocol: of the client.
        selector: of its own; None takes all.
        takes: its selector matches the message, and it has not refused it.
        has_refused: it gave the message back as one it cannot take.
        is_started: its session is.
        is_stalled: its connection cannot be written to.
        is_streaming: a large message is on its way to it.
        has_credit: credits are left.
        delivering_count: given to it, and not acknowledged.
        last_delivered_ms: when the last one was; 0 never.
        last_acknowledged_ms: when it acknowledged; 0 never.
    """

    name: str
    number: int = 0
    session: str | None = None
    connection: str | None = None
    remote: str | None = None
    client_id: str | None = None
    user: str | None = None
    protocol: str | None = None
    selector: str | None = None
    takes: bool = True
    has_refused: bool = False
    is_started: bool = True
    is_stalled: bool = False
    is_streaming: bool = False
    has_credit: bool = True
    delivering_count: int = 0
    last_delivered_ms: int = 0
    last_acknowledged_ms: int = 0

    @property
    def can_take(self) -> bool:
        """Whether it is given what it wants."""
        return self.is_started and not self.is_stalled and not self.is_streaming and self.has_credit

    @property
    def how_to_end(self) -> str:
        """The command that closes it, or its bridge."""
        if self.session is None:
            return "it is the broker's own"
        return command("broker", "closeConsumerWithID", self.session, self.number)


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteState:
    """A queue of another node with the same routing name.

    Attributes:
        node_id: of that node.
        queue: its name there.
        is_connected: the node is reached.
        redistributes: the mode of the cluster connection moves waiting messages there.
        mode: message-load-balancing.
        consumer_count: that it has.
        takes: one of these matches the message.
        selectors: of those with one; a bounded number of them.
    """

    node_id: str
    queue: str
    is_connected: bool = True
    redistributes: bool = True
    mode: str = "ON_DEMAND"
    consumer_count: int = 1
    takes: bool = True
    selectors: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Forwarding:
    """Of a queue that a bridge takes from, a store-and-forward queue say: what that does.

    Attributes:
        bridge: its name.
        node_id: of the node that it leads to; None where no cluster is concerned.
        is_connected: to its target.
        lost_since_ms: since when it is not; None while it is, or where that is not known.
        is_known: this node knows the other one; else nothing takes from the queue.
        reason: what the bridge says of itself.
    """

    bridge: str
    node_id: str | None
    is_connected: bool
    lost_since_ms: int | None = None
    is_known: bool = True
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageState:
    """The message that is asked for.

    Attributes:
        message_id: in this broker.
        place: where it is.
        ahead_count: waiting messages that come before it, as far as was counted.
        due_ms: of a scheduled one.
        consumer: of one that is delivered, or that a transaction acknowledges.
        is_last_delivered: it is the last one that this consumer was given.
        delivery_count: how often it was delivered.
        transaction: whose the transaction is, for people.
        xid: the transaction's name for operators; None of a local one.
        is_prepared: the transaction waits for its decision.
        transaction_since_ms: when that began.
        group: its message group.
        group_owner: the consumer of this queue that has the group.
        group_node: the other node that has the group, or the exclusive queue.
        found_in: store-and-forward queues that have it, where this one has not.
    """

    message_id: int
    place: Place = Place.WAITING
    ahead_count: int = 0
    due_ms: int = 0
    consumer: ConsumerState | None = None
    is_last_delivered: bool = True
    delivery_count: int = 0
    transaction: str = ""
    xid: str | None = None
    is_prepared: bool = False
    transaction_since_ms: int = 0
    group: str | None = None
    group_owner: ConsumerState | None = None
    group_node: str | None = None
    found_in: tuple[Forwarding, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueState:
    """The queue, at one moment.

    Attributes:
        name: of the queue.
        address: of it.
        now_ms: the moment.
        message_count: all it holds.
        consumers: without browsers; a bounded number of them.
        consumer_count: how many there are.
        remotes: queues of other nodes with its routing name.
        is_paused: an operator has paused it, or its address.
        consumers_before_dispatch: how many have to be there before it delivers.
        delay_before_dispatch_ms: how long the first one waits for the others; -1 for ever.
        is_open: it has begun to deliver.
        is_rebalancing: it waits until consumers have answered, before groups go to others.
        exclusive_owner: the consumer that gets everything; None where it is not exclusive.
        paged_count: its messages that are in pages alone.
        redistribution_delay_ms: of its address; below 0 never.
        redistribution_in_ms: until messages are looked at for redistribution; 0: they are now;
            None: nothing is planned.
        is_internal: a queue of the broker's own, which is never redistributed.
        forwarding: what takes from it, where that is a bridge.
        nearest: the selector that comes nearest to the message, and what of it does not match.
    """

    name: str
    address: str
    now_ms: int
    message_count: int = 1
    consumers: tuple[ConsumerState, ...] = ()
    consumer_count: int = 0
    remotes: tuple[RemoteState, ...] = ()
    is_paused: bool = False
    consumers_before_dispatch: int = 0
    delay_before_dispatch_ms: int = -1
    is_open: bool = True
    is_rebalancing: bool = False
    exclusive_owner: ConsumerState | None = None
    paged_count: int = 0
    redistribution_delay_ms: int = -1
    redistribution_in_ms: int | None = None
    is_internal: bool = False
    forwarding: Forwarding | None = None
    nearest: str | None = None
