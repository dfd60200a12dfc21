"""Salted hashes of passwords, as Artemis keeps them: `iterations:salt:hash` in hexadecimal.

PBKDF2 with HMAC-SHA-1, 1024 iterations, 32 bytes of salt, 64 bytes of hash (its HashUtil). The
numbers are those of the text when one is checked, so a file may hold stronger ones.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from typing import Final

__all__ = ["hash_password", "is_hash", "verify_hash", "verify_password"]

ITERATIONS: Final = 1024
SALT_SIZE: Final = 32
HASH_SIZE: Final = 64
_HASH: Final = re.compile(r"(\d{1,9}):((?:[0-9a-f]{2})+):((?:[0-9a-f]{2})+)", re.IGNORECASE)
# Compared with where there is no such user, so that the answer takes as long.
_UNKNOWN_USER: Final = f"{ITERATIONS}:{'00' * SALT_SIZE}:{'00' * HASH_SIZE}"


def hash_password(password: str, *, iterations: int = ITERATIONS, salt: bytes | None = None) -> str:
    """A hash with a salt of its own; without ENC().

    Args:
        password: in the clear.
        iterations: of PBKDF2.
        salt: for tests; None draws one.
    """
    salt = secrets.token_bytes(SALT_SIZE) if salt is None else salt
    digest = hashlib.pbkdf2_hmac("sha1", password.encode(), salt, iterations, HASH_SIZE)
    return f"{iterations}:{salt.hex()}:{digest.hex()}"


def is_hash(text: str) -> bool:
    """Whether a text is `iterations:salt:hash`."""
    return _HASH.fullmatch(text) is not None


def verify_hash(stored: str, password: str) -> bool:
    """Whether a hash is that of the password, compared in constant time."""
    match = _HASH.fullmatch(stored)
    if match is None:
        return False
    iterations, salt, wanted = int(match[1]), bytes.fromhex(match[2]), bytes.fromhex(match[3])
    if not iterations:
        return False
    digest = hashlib.pbkdf2_hmac("sha1", password.encode(), salt, iterations, len(wanted))
    return hmac.compare_digest(digest, wanted)


def verify_password(stored: str | None, password: str) -> bool:
    """Whether a users file's entry is that of the password: ENC(hash), or the password itself.

    If the entry is missing, it takes the time of a hash: names cannot be guessed by the clock.

    >>> verify_password("secret", "secret"), verify_password(None, "secret")
    (True, False)
    """
    if stored is None:
        verify_hash(_UNKNOWN_USER, password)
        return False
    if stored.startswith("ENC(") and stored.endswith(")"):
        return verify_hash(stored[4:-1], password)
    return hmac.compare_digest(stored.encode(), password.encode())
