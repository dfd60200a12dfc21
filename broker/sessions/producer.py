"""One producer of a session: what it has sent, for operators to see.

Core clients name their producers, others are one producer an address. Counting alone: a session
sends the same with and without.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import uuid
    from collections.abc import Callable

__all__ = ["Producer"]


class Producer:
    """See the module's text.

    Args:
        address: where it sends to; None sends to several.
        number: unique in the broker.
        created_ms: when, ms since 1970.
        new_uuid: makes the name unique.

    Attributes:
        sent_count: messages that were accepted.
        sent_bytes: of these.
        last_user_id: of the last message, 16 bytes; None without one.
    """

    __slots__ = (
        "_name",
        "_new_uuid",
        "address",
        "created_ms",
        "last_user_id",
        "number",
        "sent_bytes",
        "sent_count",
    )

    def __init__(
        self,
        address: str | None,
        number: int,
        created_ms: int,
        new_uuid: Callable[[], uuid.UUID],
    ) -> None:
        self.address = address
        self.number = number
        self._new_uuid = new_uuid
        self._name: str | None = None
        self.created_ms = created_ms
        self.sent_count = 0
        self.sent_bytes = 0
        self.last_user_id: bytes | None = None

    @property
    def name(self) -> str:
        """Unique, as Artemis makes it."""
        if self._name is None:
            self._name = f"artemis:sender:ID:{self._new_uuid()}"
        return self._name
