"""Bytes that grow into the buffers of Arrow columns, and texts as Arrow has them."""

from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.unicode cimport PyUnicode_AsUTF8AndSize
from libc.stdint cimport uint8_t, uint32_t
from libc.stdlib cimport free, realloc

from broker.model.java_text import whole_pairs

cdef const char *DIGITS = b"0123456789abcdef"


cdef int grow(GrowingBuffer *room, size_t size) except -1:
    cdef size_t wanted = max(<size_t>4096, 2 * (room.size + size))
    cdef uint8_t *grown = <uint8_t *>realloc(room.first, wanted)
    if grown == NULL:
        raise MemoryError
    room.first = grown
    room.room = wanted
    return 0


cdef int put_units(GrowingBuffer *room, const uint8_t *data, size_t size) except -1:
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


cdef bint has_half(const uint8_t *data, size_t size) noexcept nogil:
    """Whether a half of a pair is in UTF-16, low byte first, which no UTF-8 can say."""
    cdef size_t i = 0
    while i < size:
        if data[i + 1] & 0xF8 == 0xD8:
            if data[i + 1] >= 0xDC or i + 2 >= size or data[i + 3] & 0xFC != 0xDC:
                return True
            i += 2
        i += 2
    return False


cdef int put_uuid(GrowingBuffer *room, const uint8_t *data) except -1:
    """16 bytes as broker.model.java_text.uuid_text gives them."""
    cdef char[36] text
    cdef int at = 0, i
    cdef uint8_t value
    for i in range(16):
        value = data[i]
        if i == 6:
            value = value & 0x0F | 0x10
        elif i == 8:
            value = value & 0x3F | 0x80
        if i in (4, 6, 8, 10):
            text[at] = 45           # A hyphen.
            at += 1
        text[at] = DIGITS[value >> 4]
        text[at + 1] = DIGITS[value & 0x0F]
        at += 2
    return put(room, text, 36)


cdef int put_str(GrowingBuffer *room, str text) except -1:
    cdef Py_ssize_t size
    cdef const char *data
    if not text.isascii():
        text = whole_pairs(text, "\ufffd")
    data = PyUnicode_AsUTF8AndSize(text, &size)
    put(room, data, size)
    return 0


cdef bytes take_bytes(GrowingBuffer *room):
    """What a room holds; it is empty then, and keeps its memory."""
    made = PyBytes_FromStringAndSize(<const char *>room.first, room.size)
    room.size = 0
    return made


cdef bytearray bitmap(GrowingBuffer *flags):
    cdef size_t i
    cdef bytearray made = bytearray((flags.size + 7) // 8)
    cdef uint8_t[::1] to = made or bytearray(1)     # One byte at least, for an address.
    for i in range(flags.size):
        to[i >> 3] |= <uint8_t>(flags.first[i] << (i & 7))
    flags.size = 0
    return made


cdef tuple take_texts(Texts *texts):
    """(bitmap, offsets, data) for Arrow."""
    cdef tuple made = (
        bitmap(&texts.flags), bytes(4) + take_bytes(&texts.offsets), take_bytes(&texts.data))
    return made


cdef void free_texts(Texts *texts) noexcept:
    free(texts.offsets.first)
    free(texts.data.first)
    free(texts.flags.first)
