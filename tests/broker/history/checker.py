"""Whether a history may be: the words of queue services, each with what proves it.

    lost                sent, confirmed, and never delivered; or delivered, given back and gone
    unexpected          delivered and never sent, or sent by what was rolled back or refused
    changed             delivered with another body
    duplicated          delivered after its acknowledgement was confirmed, or while a prepared
                        transaction had it, or as more copies than there were sends
    reordered           first deliveries of a producer's messages, of one queue that one consumer
                        has at a time, or of one group, in another order than they were sent
    torn                a transaction of which a part counts and a part does not
    unmarked            delivered again to the same run of the broker as if for the first time
    stranded            confirmed before the only consumer of its queue began to wait, and first
                        delivered after it had waited for long; or left behind at the end

A unit without an answer may count or not: what its messages did says which, and all of them must
say the same. That needs a history whose queues were drained at the end.
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from tests.broker.history.record import Outcome

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.broker.history.record import History, Message, Take, Unit

Copies = dict[tuple[str, int], "list[Take]"]


def problems(
    history: History, ordered: frozenset[str] = frozenset(), *, is_complete: bool = True
) -> list[str]:
    """Everything that is wrong, a line each.

    Args:
        history: of all that was done.
        ordered: queues that had one consumer at a time.
        is_complete: every queue was drained at its end; else nothing is said to be lost or torn.
    """
    copies: Copies = defaultdict(list)
    for take in history.takes:
        copies[take.queue, take.copy].append(take)
    found = [
        *history.problems,
        *_unexpected(history),
        *_counts(history, copies),
        *_copies(copies),
        *_torn(history, copies),
        *_reordered(history, ordered),
        *_stranded(history),
    ]
    return [one for one in found if is_complete or not one.startswith(("lost", "torn"))]


def _unexpected(history: History) -> Iterator[str]:
    for take in history.takes:
        message = history.messages.get(take.key)
        what = f"{take.key!r} in {take.queue}"
        if message is None or take.queue not in message.queues:
            yield f"unexpected: {what}: was never sent there"
            continue
        if not take.is_whole:
            yield f"changed: {what}"
        could = [send.unit for send in message.sends if send.unit.outcome is not Outcome.UNDONE]
        if not could:
            yield f"unexpected: {what}: was rolled back or refused"
        elif all(unit.tried_at is None or unit.tried_at > take.moment for unit in could):
            yield f"unexpected: {what}: came before its commit was asked for"


def _counts(history: History, copies: Copies) -> Iterator[str]:
    """As many copies of a message as sends of it count."""
    found: Counter[tuple[str, str]] = Counter()
    for (queue, copy), takes in copies.items():
        keys = {take.key for take in takes}
        if len(keys) > 1:
            yield f"changed: number {copy} in {queue} was {sorted(keys)}"
        for key in keys:
            found[key, queue] += 1
    for message in history.messages.values():
        outcomes = Counter(send.unit.outcome for send in message.sends)
        least = outcomes[Outcome.DONE]
        most = least + outcomes[Outcome.TRIED]
        if message.has_duplicate_id:
            least, most = min(least, 1), min(most, 1)
        for queue in message.queues:
            count = found[message.key, queue]
            if count < least:
                yield f"lost: {message.key!r} in {queue}: {count} of {least}"
            elif count > most and most:
                yield f"duplicated: {message.key!r} in {queue}: {count} copies, {most} sends"


def _copies(copies: Copies) -> Iterator[str]:
    """What each copy went through, from its first delivery to its end."""
    for (queue, _), takes in copies.items():
        what = f"{takes[0].key!r} in {queue}"
        for before, after in itertools.pairwise(takes):
            if (
                before.returned is not None
                and before.run == after.run
                and after.count <= before.count
            ):
                yield f"unmarked: {what}: {before.returned.value}, then count {after.count}"
        for position, take in enumerate(takes):
            unit = take.unit
            for later in takes[position + 1 :]:
                if unit.done_at is not None and later.moment > unit.done_at:
                    yield f"duplicated: {what}: came again after its acknowledgement"
                elif unit.held_at is not None and unit.held_at < later.moment < (
                    unit.freed_at or later.moment + 1
                ):
                    yield f"duplicated: {what}: came while a prepared transaction had it"
        if takes[-1].unit.outcome not in (Outcome.DONE, Outcome.TRIED):
            told = "; ".join(map(told_of, takes))
            yield f"lost: {what}: went back to its queue, and never came again: {told}"


def told_of(take: Take) -> str:
    """What is known of a delivery, to find the fault."""
    unit = take.unit
    moments = {
        "tried": unit.tried_at,
        "done": unit.done_at,
        "held": unit.held_at,
        "freed": unit.freed_at,
    }
    known = "".join(f", {name} at {moment}" for name, moment in moments.items() if moment)
    returned = "" if take.returned is None else f", {take.returned.value}"
    return (
        f"run {take.run}, at {take.moment}, copy {take.copy}, count {take.count}, "
        f"{unit.outcome.value}{returned}{known}{', late' if unit.is_late else ''}"
    )


def _torn(history: History, copies: Copies) -> Iterator[str]:
    """Units without an answer count whole, or not at all."""
    seen = {(take.queue, take.key) for take in history.takes}
    for unit in history.units:
        if unit.outcome is not Outcome.TRIED or not unit.is_atomic:
            continue
        counts = {
            f"{send.message.key!r} to {queue}": (queue, send.message.key) in seen
            for send in unit.sends
            # Of one that was sent again, it is unknown which send it was.
            if len(send.message.sends) == 1
            for queue in send.message.queues
        }
        for take in unit.takes:
            last = copies[take.queue, take.copy][-1]
            counts[f"{take.key!r} from {take.queue}"] = last.unit is unit
        if len(set(counts.values())) > 1:
            there = sorted(name for name, is_there in counts.items() if is_there)
            missing = sorted(name for name, is_there in counts.items() if not is_there)
            yield f"torn: a transaction counts for {there} and not for {missing}"


def _reordered(history: History, ordered: frozenset[str]) -> Iterator[str]:
    first: set[tuple[str, str]] = set()
    last: dict[tuple[str, str, str | None], tuple[int, str]] = {}
    for take in history.takes:
        message = history.messages.get(take.key)
        if message is None or (take.queue, take.key) in first:
            continue
        first.add((take.queue, take.key))
        if take.queue not in ordered and message.group is None:
            # Several consumers at a time: who is first says nothing about the queue.
            continue
        if not _has_place(message):
            continue
        send = message.sends[0]
        line = (take.queue, send.producer, message.group)
        number, key = last.get(line, (-1, ""))
        if send.number < number:
            others = [one for one in history.takes if (one.queue, one.key) == (take.queue, key)]
            told = "; ".join(map(told_of, [take, *others]))
            yield f"reordered: {take.key!r} came behind {key!r} in {take.queue}: {told}"
        last[line] = max((number, key), (send.number, take.key))


def _stranded(history: History) -> Iterator[str]:
    if not history.waits:
        return
    first: dict[tuple[str, str], Take] = {}
    for take in history.takes:
        first.setdefault((take.queue, take.key), take)
    for (queue, key), take in first.items():
        message = history.messages.get(key)
        if message is None or not _has_place(message):
            continue
        done_at = message.sends[0].unit.done_at
        if done_at is None:
            continue
        for wait in history.waits:
            if wait.queue == queue and done_at < wait.began_at and wait.ended_at < take.moment:
                yield f"stranded: {key!r} in {queue}: not delivered for {wait.seconds:.1f} s"
                break


def _has_place(message: Message) -> bool:
    """Whether it is known when it was sent: once, and it counted from then on."""
    return len(message.sends) == 1 and not _is_late(message.sends[0].unit)


def _is_late(unit: Unit) -> bool:
    return unit.is_late
