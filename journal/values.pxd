"""Numbers that callers give, checked: what does not fit is refused, never cut to size."""

from libc.stdint cimport int64_t, uint8_t

cdef extern from "Python.h":
    long long PyLong_AsLongLongAndOverflow(object number, int *overflow) except? -1


cdef inline int64_t as_id(object number, str what) except? -1:
    """A record or transaction id, or a ticket.

    Raises:
        TypeError: not an int.
        OverflowError: not a 64-bit number.
    """
    cdef int overflow = 0
    cdef int64_t found
    if not isinstance(number, int):
        raise TypeError(f"{what} is an int, not {type(number).__name__}")
    found = PyLong_AsLongLongAndOverflow(number, &overflow)
    if overflow:
        raise OverflowError(f"{what} is {number}, not a 64-bit number")
    return found


cdef inline uint8_t as_user_type(object number) except? 255:
    """A user type.

    Raises:
        TypeError: not an int.
        ValueError: not from 0 to 255.
    """
    cdef int overflow = 0
    cdef int64_t found
    if not isinstance(number, int):
        raise TypeError(f"a user type is an int, not {type(number).__name__}")
    found = PyLong_AsLongLongAndOverflow(number, &overflow)
    if overflow or not 0 <= found <= 255:
        raise ValueError(f"user type {number} is out of range: 0 to 255")
    return <uint8_t>found
