"""Lines of the log that would come with every message: each at most once a minute."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

__all__ = ["RareLines"]

log = logging.getLogger("broker")

# One who looks at the log sees that it goes on; the log does not fill the disk.
SILENT_S: Final = 60.0
# Things that are remembered: clients choose names of addresses.
KEPT_MAX: Final = 1000


class RareLines:
    """Warnings about things, each thing at most once in SILENT_S.

    Args:
        clock_s: seconds that never jump.

    Threads: the event loop's alone.
    """

    def __init__(self, clock_s: Callable[[], float]) -> None:
        self._clock_s = clock_s
        self._told_s: dict[Hashable, float] = {}

    def warn(self, thing: Hashable, text: str, *arguments: object) -> None:
        """Log a warning, unless there was one about the thing not long ago.

        Args:
            thing: what it is about.
            text: with the places of its arguments, as for logging.
            arguments: of the text.
        """
        now_s, told_s = self._clock_s(), self._told_s.get(thing)
        if told_s is not None and now_s - told_s < SILENT_S:
            return
        if len(self._told_s) >= KEPT_MAX:
            self._told_s.clear()
        self._told_s[thing] = now_s
        log.warning(text, *arguments)
