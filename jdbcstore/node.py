"""The node manager: which node is primary, which waits as backup; four rows of a table.

    row 0  STATE      L active · F failing back · P paused · N or NULL not started
    row 1  the primary's lease
    row 2  the backup's lease: only its holder waits for the primary's
    row 3  NODE_ID    a UUID, made by the first broker, shared by the pair

    primary   start_primary():  F ─▶ primary's lease ─▶ (the broker loads) ─▶ activated(): L
              pause_primary():  P ─▶ lease given up      the backup stays where it is
              crash_primary():  lease given up, state as it was: L makes the backup take over
    backup    start_backup():   backup's lease
              await_primary():  until the state is L and the primary's lease is free: takes it
              is_awaiting_failback(): F, a primary wants its place back

A primary that asked for its place and died before it served leaves F: a backup takes over after
ABANDONED_S, where Artemis's waits for ever.

The rows are Artemis's, so that one of a pair may be a broker of Artemis's. Unlike
there, a broker that writes a state as the lease's holder proves it in the same transaction: one
that stood still while another took over cannot write `P` in the other's name.
"""

from __future__ import annotations

import enum
import errno
import logging
from typing import TYPE_CHECKING, Final, TypeVar

import sqlalchemy

from jdbcstore.errors import LeaseLost
from jdbcstore.lease import ACQUIRE_PAUSE_MAX_MS, Lease, LeaseState
from jdbcstore.node_table import DatabaseAway, NodeTable
from jdbcstore.outage import Outage
from jdbcstore.schema import BACKUP_LOCK_ROW, NODE_ID_ROW, PRIMARY_LOCK_ROW, STATE_ROW
from journal.errors import JournalClosed, JournalIOError, WrongState

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy import Connection

    from jdbcstore.database import Database

__all__ = ["NodeManager", "NodeState"]

log = logging.getLogger("jdbcstore")

Answer = TypeVar("Answer")

SETUP_ATTEMPTS: Final = 20  # JdbcSharedStateManager.MAX_SETUP_ATTEMPTS
# A primary that lives looks for a free lease each ACQUIRE_PAUSE_MAX_MS at most.
ABANDONED_S: Final = 10.0


class NodeState(enum.Enum):
    """The state in row 0; the values are those of the column."""

    ACTIVE = "L"
    FAILING_BACK = "F"
    PAUSED = "P"
    NOT_STARTED = "N"
    FIRST_TIME_START = ""
    """There is no such row; never written."""


class NodeManager:
    """One broker of a pair that shares a database.

    Args:
        database: of the broker; its options say how long leases last and how long to wait for one.
        on_lost: called once when the primary's lease is lost; the broker has to stop. A backup
            that waits writes nothing: it waits on without its lease.

    Attributes:
        primary_lease: of row 1; give it to the stores, so that it fences what they write.
        backup_lease: of row 2.
        node_id: from start() on.
        reason: why a backup waits, or has taken over.
        epoch: 0; a holder's id, made anew for each acquisition, is what fences here.

    Threads: any; one of the waiting methods at a time. A database that does not answer is asked
    again, for ever, by all that wait; what does not wait raises JournalIOError.
    """

    def __init__(
        self,
        database: Database,
        *,
        on_lost: Callable[[LeaseLost], object] | None = None,
    ) -> None:
        environment = self._environment = database.environment
        # The primary's renewals keep the connection alive that its stop needs, perhaps days later.
        self._table = NodeTable(database)
        self.primary_lease = Lease(database, PRIMARY_LOCK_ROW, table=self._table, on_lost=on_lost)
        self.backup_lease = Lease(database, BACKUP_LOCK_ROW)
        self.node_id = ""
        self.reason = ""
        self.epoch = 0
        self._is_backup = False
        self._abandoned_since_s: float | None = None
        self._pause_s = min(database.options.lock_renew_period_ms, ACQUIRE_PAUSE_MAX_MS) / 1000
        self._interrupted = environment.new_event()
        self._is_started = False
        self._clock = environment.clock
        self._ride_out_s = database.options.ride_out_ms / 1000
        columns = self._table.table.c
        state, node_id, row = columns["STATE"], columns["NODE_ID"], columns["ID"]
        table = self._table.table
        self._read_state = sqlalchemy.select(state).where(row == STATE_ROW)
        self._write_state = (
            table.update()
            .where(row == STATE_ROW)
            .values({state: sqlalchemy.bindparam("letter", type_=state.type)})
        )
        self._read_id = sqlalchemy.select(node_id).where(row == NODE_ID_ROW)
        self._set_id = (
            table.update()
            .where(row == NODE_ID_ROW, node_id.is_(None))
            .values({node_id: sqlalchemy.bindparam("new_id", type_=node_id.type)})
        )
        network_ms = database.options.network_timeout_ms
        if not 0 <= network_ms <= database.options.lock_expiration_ms:
            log.warning(
                "jdbc-network-timeout is %d ms: an answer may come after the lease has expired "
                "(jdbc-lock-expiration, %d ms)",
                network_ms,
                database.options.lock_expiration_ms,
            )

    # Life.

    def start(self) -> None:
        """Make the table where it is missing, and the node's id where there is none. Idempotent.

        A database that is away is waited for as writers wait for it, for ride_out_ms.

        Raises:
            JournalIOError: the database stays away, refuses, or has no row for the id.
            JournalClosed: interrupt() was called.
        """
        if self._is_started:
            return
        deadline = self._clock() + self._ride_out_s
        self._retry(self._table.create, deadline)
        self.node_id = self._retry(self._set_up_id, deadline)
        self._is_started = True

    def _set_up_id(self) -> str:
        """The first broker writes its id; all others read it, and none ever changes it."""
        mine = str(self._environment.time_uuid())
        for _ in range(SETUP_ATTEMPTS):
            if self._table.ask(
                lambda connection: connection.execute(self._set_id, {"new_id": mine}).rowcount == 1
            ):
                return mine
            found = self.read_node_id()
            if found is not None:
                return found
        raise JournalIOError(
            errno.ENOENT, f"no node id could be set up in row {NODE_ID_ROW}", self._table.table.name
        )

    def read_node_id(self) -> str | None:
        """The id in the table; None before anybody set one up.

        Raises:
            JournalIOError: the database fails.
        """
        found = self._table.ask(
            lambda connection: connection.execute(self._read_id).scalar_one_or_none(),
            read_only=True,
        )
        # A CHAR column comes back with blanks behind it where what stands in it is shorter.
        return None if found is None else str(found).strip() or None

    def stop(self) -> None:
        """Give both leases up; the state stays as it was. Idempotent."""
        self._is_started = False
        self.interrupt()
        self.primary_lease.release()
        self.backup_lease.release()
        self._table.close()

    def interrupt(self) -> None:
        """End whatever waits here, now or with its next call, with JournalClosed."""
        self._interrupted.set()
        self.primary_lease.interrupt()
        self.backup_lease.interrupt()

    # State.

    def read_state(self) -> NodeState:
        """What row 0 says.

        Raises:
            JournalIOError: the database fails, or the row holds an unknown letter.
        """
        return self._table.ask(self._state_row, read_only=True)

    def _state_row(self, connection: Connection) -> NodeState:
        row = connection.execute(self._read_state).one_or_none()
        if row is None:
            return NodeState.FIRST_TIME_START
        letter = (row[0] or "").strip()
        try:
            return NodeState(letter) if letter else NodeState.NOT_STARTED
        except ValueError:
            raise JournalIOError(
                errno.EBADMSG, f"unknown state {letter!r}", self._table.table.name
            ) from None

    def _set_state(
        self, state: NodeState, *, as_holder: bool, retries_conflicts: bool = False
    ) -> None:
        """Write row 0, as the holder only if the lease holds in the same transaction.

        Args:
            state: to write.
            as_holder: of the primary's lease.
            retries_conflicts: retry while another session locks the row, as before a release.

        Raises:
            LeaseLost: it does not.
            JournalIOError: the database fails, or has no such row.
        """
        if as_holder:
            # A database that is away is asked again and again: not beyond the lease's end.
            self.primary_lease.check_held()

        def write(connection: Connection) -> None:
            if as_holder:
                self.primary_lease.fence(connection)
            if connection.execute(self._write_state, {"letter": state.value}).rowcount != 1:
                raise JournalIOError(
                    errno.ENOENT, f"no row {STATE_ROW} to write a state to", self._table.table.name
                )

        (self._table.ask_despite_conflicts if retries_conflicts else self._table.ask)(write)

    def is_awaiting_failback(self) -> bool:
        """Whether a primary has asked for its place back: the state is F.

        Raises:
            JournalIOError: the database fails.
        """
        return self.read_state() is NodeState.FAILING_BACK

    def is_other_waiting(self) -> bool:
        """Whether another broker would serve if the active one stopped: a backup, or a primary.

        Raises:
            JournalIOError: the database fails.
        """
        return self.backup_lease.is_held() or self.is_awaiting_failback()

    def is_primary_active(self) -> bool:
        """Whether anybody holds the primary's lease.

        Raises:
            JournalIOError: the database fails.
        """
        return self.primary_lease.is_held()

    # The primary.

    def start_primary(
        self, timeout_ms: int | None = None, *, on_wait: Callable[[], object] | None = None
    ) -> None:
        """Ask for the place (F) and wait for the primary's lease, which is renewed from then on.

        Args:
            timeout_ms: milliseconds to wait; -1 for ever, 0 tries once; None takes
                jdbc-lock-acquisition-timeout.
            on_wait: called before each pause, while somebody else is primary.

        Raises:
            JournalLocked: somebody else is primary when the time is over.
            JournalClosed: interrupt() was called.
            JournalIOError: the database refuses.
        """
        self._check_started()
        self._is_backup = False
        self._retry(lambda: self._set_state(NodeState.FAILING_BACK, as_holder=False))

        def wait() -> None:
            self._ask_again()
            if on_wait is not None:
                on_wait()

        self.primary_lease.acquire(timeout_ms, on_wait=wait)

    def _ask_again(self) -> None:
        """Write F once more if a backup that was about to activate has written L over it."""
        if self.read_state() is NodeState.ACTIVE:
            self._set_state(NodeState.FAILING_BACK, as_holder=False)

    def activated(self) -> None:
        """Say that the broker has loaded and serves (L): from now on a backup may take over.

        A primary that has asked a backup for its place meanwhile is not overheard.

        Raises:
            LeaseLost: the lease ended while the broker loaded.
            JournalClosed: interrupt() was called.
            JournalIOError: the database refuses.
        """
        self._check_started()
        if self._is_backup and self._retry(self.is_awaiting_failback):
            return
        self._retry(lambda: self._set_state(NodeState.ACTIVE, as_holder=True))

    def pause_primary(self) -> None:
        """Give the place up in good order (P): no backup takes over.

        Raises:
            LeaseLost: somebody else has the place; nothing was changed.
            JournalIOError: the database fails; the lease is still held.
        """
        self._check_started()
        self._set_state(NodeState.PAUSED, as_holder=True, retries_conflicts=True)
        self.primary_lease.release()

    def crash_primary(self) -> None:
        """Give the lease up and leave the state: a backup takes over if it is L."""
        self.primary_lease.release()

    def promote(self) -> None:
        """Have the backup that waits take over, also from a primary that stopped in good order.

        Not of a node that runs: it takes the primary's lease for a moment.

        Raises:
            JournalLocked: somebody is primary.
            JournalIOError: the database fails.
        """
        try:
            self.primary_lease.acquire(0)
            self._set_state(NodeState.ACTIVE, as_holder=True)
        finally:
            self.primary_lease.release()
            self._table.close()

    # The backup.

    def start_backup(self, timeout_ms: int | None = None) -> None:
        """Wait for the backup's lease, which is renewed from then on.

        Args:
            timeout_ms: as for start_primary().

        Raises:
            JournalLocked: there is another backup when the time is over.
            JournalClosed: interrupt() was called.
            JournalIOError: the database refuses.
        """
        self._check_started()
        self._is_backup = True
        self.backup_lease.acquire(timeout_ms)

    def await_primary(self) -> None:
        """Wait until the primary is gone while it was active, and take its lease.

        The state is looked at again while the lease is held: a primary that paused, or that asks
        for its place, gets it. A backup's lease that was lost, as in a long outage, is waited for
        again.

        Raises:
            JournalClosed: interrupt() was called.
            JournalIOError: the database refuses.
        """
        self._check_started()
        outage = Outage("cannot look for the primary", clock=self._clock)
        told: NodeState | None = None
        self._abandoned_since_s = None
        while True:
            try:
                state = self.read_state()
                outage.ended()
                is_due = state is NodeState.ACTIVE or self._is_abandoned(state)
                if is_due and self._activate(state):
                    self.reason = f"the primary's state is {state.name}, and its lease is free"
                    return
                if state is not told:
                    told = state
                    self.reason = f"the primary's state is {state.name}"
                    log.info("waiting as a backup: the primary's state is %s", state.name)
            except DatabaseAway as error:
                outage.failed(error)
            if self.backup_lease.state is LeaseState.LOST:
                # Perhaps another backup waits now, and goes first: this one waits on behind it.
                self.reason = "the backup's lease was lost, and is waited for again"
                self.backup_lease.acquire(-1)
                told = None
            self._pause()

    def _is_abandoned(self, state: NodeState) -> bool:
        """Whether a primary asked for its place, and has not taken the free lease for long."""
        if state is not NodeState.FAILING_BACK or self.is_primary_active():
            self._abandoned_since_s = None
            return False
        now_s = self._clock()
        if self._abandoned_since_s is None:
            self._abandoned_since_s = now_s
        return now_s - self._abandoned_since_s >= ABANDONED_S

    def _activate(self, state: NodeState) -> bool:
        """Take the primary's lease; False if it is held, or its state has changed.

        From then on the state is L, and an F is a new one.

        Raises:
            DatabaseAway: whether the lease was taken is not known; the next call finds out.
        """
        if not self.primary_lease.try_acquire():
            return False
        try:
            self._table.ask(lambda connection: self._check_state(connection, state))
        except DatabaseAway as error:
            log.warning("cannot read the state, giving the lease back: %s", error)
        except LeaseLost as error:
            log.debug("not activated: %s", error)
        else:
            return True
        self.primary_lease.release()
        return False

    def _check_state(self, connection: Connection, expected: NodeState) -> None:
        """In one transaction: the lease is ours and unexpired, and the state as it was; now L."""
        self.primary_lease.fence(connection)
        state = self._state_row(connection)
        if state is not expected:
            raise LeaseLost(f"the primary's state is {state.name}")
        if state is not NodeState.ACTIVE:
            connection.execute(self._write_state, {"letter": NodeState.ACTIVE.value})

    @property
    def last_sign_ms(self) -> int | None:
        """When who had the primary's lease before renewed it last; see Lease."""
        return self.primary_lease.last_sign_ms

    def check(self) -> bool:
        """Whether the primary's lease is in doubt; for answers to what wrote nothing.

        Raises:
            LeaseLost: it is lost.
        """
        return self.primary_lease.is_in_doubt()

    def proof_age_s(self) -> float:
        """Give the seconds since the primary's lease was renewed last."""
        return self.primary_lease.proof_age_s

    def release_backup(self) -> None:
        """Give the backup's lease up, so that another backup may wait. Idempotent."""
        self.backup_lease.release()

    def await_active(self) -> None:
        """Wait until somebody says that he is active (L).

        Raises:
            JournalClosed: interrupt() was called.
            JournalIOError: the database refuses.
        """
        self._check_started()
        while self._retry(self.read_state) is not NodeState.ACTIVE:
            self._pause()

    # Waiting.

    def _check_started(self) -> None:
        if not self._is_started:
            raise WrongState("the node manager is not started")

    def _retry(self, work: Callable[[], Answer], deadline: float | None = None) -> Answer:
        """Do something again and again until the database answers.

        Raises:
            DatabaseAway: it did not until the deadline.
        """
        outage = Outage("the database is away", clock=self._clock)
        while True:
            try:
                answer = work()
            except DatabaseAway as error:
                if deadline is not None and self._clock() >= deadline:
                    raise
                outage.failed(error)
            else:
                outage.ended()
                return answer
            self._pause()

    def _pause(self) -> None:
        if self._interrupted.wait(self._pause_s):
            self._interrupted.clear()
            raise JournalClosed("the node manager was interrupted")
