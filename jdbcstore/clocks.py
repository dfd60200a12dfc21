"""Clocks: one that never jumps, and how far the database's is from this machine's."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

from journal.errors import JournalIOError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["ClockSkew", "boot_clock"]

log = logging.getLogger("jdbcstore")


def boot_clock() -> float:
    """Seconds that never jump, and that count while the machine is suspended."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class ClockSkew:
    """The database's clock less this machine's, logged when it gets too large and when it ends.

    Args:
        now_ms: asks the database for its clock, in milliseconds since 1970.
        allowed_ms: what is not worth a line (jdbc-allowed-time-diff).
        wall_clock: this machine's time of day in seconds.

    Attributes:
        last_ms: as measured last; None before that.

    Threads: one measures at a time.
    """

    def __init__(
        self, now_ms: Callable[[], int], allowed_ms: int, wall_clock: Callable[[], float]
    ) -> None:
        self._now_ms = now_ms
        self._allowed_ms = allowed_ms
        self._wall_clock = wall_clock
        self.last_ms: float | None = None
        self._is_reported = False

    def measure(self) -> None:
        """Compare the clocks; a database that does not answer is passed over."""
        before = self._wall_clock()
        try:
            now_ms = self._now_ms()
        except JournalIOError as error:
            log.debug("the clocks were not compared: %s", error)
            return
        skew_ms = now_ms - (before + self._wall_clock()) * 500  # The middle, in milliseconds.
        is_large = abs(skew_ms) > self._allowed_ms
        is_news = is_large != self._is_reported
        self.last_ms, self._is_reported = skew_ms, is_large
        if is_large and is_news:
            log.warning(
                "the database's clock is %.0f ms %s this machine's (jdbc-allowed-time-diff is %d "
                "ms); leases go by the database's",
                *(abs(skew_ms), "ahead of" if skew_ms > 0 else "behind"),
                self._allowed_ms,
            )
        elif is_news:
            log.info("the database's clock agrees with this machine's again: %.0f ms", skew_ms)
