"""Where the parts of a stored Core message are, found without an object.

The broker's decoders (broker.records.stored_messages) say what such a record means, and what is
wrong with it: what is not exactly as it should be is left to them.

    persister  message id  address?  size  buffer
       1           8       1 (+4+n)   4    n
    buffer: end of the body  body  message id  address?  user id?  type  durable  expiration
                   4                   8       1 (+4+n)  1 (+16)    1       1         8
            timestamp  priority  properties?  count  count x (size, name, tag, value)
                8         1          1          4
"""

from libc.stdint cimport int32_t, int64_t, uint8_t

from broker.model.properties import PropertyType
from broker.model.message_types import Persister

cdef enum:
    CORE = 1
    # What the end of the body counts from, beside the place of its own 4 bytes.
    PACKET_HEADER_SIZE = 13
    TAG_COUNT = 12
    # Of VALUE_SIZES.
    SIZED_BYTES = 254
    SIZED_TEXT = 253

cdef const uint8_t *VALUE_SIZES = b"\x00\xff\x01\x01\xfe\x02\x04\x08\x04\x08\xfd\x02"

assert CORE == Persister.CORE
assert TAG_COUNT == max(PropertyType) + 1
assert (VALUE_SIZES[<int>PropertyType.BYTES], VALUE_SIZES[<int>PropertyType.STRING]) == (
    SIZED_BYTES, SIZED_TEXT)


cdef bint read_core(const uint8_t *data, int64_t size, CoreForm *form) noexcept nogil:
    """Find the parts of record 45 of a Core message.

    Returns:
        False: of another persister, or something about it is not as it should be.
    """
    cdef int64_t at, end, headers_at
    cdef int64_t address_at = 0, address_size = NO_TEXT
    if size < 10 or data[0] != CORE:
        return False
    # Address and message id of the record count where they differ from those of the buffer.
    at = text_end(data, 9, size, &address_at, &address_size)
    if at < 0 or size - at < 8 or int_at(data + at) != size - at - 4:
        return False
    form.body_at = at + 8
    form.body_size = <int64_t>int_at(data + at + 4) - PACKET_HEADER_SIZE
    if form.body_size < 0 or form.body_size > size - form.body_at:
        return False
    headers_at = form.body_at + form.body_size
    if size - headers_at < 9:
        return False
    at = text_end(data, headers_at + 8, size, &form.address_at, &form.address_size)
    if at < 0 or size - at < 1:
        return False
    if address_size != NO_TEXT:
        form.address_at, form.address_size = address_at, address_size
    form.user_id_at = at + 1 if data[at] else 0
    at += 1 + USER_ID_SIZE if data[at] else 1
    if size - at < 20:
        return False
    form.type = <int8_t>data[at]
    form.is_durable = data[at + 1] != 0
    form.expiration = long_at(data + at + 2)
    form.timestamp = long_at(data + at + 10)
    form.priority = <int8_t>data[at + 18]
    form.property_count = 0
    at += 20
    form.properties_at = at
    if data[at - 1]:
        if size - at < 4:
            return False
        form.property_count = int_at(data + at)
        form.properties_at = at + 4
        end = properties_end(data, at + 4, size, form.property_count)
        return end == size
    return at == size


cdef int64_t text_end(const uint8_t *data, int64_t at, int64_t size, int64_t *text_at,
                      int64_t *text_size) noexcept nogil:
    """Where the text ends, or the null, whose flag stands at `at`; -1: it cannot be."""
    text_size[0] = NO_TEXT
    if not data[at]:
        return at + 1
    if size - at < 5:
        return -1
    text_at[0] = at + 5
    text_size[0] = int_at(data + at + 1)
    if text_size[0] < 0 or text_size[0] % 2 or text_size[0] > size - text_at[0]:
        return -1
    return text_at[0] + text_size[0]


cdef int64_t properties_end(const uint8_t *data, int64_t at, int64_t size, int32_t count
                            ) noexcept nogil:
    """Where so many properties end, the first of which stands at `at`; -1: they cannot be."""
    cdef int64_t width
    for _ in range(count):
        if size - at < 4:
            return -1
        width = int_at(data + at)
        at += 4
        if width < 0 or width % 2 or width > size - at:
            return -1
        at += width
        if at >= size:
            return -1
        width = value_size(data, at + 1, size)
        if width < 0:
            return -1
        at += 1 + width
    return at if count >= 0 else -1


cdef int64_t value_size(const uint8_t *data, int64_t at, int64_t end) noexcept nogil:
    """Bytes of the value that stands at `at`, behind its tag; -1: it cannot be."""
    cdef uint8_t tag = data[at - 1]
    cdef int64_t size
    if tag >= TAG_COUNT:
        return -1
    size = VALUE_SIZES[tag]
    if size < SIZED_TEXT:
        return size if size <= end - at else -1
    if size > SIZED_BYTES or end - at < 4:
        return -1
    size = int_at(data + at)
    if size < 0 or size > end - at - 4 or (size % 2 and VALUE_SIZES[tag] == SIZED_TEXT):
        return -1
    return 4 + size
