"""How Artemis's language writes values and orders hash maps, for text that people diff.

Two things cannot be had: an object's identity hash (`IDENTITY` stands in its place), and the time
zone of the machine that printed (dates are UTC here).
"""

from __future__ import annotations

import math
import re
import struct
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

# Stands where Artemis prints an identity hash, which differs in every run.
IDENTITY: Final = 0

K = TypeVar("K")

_HALF_PAIRS: Final = re.compile("[\ud800-\udfff]")
_DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS: Final = (
    *("Jan", "Feb", "Mar", "Apr", "May", "Jun"),
    *("Jul", "Aug", "Sep", "Oct", "Nov", "Dec"),
)
_DAY_MS: Final = 86_400_000
# The calendar repeats every 400 years; 1970-01-01 is day 719,468 counted from 0000-03-01.
_ERA_DAYS: Final = 146_097
_EPOCH_DAY: Final = 719_468


def text_of(value: object) -> str:
    """Give a string, boolean, integer or null as string concatenation does.

    >>> text_of(None), text_of(True), text_of(-1)
    ('null', 'true', '-1')
    """
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def signed_byte(value: int) -> int:
    """Give 0 … 255 as the signed byte it is there.

    >>> signed_byte(200), signed_byte(45)
    (-56, 45)
    """
    return (value + 128) % 256 - 128


def date_text(time_ms: int) -> str:
    """Give a time in ms since 1970 as a date prints itself, in UTC; 0 is "0", as messages print it.

    Days before 1582 are counted in the Gregorian calendar, where Artemis takes the Julian.

    >>> date_text(1700000000000), date_text(0)
    ('Tue Nov 14 22:13:20 UTC 2023', '0')
    """
    if time_ms == 0:
        return "0"
    days, rest_ms = divmod(time_ms, _DAY_MS)
    seconds = rest_ms // 1000
    year, month, day = _civil_date(days)
    return (
        f"{_DAYS[(days + 3) % 7]} {_MONTHS[month - 1]} {day:02} "
        f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02} UTC {year:04}"
    )


def _civil_date(days: int) -> tuple[int, int, int]:
    """Give year, month and day of a day counted from 1970-01-01; `datetime` ends at year 9999."""
    era, day_of_era = divmod(days + _EPOCH_DAY, _ERA_DAYS)
    year_of_era = (
        day_of_era - day_of_era // 1460 + day_of_era // 36524 - day_of_era // 146096
    ) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    month_from_march = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * month_from_march + 2) // 5 + 1
    month = month_from_march + 3 if month_from_march < 10 else month_from_march - 9
    return year_of_era + era * 400 + (month <= 2), month, day


def double_text(value: float) -> str:
    """Give a double as it prints itself: fewest digits, exponent outside 10**-3 … 10**7.

    >>> double_text(1.0), double_text(1e7), double_text(0.00025), double_text(float("-inf"))
    ('1.0', '1.0E7', '2.5E-4', '-Infinity')
    """
    shortest = repr(value)
    if math.isfinite(value) and len(_digits_and_exponent(shortest.lstrip("-"))[0]) == 1:
        shortest = f"{value:.1e}"  # The nearest of two digits, where one would do.
    return _decimal_text(value, shortest)


def float_text(value: float) -> str:
    """Give a 4-byte float as it prints itself.

    >>> float_text(struct.unpack(">f", bytes.fromhex("3bef5300"))[0])
    '0.0073035955'
    """
    if not math.isfinite(value):
        return _decimal_text(value, "")
    packed = struct.pack(">f", value)
    for digits in range(2, 10):
        shortest = f"{value:.{digits - 1}e}"
        try:
            if struct.pack(">f", float(shortest)) == packed:
                break
        except OverflowError:
            continue  # Rounded up beyond the largest float: one digit more.
    return _decimal_text(value, shortest)


def _decimal_text(value: float, shortest: str) -> str:
    if math.isnan(value):
        return "NaN"
    sign = "-" if math.copysign(1.0, value) < 0 else ""
    if math.isinf(value):
        return f"{sign}Infinity"
    if value == 0:
        return f"{sign}0.0"
    digits, exponent = _digits_and_exponent(shortest.lstrip("-"))
    if 1e-3 <= abs(value) < 1e7:
        if exponent < 0:
            return f"{sign}0.{'0' * (-exponent - 1)}{digits}"
        whole = digits[: exponent + 1].ljust(exponent + 1, "0")
        return f"{sign}{whole}.{digits[exponent + 1 :] or '0'}"
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{exponent}"


def _digits_and_exponent(text: str) -> tuple[str, int]:
    """Split `1.25e-07`, `0.00125` or `1250.0` into its digits and the power of ten of the first."""
    mantissa, _, power = text.partition("e")
    whole, _, fraction = mantissa.partition(".")
    exponent = int(power or 0) + len(whole) - 1
    digits = whole + fraction
    leading = len(digits) - len(digits.lstrip("0"))
    return digits[leading:].rstrip("0") or "0", exponent - leading


def hex_groups(data: bytes) -> str:
    """Give bytes as upper-case hex in groups of two, `[]` when there are none.

    >>> hex_groups(b"abc"), hex_groups(b"")
    ('6162 63', '[]')
    """
    return data.hex(" ", -2).upper() if data else "[]"


def shortened(text: str, size: int) -> str:
    """Give the first and last half of `size` characters of a text that has as many or more."""
    if len(text) < size:
        return text
    half = size // 2
    return f"{text[:half]} ... {text[-half:]}"


def uuid_text(data: bytes) -> str:
    """Give 16 bytes as a time-based UUID, whose version and variant bits Artemis sets.

    >>> uuid_text(bytes(range(16)))
    '00010203-0405-1607-8809-0a0b0c0d0e0f'
    """
    fixed = bytearray(data)
    fixed[6] = fixed[6] & 0x0F | 0x10
    fixed[8] = fixed[8] & 0x3F | 0x80
    digits = fixed.hex()
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def whole_pairs(text: str, replacement: str) -> str:
    """Give the text with halves of a surrogate pair replaced, which no UTF-8 can hold.

    Artemis prints them as question marks.

    >>> whole_pairs(chr(0xD83D) + "!", "?")
    '?!'
    """
    return text if text.isascii() else _HALF_PAIRS.sub(replacement, text)


def string_hash(units: Iterable[int]) -> int:
    """Give the hash of a string (its UTF-16 units) or a SimpleString (its signed bytes)."""
    value = 0
    for unit in units:
        value = (value * 31 + unit) & 0xFFFFFFFF
    return value


def simple_string_hash(text: str) -> int:
    """Give the hash of a SimpleString."""
    return string_hash(map(signed_byte, text.encode("utf-16-le", "surrogatepass")))


def java_string_hash(text: str) -> int:
    """Give the hash of a string.

    >>> java_string_hash("hello")
    99162322
    """
    units = struct.iter_unpack("<H", text.encode("utf-16-le", "surrogatepass"))
    return string_hash(unit for (unit,) in units)


def long_hash(value: int) -> int:
    """Give the hash of a boxed long."""
    return (value ^ value >> 32) & 0xFFFFFFFF


def hash_order(hashes: Mapping[K, int], *, table_size: int | None = None) -> Sequence[K]:
    """Give keys in the order in which a hash map with these hashes is walked.

    Buckets in order, in one bucket the order of insertion. Crowded buckets, which Artemis
    turns into trees or answers with a larger table, are not followed further.

    Args:
        hashes: the hash of each key, in the order of insertion.
        table_size: buckets, a power of two; None for a map that grew from the default of 16.
    """
    if table_size is None:
        table_size = 16
        while len(hashes) > table_size * 3 // 4:
            table_size *= 2
    mask = table_size - 1
    return sorted(hashes, key=lambda key: (hashes[key] ^ hashes[key] >> 16) & mask)


def table_size_for(capacity: int) -> int:
    """Give the buckets of a hash map that was made for `capacity` entries.

    >>> [table_size_for(capacity) for capacity in (0, 1, 2, 3, 13)]
    [1, 1, 2, 4, 16]
    """
    return 1 << max(capacity - 1, 0).bit_length()
