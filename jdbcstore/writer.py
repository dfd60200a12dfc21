"""Group commit: many producers append, one at a time writes what all of them appended.

    producers ──accept──▶ filling ──cut──▶ ready ──take──▶ commit ──▶ durable

Batches are numbered from 0 for ever and written one after the other; a ticket is the number of the
batch that an operation went into, so "durable" is one comparison: ticket < tickets.durable.

An idle store commits at once. While a commit runs the next batch fills, so the batches grow as the
producers do, and no timer holds up anybody who waits. What nobody waits for goes at the latest
`sync_period_s` after it was appended.

Who writes: a producer that blocks and finds nobody writing writes itself, which saves it two
switches of threads; everything else is written by the writer's own thread.

The first failure of a commit is final: every waiter gets the error, nothing more is accepted.

Threads: any. `lock` guards the batches and is never held while the database is spoken to.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Final

from jdbcstore.batch import Batch
from jdbcstore.tickets import Tickets
from journal.errors import JournalClosed

if TYPE_CHECKING:
    from collections.abc import Callable

    from jdbcstore.batch import StagedEnd

__all__ = ["GroupWriter"]

# One transaction of the database takes no more: it holds up all that come behind it, and its bytes
# are held twice while they are sent.
BATCH_SIZE_MAX: Final = 8 * 1024 * 1024
BATCH_OPERATIONS_MAX: Final = 16384
# Appenders wait while more than this is accepted and not durable, in bytes; a row counts its body
# and what it costs in memory beside it.
PENDING_SIZE_MAX: Final = 64 * 1024 * 1024
OPERATION_SIZE: Final = 200


class GroupWriter:
    """The batches of one store.

    Args:
        write: makes one batch durable, or raises what ends the store.
        sync_period_s: seconds that an operation which nobody waits for may wait for company.
        name: of the thread.

    Attributes:
        lock: to be held from the check of an operation until it is accepted.
        filling: the batch that operations go to; read it under the lock, every time.
        tickets: how far all is durable, and who is to be told.
        commits: how many batches were written, for statistics.
    """

    def __init__(self, write: Callable[[Batch], None], sync_period_s: float, name: str) -> None:
        self.lock = threading.Lock()
        self.tickets = Tickets()
        self.filling = Batch(0)
        self.commits = 0
        self._write = write
        self._sync_period_s = sync_period_s
        self._work = threading.Condition(self.lock)
        self._room = threading.Condition(self.lock)
        self._ready: deque[Batch] = deque()
        # By batch: held until it is durable. Whoever waits passes through, one after the other.
        self._gates: dict[int, threading.Lock] = {}
        self._taken_size = 0  # Of the batches that are closed and not durable.
        self._wanted = 0  # Batches below are to be written as soon as can be.
        # When the first operation that nobody waits for came; 0.0: none yet.
        self._filling_since = 0.0
        self._is_busy = False
        self._is_parked = False
        self._is_stopping = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Write all that is accepted, then end the thread; after a failure only the latter."""
        with self.lock:
            self._is_stopping = True
            self._work.notify()
        if self._thread.is_alive():
            self._thread.join()

    # --- accepting, under the lock ------------------------------------------------------------

    def make_room(self) -> None:
        """Wait until there is room for one more operation; gives up the lock meanwhile.

        Raises:
            Exception: what ended the store.
        """
        while (
            self._taken_size + memory_size(self.filling) > PENDING_SIZE_MAX
            and self.tickets.error is None
        ):
            self._want(self.filling.number)
            self._room.wait()
        if self.tickets.error is not None:
            raise self.tickets.error

    def accept(self, *, is_wanted: bool, is_blocking: bool) -> int:
        """An operation was put into `filling`; its ticket.

        Args:
            is_wanted: it is to be durable as soon as can be.
            is_blocking: the caller goes on to wait(), and may write it itself.
        """
        batch = self.filling
        if is_wanted:
            if is_blocking:
                if self._wanted <= batch.number:
                    self._wanted = batch.number + 1
            else:
                self._want(batch.number)
        elif not self._filling_since:
            self._filling_since = time.monotonic()
            self._wake()  # To have it set its alarm.
        if batch.size > BATCH_SIZE_MAX or batch.operation_count > BATCH_OPERATIONS_MAX:
            self._cut()
        return batch.number

    def end_staged(self, end: StagedEnd) -> None:
        """Put the end of a staged transaction into a batch of ends, then accept() it."""
        if self.filling.has_other:
            self._cut()
        self.filling.end(end)

    def begin_rows(self) -> Batch:
        """The batch for anything but the end of a staged transaction."""
        if self.filling.ends:
            self._cut()
        return self.filling

    def _cut(self) -> None:
        """Close the batch that fills; it is written as soon as can be."""
        self._ready.append(self._close_filling())
        self._wake()

    def _want(self, number: int) -> None:
        if self._wanted <= number:
            self._wanted = number + 1
            self._wake()

    def _wake(self) -> None:
        if self._is_parked and not self._is_busy:
            self._work.notify()

    # --- waiting, without the lock ------------------------------------------------------------

    def want(self, ticket: int) -> None:
        """Have everything up to `ticket` written as soon as can be; does not wait."""
        with self.lock:
            self._want(ticket)

    def wait(self, ticket: int) -> None:
        """Return once everything up to `ticket` is durable; ask for it if nobody has.

        Raises:
            Exception: what ended the store.
        """
        tickets = self.tickets
        if ticket < tickets.durable:
            return
        with self.lock:
            if ticket < tickets.durable:
                return
            if tickets.error is not None:
                raise tickets.error
            if self._wanted <= ticket:
                self._wanted = ticket + 1
            batch = None if self._is_busy else self._take_due()
            if batch is not None:
                self._is_busy = True
            else:
                gate = self._gate(ticket)
        if batch is not None:
            self._commit(batch)
            if ticket >= tickets.durable:
                self.wait(ticket)
            return
        gate.acquire()
        gate.release()
        if ticket >= tickets.durable:
            assert tickets.error is not None
            raise tickets.error

    def sync(self) -> None:
        """Return once everything accepted so far is durable.

        Raises:
            Exception: what ended the store.
        """
        with self.lock:
            ticket = self.filling.number if self.filling else self.filling.number - 1
        if ticket >= 0:
            self.wait(ticket)
        if self.tickets.error is not None:
            raise self.tickets.error

    def fail(self, error: Exception) -> None:
        """The end: everybody who waits, or asks from now on, gets `error`."""
        with self.lock:
            self.tickets.fail(error)
            for gate in self._gates.values():
                gate.release()
            self._gates.clear()
            self._room.notify_all()
            self._work.notify()

    def _gate(self, ticket: int) -> threading.Lock:
        gate = self._gates.get(ticket)
        if gate is None:
            gate = self._gates[ticket] = threading.Lock()
            gate.acquire()
        return gate

    # --- writing ------------------------------------------------------------------------------

    def _take_due(self) -> Batch | None:
        """The batch that is to be written now, None when none is. Under the lock."""
        if self.tickets.error is not None:
            return None
        if self._ready:
            return self._ready.popleft()
        batch = self.filling
        if not batch:
            return None
        if (
            self._wanted > batch.number
            or self._is_stopping
            or (self._filling_since and self._seconds_left() <= 0)
        ):
            return self._close_filling()
        return None

    def _close_filling(self) -> Batch:
        batch = self.filling
        self._taken_size += memory_size(batch)
        self.filling = Batch(batch.number + 1)
        self._filling_since = 0.0
        return batch

    def _seconds_left(self) -> float:
        """Until the filling batch is due although nobody waits for it."""
        return self._filling_since + self._sync_period_s - time.monotonic()

    def _commit(self, batch: Batch) -> None:
        """Write one batch, and tell everybody. The caller has set `_is_busy`."""
        try:
            self._write(batch)
        except Exception as error:  # noqa: BLE001 - Whatever it is, those who wait must hear of it.
            self._is_busy = False
            self.fail(error)
            return
        except BaseException as interrupt:
            # Ctrl-C in the thread of a producer: nobody knows whether this batch was committed.
            self._is_busy = False
            closed = JournalClosed("interrupted while it wrote to the database")
            closed.__cause__ = interrupt
            self.fail(closed)
            raise
        with self.lock:
            self._is_busy = False
            self.commits += 1
            self._taken_size -= memory_size(batch)
            self.tickets.advance(batch.number + 1)
            gate = self._gates.pop(batch.number, None)
            self._room.notify_all()
            if self._is_parked and (self._ready or self.filling):
                self._work.notify()
        if gate is not None:
            gate.release()

    def _run(self) -> None:
        while True:
            with self.lock:
                batch = self._next_for_thread()
                if batch is None:
                    return
                self._is_busy = True
            self._commit(batch)

    def _next_for_thread(self) -> Batch | None:
        """Wait for a batch that is due; None at the end."""
        while self.tickets.error is None:
            if not self._is_busy:
                batch = self._take_due()
                if batch is not None:
                    return batch
                if self._is_stopping:
                    return None
            timeout = None
            if self._filling_since and not self._is_busy:
                timeout = max(0.0, self._seconds_left())
            self._is_parked = True
            self._work.wait(timeout)
            self._is_parked = False
        return None


def memory_size(batch: Batch) -> int:
    """What a batch takes in memory, in bytes, about."""
    return batch.size + batch.operation_count * OPERATION_SIZE
