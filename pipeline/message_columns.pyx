"""Core messages as the buffers of Arrow columns: no Python object a message stays behind.

The broker's own decoder reads them (broker.message_form): one object, used again for each record.
What it does not take, of another protocol, large or damaged, is given back to whoever reads them
one by one (pipeline.message_rows).
"""

from typing import NamedTuple

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.unicode cimport PyUnicode_AsUTF8AndSize
from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdio cimport snprintf
from libc.stdlib cimport free, realloc
from libc.string cimport memcmp, memcpy

from broker.storage.encoding import RecordFormatError
from broker.storage.java_text import uuid_text, whole_pairs
from broker.storage.properties import PropertyType, read_value
from broker.storage.stored_messages import MessageType, Persister
from pipeline.message_states import MESSAGE_TYPES

cimport broker.message_bytes as walk
from broker.message_form cimport MessageForm

__all__ = ["PROPERTY_TYPES", "TYPES", "CoreColumns", "MessagePacker"]

# What a code of `types` stands for: of a message's type the low byte.
TYPES = tuple(
    next((kind.name for kind in MessageType if int(kind) == number), str(number))
    for number in (*range(128), *range(-128, 0)))
# What a code of `property_types` stands for: the tag of its value.
PROPERTY_TYPES = tuple(
    next((kind.name.lower() for kind in PropertyType if int(kind) == tag), "")
    for tag in range(max(PropertyType) + 1))

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
    CORE = 1
    # Records.
    LARGE_RECORD = 30
    OLD_RECORD = 31
    PROTOCOL_RECORD = 45

assert (TEXT_MESSAGE, CORE) == (MessageType.TEXT, Persister.CORE)
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

    Attributes:
        row_count: of messages.
        message_ids, record_offsets, timestamps, expirations, body_sizes: 64-bit.
        files: names, in order, with the number of the first row that is in the file.
        types: a byte each, an index into TYPES.
        durables: a byte each, 0 or 1.
        priorities: a signed byte each.
        property_offsets: 32-bit, one more than there are messages: which properties are whose.
        property_types: a byte each property, an index into PROPERTY_TYPES.
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


# Bytes that grow.
cdef struct Room:
    uint8_t *first
    size_t size
    size_t room

# Texts or bytes of rows, some of them null.
cdef struct Texts:
    Room offsets
    Room data
    Room flags


cdef int grow(Room *room, size_t size) except -1:
    cdef size_t wanted = max(<size_t>4096, 2 * (room.size + size))
    cdef uint8_t *grown = <uint8_t *>realloc(room.first, wanted)
    if grown == NULL:
        raise MemoryError
    room.first = grown
    room.room = wanted
    return 0


cdef inline int put(Room *room, const void *data, size_t size) except -1:
    if room.room - room.size <= size:   # Also of nothing: there is an address then.
        grow(room, size)
    memcpy(room.first + room.size, data, size)
    room.size += size
    return 0


cdef inline int put_byte(Room *room, uint8_t value) except -1:
    return put(room, &value, 1)


cdef inline int put_long(Room *room, int64_t value) except -1:
    return put(room, &value, 8)


cdef inline int end_text(Texts *texts, bint is_there) except -1:
    """The row's bytes have been put."""
    cdef int32_t end = <int32_t>texts.data.size
    put(&texts.offsets, &end, 4)
    put_byte(&texts.flags, is_there)
    return 0


cdef int put_units(Room *room, const uint8_t *data, size_t size) except -1:
    """UTF-16, low byte first, as UTF-8; a half of a pair becomes U+FFFD."""
    cdef size_t i = 0
    cdef uint32_t unit, other
    cdef uint8_t *to
    if room.room - room.size <= 2 * size:
        grow(room, 2 * size)        # Two bytes become three at most.
    to = room.first + room.size
    while i < size:
        unit = data[i] | <uint32_t>data[i + 1] << 8
        i += 2
        if unit < 0x80:
            to[0] = <uint8_t>unit
            to += 1
            continue
        if 0xD800 <= unit < 0xE000:
            other = data[i] | <uint32_t>data[i + 1] << 8 if i < size else 0
            if unit < 0xDC00 and 0xDC00 <= other < 0xE000:
                unit = 0x10000 + ((unit - 0xD800) << 10) + (other - 0xDC00)
                i += 2
            else:
                unit = 0xFFFD
        if unit < 0x800:
            to[0] = <uint8_t>(0xC0 | unit >> 6)
            to += 1
        else:
            if unit < 0x10000:
                to[0] = <uint8_t>(0xE0 | unit >> 12)
                to += 1
            else:
                to[0] = <uint8_t>(0xF0 | unit >> 18)
                to[1] = <uint8_t>(0x80 | unit >> 12 & 0x3F)
                to += 2
            to[0] = <uint8_t>(0x80 | unit >> 6 & 0x3F)
            to += 1
        to[0] = <uint8_t>(0x80 | unit & 0x3F)
        to += 1
    room.size = to - room.first
    return 0


cdef int put_str(Room *room, str text) except -1:
    cdef Py_ssize_t size
    cdef const char *data
    if not text.isascii():
        text = whole_pairs(text, "\ufffd")
    data = PyUnicode_AsUTF8AndSize(text, &size)
    put(room, data, size)
    return 0


cdef bytes taken(Room *room):
    """What a room holds; it is empty then, and keeps its memory."""
    made = PyBytes_FromStringAndSize(<const char *>room.first, room.size)
    room.size = 0
    return made


cdef bytearray bitmap(Room *flags):
    cdef size_t i
    cdef bytearray made = bytearray((flags.size + 7) // 8)
    cdef uint8_t[::1] to = made or bytearray(1)     # One byte at least, for an address.
    for i in range(flags.size):
        to[i >> 3] |= <uint8_t>(flags.first[i] << (i & 7))
    flags.size = 0
    return made


cdef tuple taken_texts(Texts *texts):
    """(bitmap, offsets, data) for Arrow."""
    cdef tuple made = (bitmap(&texts.flags), bytes(4) + taken(&texts.offsets), taken(&texts.data))
    return made


cdef void free_texts(Texts *texts) noexcept:
    free(texts.offsets.first)
    free(texts.data.first)
    free(texts.flags.first)


cdef class MessagePacker:
    """Takes records of messages, and gives columns of them.

    Args:
        property_text: of a property's value, where that is no text or integer.
        least_id, greatest_id: messages with other ids are passed over.

    Threads: one at a time.
    """

    cdef object property_text
    cdef int64_t least_id
    cdef int64_t greatest_id
    cdef MessageForm form
    cdef bytes duplicate_name
    cdef list files
    cdef object file
    cdef int row_count
    cdef int property_count
    cdef Room ids, record_offsets, types, durables, priorities, timestamps, expirations
    cdef Room body_sizes, property_offsets, property_types
    cdef Texts address, user_id, duplicate_id, body, text, names, values

    def __init__(self, property_text, str duplicate_name, int64_t least_id, int64_t greatest_id):
        self.property_text = property_text
        self.duplicate_name = duplicate_name.encode()
        self.least_id = least_id
        self.greatest_id = greatest_id
        self.form = MessageForm.__new__(MessageForm)
        self.files = []

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
            records: an iterator of LiveRecord; what is no message is passed over.
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
            if user_type != PROTOCOL_RECORD or not self.take(record_id, body):
                others.append((count, record))
            else:
                put_long(&self.record_offsets, record.offset)
                file = getattr(record, "file", None)
                if not self.files or file != self.file:
                    self.file = file
                    self.files.append((self.row_count - 1, file))
            count += 1
            size += PyBytes_GET_SIZE(body)
            if count >= rows_max or size >= bodies_max:
                break
        return others if count else None

    cdef bint take(self, int64_t message_id, bytes record) except -1:
        """Put one message into all columns; False where it is none that this can."""
        cdef MessageForm form = self.form
        cdef size_t names_size, values_size
        cdef int32_t properties = self.property_count
        if PyBytes_GET_SIZE(record) < 1 or PyBytes_AS_STRING(record)[0] != CORE:
            return False            # The persister of another protocol: no exception for each.
        try:
            form._read_record(record)
        except RecordFormatError:
            return False
        names_size, values_size = self.names.data.size, self.values.data.size
        if not self.take_properties(form._bytes(), form._properties_at):
            self.forget_properties(properties, names_size, values_size)
            return False
        put(&self.property_offsets, &self.property_count, 4)
        put_long(&self.ids, message_id)
        put_byte(&self.types, <uint8_t>form._type)
        put_byte(&self.durables, form._durable)
        put_byte(&self.priorities, <uint8_t>form._priority)
        put_long(&self.timestamps, form._timestamp())
        put_long(&self.expirations, form._expiration)
        if form._address is not None:
            put_str(&self.address.data, form._address)
        end_text(&self.address, form._address is not None)
        user_id = form.user_id
        if user_id is not None:
            put_str(&self.user_id.data, uuid_text(user_id))
        end_text(&self.user_id, user_id is not None)
        self.take_body(form)
        self.row_count += 1
        return True

    cdef int take_body(self, MessageForm form) except -1:
        cdef const uint8_t[::1] body = form.body
        cdef Py_ssize_t size = body.shape[0]
        cdef bint is_text = False
        cdef int64_t units
        if size:
            put(&self.body.data, &body[0], size)
        end_text(&self.body, True)
        put_long(&self.body_sizes, size)
        # Clients may put anything under any type; then there is no text.
        if form._type == TEXT_MESSAGE and size >= 5 and body[0]:
            units = (<uint32_t>body[1] << 24 | <uint32_t>body[2] << 16
                     | <uint32_t>body[3] << 8 | body[4])
            is_text = units % 2 == 0 and units <= size - 5
            if is_text and units:
                put_units(&self.text.data, &body[5], units)
        end_text(&self.text, is_text)
        return 0

    cdef bint take_properties(self, bytes data, Py_ssize_t at) except -1:
        """Put names, values and types of the properties whose flag stands at `at`.

        Returns:
            False, with some of them put, where a name is there twice or there are very many.
        """
        cdef int64_t count = 0
        cdef Py_ssize_t size
        cdef size_t start = 0, duplicate_at = 0, duplicate_end = 0
        cdef bint has_duplicate_id = False
        cdef int first = self.property_count
        cdef const uint8_t *raw = <const uint8_t *>PyBytes_AS_STRING(data)
        if raw[at]:
            count = walk.int_at(data, at + 1)
            at += 5
        if count > PROPERTIES_MAX:
            return False
        for _ in range(count):
            size = walk.int_at(data, at)
            at += 4
            start = self.names.data.size
            put_units(&self.names.data, raw + at, size)
            if self.is_known_name(first, start):
                return False
            end_text(&self.names, True)
            at += size
            put_byte(&self.property_types, raw[at])
            size = walk.value_end(data, at)
            start = self.values.data.size
            end_text(&self.values, self.take_value(data, at, size))
            if self.is_name(self.property_count, self.duplicate_name):
                has_duplicate_id = self.values.flags.first[self.property_count] != 0
                duplicate_at, duplicate_end = start, self.values.data.size
            self.property_count += 1
            at = size
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

    cdef bint take_value(self, bytes data, Py_ssize_t at, Py_ssize_t end) except -1:
        """Put the text of the value whose tag stands at `at`; False where it is null."""
        cdef const uint8_t *raw = <const uint8_t *>PyBytes_AS_STRING(data)
        cdef uint8_t form = VALUE_FORMS[raw[at]]
        cdef char[24] digits
        cdef int64_t number
        cdef Py_ssize_t i
        if form == AS_NULL:
            return False
        if form == AS_BOOLEAN:
            put_str(&self.values.data, "true" if raw[at + 1] else "false")
        elif form == AS_INTEGER:
            number = <int8_t>raw[at + 1]
            for i in range(at + 2, end):
                number = <int64_t>(<uint64_t>number << 8 | raw[i])
            put(&self.values.data, digits, snprintf(digits, 24, b"%lld", <long long>number))
        elif form == AS_TEXT:
            put_units(&self.values.data, raw + at + 5, end - at - 5)
        else:
            put_str(&self.values.data, self.property_text(read_value(data, at)))
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
            self.row_count, taken(&self.ids), taken(&self.record_offsets), self.files,
            taken(&self.types), taken(&self.durables), taken(&self.priorities),
            taken(&self.timestamps), taken(&self.expirations), taken_texts(&self.address),
            taken_texts(&self.user_id), taken_texts(&self.duplicate_id), taken_texts(&self.body),
            taken(&self.body_sizes), taken_texts(&self.text), self.property_count,
            bytes(4) + taken(&self.property_offsets), taken_texts(&self.names),
            taken_texts(&self.values), taken(&self.property_types))
        self.row_count = self.property_count = 0
        self.files = []
        return made
