"""Masked values, `ENC(…)`, as Artemis's DefaultSensitiveStringCodec writes them.

A mask keeps a password from being read over somebody's shoulder. It does not protect it from a
reader of the file, since the key is the same everywhere unless the environment gives one.
"""

from __future__ import annotations

import os
from typing import Final

from journal.masking import blowfish

__all__ = ["KEY_VARIABLE", "MaskError", "is_masked", "mask", "unmask"]

KEY_VARIABLE: Final = "ARTEMIS_DEFAULT_SENSITIVE_STRING_CODEC_KEY"
DEFAULT_KEY: Final = "clusterpassword"


class MaskError(ValueError):
    """A value that was not masked with this key; its text is not repeated."""


def is_masked(text: str) -> bool:
    """Whether a value reads ENC(…).

    >>> is_masked("ENC(32c6f67dae6cd61b0a7ad1702033aa81e6b2a760123f4360)"), is_masked("plain")
    (True, False)
    """
    return text.startswith("ENC(") and text.endswith(")")


def unmask(text: str, key: str | None = None) -> str:
    """The plain value of ENC(…); any other text as it is.

    Args:
        text: as configured.
        key: of the cipher; None takes the environment's KEY_VARIABLE, else Artemis's.

    Raises:
        MaskError: what is in the brackets was not masked with that key. It is not repeated.

    >>> unmask(mask("swordfish"))
    'swordfish'
    """
    if not is_masked(text):
        return text
    try:
        number = int(text[4:-1], 16)
        # Java's BigInteger is signed and drops leading zeros or, if negative, leading ones.
        size = (number if number >= 0 else ~number).bit_length() // 8 + 1
        data = number.to_bytes(-(-size // blowfish.BLOCK) * blowfish.BLOCK, "big", signed=True)
        return blowfish.decrypt(_key(key), data).decode()
    except (ValueError, OverflowError):
        raise MaskError(
            f"a value ENC(…) does not decode; was it masked with another key than {KEY_VARIABLE}?"
        ) from None


def mask(text: str, key: str | None = None) -> str:
    """A value as ENC(…), which `unmask` and Artemis read.

    >>> mask("a")
    'ENC(-4413f2d1fa455a12)'
    """
    number = int.from_bytes(blowfish.encrypt(_key(key), text.encode()), "big", signed=True)
    return f"ENC({number:x})"


def _key(key: str | None) -> bytes:
    return (key or os.environ.get(KEY_VARIABLE) or DEFAULT_KEY).encode()
