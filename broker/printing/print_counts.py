"""The counts of `data print`: messages and references by queue, page counters.

Both are fed a user type and a body a record, in order, and give lines.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker.model.encoding import LONG, Body, BodyReader, RecordFormatError
from broker.model.java_text import hash_order, long_hash
from broker.model.wire import RecordType
from broker.records.message_records import PageCounterInc, PageCounterValue

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_MESSAGE_TYPES: Final = (RecordType.ADD_MESSAGE, RecordType.ADD_MESSAGE_PROTOCOL)
_REFERENCE_CHANGES: Final = {RecordType.ADD_REF: 1, RecordType.ACKNOWLEDGE_REF: -1}


class MessageCounts:
    """Messages and references of a load, for `### Message Counts ###`.

    A reference counts for its queue until its acknowledgement; a damaged record counts nowhere.
    """

    def __init__(self) -> None:
        self._live = _Tally()
        self._prepared = _Tally()

    def add(self, user_type: int, body: Body) -> None:
        """Count a live record."""
        self._live.add(user_type, body)

    def add_prepared(self, user_type: int, body: Body) -> None:
        """Count a record of a prepared transaction; its acknowledgements are not counted."""
        if user_type != RecordType.ACKNOWLEDGE_REF:
            self._prepared.add(user_type, body)

    def lines(self) -> Iterator[str]:
        """Give the section, heading first."""
        yield "### Message Counts ###"
        yield from self._live.lines("")
        yield from self._prepared.lines("prepared ")


class _Tally:
    def __init__(self) -> None:
        self._message_count = 0
        self._large_message_count = 0
        self._references: dict[int, int] = {}

    def add(self, user_type: int, body: Body) -> None:
        if user_type in _MESSAGE_TYPES:
            self._message_count += 1
        elif user_type == RecordType.ADD_LARGE_MESSAGE:
            self._large_message_count += 1
        elif user_type in _REFERENCE_CHANGES:
            self._change_reference(body, _REFERENCE_CHANGES[RecordType(user_type)])

    def _change_reference(self, body: Body, change: int) -> None:
        try:
            queue_id = LONG.read(BodyReader(body))
        except RecordFormatError:
            return  # The record's own line says that it is damaged.
        if queue_id in self._references:
            self._references[queue_id] += change
        else:
            # An acknowledgement without its reference starts the queue at 0, as in Artemis.
            self._references[queue_id] = max(change, 0)

    def lines(self, prefix: str) -> Iterator[str]:
        yield f"{prefix}message count={self._message_count}"
        yield f"{prefix}large message count={self._large_message_count}"
        yield f"{prefix}message reference count"
        for queue_id in _walk_order(self._references):
            yield f"queue id {queue_id},count={self._references[queue_id]}"


def _walk_order(queue_ids: Iterable[int]) -> Iterable[int]:
    return hash_order({queue_id: long_hash(queue_id) for queue_id in queue_ids})


class PageCounters:
    """Page counters by queue, as Artemis follows them while it prints.

    Only values (type 40) count: it meets increments (type 41) without a store to apply them to, so
    they leave the counter as it is.
    """

    def __init__(self) -> None:
        # Value and persistent size in bytes.
        self._counters: dict[int, tuple[int, int]] = {}

    def __bool__(self) -> bool:
        return bool(self._counters)

    def lines(self) -> Iterator[str]:
        """Give the state of each queue."""
        for queue_id in _walk_order(self._counters):
            yield f"Queue {queue_id} value={self._counters[queue_id][0]}"

    def surviving_lines(self, user_type: int, body: Body) -> Iterator[str]:
        """Give what follows a live counter record, nothing for any other record."""
        counter = _read_counter(user_type, body)
        if counter is not None:
            value, _ = self._follow(counter)
            yield f"##SubsCounter for queue={counter.queue_id}, value={value}"
            yield ""

    def update_lines(self, user_type: int, body: Body) -> Iterator[str]:
        """Give what follows an update of a counter in file order, nothing for any other update."""
        counter = _read_counter(user_type, body)
        if counter is None:
            return
        queue_id = counter.queue_id
        if isinstance(counter, PageCounterValue):
            before, _ = self._counters.get(queue_id, (0, 0))
            if before not in (0, counter.value):
                yield (
                    f"####### Counter replace wrongly on queue {queue_id} "
                    f"oldValue={before} newValue={counter.value}"
                )
        value, persistent_size = self._follow(counter)
        if isinstance(counter, PageCounterValue):
            change = f", result={value}"
        else:
            change = f" increased by {counter.inc}"
        negative = " #NegativeCounter!!!!" if value < 0 else ""
        yield (
            f"#Counter queue {queue_id} value={value} persistentSize={persistent_size}"
            f"{change}{negative}"
        )
        yield ""

    def _follow(self, counter: PageCounterValue | PageCounterInc) -> tuple[int, int]:
        if isinstance(counter, PageCounterValue):
            self._counters[counter.queue_id] = (counter.value, counter.persistent_size)
        return self._counters.setdefault(counter.queue_id, (0, 0))


def _read_counter(user_type: int, body: Body) -> PageCounterValue | PageCounterInc | None:
    try:
        if user_type == RecordType.PAGE_CURSOR_COUNTER_VALUE:
            return PageCounterValue.read(BodyReader(body))
        if user_type == RecordType.PAGE_CURSOR_COUNTER_INC:
            return PageCounterInc.read(BodyReader(body))
    except RecordFormatError:
        return None  # The record's own line says that it is damaged.
    return None
