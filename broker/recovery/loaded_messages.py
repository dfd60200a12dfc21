"""What the message journal says at a start: messages and references, as it is read.

Only records that count come here, in log order: for a message its add, then what happened to it in
each queue. Of a journal of files a plain message is a row (storage/journal_messages.pyx) as long as
nothing but its one queue is known of it. Any other message, and each of a database, is an object at
once, its bytes spilled. A reference stands in the list of its queue's id until recovery.py knows
the queue.
"""

from __future__ import annotations

import logging
import struct
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

import broker.model.message_bytes as walk
from broker.model.encoding import RecordFormatError
from broker.model.message import Message
from broker.model.message_types import Persister
from broker.model.wire import RecordType
from broker.queues.reference import Reference, reference_to
from broker.queues.stored_references import QueueFiller
from broker.records.message_records import DuplicateId, HeuristicCompletion
from broker.records.persisters import UnsupportedMessage, message_of_record
from broker.records.records import decode_record
from broker.storage.journal_messages import JournalMessages

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from broker.queues.memory import AddressMemory
    from broker.queues.queue import Queue
    from broker.recovery.images import Record
    from broker.storage.journal_messages import QueueRows
    from broker.storage.pinned_files import PinnedFile, PinnedFiles
    from broker.storage.spill_file import SpillFile

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
        references: that are objects, in order; those that were acknowledged since are of no queue.
        rows: of the others, and where the objects stand among them.
    """

    __slots__ = ("queue_id", "references", "rows")

    def __init__(self, rows: QueueRows) -> None:
        self.queue_id = rows.queue_id
        self.references: list[Reference] = []
        self.rows = rows

    def append(self, reference: Reference) -> None:
        """Have one more."""
        self.references.append(reference)
        self.rows.append_object()


# Of a message that no queue has, that one has, that several have.
Known: TypeAlias = "Message | Reference | list[Reference]"
# That of references which were acknowledged.
_NO_QUEUE: Final = cast("Queue", LoadedQueue(JournalMessages().queue(-1)))
# The bytes of a message are found by it (message_fields.pxd).
_PLACE_MAX: Final = 0x7FFFFFFF


class KnownMessages:
    """What is known of each message, found by its id.

    A list in order of the ids, which is that of the log but for what a compaction has moved. It
    needs no object and no entry of a dict for each of a million ids: their memory would never be
    given back.
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
        files: of a journal of files: opens those that messages are left in.

    Attributes:
        plain: messages of a journal of files that are not objects.
        known: the others, by message id.
        unreadable: ids of messages that stay in the journal as they are.
        queues: by queue id.
        duplicate_ids: by address, the oldest first: the id, its record, and whose it was.
        heuristic: decisions of operators, with the record's id.
        others: records of pages and whatever else, with id, type and whether it is an update.
    """

    def __init__(self, aside: SpillFile | None = None, files: PinnedFiles | None = None) -> None:
        self._aside = aside
        self.plain = JournalMessages(None if files is None else files.open)
        # Made of the rows of messages that are objects by now.
        self._made: dict[int, Reference] = {}
        self.known = KnownMessages()
        self.unreadable: set[int] = set()
        self.queues: dict[int, LoadedQueue] = {}
        self.duplicate_ids: dict[str, list[tuple[bytes, int, int]]] = {}
        self.heuristic: list[tuple[int, HeuristicCompletion]] = []
        self.others: list[tuple[int, int, bool, bytes]] = []

    def take(self, batch: Sequence[Record]) -> None:
        """Take the next records.

        Raises:
            RecordFormatError: one of them is not what its type says; it names the record.
        """
        for item in batch:
            self._take_one(item, None, 0)

    def take_journal(self, cursor: object) -> None:
        """Take all records of a journal of files.

        Args:
            cursor: a LiveCursor over them.

        Raises:
            RecordFormatError: one of them is not what its type says; it names the record.
        """
        self.plain.read(cursor, self._take_record, self._take_one)

    def _take_record(self, item: Record) -> None:
        self._take_one(item, None, 0)

    def _take_one(self, item: Record, file: PinnedFile | None, place: int) -> None:
        try:
            self._take(item, file, place)
        except (RecordFormatError, IndexError, struct.error) as error:
            raise RecordFormatError(
                f"message record {item.record_id} of type {item.user_type}: {error}"
            ) from error

    def _take(self, item: Record, file: PinnedFile | None, place: int) -> None:
        kind = item.user_type
        record_id = item.record_id
        body = item.body
        if kind == _MESSAGE:
            message = decode_message(record_id, body)
            if message is not None and self._aside is not None and not message.is_large:
                if file is None or message.is_changed or body[0] != _CORE:
                    self._aside.take(message)
                else:
                    # Where its bytes stand in the file.
                    place += _form_at(body)
                    if place > _PLACE_MAX:
                        self._aside.take(message)
                    else:
                        message.spill(file, place)
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
        self.make(message_id)
        if message is not None:
            self.known.put(message_id, message)
        else:
            self.unreadable.add(message_id)

    def _refer(self, message_id: int, queue_id: int) -> None:
        self.make(message_id)
        found = self.known.get(message_id)
        if found is None:
            if message_id not in self.unreadable:
                self.unreadable.add(message_id)
                log.warning("message %d cannot be read here: it stays in the journal", message_id)
            return
        # Of each reference the queue, until there is one.
        queue: Any = self._queue(queue_id)
        if isinstance(found, Message):
            reference = reference_to(found, queue, 0)
            self.known.put(message_id, reference)
        else:
            others = found if isinstance(found, list) else [found]
            if self._find(message_id, queue) is not None:
                return
            reference = reference_to(others[0].message, queue, 0)
            self.known.put(message_id, [*others, reference])
        queue.append(reference)

    def _queue(self, queue_id: int) -> LoadedQueue:
        queue = self.queues.get(queue_id)
        if queue is None:
            queue = self.queues[queue_id] = LoadedQueue(self.plain.queue(queue_id))
        return queue

    def all_queues(self) -> list[LoadedQueue]:
        """Give what each queue's id has."""
        return [self._queue(rows.queue_id) for rows in self.plain.queues]

    def make(self, message_id: int) -> None:
        """Make an object of a message that is a row: something is to happen to it alone.

        Raises:
            JournalIOError: the disk fails.
        """
        row = self.plain.row_of(message_id)
        if row >= 0:
            self._make(row)

    def _make(self, row: int) -> None:
        message = self.plain.make(row)
        number = self.plain.queue_of(row)
        if number < 0:
            self.known.put(message.message_id, message)
            return
        queue: Any = self._queue(self.plain.queues[number].queue_id)
        reference = reference_to(message, queue, 0)
        self._made[row] = reference
        self.known.put(message.message_id, reference)

    def reference(self, message_id: int, queue_id: int) -> Reference | None:
        """Give what a queue id has of a message, while its queue is not known."""
        self.make(message_id)
        return self._find(message_id, self.queues.get(queue_id))

    def loaded_reference(self, message_id: int, queue: Queue) -> Reference | None:
        """Give what a queue has of a message."""
        return self._find(message_id, queue)

    def referenced(self, message_id: int) -> Message | None:
        """Give a message that some queue has."""
        self.make(message_id)
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
        objects = iter(queue.references)
        for at in range(len(queue.rows)):
            row = queue.rows.row_at(at)
            reference = next(objects) if row < 0 else self._reference_of(row)
            if reference.queue is wanted:
                yield reference

    def _reference_of(self, row: int) -> Reference:
        if not self.plain.is_object(row):
            self._make(row)
        return self._made[row]

    def fill(
        self,
        queue: Queue,
        loaded: LoadedQueue,
        memory_of: Callable[[str | None, Queue], AddressMemory],
        has_body: Callable[[Message], bool],
    ) -> None:
        """Put into a queue what its id still has.

        Args:
            queue: empty.
            loaded: of its id.
            memory_of: where a message of an address counts.
            has_body: asked for each large message without one; those that have none are left out.
        """
        wanted: object = loaded
        address = memory = None
        filler = QueueFiller(self.plain, queue, memory_of)
        leaves_rows = queue.takes_stored
        rows = loaded.rows
        count = 0
        for at in range(len(rows)):
            row = rows.row_at(at)
            if row < 0:
                reference = loaded.references[count]
                count += 1
            elif leaves_rows and not self.plain.is_object(row):
                filler.add(row)
                continue
            else:
                reference = self._reference_of(row)
            if reference.queue is not wanted:
                continue
            message = reference.message
            if message.is_large and message.large is None and not has_body(message):
                continue
            if memory is None or message.address != address:
                # Nearly always that of the message before.
                address = message.address
                memory = memory_of(address, queue)
            filler.flush()
            reference.queue = queue
            message.durable_references += 1
            memory.add(message)
            queue.load(reference)
        filler.flush()

    def unreferenced(self) -> Iterator[int]:
        """Give the ids of messages that no queue has."""
        yield from self.plain.unreferenced()
        for found in self.known:
            if isinstance(found, Message):
                yield found.message_id

    def _take_decoded(self, item: Record) -> None:
        found = decode_record(item.user_type, item.body, is_update=item.is_update)
        if isinstance(found, DuplicateId):
            self.duplicate_ids.setdefault(found.address, []).append(
                (found.duplicate_id, item.record_id, found.message_id)
            )
        elif isinstance(found, HeuristicCompletion):
            self.heuristic.append((item.record_id, found))


def _form_at(body: bytes) -> int:
    """Give where the bytes of a message stand in its record, which decode_message() has read."""
    size = walk.int_at(body, 10) + 4 if body[9] else 0
    # Persister, id, whether there is an address; behind the address the size.
    return 14 + size


def decode_message(message_id: int, body: bytes) -> Message | None:
    """Read the body of record 45; None, and a line in the log, for one that cannot be read here.

    Raises:
        RecordFormatError: a Core message is not what it says.
    """
    if body and body[0] == _CORE:
        message = Message.__new__(Message)
        message._read_record(body)
    else:
        try:
            message = message_of_record(body)
        except UnsupportedMessage as error:
            log.warning(
                "message %d, %s, cannot be read here: it stays in the journal", message_id, error
            )
            return None
    message.give_id(message_id)
    return message
