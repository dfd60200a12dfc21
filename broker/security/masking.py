"""How the passwords of a configuration are masked: `mask-password` and `password-codec`.

    mask-password absent   ENC(x) is masked, anything else is in the clear
    mask-password true     everything is masked, with ENC() around it or without
    mask-password false    nothing is

The codec is Artemis's default one, with its parameters, or a function of the operator's:
`package.module:function`, which is given the masked text and returns the plain one. A Java class of
somebody else's cannot be loaded, and that is said at the start.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from broker.security.passwords import hash_password
from journal import masking as codec

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Masking", "mask_text"]

DEFAULT_CODEC: Final = "DefaultSensitiveStringCodec"
ALGORITHMS: Final = ("two-way", "one-way")


@dataclass(frozen=True, slots=True)
class Masking:
    """Turns masked texts into plain ones.

    Attributes:
        decode: the plain text of a masked one, given without ENC().
        mask_password: see above.
    """

    decode: Callable[[str], str]
    mask_password: bool | None = None

    @classmethod
    def configured(cls, codec_text: str | None, *, mask_password: bool | None) -> Masking:
        """From the text of password-codec: `class;parameter=value;…`.

        Raises:
            ValueError: a codec or parameter that there is not.
        """
        name, *items = (codec_text or DEFAULT_CODEC).split(";")
        parameters = {}
        for item in filter(str.strip, items):
            key, equals, value = item.strip().partition("=")
            if not equals:
                raise ValueError(f"{item.strip()!r} is not NAME=VALUE")
            parameters[key] = value
        name = name.strip()
        if name.rpartition(".")[2] == DEFAULT_CODEC:
            return cls(_default_decode(parameters), mask_password)
        if ":" in name:
            return cls(_operators_decode(name), mask_password)
        raise ValueError(
            f"codec {name} is a Java class; take {DEFAULT_CODEC} or package.module:function"
        )

    def unmask(self, text: str) -> str:
        """The plain text of a password as configured.

        Raises:
            ValueError: it was not masked by this codec; the text is not repeated.

        >>> masking = Masking.configured(None, mask_password=None)
        >>> masking.unmask("ENC(-4413f2d1fa455a12)"), masking.unmask("plain")
        ('a', 'plain')
        """
        if self.mask_password is False:
            return text
        if codec.is_masked(text):
            return self.decode(text[4:-1])
        return self.decode(text) if self.mask_password else text


def mask_text(text: str, *, key: str | None = None, one_way: bool = False) -> str:
    """A password as it is written into a file, without ENC().

    Args:
        text: the password.
        key: of the cipher; None takes the environment's or Artemis's.
        one_way: a salted hash, which can be checked and not read.

    >>> mask_text("a")
    '-4413f2d1fa455a12'
    """
    if one_way:
        return hash_password(text)
    return codec.mask(text, key)[4:-1]


def _default_decode(parameters: dict[str, str]) -> Callable[[str], str]:
    if unknown := parameters.keys() - {"key", "algorithm"}:
        raise ValueError(f"{DEFAULT_CODEC} has no parameter {min(unknown)!r}")
    algorithm = parameters.get("algorithm", ALGORITHMS[0])
    if algorithm not in ALGORITHMS:
        raise ValueError(f"algorithm {algorithm!r} is none of {', '.join(ALGORITHMS)}")
    if algorithm == "one-way":
        # Artemis gives the hash itself back: for a place that compares hashes.
        return lambda text: text
    key = parameters.get("key")
    return lambda text: codec.unmask(f"ENC({text})", key)


def _operators_decode(name: str) -> Callable[[str], str]:
    module, _, function = name.partition(":")
    try:
        found = getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError) as error:
        raise ValueError(f"codec {name}: {error}") from None
    if not callable(found):
        raise ValueError(f"codec {name} is not a function")

    def decode(text: str) -> str:
        plain = found(text)
        if not isinstance(plain, str):
            raise ValueError(f"codec {name} returned no text")
        return plain

    return decode
