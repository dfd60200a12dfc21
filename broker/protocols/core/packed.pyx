"""The frames that the broker writes for every message, each in one allocation (frames.py).

    received()     a message for a consumer
    null()         the answer that says no more than that it is done
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport int64_t
from libc.string cimport memcpy

from broker.model.packed cimport put_number

cdef enum:
    LENGTH_SIZE = 4             # Does not count itself.
    HEADER_SIZE = 13            # Length, type, channel.


cdef void put_header(char *to, Py_ssize_t size, int kind, int64_t channel_id) noexcept nogil:
    put_number(to, size - LENGTH_SIZE, LENGTH_SIZE)
    to[LENGTH_SIZE] = <char>kind
    put_number(to + LENGTH_SIZE + 1, channel_id, 8)


cpdef bytes received(int kind, int64_t channel_id, bytes message, int64_t consumer_id,
                     int delivery_count):
    """Give the frame of a message for a consumer."""
    cdef Py_ssize_t size = PyBytes_GET_SIZE(message)
    made = PyBytes_FromStringAndSize(NULL, HEADER_SIZE + size + 8 + 4)
    cdef char *to = PyBytes_AS_STRING(made)
    put_header(to, PyBytes_GET_SIZE(made), kind, channel_id)
    memcpy(to + HEADER_SIZE, PyBytes_AS_STRING(message), size)
    to += HEADER_SIZE + size
    put_number(to, consumer_id, 8)
    put_number(to + 8, delivery_count, 4)
    return made


cpdef bytes null(int kind, int64_t channel_id, int64_t correlation_id):
    """Give the frame of an answer without content."""
    made = PyBytes_FromStringAndSize(NULL, HEADER_SIZE + 8)
    cdef char *to = PyBytes_AS_STRING(made)
    put_header(to, HEADER_SIZE + 8, kind, channel_id)
    put_number(to + HEADER_SIZE, correlation_id, 8)
    return made
