"""What was done to a broker and what it said, in the order in which the clients saw it.

A unit is what counts together or not at all: one plain send, to however many queues, one
acknowledgement, of however many messages, or all of one transaction. Everything has a moment, a
number that only grows; belongs to one event loop.
"""

from __future__ import annotations

import enum
import hashlib
from dataclasses import dataclass, field


class Outcome(enum.Enum):
    """What became of a unit, as far as anybody was told."""

    OPEN = "open"
    """Nothing was asked for yet: it does not count."""
    TRIED = "tried"
    """Asked for, and not answered: it counts or not, but stays so."""
    DONE = "done"
    """The broker said that it counts."""
    UNDONE = "undone"
    """Rolled back, refused, or given up before it was asked for: it does not count."""


@dataclass(eq=False, slots=True)
class Unit:
    """Sends and takes that count together.

    Attributes:
        tried_at: from here on it may count.
        done_at: the broker had said that it counts.
        held_at: prepared, and the broker had said so: no other consumer gets what it took.
        freed_at: from here on a rollback may have been done.
        is_late: in no order with others of its sender. It was decided by another client, or its
            answer was lost with a connection that its client has replaced.
    """

    outcome: Outcome = Outcome.OPEN
    sends: list[Send] = field(default_factory=list)
    takes: list[Take] = field(default_factory=list)
    tried_at: int | None = None
    done_at: int | None = None
    held_at: int | None = None
    freed_at: int | None = None
    is_late: bool = False


@dataclass(eq=False, slots=True)
class Message:
    """A message that clients tried to send, once or more often.

    Attributes:
        key: what its body begins with; no other message has it.
        size: bytes of its body behind the key.
        queues: that must get it; those of subscribers come and go (`Subscription`).
        group: of which it is a part.
        has_duplicate_id: so that the broker takes it once, however often it is sent.
        address: where it is sent.
    """

    key: str
    size: int
    queues: tuple[str, ...]
    group: str | None = None
    has_duplicate_id: bool = False
    address: str = ""
    sends: list[Send] = field(default_factory=list)

    @property
    def body(self) -> bytes:
        return body_of(self.key, self.size)


@dataclass(eq=False, slots=True)
class Send:
    """One try to send a message; `number` rises with each of a producer.

    Attributes:
        moment: the last one before it.
    """

    message: Message
    producer: str
    number: int
    unit: Unit
    moment: int = 0


@dataclass(eq=False, slots=True)
class Subscription:
    """A durable queue that subscribers of an address create, leave, take up again and delete.

    Attributes:
        queue: its name; one that was deleted is never created again.
        address: what it is bound to.
        tried_at: from here on it may be there.
        made_at: the broker had said that it is there.
        dropped_at: from here on it may have been deleted, with its messages.
    """

    queue: str
    address: str
    tried_at: int
    made_at: int | None = None
    dropped_at: int | None = None


class Return(enum.Enum):
    """How a message that was taken went back, where that must show at its next delivery."""

    ROLLBACK = "rolled back"
    LOSS = "connection lost"


@dataclass(eq=False, slots=True)
class Take:
    """A message that a client got from a queue.

    Attributes:
        copy: the broker's number of it; a message that was sent twice has two.
        count: how often it was delivered, by the broker's word.
        run: of the broker.
        unit: that acknowledges it.
        returned: see Return.
    """

    moment: int
    queue: str
    key: str
    copy: int
    count: int
    run: int
    unit: Unit
    is_whole: bool = True
    returned: Return | None = None


@dataclass(frozen=True, slots=True)
class Wait:
    """The only consumer of a queue got nothing from one moment to another."""

    queue: str
    began_at: int
    ended_at: int
    seconds: float


class History:
    """All of it."""

    def __init__(self) -> None:
        self._last_moment = 0
        self.messages: dict[str, Message] = {}
        self.subscriptions: dict[str, Subscription] = {}
        # Queues that acknowledge before they deliver: what a client never saw may be gone.
        self.lossy: frozenset[str] = frozenset()
        self.units: list[Unit] = []
        self.takes: list[Take] = []
        self.waits: list[Wait] = []
        # What the checker of the verdict need not look for itself.
        self.problems: list[str] = []

    def unit(self) -> Unit:
        made = Unit()
        self.units.append(made)
        return made

    def message(self, key: str, size: int, queues: tuple[str, ...], **more: object) -> Message:
        made = self.messages[key] = Message(key, size, queues, **more)  # type: ignore[arg-type]
        return made

    def send(self, unit: Unit, message: Message, producer: str, number: int) -> Send:
        """Note a send before it is done."""
        made = Send(message, producer, number, unit, self._last_moment)
        unit.sends.append(made)
        message.sends.append(made)
        return made

    def take(self, unit: Unit, queue: str, copy: int, count: int, run: int, body: bytes) -> Take:
        """Note what a client got."""
        key = body.partition(b"|")[0].decode(errors="replace")
        known = self.messages.get(key)
        is_whole = known is not None and known.body == body
        made = Take(self.moment(), queue, key, copy, count, run, unit, is_whole)
        unit.takes.append(made)
        self.takes.append(made)
        return made

    def moment(self) -> int:
        """Give the next moment."""
        self._last_moment += 1
        return self._last_moment

    # Subscriptions: each step is noted before what may do it, or after what says so.

    def subscribing(self, queue: str, address: str) -> Subscription:
        made = self.subscriptions[queue] = Subscription(queue, address, self.moment())
        return made

    def subscribed(self, subscription: Subscription) -> None:
        subscription.made_at = self.moment()

    def unsubscribing(self, subscription: Subscription) -> None:
        subscription.dropped_at = self.moment()

    # What becomes of a unit; each is noted before what may do it, or after what says so.

    def tried(self, unit: Unit) -> None:
        unit.outcome = Outcome.TRIED
        unit.tried_at = self.moment()

    def done(self, unit: Unit) -> None:
        unit.outcome = Outcome.DONE
        unit.done_at = self.moment()

    def undone(self, unit: Unit, returned: Return | None = None) -> None:
        unit.outcome = Outcome.UNDONE
        for take in unit.takes:
            take.returned = returned

    def split(self, unit: Unit) -> None:
        """Note that what a unit has taken so far went back: its session was lost."""
        lost = self.unit()
        lost.takes, unit.takes = unit.takes, []
        for take in lost.takes:
            take.unit = lost
        self.undone(lost)

    def held(self, unit: Unit) -> None:
        unit.held_at = self.moment()

    def freed(self, unit: Unit) -> None:
        unit.freed_at = self.moment()

    @property
    def waiting(self) -> int:
        """About how many messages are in the queues."""
        return self._sent - self._taken

    # Counted as they come: a look at all of them each time would be too slow.
    _sent = 0
    _taken = 0

    def count(self, unit: Unit) -> None:
        """A unit has ended as far as backlog goes."""
        self._sent += sum(len(send.message.queues) for send in unit.sends)
        self._taken += len(unit.takes)


def body_of(key: str, size: int) -> bytes:
    """The key, and bytes that follow from it."""
    seed = hashlib.sha256(key.encode()).digest()
    return f"{key}|".encode() + (seed * (size // len(seed) + 1))[:size]
