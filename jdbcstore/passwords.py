"""Masked values of `<database-store>` and of its pool's properties, with the store's own error."""

from __future__ import annotations

from journal import masking
from journal.errors import OptionError

__all__ = ["unmask"]


def unmask(text: str) -> str:
    """The plain value of ENC(…); any other text as it is.

    Raises:
        OptionError: what is in the brackets was masked with another key. It is not repeated.

    >>> unmask("ENC(-4413f2d1fa455a12)"), unmask("a")
    ('a', 'a')
    """
    try:
        return masking.unmask(text)
    except masking.MaskError as error:
        raise OptionError(str(error)) from None
