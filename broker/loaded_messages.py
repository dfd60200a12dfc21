"""What the message journal says at a start, made into messages and references as it is read.

Only records that count come here, in log order: for a message its add, then what happened to it in
each queue. A message that some queue is to have is there at once, its bytes put aside; a reference
stands in the list of its queue's id until recovery.py knows the queue.
"""

from __future__ import annotations

import logging
import struct
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

import broker.message_bytes as walk
from broker.message import Message
from broker.reference import Reference, reference_to
from broker.storage.encoding import RecordFormatError
from broker.storage.message_records import DuplicateId, HeuristicCompletion
from broker.storage.records import decode_record
from broker.storage.stored_messages import Persister
from broker.storage.wire import RecordType

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from broker.memory import AddressMemory
    from broker.queue import Queue
    from broker.storage.bytes_aside import BytesAside
    from broker.storage.images import Record

__all__ = ["LoadedMessages", "LoadedQueue", "decode_message"]

log = logging.getLogger("broker")

_LONG_INT: Final = struct.Struct(">qi")
_LONG_LONG: Final = struct.Struct(">qq")

# As plain ints: an IntEnum's own comparison is a call on every record.
_MESSAGE: Final = int(RecordType.ADD_MESSAGE_PROTOCOL)
_LARGE_MESSAGE: Final = int(RecordType.ADD_LARGE_MESSAGE)
_REFERENCE: Final = int(RecordType.ADD_REF)
_ACKNOWLEDGE: Final = int(RecordType.ACKNOWLEDGE_REF)
_DELIVERY_COUNT: Final = int(RecordType.UPDATE_DELIVERY_COUNT)
_SCHEDULED: Final = int(RecordType.SET_SCHEDULED_DELIVERY_TIME)
_DECODED: Final = (int(RecordType.DUPLICATE_ID), int(RecordType.HEURISTIC_COMPLETION))
_CORE: Final = int(Persister.CORE)


class LoadedQueue:
    """What a queue's id has; the `queue` of its references until there is one.

    Attributes:
        queue_id: of the records.
        references: in order; those that were acknowledged since are of no queue.
    """

    __slots__ = ("queue_id", "references")

    def __init__(self, queue_id: int) -> None:
        self.queue_id = queue_id
        self.references: list[Reference] = []


# Of a message that no queue has, that one has, that several have.
Known: TypeAlias = "Message | Reference | list[Reference]"
# That of references which were acknowledged.
_NO_QUEUE: Final = cast("Queue", LoadedQueue(-1))


class KnownMessages:
    """What is known of each message, found by its id.

    A list in order of the ids, which is that of the log but for what a compaction has moved: no
    object and no entry of a dict for each of a million ids, whose memory would be gone for good.
    """

    __slots__ = ("_in_order", "_others")

    def __init__(self) -> None:
        self._in_order: list[Known] = []
        # Those that came behind greater ids.
        self._others: dict[int, Known] = {}

    def __iter__(self) -> Iterator[Known]:
        yield from self._in_order
        yield from self._others.values()

    def get(self, message_id: int) -> Known | None:
        """Give what is known of a message, None for nothing."""
        at = self._place(message_id)
        return self._others.get(message_id) if at < 0 else self._in_order[at]

    def put(self, message_id: int, known: Known) -> None:
        """Know this of a message, instead of anything else."""
        at = self._place(message_id)
        if at >= 0:
            self._in_order[at] = known
        elif not self._in_order or message_id > _id_of(self._in_order[-1]):
            self._in_order.append(known)
        else:
            self._others[message_id] = known

    def _place(self, message_id: int) -> int:
        """Give where a message stands in the list, below 0 where it does not."""
        known = self._in_order
        after = len(known)
        # Nearly always the last one is meant, or one that is new.
        low = after - 1
        if low < 0 or _id_of(known[low]) < message_id:
            return -1
        if _id_of(known[low]) != message_id:
            low = 0
            while low < after:
                middle = (low + after) // 2
                if _id_of(known[middle]) < message_id:
                    low = middle + 1
                else:
                    after = middle
            if _id_of(known[low]) != message_id:
                return -1
        return low

    def clear(self) -> None:
        """Forget all."""
        self._in_order.clear()
        self._others.clear()


def _id_of(known: Known) -> int:
    if isinstance(known, list):
        known = known[0]
    if isinstance(known, Message):
        message = known
    else:
        reference = known
        message = reference.message
    # Several times for each record: not by the property.
    return message._message_id


class LoadedMessages:
    """The message journal.

    Args:
        aside: where bytes go; None leaves them in memory.

    Attributes:
        known: by message id.
        unreadable: ids of messages that stay in the journal as they are.
        queues: by queue id.
        duplicate_ids: by address, the oldest first: the id and its record.
        heuristic: decisions of operators, with the record's id.
        others: records of pages and whatever else, with id, type and whether it is an update.
    """

    def __init__(self, aside: BytesAside | None = None) -> None:
        self._aside = aside
        self.known = KnownMessages()
        self.unreadable: set[int] = set()
        self.queues: dict[int, LoadedQueue] = {}
        self.duplicate_ids: dict[str, list[tuple[bytes, int]]] = {}
        self.heuristic: list[tuple[int, HeuristicCompletion]] = []
        self.others: list[tuple[int, int, bool, bytes]] = []

    def take(self, batch: Sequence[Record]) -> None:
        """Take the next records.

        Raises:
            RecordFormatError: one of them is not what its type says; it names the record.
        """
        for item in batch:
            try:
                self._take(item)
            except (RecordFormatError, IndexError, struct.error) as error:
                raise RecordFormatError(
                    f"message record {item.record_id} of type {item.user_type}: {error}"
                ) from error

    def _take(self, item: Record) -> None:
        kind = item.user_type
        record_id = item.record_id
        body = item.body
        if kind == _MESSAGE:
            message = decode_message(record_id, body)
            if message is not None and self._aside is not None:
                self._aside.take(message)
            self._add(record_id, message)
        elif kind == _REFERENCE:
            self._refer(record_id, walk.long_at(body, 0))
        elif kind == _ACKNOWLEDGE:
            self._acknowledge(record_id, walk.long_at(body, 0))
        elif kind == _DELIVERY_COUNT:
            queue_id, count = _LONG_INT.unpack_from(body)
            found = self.reference(record_id, queue_id)
            if found is not None:
                found.delivery_count = found.persisted_count = count
        elif kind == _SCHEDULED:
            queue_id, time_ms = _LONG_LONG.unpack_from(body)
            found = self.reference(record_id, queue_id)
            if found is not None:
                found.scheduled_ms = time_ms
        elif kind == _LARGE_MESSAGE:
            message = Message.decode_headers(body)
            message.message_id = record_id
            self._add(record_id, message)
        elif kind in _DECODED:
            self._take_decoded(item)
        else:
            self.others.append((record_id, kind, item.is_update, body))

    def _add(self, message_id: int, message: Message | None) -> None:
        if message is not None:
            self.known.put(message_id, message)
        elif message_id not in self.unreadable:
            self.unreadable.add(message_id)
            log.warning("message %d cannot be read here: it stays in the journal", message_id)

    def _refer(self, message_id: int, queue_id: int) -> None:
        found = self.known.get(message_id)
        if found is None:
            self._add(message_id, None)
            return
        # Of each reference the queue, until there is one.
        queue: Any = self.queues.get(queue_id)
        if queue is None:
            queue = self.queues[queue_id] = LoadedQueue(queue_id)
        if isinstance(found, Message):
            reference = reference_to(found, queue, 0)
            self.known.put(message_id, reference)
        else:
            others = found if isinstance(found, list) else [found]
            if self._find(message_id, queue) is not None:
                return
            reference = reference_to(others[0].message, queue, 0)
            self.known.put(message_id, [*others, reference])
        queue.references.append(reference)

    def reference(self, message_id: int, queue_id: int) -> Reference | None:
        """Give what a queue id has of a message, while its queue is not known."""
        return self._find(message_id, self.queues.get(queue_id))

    def loaded_reference(self, message_id: int, queue: Queue) -> Reference | None:
        """Give what a queue has of a message."""
        return self._find(message_id, queue)

    def referenced(self, message_id: int) -> Message | None:
        """Give a message that some queue has."""
        found = self.known.get(message_id)
        if found is None or isinstance(found, Message):
            return None
        return found[0].message if isinstance(found, list) else found.message

    def _find(self, message_id: int, queue: object) -> Reference | None:
        found = self.known.get(message_id)
        if found is None or isinstance(found, Message):
            return None
        for one in found if isinstance(found, list) else (found,):
            if one.queue is queue:
                return one
        return None

    def _acknowledge(self, message_id: int, queue_id: int) -> None:
        found = self.reference(message_id, queue_id)
        if found is not None:
            self.drop(found, message_id)
        elif message_id not in self.unreadable:
            log.warning(
                "queue %d acknowledged message %d, which it does not have", queue_id, message_id
            )

    def drop(self, reference: Reference, message_id: int) -> None:
        """A queue does not have a message after all."""
        found = self.known.get(message_id)
        rest = [one for one in found if one is not reference] if isinstance(found, list) else []
        reference.queue = _NO_QUEUE
        if not rest:
            self.known.put(message_id, reference.message)
        else:
            self.known.put(message_id, rest[0] if len(rest) == 1 else rest)

    def in_order(self, queue: LoadedQueue) -> Iterator[Reference]:
        """Give what a queue id still has; each may get its queue."""
        wanted: object = queue
        for reference in queue.references:
            if reference.queue is wanted:
                yield reference

    def fill(
        self,
        queue: Queue,
        loaded: LoadedQueue,
        memory_of: Callable[[Message, Queue], AddressMemory],
        has_body: Callable[[Message], bool],
    ) -> None:
        """Put into a queue what its id still has.

        Args:
            queue: empty.
            loaded: of its id.
            memory_of: where a message counts.
            has_body: asked for each large message without one; those that have none are left out.
        """
        address = memory = None
        for reference in self.in_order(loaded):
            message = reference.message
            if message.is_large and message.large is None and not has_body(message):
                continue
            if memory is None or message.address != address:
                # Nearly always that of the message before.
                address = message.address
                memory = memory_of(message, queue)
            reference.queue = queue
            message.durable_references += 1
            memory.add(message)
            queue.load(reference)

    def unreferenced(self) -> Iterator[int]:
        """Give the ids of messages that no queue has."""
        for found in self.known:
            if isinstance(found, Message):
                yield found.message_id

    def _take_decoded(self, item: Record) -> None:
        found = decode_record(item.user_type, item.body, is_update=item.is_update)
        if isinstance(found, DuplicateId):
            self.duplicate_ids.setdefault(found.address, []).append(
                (found.duplicate_id, item.record_id)
            )
        elif isinstance(found, HeuristicCompletion):
            self.heuristic.append((item.record_id, found))


def decode_message(message_id: int, body: bytes) -> Message | None:
    """Read the body of record 45; None for a message of a kind that is not known here.

    Raises:
        RecordFormatError: it is not what it says.
    """
    if not body or body[0] != _CORE:
        return None
    message = Message.__new__(Message)
    message._read_record(body)
    message.give_id(message_id)
    return message
