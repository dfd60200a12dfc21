"""A lease on the tables: taken, kept, proved and given up by the database's clock alone.

    free ──acquire()──▶ held ──not renewed in time──▶ in doubt ──renewed, not taken──▶ held
                         │                               │
                         └────────── another broker took it, or ride_out_ms are over ──▶ lost

A thread of its own renews a held lease (lease_renewal.py) over a connection of its own. When the
database does not answer it goes on trying: past its expiration the lease is *in doubt*
(`is_certain` is false), and only the database can tell. If no other broker took it, it is
renewed. If another one did, or if the outage exceeds `ride_out_ms`, it is *lost*, for good.

No promise about writing rests on this thread, or on any clock of this machine: each transaction
that writes proves the lease itself (`fence`, `fence_statement`). A holder that stood still past
its expiration meets that fence, whatever it believes.

A holder's id is made anew for each acquisition and never used again: as long as the row has it,
no other broker had the lease since. That is the fencing token.
"""

from __future__ import annotations

import enum
import logging
from typing import TYPE_CHECKING, Final

from jdbcstore.clocks import ClockSkew
from jdbcstore.errors import LeaseLost
from jdbcstore.lease_renewal import LeaseRenewal
from jdbcstore.lease_row import HOLDER_ID_MAX, LeaseRow
from jdbcstore.node_table import DatabaseAway, NodeTable
from jdbcstore.outage import Outage
from jdbcstore.schema import PRIMARY_LOCK_ROW
from journal.errors import JournalClosed, JournalIOError, JournalLocked, OptionError, WrongState

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy import Connection

    from jdbcstore.database import Database
    from jdbcstore.lease_row import Fence, LeaseView

__all__ = ["Lease", "LeaseState"]

log = logging.getLogger("jdbcstore")

# JdbcNodeManager.MAX_PAUSE_MILLIS: between two tries for a lease that another one holds.
ACQUIRE_PAUSE_MAX_MS: Final = 2000


class LeaseState(enum.Enum):
    """What this process knows of its lease; the database has the last word."""

    FREE = "free"
    HELD = "held"
    LOST = "lost"


class Lease:
    """One row of the node manager's table, held by at most one process at a time.

    Args:
        database: of the broker; its options say how long the lease lasts and how it is renewed,
            its environment what clocks and threads there are.
        row_id: PRIMARY_LOCK_ROW or BACKUP_LOCK_ROW.
        holder_id: what stands in HOLDER_ID; None makes an id for each acquisition. A given one
            must never be another process's, nor be used again after it was lost.
        table: spoken to over the same connection by others; None opens one for this lease alone.
        on_lost: called once, from the renewing thread, when the lease is lost.

    Attributes:
        holder_id: of the present or the last acquisition.
        fenced_writes: transactions that the fence refused.
        renewals: how often the lease was renewed.
        last_sign_ms: when who had it before renewed it last, ms since 1970 by this machine's clock;
            None where it was given back before this object looked for it.

    Threads: any. Raises JournalIOError when the database fails for good.
    """

    def __init__(
        self,
        database: Database,
        row_id: int = PRIMARY_LOCK_ROW,
        *,
        holder_id: str | None = None,
        table: NodeTable | None = None,
        on_lost: Callable[[LeaseLost], object] | None = None,
    ) -> None:
        options = self._options = database.options
        environment = self._environment = database.environment
        if holder_id is not None and not 0 < len(holder_id) <= HOLDER_ID_MAX:
            raise OptionError(
                f"holder id of {len(holder_id)} characters; 1 to {HOLDER_ID_MAX} fit the column"
            )
        self.holder_id = holder_id or ""
        self.fenced_writes = 0
        self.renewals = 0
        self.last_sign_ms: int | None = None
        self._seen_sign_ms: int | None = None  # By tries that failed, or the one that is made.
        self._given_id = holder_id
        self._on_lost = on_lost
        self._clock = environment.clock
        self._wall_clock = environment.wall_clock
        self._expiration_ms = options.lock_expiration_ms
        self._renew_period_ms = options.lock_renew_period_ms
        self._acquisition_timeout_ms = options.lock_acquisition_timeout_ms
        self._table = table or NodeTable(database)
        self._row = LeaseRow(self._table.table, database.dialect, row_id)
        self._skew = ClockSkew(
            lambda: self._table.ask(self._row.now_ms, read_only=True),
            options.allowed_time_diff_ms,
            environment.wall_clock,
        )
        self._locks_all = database.dialect.write_locks_all
        # An acquisition was sent, and its outcome is unknown.
        self._is_unknown = False
        self._acquiring = environment.new_lock()  # One acquisition of this object at a time.
        # Guards the state below; never held while the database is spoken to.
        self._lock = environment.new_lock()
        self._state = LeaseState.FREE
        self._failure: LeaseLost | None = None
        self._renewed_at = 0.0  # When the last successful renewal was sent, by clock().
        self._fence_renewed_at = 0.0
        # Of the present or the last acquisition.
        self._renewal: LeaseRenewal | None = None
        self._interrupted = environment.new_event()

    # What is known without asking.

    @property
    def state(self) -> LeaseState:
        """Free, held (perhaps in doubt), or lost."""
        with self._lock:
            return self._state

    @property
    def remaining_ms(self) -> float:
        """Milliseconds that the lease lasts for certain, as this process knows; 0 when in doubt.

        Never more than the database would say: it counts from when the last renewal was sent.
        """
        with self._lock:
            if self._state is not LeaseState.HELD:
                return 0.0
            return max(0.0, self._expiration_ms - (self._clock() - self._renewed_at) * 1000)

    @property
    def proof_age_s(self) -> float:
        """Seconds since the last renewal that succeeded was sent; 0 before the first."""
        with self._lock:
            return self._clock() - self._renewed_at if self._renewed_at else 0.0

    @property
    def age_ms(self) -> float:
        """Milliseconds since the last renewal that succeeded was sent."""
        with self._lock:
            return (self._clock() - self._renewed_at) * 1000

    @property
    def is_certain(self) -> bool:
        """Whether the lease is held and has not expired, as far as this process knows."""
        return self.remaining_ms > 0

    @property
    def skew_ms(self) -> float | None:
        """The database's clock less this machine's, at the last renewal; None before the first."""
        return self._skew.last_ms

    # What the database says.

    def look(self) -> LeaseView:
        """What the row says now.

        Raises:
            JournalIOError: the database fails, or has no such row.
        """
        return self._table.ask(self._row.view, read_only=True)

    def is_held(self) -> bool:
        """Whether anybody has the lease and it has not expired."""
        return self.look().is_held

    def is_held_by_me(self) -> bool:
        """Whether this object has the lease and it has not expired."""
        view = self.look()
        return view.is_held and view.holder == self.holder_id

    # Taking it.

    def create_table(self) -> None:
        """Make the node manager's table, if it is missing; any number of brokers may do so at once.

        Raises:
            JournalIOError: the database fails.
        """
        self._table.create()

    def try_acquire(self) -> bool:
        """Take the lease if it is free or has expired, and renew it from now on.

        Not re-entrant: False if this object holds it already.

        Raises:
            DatabaseAway: whether the lease was taken is not known; the next call finds out.
            JournalIOError: the database refuses.
        """
        with self._acquiring:
            if self.state is LeaseState.HELD:
                return False
            self._see_sign(self._table.ask(self._row.look, read_only=True))
            sent_at = self._clock()
            if not self._take():
                return False
            self.last_sign_ms, self._seen_sign_ms = self._seen_sign_ms, None
            renewal = LeaseRenewal(self, self._options, self._environment)
            with self._lock:
                self._state = LeaseState.HELD
                self._failure = None
                self._renewed_at = self._fence_renewed_at = sent_at
                self._renewal = renewal
            self._skew.measure()
            renewal.start(f"lease-{self._row.row_id}")
            return True

    def _see_sign(self, view: LeaseView | None) -> None:
        """Note when a row that is held, or has expired, was renewed last."""
        if view is not None and view.expires_ms is not None:
            age_ms = view.now_ms - (view.expires_ms - self._expiration_ms)
            self._seen_sign_ms = int(self._wall_clock() * 1000) - age_ms

    def _take(self) -> bool:
        if self._is_unknown and self._table.ask(self._renew_row):
            self._is_unknown = False  # The last call had taken it.
            return True
        if not self._is_unknown:
            self.holder_id = self._given_id or str(self._environment.random_uuid())
        self._is_unknown = True
        try:
            taken = self._table.ask(self._acquire_row)
        except DatabaseAway as error:
            if error.is_conflict:
                self._end_lockers()
            raise
        self._is_unknown = False
        return taken

    def _end_lockers(self) -> None:
        """The row could not be had: see to it that no former holder keeps it for ever."""
        try:
            ended = self._table.ask(self._row.end_lockers)
        except JournalIOError as error:
            log.warning("cannot end the sessions that keep an expired lease locked: %s", error)
            return
        if ended:
            log.warning("ended %d session(s) that kept an expired lease locked", ended)

    def acquire(
        self, timeout_ms: int | None = None, *, on_wait: Callable[[], object] | None = None
    ) -> None:
        """Take the lease: wait for its holder, and retry when the database fails.

        Args:
            timeout_ms: milliseconds to wait; -1 for ever, 0 tries once; None takes
                jdbc-lock-acquisition-timeout.
            on_wait: called before each pause; may raise DatabaseAway.

        Raises:
            JournalLocked: somebody else has it when the time is over.
            JournalIOError: the database did not answer until then, or refuses.
            JournalClosed: interrupt() was called.
            WrongState: this object holds it already.
        """
        if self.state is LeaseState.HELD:
            raise WrongState("this lease is held already")
        if timeout_ms is None:
            timeout_ms = self._acquisition_timeout_ms
        deadline = self._clock() + timeout_ms / 1000
        pause_s = min(self._renew_period_ms, ACQUIRE_PAUSE_MAX_MS) / 1000
        outage = Outage("cannot take the lease", clock=self._clock)
        told: str | None = None
        while True:
            problem: DatabaseAway | None = None
            try:
                is_taken = self.try_acquire()
                outage.ended()
                if is_taken:
                    return
                if timeout_ms:
                    told = self._report_holder(told)
                if on_wait is not None:
                    on_wait()
            except DatabaseAway as error:
                problem = error
                outage.failed(error)
            remaining_s = deadline - self._clock()
            if timeout_ms >= 0 and remaining_s <= 0:
                raise problem or self._locked()
            wait_s = pause_s if timeout_ms < 0 else min(pause_s, remaining_s)
            if self._interrupted.wait(wait_s):
                self._interrupted.clear()
                raise JournalClosed("the wait for the lease was interrupted")

    def interrupt(self) -> None:
        """End a wait in acquire(), of now or of the next call, with JournalClosed."""
        self._interrupted.set()

    def _report_holder(self, told: str | None) -> str | None:
        """Log whose lease is waited for, once a holder; the holder."""
        view = self.look()
        if view.is_held and view.holder != told:
            log.info(
                "waiting for the lease held by %s (row %d of %s); `journal locks` shows it",
                view.holder,
                self._row.row_id,
                self._table.table.name,
            )
        return view.holder if view.is_held else told

    def _locked(self) -> JournalLocked:
        view = self.look()
        who = f"{view.holder!r} for another {view.remaining_ms} ms" if view.is_held else "no broker"
        return JournalLocked(
            f"{self._table.table.name} row {self._row.row_id} is held by {who}; "
            "`journal locks` shows it, and breaks it"
        )

    # Keeping it.

    def renew(self) -> bool:
        """Renew now; False, and lost for good, if somebody else had the lease meanwhile.

        True after the lease had expired means that no other broker had it: nothing changed.

        Raises:
            DatabaseAway: perhaps it was renewed, perhaps not.
            JournalIOError: the database refuses.
        """
        with self._lock:
            if self._state is not LeaseState.HELD:
                return False
        sent_at = self._clock()
        try:
            renewed = self._table.ask(self._renew_row)
        except DatabaseAway:
            if not self._locks_all or not self._is_renewed_by_fence():
                raise
            return True
        if not renewed:
            self.lose(f"another process has had the lease of row {self._row.row_id}, or broke it")
            return False
        with self._lock:
            self._renewed_at = max(self._renewed_at, sent_at)
            self.renewals += 1
        self._skew.measure()
        return True

    def _is_renewed_by_fence(self) -> bool:
        """Whether the row says that the lease goes on, though it could not be written to."""
        sent_at = self._clock()
        view = self._table.ask(self._row.view, read_only=True)
        if view.holder != self.holder_id or not view.is_held:
            return False
        with self._lock:
            self._renewed_at = sent_at - (self._expiration_ms - view.remaining_ms) / 1000
        return True

    def lose(self, why: str, cause: Exception | None = None) -> None:
        """It is lost for good: log it, and call `on_lost`. Idempotent."""
        failure = LeaseLost(why)
        failure.__cause__ = cause
        with self._lock:
            if self._state is not LeaseState.HELD:
                return
            self._state = LeaseState.LOST
            self._failure = failure
        if self._renewal is not None:
            self._renewal.end()
        log.error("lease lost: %s", why)
        if self._on_lost is not None:
            try:
                self._on_lost(failure)
            except Exception:
                log.exception("the callback for the lost lease failed")

    # Proving it.

    def check_held(self) -> None:
        """See that it is not known to be lost; the database is not asked.

        Raises:
            LeaseLost: it is.
            JournalClosed: it was never taken, or was given up.
        """
        with self._lock:
            if self._failure is not None:
                raise LeaseLost(str(self._failure)) from self._failure
            if self._state is not LeaseState.HELD:
                raise JournalClosed("the lease is not held")

    def is_in_doubt(self) -> bool:
        """Whether it may have expired, as far as this process knows; the database is not asked.

        False also once it was given up: there is nothing to prove then.

        Raises:
            LeaseLost: it is lost.
        """
        with self._lock:
            if self._failure is not None:
                raise LeaseLost(str(self._failure)) from self._failure
            age_s = self._clock() - self._renewed_at
            return self._state is LeaseState.HELD and age_s * 1000 >= self._expiration_ms

    def fence_statement(self, *, may_raise: bool = True) -> Fence:
        """The statement that every transaction of the holder begins with, see Fence.

        Args:
            may_raise: where the database can, let it end the transaction by itself.

        Where a writer locks the whole database (SQLite), transactions that follow each other
        closely could keep the renewing thread out for ever; there the fence renews the lease
        itself, twice in a renew period.

        Raises:
            LeaseLost: it is known to be lost.
            JournalClosed: it was never taken, or was given up.
        """
        self.check_held()
        if self._locks_all:
            with self._lock:
                now = self._clock()
                if (now - self._fence_renewed_at) * 2000 > self._renew_period_ms:
                    self._fence_renewed_at = now
                    return self._row.renewing_fence(self.holder_id, self._expiration_ms)
        return self._row.fence(self.holder_id, may_raise=may_raise)

    def fence(self, connection: Connection) -> None:
        """Prove the lease inside the connection's transaction, and lock its row until the end.

        On SQLite the transaction must have begun by BEGIN IMMEDIATE, as those of
        `Database.connect()` do.

        Raises:
            LeaseLost: the database says that it is not held, or has expired. `renew()` tells
                whether anybody had it since; if not, the transaction may be tried again.
            sqlalchemy.exc.DBAPIError: the database fails, for `errors.classify`.
        """
        fence = self.fence_statement(may_raise=False)
        result = connection.exec_driver_sql(fence.sql, fence.parameters)
        if not (result.fetchone() is not None if fence.returns_row else result.rowcount == 1):
            raise self.fenced()

    def fenced(self) -> LeaseLost:
        """Count a transaction that the fence refused; return the error for its waiters."""
        with self._lock:
            self.fenced_writes += 1
        return LeaseLost("the lease has expired, or somebody else has it: nothing was written")

    # Giving it up.

    def release(self) -> bool:
        """Stop renewing and let the lease be free; False if the database did not confirm it.

        A lease that is not released ends by itself when it expires. Idempotent.
        """
        if self._renewal is not None:
            self._renewal.stop()
        with self._lock:
            may_be_held = self._state is LeaseState.HELD or self._is_unknown
            if self._state is LeaseState.HELD:
                self._state = LeaseState.FREE
        self._is_unknown = False
        released = False
        if may_be_held:
            try:
                released = self._table.ask_despite_conflicts(self._release_row)
            except JournalIOError as error:
                log.warning("the lease was not released, and ends by itself: %s", error)
        self._table.close()
        return released

    # Speaking to the database.

    def _acquire_row(self, connection: Connection) -> bool:
        return self._row.try_acquire(connection, self.holder_id, self._expiration_ms)

    def _renew_row(self, connection: Connection) -> bool:
        return self._row.renew(connection, self.holder_id, self._expiration_ms)

    def _release_row(self, connection: Connection) -> bool:
        return self._row.release(connection, self.holder_id)
