"""What was done to a broker and what it said, in the order in which the clients saw it.

A unit is what counts together or not at all: one plain send, one acknowledgement, or all of one
transaction. Everything has a moment, a number that only grows; belongs to one event loop.
"""

from __future__ import annotations

import enum
import hashlib
import itertools
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
        is_late: decided by another client than the one that sent, so in no order with its others.
        is_atomic: no crash leaves a part of it. An acknowledgement of all up to a message has a
            record for each: a crash may leave the first ones.
    """

    outcome: Outcome = Outcome.OPEN
    sends: list[Send] = field(default_factory=list)
    takes: list[Take] = field(default_factory=list)
    tried_at: int | None = None
    done_at: int | None = None
    held_at: int | None = None
    freed_at: int | None = None
    is_late: bool = False
    is_atomic: bool = True


@dataclass(eq=False, slots=True)
class Message:
    """A message that clients tried to send, once or more often.

    Attributes:
        key: what its body begins with; no other message has it.
        size: bytes of its body behind the key.
        queues: that must get it.
        group: of which it is a part.
        has_duplicate_id: so that the broker takes it once, however often it is sent.
    """

    key: str
    size: int
    queues: tuple[str, ...]
    group: str | None = None
    has_duplicate_id: bool = False
    sends: list[Send] = field(default_factory=list)

    @property
    def body(self) -> bytes:
        return body_of(self.key, self.size)


@dataclass(eq=False, slots=True)
class Send:
    """One try to send a message; `number` rises with each of a producer."""

    message: Message
    producer: str
    number: int
    unit: Unit


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
        self._moments = itertools.count(1)
        self.messages: dict[str, Message] = {}
        self.units: list[Unit] = []
        self.takes: list[Take] = []
        self.waits: list[Wait] = []
        # What the checker of the verdict need not look for itself.
        self.problems: list[str] = []

    def unit(self, *, is_atomic: bool = True) -> Unit:
        made = Unit(is_atomic=is_atomic)
        self.units.append(made)
        return made

    def message(self, key: str, size: int, queues: tuple[str, ...], **more: object) -> Message:
        made = self.messages[key] = Message(key, size, queues, **more)  # type: ignore[arg-type]
        return made

    def send(self, unit: Unit, message: Message, producer: str, number: int) -> Send:
        """Note a send before it is done."""
        made = Send(message, producer, number, unit)
        unit.sends.append(made)
        message.sends.append(made)
        return made

    def take(self, unit: Unit, queue: str, copy: int, count: int, run: int, body: bytes) -> Take:
        """Note what a client got."""
        key = body.partition(b"|")[0].decode(errors="replace")
        known = self.messages.get(key)
        is_whole = known is not None and known.body == body
        made = Take(next(self._moments), queue, key, copy, count, run, unit, is_whole)
        unit.takes.append(made)
        self.takes.append(made)
        return made

    def moment(self) -> int:
        """Give the next moment."""
        return next(self._moments)

    # What becomes of a unit; each is noted before what may do it, or after what says so.

    def tried(self, unit: Unit) -> None:
        unit.outcome = Outcome.TRIED
        unit.tried_at = next(self._moments)

    def done(self, unit: Unit) -> None:
        unit.outcome = Outcome.DONE
        unit.done_at = next(self._moments)

    def undone(self, unit: Unit, returned: Return | None = None) -> None:
        unit.outcome = Outcome.UNDONE
        for take in unit.takes:
            take.returned = returned

    def held(self, unit: Unit) -> None:
        unit.held_at = next(self._moments)

    def freed(self, unit: Unit) -> None:
        unit.freed_at = next(self._moments)

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
