"""Core messages as the buffers of Arrow columns: no Python object a message.

Bytes are looked at where the journal's window has them (journal.delivery.LiveCursor), and what is
found there (broker.records.core_form) goes into buffers that grow. Messages of another protocol,
large ones and damaged ones are given back to the caller: pipeline.message_rows reads them one by
one.
"""

from typing import NamedTuple

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t, uint64_t
from libc.stdio cimport snprintf
from libc.stdlib cimport free
from libc.string cimport memcmp

from broker.model.properties import PropertyType, read_value
from broker.model.message_types import MessageType
from pipeline.message_states import MESSAGE_TYPES

from journal.delivery cimport LiveCursor

from pipeline.column_buffers cimport (
    GrowingBuffer, Texts, end_text, free_texts, has_half, put, put_byte, put_long, put_str,
    put_units, put_uuid, take_bytes, take_texts)
from broker.records.core_form cimport NO_TEXT, CoreForm, int_at, read_core, value_size

__all__ = ["PROPERTY_TYPES", "TYPES", "CoreColumns", "MessagePacker"]

# What a code of `types` stands for: of a message's type the low byte.
TYPES = tuple(
    next((kind.name for kind in MessageType if int(kind) == number), str(number))
    for number in (*range(128), *range(-128, 0)))
# What a code of `property_types` stands for: the tag of its value.
PROPERTY_TYPES = tuple(
    next((kind.name.lower() for kind in PropertyType if int(kind) == tag), "")
    for tag in range(max(PropertyType) + 1))

# Made of the properties.
PROPERTY_COLUMNS = frozenset(("properties", "property_types", "duplicate_id"))

cdef enum:
    # How a property's value becomes text.
    AS_NULL = 0
    AS_BOOLEAN = 1
    AS_INTEGER = 2
    AS_TEXT = 3
    AS_PYTHON = 4
    TAG_COUNT = 16
    # More are compared in Python: a property's name counts once, the last one wins.
    PROPERTIES_MAX = 64
    TEXT_MESSAGE = 3
    # Records.
    LARGE_RECORD = 30
    OLD_RECORD = 31
    PROTOCOL_RECORD = 45

assert TEXT_MESSAGE == MessageType.TEXT
assert (PROTOCOL_RECORD, LARGE_RECORD, OLD_RECORD) == MESSAGE_TYPES

cdef uint8_t[TAG_COUNT] VALUE_FORMS


cdef object fill_value_forms():
    for kind, form in {
        PropertyType.NULL: AS_NULL,
        PropertyType.BOOLEAN: AS_BOOLEAN,
        **dict.fromkeys(
            (PropertyType.BYTE, PropertyType.SHORT, PropertyType.INT, PropertyType.LONG),
            AS_INTEGER),
        PropertyType.STRING: AS_TEXT,
    }.items():
        VALUE_FORMS[<int>kind] = form


for _tag in range(TAG_COUNT):
    VALUE_FORMS[_tag] = AS_PYTHON
fill_value_forms()


class CoreColumns(NamedTuple):
    """Some messages, column by column; each column a buffer in the machine's byte order.

    A column called `has_...` is a bitmap, lowest bit first, of which rows have the column after it.
    A text has two: where each begins, 32-bit, one more than there are; and all UTF-8 together.

    Those of which the packer was not told to give them have nothing in them.

    Attributes:
        row_count: of messages.
        message_ids, record_offsets, timestamps, expirations, body_sizes: 64-bit.
        files: names, in order, with the number of the first row that is in the file.
        types: a byte each, an index into TYPES.
        durables: a byte each, 0 or 1.
        priorities: a signed byte each.
        property_offsets: 32-bit, one more than there are messages: which properties are whose.
        property_types: a byte each property, an index into PROPERTY_TYPES.
        body: null where `text` holds all of it.
    """

    row_count: int
    message_ids: bytes
    record_offsets: bytes
    files: list
    types: bytes
    durables: bytes
    priorities: bytes
    timestamps: bytes
    expirations: bytes
    address: tuple
    user_id: tuple
    duplicate_id: tuple
    body: tuple
    body_sizes: bytes
    text: tuple
    property_count: int
    property_offsets: bytes
    property_names: tuple
    property_values: tuple
    property_types: bytes


cdef class MessagePacker:
    """Takes records of messages, and gives columns of them.

    Args:
        property_text: gives the text of a property's value that is neither text nor integer.
        least_id, greatest_id: messages with other ids are passed over.
        names: columns that are wanted, of pipeline.schema; None: all. Bodies, texts and properties
            are looked at only where they are. Ids, times, places and what is a byte are always
            given.

    Threads: one at a time.
    """

    cdef object property_text
    cdef int64_t least_id
    cdef int64_t greatest_id
    cdef bytes duplicate_name
    cdef bint wants_address, wants_user_id, wants_properties, wants_body, wants_text
    cdef list files
    cdef object file
    cdef int row_count
    cdef int property_count
    cdef GrowingBuffer ids, record_offsets, types, durables, priorities, timestamps, expirations
    cdef GrowingBuffer body_sizes, property_offsets, property_types
    cdef Texts address, user_id, duplicate_id, body, text, names, values

    def __init__(self, property_text, str duplicate_name, int64_t least_id, int64_t greatest_id,
                 names=None):
        self.property_text = property_text
        self.duplicate_name = duplicate_name.encode()
        self.least_id = least_id
        self.greatest_id = greatest_id
        self.files = []
        self.wants_address = names is None or "address" in names
        self.wants_user_id = names is None or "user_id" in names
        # The duplicate id is one of them.
        self.wants_properties = names is None or not PROPERTY_COLUMNS.isdisjoint(names)
        self.wants_body = names is None or "body" in names
        self.wants_text = names is None or "text" in names

    def __dealloc__(self):
        free(self.ids.first)
        free(self.record_offsets.first)
        free(self.types.first)
        free(self.durables.first)
        free(self.priorities.first)
        free(self.timestamps.first)
        free(self.expirations.first)
        free(self.body_sizes.first)
        free(self.property_offsets.first)
        free(self.property_types.first)
        free_texts(&self.address)
        free_texts(&self.user_id)
        free_texts(&self.duplicate_id)
        free_texts(&self.body)
        free_texts(&self.text)
        free_texts(&self.names)
        free_texts(&self.values)

    def fill(self, records, *, int rows_max, size_t bodies_max):
        """Take messages until there are so many rows, or so many bytes of them.

        Args:
            records: an iterator of LiveRecord; other records than messages are skipped.
            rows_max: at most so many messages.
            bodies_max: after so many bytes no more are taken.

        Returns:
            Records that were not taken, each with the number of rows before it, these included;
            None once there are no more records and nothing was taken.
        """
        cdef list others = []
        cdef int count = 0, user_type
        cdef size_t size = 0
        cdef int64_t record_id
        cdef bytes body
        for record in records:
            user_type = record.user_type
            if user_type not in (PROTOCOL_RECORD, LARGE_RECORD, OLD_RECORD):
                continue
            record_id = record.record_id
            if not self.least_id <= record_id <= self.greatest_id:
                continue
            body = bytes(record.body)
            if user_type == PROTOCOL_RECORD and self.take(
                    record_id, <const uint8_t *>PyBytes_AS_STRING(body), PyBytes_GET_SIZE(body)):
                self.place(record.offset, getattr(record, "file", None))
            else:
                others.append((count, record))
            count += 1
            size += PyBytes_GET_SIZE(body)
            if count >= rows_max or size >= bodies_max:
                break
        return others if count else None

    def fill_from(self, LiveCursor cursor not None, *, int rows_max, size_t bodies_max):
        """Take messages as fill() does, from a cursor over MESSAGE_TYPES: no object a record.

        Raises:
            JournalIOError: a file cannot be read again, or has changed since it was loaded.
        """
        cdef list others = []
        cdef int count = 0
        cdef size_t size = 0
        while count < rows_max and size < bodies_max and cursor.next():
            if not self.least_id <= cursor.locator.record_id <= self.greatest_id:
                continue
            if cursor.locator.user_type == PROTOCOL_RECORD and self.take(
                    cursor.locator.record_id, cursor.body, cursor.locator.body_size):
                self.place(
                    cursor.locator.body_offset - cursor.locator.head_size, cursor.file_name())
            else:
                others.append((count, cursor.record()))
            count += 1
            size += cursor.locator.body_size
        return others if count else None

    cdef int place(self, int64_t offset, file) except -1:
        """Note where the record of the message stands that was taken last."""
        put_long(&self.record_offsets, offset)
        if not self.files or file != self.file:
            self.file = file
            self.files.append((self.row_count - 1, file))
        return 0

    cdef bint take(self, int64_t message_id, const uint8_t *data, int64_t size) except -1:
        """Put one message into all columns; False where it is none that this can."""
        cdef CoreForm form
        cdef size_t names_size = self.names.data.size, values_size = self.values.data.size
        cdef int32_t properties = self.property_count
        if not read_core(data, size, &form):
            return False
        if self.wants_properties:
            if not self.take_properties(data, &form, size):
                self.forget_properties(properties, names_size, values_size)
                return False
            put(&self.property_offsets, &self.property_count, 4)
        put_long(&self.ids, message_id)
        put_byte(&self.types, <uint8_t>form.type)
        put_byte(&self.durables, form.is_durable)
        put_byte(&self.priorities, <uint8_t>form.priority)
        put_long(&self.timestamps, form.timestamp)
        put_long(&self.expirations, form.expiration)
        if self.wants_address:
            if form.address_size > 0:
                put_units(&self.address.data, data + form.address_at, form.address_size)
            end_text(&self.address, form.address_size != NO_TEXT)
        if self.wants_user_id:
            if form.user_id_at:
                put_uuid(&self.user_id.data, data + form.user_id_at)
            end_text(&self.user_id, form.user_id_at != 0)
        self.take_body(data + form.body_at, form.body_size, form.type == TEXT_MESSAGE)
        self.row_count += 1
        return True

    cdef int take_body(self, const uint8_t *body, int64_t size, bint may_be_text) except -1:
        cdef bint is_text = False, is_all
        cdef int64_t units = 0
        put_long(&self.body_sizes, size)
        # Clients may put any bytes under any type: such a body has null as its text.
        if may_be_text and size >= 5 and body[0]:
            units = int_at(body + 1)
            is_text = units >= 0 and units % 2 == 0 and units <= size - 5
        if self.wants_text:
            if is_text and units:
                put_units(&self.text.data, body + 5, units)
            end_text(&self.text, is_text)
        if self.wants_body:
            # What broker.bodies.encode_text makes of the text.
            is_all = (is_text and body[0] == 1 and units == size - 5
                      and not has_half(body + 5, units))
            if not is_all:
                put(&self.body.data, body, size)
            end_text(&self.body, not is_all)
        return 0

    cdef bint take_properties(self, const uint8_t *data, const CoreForm *form, int64_t end
                              ) except -1:
        """Put names, values and types of the properties.

        Returns:
            False, with some of them put, where a name is there twice or there are very many.
        """
        cdef int64_t at = form.properties_at, size
        cdef size_t start = 0, duplicate_at = 0, duplicate_end = 0
        cdef bint has_duplicate_id = False
        cdef int first = self.property_count
        if form.property_count > PROPERTIES_MAX:
            return False
        for _ in range(form.property_count):
            size = int_at(data + at)
            at += 4
            start = self.names.data.size
            put_units(&self.names.data, data + at, size)
            if self.is_known_name(first, start):
                return False
            end_text(&self.names, True)
            at += size
            put_byte(&self.property_types, data[at])
            size = value_size(data, at + 1, end)
            start = self.values.data.size
            end_text(&self.values, self.take_value(data + at, size))
            if self.is_name(self.property_count, self.duplicate_name):
                has_duplicate_id = self.values.flags.first[self.property_count] != 0
                duplicate_at, duplicate_end = start, self.values.data.size
            self.property_count += 1
            at += 1 + size
        if has_duplicate_id:
            put(&self.duplicate_id.data, self.values.data.first + duplicate_at,
                duplicate_end - duplicate_at)
        end_text(&self.duplicate_id, has_duplicate_id)
        return True

    cdef inline const int32_t *name_ends(self) noexcept:
        return <const int32_t *>self.names.offsets.first

    cdef bint is_known_name(self, int first, size_t start) noexcept:
        """Whether the name that was put at `start` is one of the message's before it."""
        cdef size_t size = self.names.data.size - start, begin
        cdef int i
        for i in range(first, self.property_count):
            begin = self.name_ends()[i - 1] if i else 0
            if self.name_ends()[i] - begin == size and memcmp(
                    self.names.data.first + begin, self.names.data.first + start, size) == 0:
                return True
        return False

    cdef bint is_name(self, int number, bytes name) noexcept:
        cdef size_t begin = self.name_ends()[number - 1] if number else 0
        cdef size_t size = PyBytes_GET_SIZE(name)
        return self.name_ends()[number] - begin == size and memcmp(
            self.names.data.first + begin, PyBytes_AS_STRING(name), size) == 0

    cdef bint take_value(self, const uint8_t *data, int64_t size) except -1:
        """Put the text of the value of so many bytes behind its tag; False where it is null."""
        cdef uint8_t form = VALUE_FORMS[data[0]]
        cdef char[24] digits
        cdef int64_t number
        cdef int64_t i
        if form == AS_NULL:
            return False
        if form == AS_BOOLEAN:
            put_str(&self.values.data, "true" if data[1] else "false")
        elif form == AS_INTEGER:
            number = <int8_t>data[1]
            for i in range(2, size + 1):
                number = <int64_t>(<uint64_t>number << 8 | data[i])
            put(&self.values.data, digits, snprintf(digits, 24, b"%lld", <long long>number))
        elif form == AS_TEXT:
            put_units(&self.values.data, data + 5, size - 4)
        else:
            put_str(&self.values.data, self.property_text(
                read_value(PyBytes_FromStringAndSize(<const char *>data, size + 1), 0)))
        return True

    cdef int forget_properties(self, int count, size_t names_size, size_t values_size) except -1:
        """Go back to what was before the properties of a message that is not taken."""
        self.property_count = count
        self.property_types.size = count
        self.names.data.size, self.values.data.size = names_size, values_size
        self.names.flags.size = self.values.flags.size = count
        self.names.offsets.size = self.values.offsets.size = 4 * count
        return 0

    def columns(self):
        """Give what was taken since the last call: CoreColumns."""
        made = CoreColumns(
            self.row_count, take_bytes(&self.ids), take_bytes(&self.record_offsets), self.files,
            take_bytes(&self.types), take_bytes(&self.durables), take_bytes(&self.priorities),
            take_bytes(&self.timestamps), take_bytes(&self.expirations), take_texts(&self.address),
            take_texts(&self.user_id), take_texts(&self.duplicate_id), take_texts(&self.body),
            take_bytes(&self.body_sizes), take_texts(&self.text), self.property_count,
            bytes(4) + take_bytes(&self.property_offsets), take_texts(&self.names),
            take_texts(&self.values), take_bytes(&self.property_types))
        self.row_count = self.property_count = 0
        self.files = []
        return made
