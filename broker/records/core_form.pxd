"""Where the parts of a stored Core message are: the typed header of core_form.pyx."""

from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t


# A text of which the size is NO_TEXT is null.
cdef enum:
    NO_TEXT = -1
    USER_ID_SIZE = 16

# Bytes from the start of the record.
cdef struct CoreForm:
    int64_t address_at          # UTF-16, low byte first
    int64_t address_size
    int64_t user_id_at          # 16 bytes; 0: there is none
    int64_t body_at
    int64_t body_size
    int64_t properties_at       # of the first one; each is sound
    int64_t timestamp
    int64_t expiration
    int32_t property_count
    int8_t type
    int8_t priority
    uint8_t is_durable

cdef bint read_core(const uint8_t *data, int64_t size, CoreForm *form) noexcept nogil
cdef int64_t value_size(const uint8_t *data, int64_t at, int64_t end) noexcept nogil


cdef inline int32_t int_at(const uint8_t *data) noexcept nogil:
    return <int32_t>(<uint32_t>data[0] << 24 | <uint32_t>data[1] << 16
                     | <uint32_t>data[2] << 8 | data[3])


cdef inline int64_t long_at(const uint8_t *data) noexcept nogil:
    return <int64_t>(<uint64_t><uint32_t>int_at(data) << 32 | <uint32_t>int_at(data + 4))
