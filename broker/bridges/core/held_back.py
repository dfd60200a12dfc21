"""Messages of a link to a peer that wait for their address alone, so that others go.

    the peer's address gives no credit for a while, or refuses ─▶ add()
        ─▶ what comes for it later stands behind ─▶ it has room, or a while has passed ─▶ take()

Of an address that has something here nothing else is sent, but the first one for a try: so each
address keeps its order. As many are held back as MESSAGES_MAX and BYTES_MAX say; then the link
takes no message at all.
"""

from __future__ import annotations

import bisect
from collections import deque
from operator import attrgetter
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker.bridges.core.sending import Sent

__all__ = ["BYTES_MAX", "MESSAGES_MAX", "HeldBack"]

MESSAGES_MAX: Final = 10_000
"""Of all addresses: they stand in the queue's count of what is being delivered, in memory."""
BYTES_MAX: Final = 8 << 20


class HeldBack:
    """See the module's text.

    Attributes:
        count: messages of all addresses.
        size: bytes of them.
    """

    def __init__(self) -> None:
        self._lines: dict[str, deque[Sent]] = {}
        self.count = 0
        self.size = 0

    def __iter__(self) -> Iterator[Sent]:
        for line in self._lines.values():
            yield from line

    def __contains__(self, address: str) -> bool:
        return address in self._lines

    @property
    def is_full(self) -> bool:
        """Whether nothing more may be held back."""
        return self.count >= MESSAGES_MAX or self.size >= BYTES_MAX

    @property
    def addresses(self) -> list[str]:
        """The addresses that messages wait for, the one that has done so longest first."""
        return list(self._lines)

    def add(self, address: str, sent: Sent) -> None:
        """Hold a message back, in its place among those of its address."""
        line = self._lines.setdefault(address, deque())
        if not line or line[-1].order < sent.order:
            line.append(sent)
        elif sent.order < line[0].order:
            line.appendleft(sent)
        else:
            bisect.insort(line, sent, key=attrgetter("order"))
        self.count += 1
        self.size += sent.size

    def take_first(self, address: str) -> Sent | None:
        """Take the first message of an address, of which others are held back still; None: none."""
        line = self._lines.get(address)
        if not line:
            return None
        found = line.popleft()
        self.count -= 1
        self.size -= found.size
        return found

    def end(self, address: str) -> None:
        """Hold nothing of an address back any more; none is left."""
        self._lines.pop(address, None)

    def take_all(self) -> list[Sent]:
        """Take all of them, by address, in order."""
        found = list(self)
        self._lines.clear()
        self.count = self.size = 0
        return found
