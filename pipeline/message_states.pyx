"""What has become of the messages of one journal: their references, by queue.

A message stands first in the log, what became of it much later; so a reader goes through what
counts twice, here first and past all other records. A reference is a structure of C, in a chain
behind its message's id, and no Python object; where its fields stand in a record is asked of the
broker's classes (fixed_layout).
"""

from typing import NamedTuple

from libc.stdint cimport INT32_MAX, int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport free, realloc

from broker.model.encoding import RecordFormatError
from broker.records.message_records import AcknowledgeRef, AddRef, DeliveryCount, ScheduledDelivery
from broker.records.records import decode_record
from broker.model.wire import RecordType, fixed_layout

from journal.delivery cimport LiveCursor
from journal.id_map cimport IdMap, id_map_free, id_map_get, id_map_init, id_map_put

__all__ = [
    "MESSAGE_STATES", "MESSAGE_TYPES", "REFERENCE_STATES", "REFERENCE_TYPES", "MessageStates",
    "StateColumns",
]

MESSAGE_TYPES = (
    RecordType.ADD_MESSAGE_PROTOCOL, RecordType.ADD_LARGE_MESSAGE, RecordType.ADD_MESSAGE)
# What a code of StateColumns stands for.
REFERENCE_STATES = ("live", "scheduled", "acknowledged", "prepared", "acknowledging")
MESSAGE_STATES = ("live", "scheduled", "expired", "acknowledged", "unreferenced", "prepared")

cdef enum:
    LIVE = 0
    SCHEDULED = 1
    # Of a reference.
    REFERENCE_ACKNOWLEDGED = 2
    REFERENCE_PREPARED = 3
    ACKNOWLEDGING = 4
    # Of a message.
    EXPIRED = 2
    ACKNOWLEDGED = 3
    UNREFERENCED = 4
    MESSAGE_PREPARED = 5
    # What a record sets of a reference.
    SETS_NOTHING = 0
    SETS_ADDED = 1
    SETS_ACKNOWLEDGED = 2
    SETS_COUNT = 3
    SETS_TIME = 4
    TYPE_COUNT = 256
    NO_REFERENCE = -1

cdef struct Reference:
    int64_t queue_id
    int64_t scheduled_ms
    int32_t delivery_count
    int32_t next                # of the same message, in the order in which queues were named
    uint8_t is_acknowledged
    uint8_t is_prepared
    uint8_t is_acknowledging

# Where the fields of a record type are, big-endian.
cdef struct Layout:
    uint8_t sets
    uint8_t size                # of the whole body, at least
    uint8_t queue_at
    uint8_t value_at
    uint8_t value_size

cdef Layout[TYPE_COUNT] LAYOUTS


cdef object describe(kind, int sets, str value):
    """Fill the layout of one record type in."""
    cdef Layout *layout = &LAYOUTS[<int>kind.record_type]
    size, offsets = fixed_layout(kind)
    layout.sets = sets
    layout.size = size
    layout.queue_at = offsets["queue_id"]
    layout.value_at = offsets[value] if value else size
    layout.value_size = size - layout.value_at
    assert offsets["queue_id"] + 8 <= size and layout.value_size in (0, 4, 8), kind


describe(AddRef, SETS_ADDED, "")
describe(AcknowledgeRef, SETS_ACKNOWLEDGED, "")
describe(DeliveryCount, SETS_COUNT, "count")
describe(ScheduledDelivery, SETS_TIME, "time")
REFERENCE_TYPES = tuple(
    number for number in range(TYPE_COUNT) if LAYOUTS[number].sets != SETS_NOTHING)


class StateColumns(NamedTuple):
    """What has become of some messages, column by column; buffers in the machine's byte order.

    Attributes:
        states: a byte a message, an index into MESSAGE_STATES.
        offsets: 32-bit, one more than there are messages; those of message i are the references
            from offsets[i] up to offsets[i + 1].
        queue_ids: 64-bit, of the references.
        reference_states: a byte each, an index into REFERENCE_STATES.
        delivery_counts: 32-bit.
        scheduled_ms: 64-bit, ms since 1970.
    """

    states: bytearray
    offsets: bytearray
    queue_ids: bytearray
    reference_states: bytearray
    delivery_counts: bytearray
    scheduled_ms: bytearray


cdef class MessageStates:
    """The references of all messages that are live or prepared.

    Memory: 32 bytes a reference, and an entry of a hash map a message. Threads: one at a time.
    """

    cdef IdMap messages         # message id -> its first reference
    cdef Reference *references
    cdef int64_t count
    cdef int64_t room

    def __cinit__(self):
        if id_map_init(&self.messages) < 0:
            raise MemoryError

    def __dealloc__(self):
        id_map_free(&self.messages)
        free(self.references)

    def take_from(self, LiveCursor cursor not None):
        """Take what a cursor over REFERENCE_TYPES comes to: no object a record.

        Returns:
            Those that cannot be read, and why.

        Raises:
            JournalIOError: a file cannot be read again, or has changed since it was loaded.
        """
        cdef list broken = []
        cdef int done
        while cursor.next():
            done = self.note(cursor.locator.record_id, cursor.locator.user_type, cursor.body,
                             cursor.locator.body_size, False)
            if done < 0:
                raise MemoryError
            if not done:
                record = cursor.record()
                broken.append((record, self.reason(record)))
        return broken

    def take(self, records):
        """Take records one by one.

        Returns:
            Those that cannot be read, and why.
        """
        broken = []
        for record in records:
            if LAYOUTS[<uint8_t>record.user_type].sets != SETS_NOTHING \
                    and not self.take_body(record, False):
                broken.append((record, self.reason(record)))
        return broken

    def reason(self, record):
        """Why a record of a reference cannot be read."""
        try:
            decode_record(record.user_type, record.body, is_update=record.is_update)
        except RecordFormatError as error:
            return str(error)
        raise AssertionError(f"{record} is as long as its type says")

    def take_prepared(self, transactions):
        """Take what transactions that wait for their end would change."""
        for transaction in transactions:
            for record in transaction.records:
                # What cannot be read names no queue; the commit will not be able to, either.
                self.take_body(record, True)

    cdef bint take_body(self, record, bint is_prepared) except -1:
        cdef bytes body = bytes(record.body)
        cdef int done = self.note(record.record_id, record.user_type, body, len(body), is_prepared)
        if done < 0:
            raise MemoryError
        return done

    cdef int note(self, int64_t message_id, uint8_t user_type, const uint8_t *body, size_t size,
                  bint is_prepared) noexcept:
        """1: noted, or nothing to note; 0: too short for its type; -1: no memory."""
        cdef const Layout *layout = &LAYOUTS[user_type]
        cdef Reference *found
        if layout.sets == SETS_NOTHING:
            return 1
        if size < layout.size:
            return 0
        if is_prepared and layout.sets > SETS_ACKNOWLEDGED:
            return 1
        found = self.reference(message_id, big_endian(body + layout.queue_at, 8))
        if found == NULL:
            return -1
        if is_prepared:
            if layout.sets == SETS_ADDED:
                found.is_prepared = True
            else:
                found.is_acknowledging = True
        elif layout.sets == SETS_ACKNOWLEDGED:
            found.is_acknowledged = True
        elif layout.sets == SETS_COUNT:
            found.delivery_count = <int32_t>big_endian(body + layout.value_at, layout.value_size)
        elif layout.sets == SETS_TIME:
            found.scheduled_ms = big_endian(body + layout.value_at, layout.value_size)
        return 1

    cdef Reference *reference(self, int64_t message_id, int64_t queue_id) noexcept:
        """That of a message in a queue, made if there is none; NULL: no memory."""
        cdef int64_t place = id_map_get(&self.messages, message_id), last = NO_REFERENCE
        cdef Reference *grown
        while place >= 0:
            if self.references[place].queue_id == queue_id:
                return &self.references[place]
            last = place
            place = self.references[place].next
        if self.count == INT32_MAX:
            return NULL
        if self.count == self.room:
            grown = <Reference *>realloc(
                self.references, <size_t>max(1024, 2 * self.room) * sizeof(Reference))
            if grown == NULL:
                return NULL
            self.references = grown
            self.room = max(1024, 2 * self.room)
        place = self.count
        if last >= 0:
            self.references[last].next = <int32_t>place
        elif id_map_put(&self.messages, message_id, <int32_t>place) < 0:
            return NULL
        self.count += 1
        self.references[place] = Reference(queue_id, 0, 0, NO_REFERENCE, False, False, False)
        return &self.references[place]

    def columns(self, const int64_t[::1] ids, const int64_t[::1] expirations_ms, *,
                int64_t as_of_ms, bint is_prepared=False):
        """What has become of messages, in one word the first that fits.

        prepared        its own record waits for a prepared transaction's commit
        unreferenced    no queue ever had it: the next start removes it
        acknowledged    every queue is done with it
        expired         some queue has it still, and it has expired
        scheduled       all queues that have it wait for a time
        live            else

        Args:
            ids: of the messages.
            expirations_ms: of each, ms since 1970, 0: never.
            as_of_ms: the moment that is meant, ms since 1970.
            is_prepared: see above, of all of them.

        Returns:
            StateColumns.
        """
        cdef Py_ssize_t i, messages = ids.shape[0], total = 0, place = 0
        cdef int64_t at
        for i in range(messages):
            at = id_map_get(&self.messages, ids[i])
            while at >= 0:
                total += 1
                at = self.references[at].next
        made = StateColumns(
            bytearray(messages), bytearray(4 * (messages + 1)), bytearray(8 * total),
            bytearray(total), bytearray(4 * total), bytearray(8 * total))
        # One byte at least, for an address.
        cdef uint8_t[::1] states = made.states or bytearray(1)
        cdef int32_t[::1] offsets = memoryview(made.offsets).cast("i")
        cdef int64_t[::1] queue_ids = memoryview(made.queue_ids or bytearray(8)).cast("q")
        cdef uint8_t[::1] words = made.reference_states or bytearray(1)
        cdef int32_t[::1] counts = memoryview(made.delivery_counts or bytearray(4)).cast("i")
        cdef int64_t[::1] times = memoryview(made.scheduled_ms or bytearray(8)).cast("q")
        cdef const Reference *one
        cdef bint is_open, waits
        for i in range(messages):
            is_open, waits = False, True
            at = id_map_get(&self.messages, ids[i])
            states[i] = ACKNOWLEDGED if at >= 0 else UNREFERENCED
            while at >= 0:
                one = &self.references[at]
                queue_ids[place] = one.queue_id
                counts[place] = one.delivery_count
                times[place] = one.scheduled_ms
                words[place] = word_of(one, as_of_ms)
                if words[place] != REFERENCE_ACKNOWLEDGED:
                    is_open = True
                    waits = waits and words[place] == SCHEDULED
                place += 1
                at = one.next
            offsets[i + 1] = <int32_t>place
            if is_prepared:
                states[i] = MESSAGE_PREPARED
            elif is_open and 0 < expirations_ms[i] <= as_of_ms:
                states[i] = EXPIRED
            elif is_open:
                states[i] = SCHEDULED if waits else LIVE
        return made


cdef inline uint8_t word_of(const Reference *one, int64_t as_of_ms) noexcept nogil:
    if one.is_acknowledged:
        return REFERENCE_ACKNOWLEDGED
    if one.is_acknowledging:
        return ACKNOWLEDGING
    if one.is_prepared:
        return REFERENCE_PREPARED
    return SCHEDULED if one.scheduled_ms > as_of_ms else LIVE


cdef inline int64_t big_endian(const uint8_t *data, int size) noexcept nogil:
    """The signed integer of so many bytes, 8 at most."""
    cdef uint64_t value = 0
    cdef int i
    for i in range(size):
        value = value << 8 | data[i]
    if size < 8 and data[0] & 0x80:
        value |= ~<uint64_t>0 << (8 * size)
    return <int64_t>value
