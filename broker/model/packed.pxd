from libc.stdint cimport int32_t, int64_t


cdef inline void put_number(char *to, int64_t value, int size) noexcept nogil:
    """An integer of so many bytes, the highest first."""
    cdef int i
    for i in range(size - 1, -1, -1):
        to[i] = <char>(value & 0xFF)
        value >>= 8


cpdef bytes of_long(int64_t value)
cpdef bytes of_position(int64_t queue_id, int64_t page, int32_t number)
cpdef bytes with_long(bytes data, Py_ssize_t start, Py_ssize_t end, Py_ssize_t at, int64_t value)
cpdef bytes with_headers(
    bytes data,
    Py_ssize_t headers_at,
    Py_ssize_t properties_at,
    int64_t message_id,
    bytes address,
    bytes user_id,
    int type,
    int durable,
    int64_t expiration,
    int64_t timestamp,
    int priority,
    bytes name,
    bytes value,
)
cpdef bytes record(int persister, int64_t message_id, bytes address, bytes data)
cpdef bint stands_at(bytes data, Py_ssize_t at, bytes wanted) noexcept
