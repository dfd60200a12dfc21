"""Why a message is not consumed: a function of its queue's state, without I/O.

    where the message is ─▶ what holds the queue ─▶ who could take it here ─▶ who could elsewhere

Each reason says what holds the message, and what to do about it. They come in the order in which
they have to go: those behind the first one would hold the message after it.
"""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING, Final

from broker.management.reasons.elsewhere import elsewhere, forwarding_reason
from broker.management.reasons.state import Place, Reason, command, time_text
from broker.model.counted_text import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker.management.reasons.state import ConsumerState, MessageState, QueueState

__all__ = ["reasons"]

# Consumers for which an action gives a command each.
_NAMED_MAX: Final = 3
# What says how much a client is given ahead, by its protocol.
_WINDOWS: Final = {
    "CORE": "consumerWindowSize",
    "AMQP": "link's credit",
    "MQTT": "acceptor's defaultMaximumInFlightPublishMessages",
    "MQTT5": "Receive Maximum",
    "OPENWIRE": "prefetch",
    "STOMP": "consumer-window-size",
}


def reasons(queue: QueueState, message: MessageState | None) -> list[Reason]:
    """Give why a message is not consumed now; at least one reason.

    Args:
        queue: its queue.
        message: that is asked for, or the one that comes next; None where the queue has none.
    """
    if message is None:
        return [_empty(queue)]
    if message.place is Place.ABSENT:
        return list(_absent(queue, message))
    if message.place is Place.SENT_IN_TRANSACTION:
        return [_sent_in_transaction(message)]
    if message.place is Place.ACKNOWLEDGED_IN_TRANSACTION:
        return [_acknowledged_in_transaction(message)]
    if message.place is Place.DELIVERING:
        return list(_delivering(queue, message))
    found = []
    if message.place is Place.SCHEDULED:
        found.append(_scheduled(queue, message))
    found += _of_queue(queue)
    found += _order(queue, message)
    found += _of_consumers(queue, message)
    return found or [_moving(message)]


def _moving(message: MessageState) -> Reason:
    return Reason(
        "moving",
        f"nothing holds message {message.message_id}: it is delivered in one of the next turns",
        "Ask again: if this answer comes twice for the same message, report it as a fault.",
    )


# --- where the message is -------------------------------------------------------------------


def _empty(queue: QueueState) -> Reason:
    if queue.message_count:
        return Reason(
            "becoming-durable",
            f"queue {queue.name} has {counted(queue.message_count, 'message')}, none of which"
            " can be looked at yet",
            "Ask again in a second.",
        )
    return Reason(
        "empty",
        f"queue {queue.name} has no message",
        f"See where messages to its address go: broker address show {shlex.quote(queue.address)}.",
    )


def _absent(queue: QueueState, message: MessageState) -> Iterator[Reason]:
    for forwarding in message.found_in:
        yield forwarding_reason(forwarding, queue.now_ms)
    if not message.found_in:
        yield Reason(
            "absent",
            f"queue {queue.name} has no message {message.message_id} (now): it was consumed, moved"
            " or expired, or never came here",
            f"See where it has been: broker trace {message.message_id}.",
        )


def _scheduled(queue: QueueState, message: MessageState) -> Reason:
    left_s = max(0, message.due_ms - queue.now_ms) / 1000
    again = f", to be delivered again after {message.delivery_count} deliveries"
    return Reason(
        "scheduled",
        f"message {message.message_id} is scheduled until {time_text(message.due_ms)}"
        f" ({left_s:.0f} s from now){again if message.delivery_count else ''}",
        "Wait, or deliver it now: "
        f"{command(f'queue.{queue.name}', 'deliverScheduledMessage', message.message_id)}.",
    )


def _transaction(message: MessageState) -> str:
    since = time_text(message.transaction_since_ms)
    state = "prepared" if message.is_prepared else "open"
    return f"the transaction of {message.transaction}, {state}, begun {since}"


def _decide(message: MessageState) -> str:
    if message.is_prepared and message.xid is not None:
        return (
            "Let its transaction manager decide, or decide in its place: "
            f"{command('broker', 'commitPreparedTransaction', message.xid)}, or "
            "rollbackPreparedTransaction."
        )
    consumer = message.consumer
    if consumer is None or consumer.session is None:
        return "Let the client commit or roll back; to end its session: its id is in listSessions."
    close = command("broker", "closeSessionWithID", consumer.connection, consumer.session)
    return f"Let the client commit or roll back; to end its session: {close}."


def _sent_in_transaction(message: MessageState) -> Reason:
    return Reason(
        "sent-in-prepared-transaction" if message.is_prepared else "sent-in-open-transaction",
        f"message {message.message_id} was sent in {_transaction(message)}: no consumer sees it"
        " before the commit",
        _decide(message),
    )


def _acknowledged_in_transaction(message: MessageState) -> Reason:
    by = "" if message.consumer is None else f" by {message.consumer.name}"
    return Reason(
        "acknowledged-in-prepared-transaction"
        if message.is_prepared
        else "acknowledged-in-open-transaction",
        f"message {message.message_id} was acknowledged{by} in {_transaction(message)}",
        _decide(message),
    )


def _delivering(queue: QueueState, message: MessageState) -> Iterator[Reason]:
    consumer = message.consumer
    if consumer is None:
        yield Reason(
            "delivering",
            f"message {message.message_id} is on its way out of queue {queue.name}",
            "Ask again in a second.",
        )
        return
    when = time_text(consumer.last_delivered_ms)
    acknowledged = consumer.last_acknowledged_ms
    said = (
        f"it acknowledged last at {time_text(acknowledged)}"
        if acknowledged
        else "it has never acknowledged"
    )
    yield Reason(
        "delivering",
        f"message {message.message_id} was delivered to {consumer.name}"
        f" {'at' if message.is_last_delivered else 'not later than'} {when} and is not"
        f" acknowledged: {said}, and has {counted(consumer.delivering_count, 'message')}",
        "Let the client acknowledge, or close its consumer so that others get the message: "
        f"{consumer.how_to_end}.",
    )
    if consumer.is_stalled:
        yield _stalled([consumer])
    if queue.forwarding is not None:
        yield forwarding_reason(queue.forwarding, queue.now_ms)


def _order(queue: QueueState, message: MessageState) -> Iterator[Reason]:
    if message.place is Place.PAGED:
        yield Reason(
            "paged",
            f"message {message.message_id} is in a page; pages have"
            f" {counted(queue.paged_count, 'message')} of the queue, which are read as those before"
            " them are acknowledged",
            "Let consumers acknowledge; raise max-read-page-bytes, or max-size-bytes, of "
            f"{queue.address} to have more in memory.",
        )
    elif message.place is Place.STORED:
        yield Reason(
            "not-read",
            f"message {message.message_id} is not among those read since the start, or not in"
            " this queue: the queue reads its messages in order",
            f"Let consumers work, or look for it: broker trace {message.message_id}.",
        )
    elif message.ahead_count and any(one.takes for one in queue.consumers):
        yield Reason(
            "behind-others",
            f"{counted(message.ahead_count, 'message')} of the same or a higher priority"
            f" {'comes' if message.ahead_count == 1 else 'come'} before message"
            f" {message.message_id}",
            f"See what holds the first of them: broker queue why {shlex.quote(queue.name)}.",
        )


# --- what holds the whole queue -------------------------------------------------------------


def _of_queue(queue: QueueState) -> Iterator[Reason]:
    name = shlex.quote(queue.name)
    if queue.is_paused:
        yield Reason(
            "queue-paused",
            f"queue {queue.name} is paused",
            f"Resume it: {command(f'queue.{queue.name}', 'resume')}, or its address: "
            f"{command(f'address.{queue.address}', 'resume')}.",
        )
    if queue.consumer_count and not queue.is_open:
        none = json.dumps({"name": queue.name, "consumers-before-dispatch": 0})
        delay_ms = queue.delay_before_dispatch_ms
        until = f", or {delay_ms} ms after the first one" if delay_ms >= 0 else ""
        yield Reason(
            "consumers-before-dispatch",
            f"queue {queue.name} delivers once {queue.consumers_before_dispatch} consumers are"
            f" there{until}: it has {queue.consumer_count}",
            f"Start more consumers, or wait for none: {command('broker', 'updateQueue', none)}.",
        )
    if queue.is_rebalancing:
        busy = sum(one.delivering_count for one in queue.consumers)
        yield Reason(
            "group-rebalance",
            f"queue {queue.name} gives its groups to other consumers, and delivers nothing before"
            f" {busy} delivered messages are acknowledged (group-rebalance-pause-dispatch)",
            f"Let consumers acknowledge what they have: broker queue stat --queue {name}.",
        )


# --- who could take it ----------------------------------------------------------------------


def _of_consumers(queue: QueueState, message: MessageState) -> Iterator[Reason]:
    if queue.forwarding is not None:
        yield forwarding_reason(queue.forwarding, queue.now_ms)
        return
    is_grouped = message.group is not None and message.group_owner is not None
    if message.group_node is not None or is_grouped:
        yield from _of_group(queue, message)
        return
    candidates = list(queue.consumers)
    owner = queue.exclusive_owner
    if owner is not None:
        others = queue.consumer_count - 1
        if others and not (owner.takes and owner.can_take):
            yield Reason(
                "exclusive",
                f"queue {queue.name} is exclusive: {owner.name} gets everything, and "
                f"{counted(others, 'other consumer')} nothing",
                f"Let that consumer work, or close it: {owner.how_to_end}.",
            )
        candidates = [owner]
    wanting = [one for one in candidates if one.takes]
    if wanting:
        yield from _without_room(wanting)
        return
    yield _none_here(queue, message)
    yield from elsewhere(queue, message)


def _owned_as(queue: QueueState, message: MessageState) -> str:
    if message.group is None:
        return f"of queue {queue.name}, exclusive in the cluster"
    return f"of group {message.group!r}"


def _of_group(queue: QueueState, message: MessageState) -> Iterator[Reason]:
    name = shlex.quote(queue.name)
    if message.group_node is not None:
        yield Reason(
            "group-owner-elsewhere",
            f"message {message.message_id} is {_owned_as(queue, message)}, which node"
            f" {message.group_node} has",
            "Wait until it is sent there, or see what the link does: broker cluster status.",
        )
        return
    owner = message.group_owner
    assert owner is not None, "the caller has looked"
    yield Reason(
        "group-owner",
        f"message {message.message_id} is of group {message.group!r}, which {owner.name} has; it"
        f" has {counted(owner.delivering_count, 'message')} to acknowledge",
        "Let it work, or reset the group: "
        f"{command(f'queue.{queue.name}', 'resetGroup', message.group)}; see broker queue stat"
        f" --queue {name}.",
    )
    if owner.takes:
        yield from _without_room([owner])
        return
    yield Reason(
        "no-match",
        f"that consumer does not take it: {queue.nearest or owner.selector}",
        "Give all consumers of a group the same selector, or reset the group.",
    )


def _none_here(queue: QueueState, message: MessageState) -> Reason:
    name, own = shlex.quote(queue.name), f"queue.{queue.name}"
    if not queue.consumer_count:
        return Reason(
            "no-consumer",
            f"queue {queue.name} has no consumer on this node",
            f"Start one: broker consumer --destination queue://{name}.",
        )
    refused = sum(one.has_refused for one in queue.consumers)
    if refused and not any(not one.has_refused for one in queue.consumers):
        return Reason(
            "refused",
            f"all {refused} consumers have given message {message.message_id} back as one that they"
            " cannot take",
            "Start another consumer, or take the message away: "
            f"{command(own, 'sendMessageToDeadLetterAddress', message.message_id)}.",
        )
    near = f"; nearest is {queue.nearest}" if queue.nearest else ""
    return Reason(
        "no-match",
        f"none of {queue.consumer_count} consumers on this node takes message"
        f" {message.message_id}{near}",
        "Start a consumer that takes it, or move it: "
        f"{command(own, 'moveMessage', message.message_id, 'ANOTHER_QUEUE')}.",
    )


def _without_room(wanting: list[ConsumerState]) -> Iterator[Reason]:
    """Why none of those that take the message is given it; nothing where one can be."""
    if any(one.can_take for one in wanting):
        return
    stopped = [one for one in wanting if not one.is_started]
    stalled = [one for one in wanting if one.is_started and one.is_stalled]
    streaming = [one for one in wanting if one.is_started and one.is_streaming]
    without = [
        one
        for one in wanting
        if one.is_started and not one.is_stalled and not one.is_streaming and not one.has_credit
    ]
    if without:
        yield Reason(
            "no-credit",
            f"{_named(without)} takes it and has no credit left: it has"
            f" {counted(sum(one.delivering_count for one in without), 'message')}"
            " that it was given",
            "Let the client work on what it has, start more consumers, or raise its "
            f"{_window_of(without[0])}.",
        )
    if stalled:
        yield _stalled(stalled)
    if streaming:
        yield Reason(
            "large-message",
            f"{_named(streaming)} takes it and is sent a large message first",
            "Wait until that is sent; if it does not end, the client reads too slowly.",
        )
    if stopped:
        yield Reason(
            "not-started",
            f"{_named(stopped)} takes it, and its session is stopped",
            "Let the client start its session (JMS: connection.start()).",
        )


def _window_of(consumer: ConsumerState) -> str:
    """Give what says how much a client is given ahead, in words of its protocol."""
    return _WINDOWS.get(consumer.protocol or "", "window")


def _stalled(consumers: list[ConsumerState]) -> Reason:
    return Reason(
        "connection-stalled",
        f"the connection of {_named(consumers)} takes no more bytes: the client or the network is"
        " slow",
        "Look at that client; to let others have its messages: "
        f"{'; '.join(one.how_to_end for one in consumers[:_NAMED_MAX])}.",
    )


def _named(consumers: list[ConsumerState]) -> str:
    first = consumers[0].name
    return first if len(consumers) == 1 else f"{first} and {len(consumers) - 1} others"
