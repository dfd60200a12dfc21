"""The Blowfish cipher, for the passwords that Artemis masks with it.

Not for new secrets: blocks of 64 bits, and used without chaining. It is here because no Python
library that we need anyway still has it. B. Schneier, "Description of a New Variable-Length Key,
64-Bit Block Cipher", 1994: the tables are the first 33,344 bits of π's fraction.
"""

from __future__ import annotations

import functools
from typing import Final

__all__ = ["decrypt", "encrypt"]

ROUNDS: Final = 16
WORDS: Final = ROUNDS + 2 + 4 * 256
MASK: Final = 0xFFFFFFFF
GUARD_BITS: Final = 64
KEY_SIZES: Final = range(4, 57)  # 32 to 448 bits.
BLOCK: Final = 8


@functools.cache
def _pi_words() -> tuple[int, ...]:
    """The fraction of π in words of 32 bits, by Machin: π = 16 arctan(1/5) - 4 arctan(1/239)."""
    bits = 32 * WORDS
    unity = 1 << (bits + GUARD_BITS)

    def arctan_of_inverse(x: int) -> int:
        power = unity // x
        total, divisor, sign = power, 1, 1
        while power:
            power //= x * x
            divisor += 2
            sign = -sign
            total += sign * (power // divisor)
        return total

    fraction = 16 * arctan_of_inverse(5) - 4 * arctan_of_inverse(239) - 3 * unity
    fraction >>= GUARD_BITS
    return tuple(fraction >> (bits - 32 * (word + 1)) & MASK for word in range(WORDS))


class _Cipher:
    """The tables after a key was worked into them."""

    def __init__(self, key: bytes) -> None:
        if len(key) not in KEY_SIZES:
            raise ValueError(f"a Blowfish key has 4 to 56 bytes, not {len(key)}")
        words = list(_pi_words())
        self.p = words[: ROUNDS + 2]
        self.s = [words[ROUNDS + 2 + 256 * box :][:256] for box in range(4)]
        for index in range(ROUNDS + 2):
            some = bytes(key[(4 * index + at) % len(key)] for at in range(4))
            self.p[index] ^= int.from_bytes(some, "big")
        left = right = 0
        for table in (self.p, *self.s):
            for index in range(0, len(table), 2):
                left, right = self.block(left, right)
                table[index], table[index + 1] = left, right

    def block(self, left: int, right: int, *, backwards: bool = False) -> tuple[int, int]:
        p = self.p[::-1] if backwards else self.p
        a, b, c, d = self.s
        for index in range(ROUNDS):
            left ^= p[index]
            mixed = (a[left >> 24] + b[left >> 16 & 255] & MASK) ^ c[left >> 8 & 255]
            right ^= mixed + d[left & 255] & MASK
            left, right = right, left
        return right ^ p[ROUNDS + 1], left ^ p[ROUNDS]

    def blocks(self, data: bytes, *, backwards: bool) -> bytes:
        out = bytearray()
        for at in range(0, len(data), BLOCK):
            left = int.from_bytes(data[at : at + 4], "big")
            right = int.from_bytes(data[at + 4 : at + 8], "big")
            left, right = self.block(left, right, backwards=backwards)
            out += left.to_bytes(4, "big") + right.to_bytes(4, "big")
        return bytes(out)


def encrypt(key: bytes, text: bytes) -> bytes:
    """Bytes padded (PKCS #5) and encrypted block by block.

    Args:
        key: 4 to 56 bytes.
        text: any number of bytes.

    >>> decrypt(b"a key", encrypt(b"a key", b"text"))
    b'text'
    """
    padding = BLOCK - len(text) % BLOCK
    return _Cipher(key).blocks(text + bytes([padding]) * padding, backwards=False)


def decrypt(key: bytes, data: bytes) -> bytes:
    """What `encrypt` was given.

    Raises:
        ValueError: no whole blocks, or another key: the padding is wrong.
    """
    if not data or len(data) % BLOCK:
        raise ValueError(f"{len(data)} bytes are not whole blocks")
    text = _Cipher(key).blocks(data, backwards=True)
    padding = text[-1]
    if not 1 <= padding <= BLOCK or text[-padding:] != bytes([padding]) * padding:
        raise ValueError("the padding is wrong: another key")
    return text[:-padding]
