"""The thread that renews a held lease, from its acquisition until it is released or lost.

    renewed ──the database does not answer──▶ tried again ──▶ in doubt ──▶ lost
                                                   ▲              │
                                                   └── renewed ◀──┘

It renews every `lock_renew_period_ms`. While the database does not answer it tries more often. The
lease is lost when the database refuses to renew it, or when it has not been renewed for its
expiration and `ride_out_ms` together.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final, Protocol

from jdbcstore.node_table import DatabaseAway
from jdbcstore.outage import Outage
from journal.errors import JournalIOError

if TYPE_CHECKING:
    from jdbcstore.environment import Environment, Thread
    from jdbcstore.options import DatabaseStoreOptions

__all__ = ["LeaseRenewal"]

log = logging.getLogger("jdbcstore")

# Between two tries to renew while the database does not answer; it may be back any moment.
RETRY_PAUSE_MS: Final = 500
# What a renewal may be late by before that is worth a line (ActiveMQScheduledLeaseLock).
LATE_MS: Final = 100


class RenewedLease(Protocol):
    """What the thread needs of the lease."""

    @property
    def age_ms(self) -> float:
        """Milliseconds since the last renewal that succeeded was sent."""

    def renew(self) -> bool:
        """Renew now; False if it is lost for good.

        Raises:
            DatabaseAway: perhaps it was renewed, perhaps not.
            JournalIOError: the database refuses.
        """

    def lose(self, why: str, cause: Exception | None = None) -> None:
        """It is lost for good."""


class LeaseRenewal:
    """See the module's text.

    Args:
        lease: that was acquired just now.
        options: how long it lasts, how often it is renewed, how long an outage may be.
        environment: what clocks and threads there are.

    Threads: any may call stop() and end().
    """

    def __init__(
        self, lease: RenewedLease, options: DatabaseStoreOptions, environment: Environment
    ) -> None:
        self._lease = lease
        self._environment = environment
        self._clock = environment.clock
        self._expiration_ms = options.lock_expiration_ms
        self._period_ms = options.lock_renew_period_ms
        self._ride_out_ms = options.ride_out_ms
        self._outage = Outage("the lease could not be renewed", clock=environment.clock)
        self._is_doubt_reported = False
        self._thread: Thread | None = None
        self._ended = environment.new_event()

    def start(self, name: str) -> None:
        """Renew from now on, in a thread of this name."""
        self._thread = self._environment.start_thread(self._run, name)

    def end(self) -> None:
        """Renew no more; a renewal that was begun may still come. Idempotent."""
        self._ended.set()

    def stop(self) -> None:
        """Renew no more, and wait for the thread's end. Idempotent."""
        self._ended.set()
        thread = self._thread
        if thread is not None and not thread.is_current():
            thread.join()

    def _run(self) -> None:
        """The thread, until stop() or loss."""
        pause_ms: float = self._period_ms
        last_started = self._clock()
        while not self._ended.wait(pause_ms / 1000):
            started = self._clock()
            pause_ms = self._period_ms
            try:
                if not self._lease.renew():
                    return
                self._outage.ended()
                self._is_doubt_reported = False
            except JournalIOError as error:
                pause_ms = min(self._period_ms, RETRY_PAUSE_MS)
                if not self._survives(error):
                    return
            self._report_slowness(started - last_started, self._clock() - started)
            last_started = started

    def _survives(self, error: JournalIOError) -> bool:
        """Whether the lease is not lost yet, after a renewal failed."""
        age_ms = self._lease.age_ms
        if not isinstance(error, DatabaseAway):
            self._lease.lose(f"the database refuses to renew the lease: {error}", error)
            return False
        if age_ms > self._expiration_ms + self._ride_out_ms:
            self._lease.lose(f"the lease could not be renewed for {age_ms:.0f} ms: {error}", error)
            return False
        self._outage.failed(error)
        if age_ms > self._expiration_ms and not self._is_doubt_reported:
            self._is_doubt_reported = True
            log.warning(
                "the lease has expired, and is in doubt: it is lost in another %d ms, or when "
                "another broker takes it",
                self._expiration_ms + self._ride_out_ms - age_ms,
            )
        return True

    def _report_slowness(self, interval_s: float, duration_s: float) -> None:
        if duration_s * 1000 > self._period_ms:
            log.error("renewing the lease took %.0f ms", duration_s * 1000)
        late_ms = interval_s * 1000 - self._expiration_ms
        if late_ms > LATE_MS:
            log.error("the lease was renewed after %.0f ms, too late", interval_s * 1000)
        elif interval_s * 1000 - self._period_ms > LATE_MS:
            log.warning("the lease was renewed after %.0f ms", interval_s * 1000)
