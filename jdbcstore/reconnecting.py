"""Survives outages of the database: a batch is retried until it is committed, or time is up.

What can happen to a commit, and what is done (errors.classify tells which it was):

- lost (refused, reset, terminated, timed out): it is unknown whether it was committed. The batch
  is looked for in the table over a new connection, once the fence is held and so nothing of ours
  runs there any more; there: acknowledged, not there: written again.
- conflict (deadlock, serialization, a lock not granted, a statement that was cancelled): the same.
  It should have been rolled back. But a cancel of our statements may have hit the ROLLBACK, or the
  COMMIT after it was done (MariaDB then reports an error for it).
- anything else: the store ends.

Only the holder of the lease may go on: the fence is part of every transaction that writes, and a
load asks for the lease before it reads on.
"""

from __future__ import annotations

import errno
import logging
import time
from typing import TYPE_CHECKING, Final, TypeVar

from jdbcstore.batch import Batch
from jdbcstore.errors import Fault, LeaseLost, one_line
from journal.errors import JournalError, JournalIOError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from jdbcstore.record_tables.base import RecordTable
    from jdbcstore.rows import Row

__all__ = ["ReconnectingWriter", "as_io_error"]

Answer = TypeVar("Answer")

log = logging.getLogger("jdbcstore")

FIRST_PAUSE_S: Final = 0.02
PAUSE_MAX_S: Final = 1.0


class ReconnectingWriter:
    """Writes batches to a table through outages.

    Args:
        table: where to.
        ride_out_s: seconds that one batch may take in all, from its first failure.
        fault_of: tells what an exception of the driver means.
        renew: renews a lease that the fence found expired; False when somebody else had it since.
        sleep, clock: for tests.

    Attributes:
        outages: how many connections were lost.
        read_back: how many batches turned out to be there after an unknown outcome.
    """

    def __init__(
        self,
        table: RecordTable,
        ride_out_s: float,
        fault_of: Callable[[Exception], Fault],
        renew: Callable[[], bool] | None = None,
        *,
        sleep: Callable[[float], object] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.table = table
        self.outages = 0
        self.read_back = 0
        self._ride_out_s = ride_out_s
        self._fault_of = fault_of
        self._renew = renew
        self._sleep = sleep
        self._clock = clock

    def write(self, batch: Batch) -> None:
        """Return once the batch is committed.

        Raises:
            JournalIOError: the database refuses it, or the time is up.
            LeaseLost: somebody else has the store now.
        """
        if batch.is_void:
            return  # All of it was undone before it was written.
        try:
            self.table.write(batch)
        except Exception as error:  # noqa: BLE001 - Drivers have no common base; fault_of() decides.
            self._ride_out(lambda: self.table.write(batch), batch, error)

    def run(self, work: Callable[[], Answer]) -> Answer:
        """Do something else that may be done twice, through outages. Errors as for write()."""
        answers: list[Answer] = []
        try:
            return work()
        except Exception as error:  # noqa: BLE001 - As above.
            self._ride_out(lambda: answers.append(work()), None, error)
            return answers[-1]

    def rows(self) -> Iterator[Sequence[Row]]:
        """All rows of the table by seq, each once, some at a time, through outages.

        The time that an outage may take begins anew with each page that is read.

        Raises:
            JournalIOError: the database fails, or stays away.
            LeaseLost: somebody else has had the store, and may have changed what was read.
        """
        after: int | None = None
        pages = self.table.scan()
        while True:
            try:
                rows = next(pages, None)
            except Exception as error:  # noqa: BLE001 - As above.
                rows, pages = self._read_on(after, error)
            if rows is None:
                return
            after = rows[-1][6]
            yield rows

    def _read_on(
        self, after: int | None, error: Exception
    ) -> tuple[Sequence[Row] | None, Iterator[Sequence[Row]]]:
        """The next page behind an outage, and what comes behind that."""
        found: list[tuple[Sequence[Row] | None, Iterator[Sequence[Row]]]] = []

        def read() -> None:
            # Whatever failed: do not go on from a half-read answer.
            self.table.disconnect()
            self.table.connect()
            self.table.holds(Batch())  # For its fence: no other broker wrote meanwhile.
            pages = self.table.scan(after)
            found.append((next(pages, None), pages))

        self._ride_out(read, None, error)
        return found[-1]

    def _ride_out(self, work: Callable[[], None], batch: Batch | None, error: Exception) -> None:
        deadline = self._clock() + self._ride_out_s
        pause_s = FIRST_PAUSE_S
        is_unknown = False
        while True:
            is_unknown = self._classify(error, is_unknown)
            if self._clock() + pause_s > deadline:
                raise as_io_error(error) from error
            self._sleep(pause_s)
            pause_s = min(pause_s * 2, PAUSE_MAX_S)
            try:
                self.table.connect()
                if is_unknown and batch is not None and self.table.holds(batch):
                    self.read_back += 1
                    log.warning("the database is back: the last batch is committed")
                    return
                is_unknown = False
                work()
            except Exception as again:  # noqa: BLE001 - As above.
                error = again
            else:
                log.warning("the database is back: the request succeeded")
                return

    def _classify(self, error: Exception, is_unknown: bool) -> bool:
        """Whether the outcome of the last commit is unknown; raises if retrying cannot help."""
        if isinstance(error, LeaseLost):
            # The fence said so, hence nothing was written. If no other took it meanwhile, go on.
            if self._renew is None or not self._is_renewed():
                raise error
            return is_unknown
        if isinstance(error, JournalError):
            raise error
        fault = self._fault_of(error)
        if fault is Fault.FATAL:
            raise as_io_error(error) from error
        if fault is Fault.LOST and not is_unknown:
            self.outages += 1
            log.warning("the database is not available, retrying: %s", one_line(error))
        self.table.disconnect()
        return True

    def _is_renewed(self) -> bool:
        assert self._renew is not None
        try:
            return self._renew()
        except JournalIOError as error:
            log.warning("the lease is in doubt: %s", error)
            return True  # Asked again by the fence of the next try.


def as_io_error(error: Exception) -> JournalIOError:
    """A driver's error as the store's."""
    return JournalIOError(errno.EIO, f"the database failed: {one_line(error)}")
