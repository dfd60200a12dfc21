"""Numbers that callers give, checked: what does not fit is refused, never cut to size."""

from libc.stdint cimport int64_t, uint8_t


cdef inline int64_t as_id(object number, str what) except? -1:
    """A record or transaction id, or a ticket.

    Raises:
        TypeError: not an int.
        OverflowError: not a 64-bit number.
    """
    if not isinstance(number, int):
        raise TypeError(f"{what} is an int, not {type(number).__name__}")
    if not -0x8000000000000000 <= number <= 0x7FFFFFFFFFFFFFFF:
        raise OverflowError(f"{what} is {number}, not a 64-bit number")
    return number


cdef inline uint8_t as_user_type(object number) except? 255:
    """A user type.

    Raises:
        TypeError: not an int.
        ValueError: not from 0 to 255.
    """
    if not isinstance(number, int):
        raise TypeError(f"a user type is an int, not {type(number).__name__}")
    if not 0 <= number <= 255:
        raise ValueError(f"user type {number} is out of range: 0 to 255")
    return number
