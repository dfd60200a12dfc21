"""What a broker does every so often.

Threads: the event loop's alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from journal.errors import JournalError

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

__all__ = ["Timers"]


class Timers:
    """Periodic work of one broker.

    Args:
        loop: whose turns they take.
        on_failure: told of an error of the storage, which ends the work that it came from.
    """

    def __init__(
        self, loop: asyncio.AbstractEventLoop, on_failure: Callable[[Exception], object]
    ) -> None:
        self._loop = loop
        self._on_failure = on_failure
        self._handles: list[asyncio.TimerHandle] = []

    def every(self, period_ms: int, work: Callable[[], object]) -> None:
        """Do `work` every so many milliseconds, from one period on; never if that is not positive.

        The next period begins when the work is done. An error that is not of the storage ends it
        as well, and goes to the loop's handler.
        """
        if period_ms <= 0:
            return

        def tick() -> None:
            try:
                work()
            except JournalError as error:
                self._on_failure(error)
                return
            self._handles[place] = self._loop.call_later(period_ms / 1000, tick)

        place = len(self._handles)
        self._handles.append(self._loop.call_later(period_ms / 1000, tick))

    def cancel(self) -> None:
        """Do none of it any more."""
        for handle in self._handles:
            handle.cancel()
        self._handles.clear()
