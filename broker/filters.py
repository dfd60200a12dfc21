"""Selectors as the broker's parts want them: errors with the reference's code."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.errors import broker_error
from broker.selector import SelectorError, parse

if TYPE_CHECKING:
    from broker.consumer import Filter

__all__ = ["parse_filter"]


def parse_filter(text: str) -> Filter | None:
    """Give the filter of a selector's text; None for a blank one.

    Raises:
        BrokerError: it cannot be read.
    """
    try:
        return parse(text)
    except SelectorError as error:
        raise broker_error("invalid_filter", f"Invalid filter: {text}: {error}") from error
