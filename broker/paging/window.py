"""How much of its pages a queue may have in memory: max-read-page-* and prefetch-page-*.

Threads: the event loop's alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from broker.settings.settings import AddressSettings

__all__ = ["Window"]

# QueueImpl.MAX_DEPAGE_NUM: messages that wait where settings give no limit at all.
_UNLIMITED_COUNT: Final = 10_000


class Window:
    """Whether a queue may take more of its pages into memory.

    Args:
        settings: of its address.
    """

    __slots__ = ("_count_max", "_prefetch_count", "_prefetch_size", "_size_max")

    def __init__(self, settings: AddressSettings) -> None:
        self._size_max = settings.max_read_page_bytes
        self._count_max = settings.max_read_page_messages
        self._prefetch_size = settings.prefetch_page_bytes
        self._prefetch_count = settings.prefetch_page_messages
        if max(self._size_max, self._count_max, self._prefetch_size, self._prefetch_count) <= 0:
            # Without any limit Artemis takes as much as the address may have in memory.
            most = settings.max_size_bytes
            self._prefetch_size = most if most > 0 else 2 * settings.page_size_bytes
            self._prefetch_count = _UNLIMITED_COUNT

    def has_room(self, count: int, size: int, waiting: int) -> bool:
        """Whether one more may come; limits of 0 and below are none (QueueImpl.needsDepage).

        Args:
            count: messages of pages in memory.
            size: their bytes.
            waiting: messages that wait in the queue, from pages or not.
        """
        if 0 < self._size_max <= size or 0 < self._count_max <= count:
            return False
        waiting = min(count, waiting)
        if not waiting:
            return True
        if 0 < self._prefetch_count <= waiting:
            return False
        # Of those in memory some wait: their share of the bytes.
        return not 0 < self._prefetch_size * count <= size * waiting
