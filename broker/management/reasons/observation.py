"""Reads what the rules ask for out of a running queue; nothing changes by it.

Bounded: so many consumers, other nodes and selectors are looked at as the constants say.

Threads: the event loop's alone.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final

from broker.management.reasons.finding import Found, find, first, is_prepared
from broker.management.reasons.state import (
    ConsumerState,
    Forwarding,
    MessageState,
    Place,
    QueueState,
    RemoteState,
)
from broker.model.message import GROUP_ID
from broker.printing.describe import xid_base64
from broker.queues.consumer_ports import Pause
from broker.queues.refusals import Refusals
from broker.routing.message_copies import ORIGINAL_ID
from broker.routing.remote_bindings import STORE_AND_FORWARD, sf_owner
from broker.selector.nearest import nearest

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from broker.management.access import ManagedBroker
    from broker.model.message import Message
    from broker.queues.consumer import Consumer
    from broker.queues.queue import Queue
    from broker.routing.remote_bindings import RemoteQueueBinding
    from broker.sessions.session import Session

__all__ = ["observe", "observed"]

CONSUMERS_MAX: Final = 1000
REMOTES_MAX: Final = 100
SELECTORS_MAX: Final = 100
# Waiting messages of each store-and-forward queue among which one is looked for.
FORWARDED_LOOK_MAX: Final = 1000


def observe(
    broker: ManagedBroker, queue: Queue, message_id: int | None
) -> Generator[float | None, None, tuple[QueueState, MessageState | None]]:
    """Give the state of a queue and of one of its messages.

    Args:
        broker: of the queue.
        queue: to look at.
        message_id: of the message; None for the one that comes next.
    """
    if message_id is None:
        found = first(broker, queue)
    else:
        found = yield from find(broker, queue, message_id)
    return observed(broker, queue, found, message_id)


def observed(
    broker: ManagedBroker, queue: Queue, found: Found | None, message_id: int | None
) -> tuple[QueueState, MessageState | None]:
    """Give the state of a message that was just found, in the same turn of the loop.

    Args:
        broker: of the queue.
        queue: to look at.
        found: where the message is; None for none.
        message_id: that was asked for.
    """
    return _Observation(broker, queue, found, message_id).states()


class _Observation:
    def __init__(
        self, broker: ManagedBroker, queue: Queue, found: Found | None, message_id: int | None
    ) -> None:
        self._broker = broker
        self._queue = queue
        self._found = found
        self._message_id = message_id
        reference = None if found is None else found.reference
        self._message: Message | None = None if reference is None else reference.message
        self._now_ms = broker.clock_ms()
        self._sessions: dict[Consumer, Session] = {
            consumer: session
            for session in broker.clients.sessions.values()
            for consumer in session.consumers.values()
            if consumer.queue is queue
        }

    def states(self) -> tuple[QueueState, MessageState | None]:
        queue, binding = self._queue, self._queue.binding
        consumers = queue.consumers.all()
        owner = consumers[0] if binding.exclusive and consumers else None
        remotes = tuple(map(self._remote, islice(self._remotes(), REMOTES_MAX)))
        state = QueueState(
            name=queue.name,
            address=binding.address,
            now_ms=self._now_ms,
            message_count=queue.message_count + queue.undecided_count,
            consumers=tuple(map(self._consumer, consumers[:CONSUMERS_MAX])),
            consumer_count=len(consumers),
            remotes=remotes,
            is_paused=queue.is_paused,
            consumers_before_dispatch=binding.consumers_before_dispatch,
            delay_before_dispatch_ms=binding.delay_before_dispatch,
            is_open=queue.is_open,
            is_rebalancing=queue.is_rebalancing,
            exclusive_owner=None if owner is None else self._consumer(owner),
            paged_count=0 if queue.pages is None else queue.pages.unread_count,
            redistribution_delay_ms=queue.settings.redistribution_delay_ms,
            redistribution_in_ms=self._redistribution_in_ms(),
            is_internal=binding.internal,
            forwarding=_forwarding(self._broker, queue, self._now_ms),
            nearest=self._nearest(consumers, remotes),
        )
        return state, self._message_state()

    def _redistribution_in_ms(self) -> int | None:
        redistribution = self._broker.cluster.redistribution
        due_s = None if redistribution is None else redistribution.due_in_s(self._queue.name)
        return None if due_s is None else int(due_s * 1000)

    # --- consumers ----------------------------------------------------------------------------

    def _consumer(self, consumer: Consumer) -> ConsumerState:
        message, filter = self._message, consumer.filter
        takes = message is None or filter is None or filter.matches(message)
        session = self._sessions.get(consumer)
        origin = None if session is None else session.origin
        pause = consumer.pause_cause if consumer.is_paused else None
        return ConsumerState(
            name=_name(consumer, session),
            number=consumer.number,
            session=None if session is None else session.name,
            connection=None if origin is None else origin.connection_id,
            remote=None if origin is None else origin.remote,
            client_id=None if origin is None else origin.client_id,
            user=None if session is None else session.user,
            protocol=None if origin is None else origin.protocol,
            selector=None if filter is None or not filter.text else filter.text,
            takes=takes,
            has_refused=message is not None
            and isinstance(filter, Refusals)
            and filter.has_refused(message),
            is_started=consumer.is_started,
            is_stalled=pause is Pause.CONNECTION,
            is_streaming=consumer.stream is not None or pause is Pause.LARGE_MESSAGE,
            has_credit=pause is not Pause.WINDOW
            and (consumer.is_unlimited or consumer.credits > 0),
            delivering_count=len(consumer.delivering),
            last_delivered_ms=int(consumer.last_delivered_s * 1000),
            last_acknowledged_ms=int(consumer.last_acknowledged_s * 1000),
        )

    def _remotes(self) -> Iterator[RemoteQueueBinding]:
        name = self._queue.binding.routing_name
        at = self._broker.parts.postoffice.addresses.remote.at(self._queue.binding.address)
        return (one for one in at if one.routing_name == name)

    def _remote(self, binding: RemoteQueueBinding) -> RemoteState:
        message = self._message
        return RemoteState(
            node_id=_node_of(binding),
            queue=binding.queue_name,
            is_connected=binding.is_connected,
            redistributes=binding.mode.redistributes,
            mode=binding.mode.value,
            consumer_count=binding.consumer_count,
            takes=message is not None and binding.takes(message) and binding.wants(message),
            selectors=tuple(islice(binding.filters, SELECTORS_MAX)),
        )

    def _nearest(self, consumers: list[Consumer], remotes: tuple[RemoteState, ...]) -> str | None:
        """Say which selector comes nearest to a message that none takes."""
        message = self._message
        if message is None:
            return None
        texts = {one.filter.text: "here" for one in consumers if one.filter and one.filter.text}
        for remote in remotes:
            for text in remote.selectors:
                texts.setdefault(text, f"on node {remote.node_id}")
        found = nearest(islice(texts, SELECTORS_MAX), message)
        if found is None or not found.failures:
            return None
        parts = "; ".join(map(str, found.failures))
        count = found.matched_count + len(found.failures)
        return (
            f"{found.selector!r} {texts[found.selector]}, of which {len(found.failures)} of {count}"
            f" parts do not match: {parts}"
        )

    # --- the message --------------------------------------------------------------------------

    def _message_state(self) -> MessageState | None:
        found = self._found
        if found is None:
            return None
        message, reference, tx = self._message, found.reference, found.transaction
        if message is None or reference is None:
            assert self._message_id is not None, "only one that is named is looked for"
            return MessageState(
                message_id=self._message_id,
                place=found.place,
                found_in=tuple(self._found_in(self._message_id))
                if found.place is Place.ABSENT
                else (),
            )
        consumer = found.consumer
        key = self._queue.groups.key_of(message)
        owner = None if key is None else self._queue.groups.owner(key)
        group = message.get(GROUP_ID)
        grouping = self._broker.parts.postoffice.grouping
        return MessageState(
            message_id=message.message_id,
            place=found.place,
            ahead_count=found.ahead_count,
            due_ms=reference.scheduled_ms,
            consumer=None if consumer is None else self._consumer(consumer),
            is_last_delivered=consumer is not None
            and bool(consumer.delivering)
            and consumer.delivering[-1] is reference,
            delivery_count=reference.delivery_count,
            transaction=found.transaction_name,
            xid=None if tx is None or tx.xid is None else xid_base64(tx.xid),
            is_prepared=tx is not None and is_prepared(tx),
            transaction_since_ms=0 if tx is None else tx.started_ms,
            group=None if group is None else str(group),
            group_owner=None if owner is None else self._consumer(owner),
            group_node=None if grouping is None else grouping.owner_elsewhere(self._queue, message),
        )

    def _found_in(self, message_id: int) -> Iterator[Forwarding]:
        """Give the bridges of store-and-forward queues that have a message, or its copy."""
        for queue in list(self._broker.parts.postoffice.addresses.queues.values()):
            if not queue.name.startswith(STORE_AND_FORWARD) or not queue.message_count:
                continue
            if any(_is_it(message, message_id) for message in _forwarded(queue)):
                forwarding = _forwarding(self._broker, queue, self._now_ms)
                if forwarding is not None:
                    yield forwarding


def _name(consumer: Consumer, session: Session | None) -> str:
    if session is None:
        return f"consumer {consumer.number} of the broker itself"
    origin = session.origin
    client = "" if origin.client_id is None else f" of client {origin.client_id}"
    user = "" if session.user is None else f", user {session.user}"
    return (
        f"consumer {consumer.number}{client} at {origin.remote} ({origin.protocol}{user},"
        f" session {session.name})"
    )


def _is_it(message: Message, message_id: int) -> bool:
    return message.message_id == message_id or message.get(ORIGINAL_ID) == message_id


def _forwarded(queue: Queue) -> Iterator[Message]:
    """Give what is on its way, then what waits, as far as is looked at."""
    for consumer in queue.consumers.all():
        for reference in list(consumer.delivering):
            yield reference.message
    cursor = queue.waiting.cursor()
    try:
        for _ in range(FORWARDED_LOOK_MAX):
            found = cursor.advance_made()
            if found is None:
                return
            yield found.message
    finally:
        cursor.close()


def _node_of(binding: RemoteQueueBinding) -> str:
    """Give the node of a queue of another broker."""
    owner = sf_owner(binding.forwarding.name)
    return binding.unique_name if owner is None else owner[1]


def _forwarding(broker: ManagedBroker, queue: Queue, now_ms: int) -> Forwarding | None:
    """Say what takes from a queue where that is a bridge."""
    owner = sf_owner(queue.name)
    if owner is not None:
        name, node_id = owner
        connection = broker.cluster.connections.get(name)
        if connection is None:
            return Forwarding(
                bridge=queue.name,
                node_id=node_id,
                is_connected=False,
                reason=f"no cluster-connection {name} is in use",
            )
        for row in connection.peer_rows():
            if row["nodeID"] == node_id:
                lost_ms = int(str(row["lostForMs"]))
                return Forwarding(
                    bridge=queue.name,
                    node_id=node_id,
                    is_connected=row["connected"] is True,
                    lost_since_ms=None if lost_ms < 0 else now_ms - lost_ms,
                    reason=str(row["reason"]),
                )
        return Forwarding(bridge=queue.name, node_id=node_id, is_connected=False, is_known=False)
    for bridge in broker.bridges.by_name.values():
        status = bridge.status
        if status.queue == queue.name:
            return Forwarding(
                bridge=status.name,
                node_id=None,
                is_connected=status.is_connected,
                reason=status.reason,
            )
    return None
