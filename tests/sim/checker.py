"""The verdict on a history, in Jepsen's words and two of ours; see tests/broker/history/checker.py.

    lost  unexpected  duplicated  changed  torn  out of order  unmarked  stranded   violations
    unknown    asked for, and never answered: it may count or not                   counted
    recovered  asked for, never answered, and it arrived                            counted

A violation names the message and everything that is known of it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.broker.history.checker import problems, told_of
from tests.broker.history.record import Outcome

if TYPE_CHECKING:
    from tests.broker.history.record import History, Unit

_KEY = re.compile(r"'([^']*)'")


@dataclass(frozen=True)
class Violation:
    """What is wrong with one message, or one transaction.

    Attributes:
        word: of the list above.
        text: what it is.
        way: all that is known of the message, a line each.
    """

    word: str
    text: str
    way: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "\n    ".join((f"{self.word}: {self.text}", *self.way))


@dataclass(frozen=True)
class Verdict:
    """What became of a history."""

    violations: tuple[Violation, ...]
    unknown: int
    recovered: int


def check(history: History, ordered: frozenset[str] = frozenset()) -> Verdict:
    """Check a history whose queues were drained at its end.

    Args:
        history: all that was done.
        ordered: queues that had one consumer at a time.
    """
    found = []
    for line in problems(history, ordered):
        word, _, text = line.partition(": ")
        key = _KEY.search(text)
        found.append(Violation(word, text, tuple(way_of(history, key[1])) if key else ()))
    taken = {take.key for take in history.takes}
    unknown = [one for one in history.units if one.outcome is Outcome.TRIED and _has_work(one)]
    recovered = sum(send.message.key in taken for unit in unknown for send in unit.sends)
    return Verdict(tuple(found), len(unknown), recovered)


def _has_work(unit: Unit) -> bool:
    return bool(unit.sends or unit.takes)


def way_of(history: History, key: str) -> list[str]:
    """Everything that is known of a message, in the order in which it happened."""
    message = history.messages.get(key)
    lines: list[tuple[int, str]] = []
    for send in () if message is None else message.sends:
        unit = send.unit
        done = "" if unit.done_at is None else f", done at {unit.done_at}"
        text = f"sent by {send.producer}, number {send.number}: {unit.outcome.value}"
        lines.append((unit.tried_at or 0, f"{text}, tried at {unit.tried_at}{done}"))
    lines += [
        (take.moment, f"taken from {take.queue}: {told_of(take)}")
        for take in history.takes
        if take.key == key
    ]
    return [line for _, line in sorted(lines)]
