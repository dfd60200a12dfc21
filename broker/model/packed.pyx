"""Bytes of messages put together in one allocation each: big-endian integers between copies.

    of_long()      an integer of 8 bytes
    of_position()  a queue, a page, and the number of a message there
    with_long()    a part of some bytes, an integer of 8 bytes put over it
    with_headers() a message with other headers, and perhaps one property more
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
):
    """Give a message with other headers between its body and its properties; see core_layout.py.

    Args:
        data: the message's bytes.
        headers_at: where its message id stands.
        properties_at: where it says whether there are properties.
        message_id: the broker's number.
        address: where it was sent, encoded, or None.
        user_id: 16 bytes, or None.
        type: a `MessageType`.
        durable: whether it is, as a number.
        expiration: ms since 1970.
        timestamp: ms since 1970.
        priority: 0 … 9.
        name: of one more property, encoded; none of the others has it. None without one.
        value: of that, encoded behind its tag.

    Raises:
        IndexError: these places are not in the data.
    """
    cdef Py_ssize_t size = PyBytes_GET_SIZE(data)
    cdef bint has_properties
    cdef Py_ssize_t name_size = 0
    cdef Py_ssize_t user_size = 0 if user_id is None else PyBytes_GET_SIZE(user_id)
    cdef Py_ssize_t added_size = 0
    cdef Py_ssize_t rest_at = properties_at
    cdef int64_t count = 0
    cdef const unsigned char *of
    if not 0 <= headers_at <= properties_at < size:
        raise IndexError(f"bytes {headers_at} and {properties_at} of {size}")
    of = <const unsigned char *>PyBytes_AS_STRING(data) + properties_at
    has_properties = of[0] != 0
    if has_properties and properties_at > size - 5:
        raise IndexError(f"bytes {properties_at} to {properties_at + 5} of {size}")
    if address is not None:
        name_size = 4 + PyBytes_GET_SIZE(address)
    if name is not None:
        # The flag and the count are made anew.
        added_size = 5 + 4 + PyBytes_GET_SIZE(name) + PyBytes_GET_SIZE(value)
        rest_at += 1
        if has_properties:
            count = (<int64_t>of[1] << 24) | (of[2] << 16) | (of[3] << 8) | of[4]
            rest_at += 4
    made = PyBytes_FromStringAndSize(
        NULL, headers_at + 8 + 1 + name_size + 1 + user_size + 19 + size - rest_at + added_size
    )
    cdef char *to = PyBytes_AS_STRING(made)
    memcpy(to, PyBytes_AS_STRING(data), headers_at)
    to += headers_at
    put_number(to, message_id, 8)
    to[8] = address is not None
    to += 9
    if address is not None:
        put_number(to, name_size - 4, 4)
        memcpy(to + 4, PyBytes_AS_STRING(address), name_size - 4)
        to += name_size
    to[0] = user_id is not None
    to += 1
    if user_id is not None:
        memcpy(to, PyBytes_AS_STRING(user_id), user_size)
        to += user_size
    to[0] = <char>type
    to[1] = <char>durable
    put_number(to + 2, expiration, 8)
    put_number(to + 10, timestamp, 8)
    to[18] = <char>priority
    to += 19
    if name is not None:
        to[0] = 1
        put_number(to + 1, count + 1, 4)
        to += 5
    memcpy(to, PyBytes_AS_STRING(data) + rest_at, size - rest_at)
    to += size - rest_at
    if name is not None:
        put_number(to, PyBytes_GET_SIZE(name), 4)
        memcpy(to + 4, PyBytes_AS_STRING(name), PyBytes_GET_SIZE(name))
        to += 4 + PyBytes_GET_SIZE(name)
        memcpy(to, PyBytes_AS_STRING(value), PyBytes_GET_SIZE(value))
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
