"""Parses filters for the broker: cached, and with Artemis's error code."""

from __future__ import annotations

from typing import Final
from weakref import WeakValueDictionary

from broker.errors import broker_error
from broker.selector import Filter, SelectorError, parse

__all__ = ["parse_filter"]


# Compiled once for all who use it, as long as somebody does.
_SHARED: Final[WeakValueDictionary[str, Filter]] = WeakValueDictionary()


def parse_filter(text: str) -> Filter | None:
    """Give the filter of a selector's text, the same one for equal texts; None for a blank one.

    Raises:
        BrokerError: it cannot be read.
    """
    found = _SHARED.get(text)
    if found is not None:
        return found
    try:
        made = parse(text)
    except SelectorError as error:
        raise broker_error("invalid_filter", f"Invalid filter: {text}: {error}") from error
    if made is not None:
        _SHARED[text] = made
    return made
