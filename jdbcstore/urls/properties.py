"""Connection properties of JDBC drivers, by what our drivers call them.

An unknown property is an error, as in the rest of the configuration: a misspelled
`sslmode=verify-full` must not be ignored. Properties that tune a JDBC driver and mean nothing to
another one are known, and have no effect.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, TypeAlias
from urllib.parse import unquote

from journal.errors import OptionError
from journal.nearest import nearest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

__all__ = ["Meaning", "is_true", "pairs", "seconds", "split_host", "translate"]

Meaning: TypeAlias = "Mapping[str, str | Callable[[str], dict[str, str]]]"
"""JDBC property → our driver's name for it, or a function that gives its arguments."""

logger = logging.getLogger(__name__)


def pairs(text: str, separator: str) -> dict[str, str]:
    """The properties of `a=1;b=2`, `a=1&b=2`; percent escapes only where `&` separates.

    >>> pairs("create=true;user=me", ";")
    {'create': 'true', 'user': 'me'}
    """
    found = {}
    for part in text.split(separator):
        if part:
            key, equals, value = part.partition("=")
            decode: Callable[[str], str] = unquote if separator == "&" else str
            found[decode(key).strip()] = decode(value) if equals else "true"
    return found


def translate(
    vendor: str,
    given: Mapping[str, str],
    meaning: Meaning,
    without_effect: Iterable[str] = (),
) -> dict[str, str]:
    """The driver's arguments for JDBC properties, upper and lower case being the same.

    Args:
        vendor: for the message.
        given: property → value.
        meaning: property → our driver's name for it, or a function that gives its arguments.
        without_effect: properties that mean something to the JDBC driver only.

    Raises:
        OptionError: a property that is in neither; with the nearest name.

    >>> translate("Derby", {"CREATE": "true"}, {"create": "create"})
    {'create': 'true'}
    """
    by_name = {name.lower(): use for name, use in meaning.items()}
    ignored = {name.lower() for name in without_effect}
    result: dict[str, str] = {}
    for name, value in given.items():
        use = by_name.get(name.lower())
        if use is None:
            if name.lower() not in ignored:
                names = [*meaning, *without_effect]
                raise OptionError(
                    f"jdbc-connection-url: {vendor} has no property {name!r} that is known here"
                    f"{nearest(name, names)}"
                )
            logger.info("%s: the property %s has no effect here", vendor, name)
        elif callable(use):
            result |= use(value)
        else:
            result[use] = value
    return result


def split_host(text: str, default_port: int) -> tuple[str, int]:
    """Host and port of `host`, `host:port`, `[v6]:port`.

    Raises:
        OptionError: the port is not a number from 1 to 65535.

    >>> split_host("[::1]:7", 5), split_host("db", 5)
    (('::1', 7), ('db', 5))
    """
    host, port = text, ""
    if text.startswith("["):
        host, _, rest = text[1:].partition("]")
        port = rest.removeprefix(":")
    elif ":" in text:
        host, _, port = text.rpartition(":")
    if not port:
        return host, default_port
    if not port.isascii() or not port.isdigit() or not 0 < int(port) < 65536:
        raise OptionError("jdbc-connection-url: a port is a number from 1 to 65535")
    return host, int(port)


def is_true(value: str) -> bool:
    """Whether a property says yes.

    Raises:
        OptionError: it says neither yes nor no.

    >>> is_true("TRUE"), is_true("no")
    (True, False)
    """
    lowered = value.lower()
    if lowered in ("true", "yes", "1", ""):
        return True
    if lowered in ("false", "no", "0"):
        return False
    raise OptionError(f"jdbc-connection-url: {value!r} is neither true nor false")


def seconds(value: str, unit_ms: int) -> str:
    """Whole seconds of a number of units, rounded up; for drivers that know nothing finer.

    Raises:
        OptionError: it is not a number.

    >>> seconds("1500", 1), seconds("3", 1000)
    ('2', '3')
    """
    try:
        return str(-(-int(value) * unit_ms // 1000))
    except ValueError:
        raise OptionError(f"jdbc-connection-url: {value!r} is not a number") from None
