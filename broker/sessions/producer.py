"""One producer of a session: what it has sent, for operators to see.

Core clients name their producers, others are one producer an address. Counting alone: a session
sends the same with and without.
"""

from __future__ import annotations

import itertools
import time
import uuid

__all__ = ["Producer"]

_NUMBERS = itertools.count(1)


class Producer:
    """See the module's text.

    Args:
        address: where it sends to; None sends to several.

    Attributes:
        number: unique in the process.
        created_ms: when, ms since 1970.
        sent_count: messages that were accepted.
        sent_bytes: of these.
        last_user_id: of the last message, 16 bytes; None without one.
    """

    __slots__ = (
        "_name",
        "address",
        "created_ms",
        "last_user_id",
        "number",
        "sent_bytes",
        "sent_count",
    )

    def __init__(self, address: str | None) -> None:
        self.address = address
        self.number = next(_NUMBERS)
        self._name: str | None = None
        self.created_ms = time.time_ns() // 1_000_000
        self.sent_count = 0
        self.sent_bytes = 0
        self.last_user_id: bytes | None = None

    @property
    def name(self) -> str:
        """Unique, as Artemis makes it."""
        if self._name is None:
            self._name = f"artemis:sender:ID:{uuid.uuid1()}"
        return self._name
