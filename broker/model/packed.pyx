"""Bytes of messages put together in one allocation each: big-endian integers between copies.

    of_long()      an integer of 8 bytes
    of_position()  a queue, a page, and the number of a message there
    with_long()    a part of some bytes, an integer of 8 bytes put over it
    record()       a message as the body of its record
    stands_at()    whether bytes stand at a place in others

What struct and join() make of four or five objects, once for every message.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport int32_t, int64_t
from libc.string cimport memcmp, memcpy


cpdef bytes of_long(int64_t value):
    """Give the 8 bytes of an integer."""
    made = PyBytes_FromStringAndSize(NULL, 8)
    put_number(PyBytes_AS_STRING(made), value, 8)
    return made


cpdef bytes of_position(int64_t queue_id, int64_t page, int32_t number):
    """Give the 20 bytes of a queue's id, a page's number and a message's number in it."""
    made = PyBytes_FromStringAndSize(NULL, 20)
    cdef char *to = PyBytes_AS_STRING(made)
    put_number(to, queue_id, 8)
    put_number(to + 8, page, 8)
    put_number(to + 16, number, 4)
    return made


cpdef bytes with_long(bytes data, Py_ssize_t start, Py_ssize_t end, Py_ssize_t at, int64_t value):
    """Give data[start:end] with `value` in the 8 bytes from `at` on.

    Raises:
        IndexError: these are not all within the part, or that not in the data.
    """
    if not 0 <= start <= at <= end - 8 <= PyBytes_GET_SIZE(data) - 8:
        raise IndexError(f"bytes {at} to {at + 8} of {start} to {end} in {len(data)}")
    made = PyBytes_FromStringAndSize(PyBytes_AS_STRING(data) + start, end - start)
    put_number(PyBytes_AS_STRING(made) + (at - start), value, 8)
    return made


cpdef bytes record(int persister, int64_t message_id, bytes address, bytes data):
    """Give persister, id, address and message, as a record has them; the address may be None."""
    cdef Py_ssize_t name_size = 0 if address is None else 4 + PyBytes_GET_SIZE(address)
    cdef Py_ssize_t size = PyBytes_GET_SIZE(data)
    made = PyBytes_FromStringAndSize(NULL, 1 + 8 + 1 + name_size + 4 + size)
    cdef char *to = PyBytes_AS_STRING(made)
    to[0] = <char>persister
    put_number(to + 1, message_id, 8)
    to[9] = address is not None
    to += 10
    if address is not None:
        put_number(to, name_size - 4, 4)
        memcpy(to + 4, PyBytes_AS_STRING(address), name_size - 4)
        to += name_size
    put_number(to, size, 4)
    memcpy(to + 4, PyBytes_AS_STRING(data), size)
    return made


cpdef bint stands_at(bytes data, Py_ssize_t at, bytes wanted) noexcept:
    """Whether all of `wanted` stands in `data` from `at` on."""
    cdef Py_ssize_t size = PyBytes_GET_SIZE(wanted)
    return (0 <= at <= PyBytes_GET_SIZE(data) - size
            and memcmp(PyBytes_AS_STRING(data) + at, PyBytes_AS_STRING(wanted), size) == 0)
