"""Whether a history may be: the words of queue services, each with what proves it.

    lost                sent, confirmed, and never delivered; or delivered, given back and gone
    unexpected          delivered and never sent, or sent by what was rolled back or refused
    changed             delivered with another body
    duplicated          delivered after its acknowledgement was confirmed, or while a prepared
                        transaction had it, or as more copies than there were sends
    out of order        first deliveries of a producer's messages, of one queue that one consumer
                        has at a time, or of one group, in another order than they were sent
    torn                a transaction, a send or an acknowledgement of which a part counts
    unmarked            delivered again to the same run of the broker as if for the first time
    stranded            confirmed before the only consumer of its queue began to wait, and first
                        delivered after it had waited for long; or left behind at the end

A unit without an answer may count or not: what its messages did says which, and all of them must
say the same. That needs a history whose queues were drained at the end.

The first word, the second of the copies and the fifth are those of `pipeline audit`, by the rules
of pipeline/finding_rules.py; tests/pipeline/test_audit_and_checker.py has both read one history.

A queue that acknowledges before it delivers (`History.lossy`) may lose what no client has seen.

A queue of a subscriber gets what was sent after its creation was answered. What was sent meanwhile
may be in it; of one that was deleted nothing has to be delivered.
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from pipeline.finding_rules import DUPLICATED, LOST, OUT_OF_ORDER, copies_max, late_in_lane
from tests.broker.history.record import Outcome

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.broker.history.record import History, Message, Send, Subscription, Take, Unit

Copies = dict[tuple[str, int], "list[Take]"]
_MAY_COUNT = (Outcome.DONE, Outcome.TRIED)


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
        *_copies(history, copies),
        *_torn(history, copies),
        *_out_of_order(history, ordered),
        *_stranded(history),
    ]
    return [one for one in found if is_complete or not one.startswith(("lost", "torn"))]


def _unexpected(history: History) -> Iterator[str]:
    for take in history.takes:
        message = history.messages.get(take.key)
        what = f"{take.key!r} in {take.queue}"
        if message is None or not _may_be_in(history, message, take.queue):
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
        has_id = message.has_duplicate_id
        for queue in _queues_of(history, message):
            sure, could = _sends_into(history, message, queue)
            least = copies_max(sure, has_duplicate_id=has_id)
            most = copies_max(could, has_duplicate_id=has_id)
            count = found[message.key, queue]
            if count < least and queue not in history.lossy:
                yield f"{LOST}: {message.key!r} in {queue}: {count} of {least}"
            elif count > most and most:
                yield f"{DUPLICATED}: {message.key!r} in {queue}: {count} copies, {most} sends"


def _copies(history: History, copies: Copies) -> Iterator[str]:
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
                    yield f"{DUPLICATED}: {what}: came again after its acknowledgement"
                elif unit.held_at is not None and unit.held_at < later.moment < (
                    unit.freed_at or later.moment + 1
                ):
                    yield f"{DUPLICATED}: {what}: came while a prepared transaction had it"
        subscription = history.subscriptions.get(queue)
        if queue in history.lossy or (subscription and subscription.dropped_at is not None):
            continue
        if takes[-1].unit.outcome not in _MAY_COUNT:
            told = "; ".join(map(told_of, takes))
            yield f"{LOST}: {what}: went back to its queue, and never came again: {told}"


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
        if unit.outcome is not Outcome.TRIED:
            continue
        counts = {
            f"{send.message.key!r} to {queue}": (queue, send.message.key) in seen
            for send in unit.sends
            # Of one that was sent again, it is unknown which send it was.
            if len(send.message.sends) == 1
            for queue in _queues_of(history, send.message)
            # What no client has seen may be gone from there.
            if queue not in history.lossy
            and (
                queue not in history.subscriptions
                or _is_after(history.subscriptions[queue], [send])
            )
        }
        for take in unit.takes:
            last = copies[take.queue, take.copy][-1]
            counts[f"{take.key!r} from {take.queue}"] = last.unit is unit
        if len(set(counts.values())) > 1:
            there = sorted(name for name, is_there in counts.items() if is_there)
            missing = sorted(name for name, is_there in counts.items() if not is_there)
            yield f"torn: a unit counts for {there} and not for {missing}"


def _out_of_order(history: History, ordered: frozenset[str]) -> Iterator[str]:
    first: set[tuple[str, str]] = set()
    lanes: dict[tuple[str, str, str | None], list[tuple[int, Take]]] = defaultdict(list)
    for take in history.takes:
        message = history.messages.get(take.key)
        if message is None or (take.queue, take.key) in first:
            continue
        first.add((take.queue, take.key))
        if take.queue not in ordered and message.group is None:
            # Several consumers at a time: who is first says nothing about the queue.
            continue
        if _has_place(message):
            send = message.sends[0]
            lanes[take.queue, send.producer, message.group].append((send.number, take))
    for (queue, _, _), lane in lanes.items():
        for index, latest in late_in_lane(number for number, _ in lane):
            late, before = lane[index][1], lane[latest][1]
            others = [one for one in history.takes if (one.queue, one.key) == (queue, before.key)]
            told = "; ".join(map(told_of, [late, *others]))
            yield f"{OUT_OF_ORDER}: {late.key!r} came behind {before.key!r} in {queue}: {told}"


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


# --- queues of subscribers -----------------------------------------------------------------------


def _queues_of(history: History, message: Message) -> Iterator[str]:
    """Queues that the message may be in: those of its address, and those of subscribers to it."""
    yield from message.queues
    for one in history.subscriptions.values():
        if one.address == message.address:
            yield one.queue


def _sends_into(history: History, message: Message, queue: str) -> tuple[int, int]:
    """How many sends count for a queue, and how many may."""
    could = [send for send in message.sends if send.unit.outcome in _MAY_COUNT]
    sure = [send for send in could if send.unit.outcome is Outcome.DONE]
    subscription = history.subscriptions.get(queue)
    if subscription is None:
        return len(sure), len(could)
    if not message.has_duplicate_id:
        sure = [send for send in sure if _is_after(subscription, [send])]
    elif not _is_after(subscription, could):
        # The one that the broker has taken may have been before it.
        sure = []
    return len(sure), sum(_may_reach(subscription, send) for send in could)


def _may_be_in(history: History, message: Message, queue: str) -> bool:
    subscription = history.subscriptions.get(queue)
    if subscription is None:
        return queue in message.queues
    return subscription.address == message.address and any(
        _may_reach(subscription, send) for send in message.sends
    )


def _may_reach(subscription: Subscription, send: Send) -> bool:
    """Whether it was not over before the queue was asked for."""
    done_at = send.unit.done_at
    return done_at is None or done_at > subscription.tried_at


def _is_after(subscription: Subscription, sends: list[Send]) -> bool:
    """Whether the queue was there before all of these, and is there for good."""
    made_at = subscription.made_at
    if made_at is None or subscription.dropped_at is not None:
        return False
    return all(send.moment >= made_at for send in sends)
