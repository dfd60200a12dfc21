"""Outages in the log: one line when a database goes away, one when it answers again."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Outage"]

log = logging.getLogger("jdbcstore")


class Outage:
    """What one caller has logged of the outage that it tries to survive.

    Args:
        what: cannot be done while the database is away.
        clock: seconds that never jump.

    Threads: one at a time.
    """

    def __init__(self, what: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._what = what
        self._clock = clock
        self._since: float | None = None

    def failed(self, error: Exception) -> None:
        """Log the first failure; those that follow are of the same outage."""
        if self._since is None:
            self._since = self._clock()
            log.warning("%s, trying again: %s", self._what, error)

    def ended(self) -> None:
        """Log how long the outage was, if there was one."""
        if self._since is not None:
            seconds, self._since = self._clock() - self._since, None
            log.info("the database answers again after %.1f s", seconds)
