"""Bytes that grow into the buffers of Arrow columns: the typed header of column_buffers.pyx."""

from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.string cimport memcpy

# Bytes that grow.
cdef struct GrowingBuffer:
    uint8_t *first
    size_t size
    size_t room

# Texts or bytes of rows, some of them null.
cdef struct Texts:
    GrowingBuffer offsets
    GrowingBuffer data
    GrowingBuffer flags

cdef int grow(GrowingBuffer *room, size_t size) except -1
cdef int put_units(GrowingBuffer *room, const uint8_t *data, size_t size) except -1
cdef bint has_half(const uint8_t *data, size_t size) noexcept nogil
cdef int put_str(GrowingBuffer *room, str text) except -1
cdef int put_uuid(GrowingBuffer *room, const uint8_t *data) except -1
cdef bytes take_bytes(GrowingBuffer *room)
cdef tuple take_texts(Texts *texts)
cdef void free_texts(Texts *texts) noexcept


cdef inline int put(GrowingBuffer *room, const void *data, size_t size) except -1:
    if room.room - room.size <= size:   # Also of nothing: there is an address then.
        grow(room, size)
    memcpy(room.first + room.size, data, size)
    room.size += size
    return 0


cdef inline int put_byte(GrowingBuffer *room, uint8_t value) except -1:
    return put(room, &value, 1)


cdef inline int put_long(GrowingBuffer *room, int64_t value) except -1:
    return put(room, &value, 8)


cdef inline int end_text(Texts *texts, bint is_there) except -1:
    """The row's bytes have been put."""
    cdef int32_t end = <int32_t>texts.data.size
    put(&texts.offsets, &end, 4)
    put_byte(&texts.flags, is_there)
    return 0
