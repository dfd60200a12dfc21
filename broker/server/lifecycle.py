"""How far a broker's start, or its stop, has come; the one place that says so.

    STOPPED ─▶ STARTING ─▶ STARTED ─▶ STOPPING ─▶ STOPPED

    step one    web port, log, the lock asked for     STARTING; a backup that waits is STARTED
    step two    stores loaded, recovered, acceptors   STARTED and active: clients may come

States and their names are Artemis's (ActiveMQServer.SERVER_STATE). As there, a backup is started as
soon as it waits for its primary, and becomes active later.

What operators of a pair watch is the HA state, of one broker:

    STOPPED ─▶ WAITING, for its place, or as a backup
               │  ▲                            any ─▶ FAILED
               ▼  └───── FAILING_BACK ◀───┐
               ACTIVATING ─────────────▶ ACTIVE ─▶ STOPPING ─▶ STOPPED
                                         ▲  │
                                         │  ▼
                                       IN_DOUBT, whether the store is its own

Each step of it is a line in the log with its reason, and counted.

Threads: the event loop's; `fail()` and the properties any.
"""

from __future__ import annotations

import logging
from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple

from broker.errors import BrokerError, ErrorCode
from journal.errors import JournalError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["HaState", "Lifecycle", "ServerState", "Step"]

log = logging.getLogger("broker")

_STOPPING: Final = "stopping"
_IN_DOUBT: Final = "its lease has expired, and the database does not answer"


class ServerState(Enum):
    """What a broker does with itself; the names are what management tells."""

    STOPPED = "stopped"
    STARTING = "starting"
    STARTED = "started"
    STOPPING = "stopping"


class HaState(Enum):
    """What a broker is to the other one of its pair; the names are what metrics tell."""

    STOPPED = "stopped"
    WAITING = "waiting"
    ACTIVATING = "activating"
    ACTIVE = "active"
    IN_DOUBT = "in-doubt"
    FAILING_BACK = "failing-back"
    STOPPING = "stopping"
    FAILED = "failed"


class Step(NamedTuple):
    """One step of the HA state.

    Attributes:
        state: that it led to.
        since_ms: when, ms since 1970.
        reason: why.
    """

    state: HaState
    since_ms: int
    reason: str


def _no_clock() -> int:
    return 0


def _not_told(step: Step) -> None:
    """Of a broker without a pair."""


class Lifecycle:
    """See the module's text.

    Args:
        is_backup: of a pair on one store.
        is_pair: it is one of a pair: each step of the HA state is a line in the log.
        now_ms: wall clock, ms since 1970.
        on_step: called with each step of a pair's HA state, from the thread that made it.

    Attributes:
        state: what it does.
        failure: what ended the storage, the lease on it, or the broker itself.
        ha_state: see the module's text.
        ha_since_ms: since when, ms since 1970; 0 before the first.
        ha_transitions: how often it changed.
        takeover_ms: from the last time that the store became its own until clients might come;
            -1 before.
        last_sign_ms: when the owner of the store before was alive last, ms since 1970; None where
            that is not known.
        outage_ms: from then, or from the last doubt, until clients might come again, last time; -1
            before, or not known.
    """

    def __init__(
        self,
        *,
        is_backup: bool = False,
        is_pair: bool = False,
        now_ms: Callable[[], int] = _no_clock,
        on_step: Callable[[Step], object] = _not_told,
    ) -> None:
        self.ha_state = HaState.STOPPED
        self.ha_since_ms = 0
        self.ha_transitions = 0
        self.takeover_ms = -1
        self.last_sign_ms: int | None = None
        self.outage_ms = -1
        self._now_ms = now_ms
        self._level = logging.INFO if is_pair else logging.DEBUG
        self._on_step = on_step if is_pair else _not_told
        self.state = ServerState.STOPPED
        self.failure: Exception | None = None
        self._is_a_backup = is_backup
        self._is_backup = is_backup
        self._is_activated = False
        self._step = "not started"

    # --- what is asked ------------------------------------------------------------------------

    @property
    def is_started(self) -> bool:
        """Whether it runs, as Artemis's isStarted: a backup that waits does as well."""
        return self.state is ServerState.STARTED and self.failure is None

    @property
    def is_active(self) -> bool:
        """Whether clients may come; while it stops, as long as those that are there may stay."""
        return self._is_activated and self.failure is None

    @property
    def is_loaded(self) -> bool:
        """Whether its addresses and queues are there, all of them; also if something has failed."""
        return self._is_activated

    @property
    def is_backup(self) -> bool:
        """Whether it is a backup that has not taken over."""
        return self._is_backup

    @property
    def is_stopping(self) -> bool:
        """Whether stop() was called and has not ended."""
        return self.state is ServerState.STOPPING

    @property
    def is_in_doubt(self) -> bool:
        """Whether another broker may have the store: it takes no clients for now."""
        return self.ha_state is HaState.IN_DOUBT

    @property
    def not_ready(self) -> str | None:
        """Why clients should not come now, in a few words; None if they may."""
        if self.failure is not None:
            return str(self.failure)
        if self.is_stopping:
            return _STOPPING
        if self.is_in_doubt:
            return _IN_DOUBT
        is_ready = self._is_activated and self.ha_state is not HaState.ACTIVATING
        return None if is_ready else self._step

    def check_starting(self) -> None:
        """See that nothing has failed since the start began.

        Raises:
            JournalError: the storage, or the lease on it.
            BrokerError: the broker itself.
        """
        failure = self.failure
        if isinstance(failure, JournalError | BrokerError):
            raise failure
        if failure is not None:
            raise BrokerError(ErrorCode.INTERNAL_ERROR, f"the start failed: {failure!r}")

    # --- what happens -------------------------------------------------------------------------

    def _enter(self, state: HaState, reason: str) -> None:
        if state is self.ha_state:
            return
        old, self.ha_state = self.ha_state, state
        self.ha_since_ms = self._now_ms()
        self.ha_transitions += 1
        role = "backup" if self._is_a_backup else "primary"
        log.log(self._level, "%s: %s -> %s: %s", role, old.value, state.value, reason)
        self._on_step(Step(state, self.ha_since_ms, reason))

    def starting(self) -> None:
        """start() was called: what an earlier run ended with counts no more."""
        self.failure = None
        self.begin("starting")

    def begin(self, step: str) -> None:
        """Not active, and on the way there, by this step.

        Args:
            step: what is done or waited for, for those who ask why it is not ready.
        """
        self.state = ServerState.STARTING
        self._is_backup = self._is_a_backup
        self._step = step

    def waiting_for_lock(self) -> None:
        """Another broker may have the store; for a backup this is its work."""
        self._step = "waiting for the lock on its store"
        if self._is_backup:
            self.state = ServerState.STARTED
        self._enter(HaState.WAITING, self._step)

    def loading(self, reason: str = "") -> None:
        """The store is its own: a backup has taken over.

        Args:
            reason: why it could.
        """
        self._is_backup = False
        self._enter(HaState.ACTIVATING, reason or "the lock was free")
        self._step = "loading its data"

    def recovering(self) -> None:
        """Everything was read; queues and transactions are made of it."""
        self._step = "recovering its queues"

    def listening(self) -> None:
        """Sessions can be created; acceptors that listen follow, one by one."""
        self._step = "opening its acceptors"
        self._is_activated = True

    def activated(self) -> None:
        """Clients may come: the acceptors of all listen."""
        self.state = ServerState.STARTED
        self._is_activated = True
        if self.ha_state is HaState.ACTIVATING:
            now_ms = self._now_ms()
            self.takeover_ms = now_ms - self.ha_since_ms
            self.outage_ms = -1 if self.last_sign_ms is None else now_ms - self.last_sign_ms
        self._enter(HaState.ACTIVE, f"it serves, after {self.takeover_ms} ms of loading")

    def in_doubt(self) -> None:
        """Another broker may have the store: clients may not come or stay, until certain()."""
        self._enter(HaState.IN_DOUBT, _IN_DOUBT)

    def certain(self) -> None:
        """The store is its own yet, and clients may come again."""
        self.outage_ms = self._now_ms() - self.ha_since_ms
        self._enter(HaState.ACTIVE, f"its lease was renewed, after {self.outage_ms} ms")

    def stopping(self, reason: str = "it was told to stop") -> None:
        """It stops, or waits again; clients that are there may stay until deactivated().

        Args:
            reason: why.
        """
        self.state = ServerState.STOPPING
        if self.failure is None and self.ha_state is not HaState.FAILING_BACK:
            self._enter(HaState.STOPPING, reason)

    def failing_back(self, reason: str) -> None:
        """A primary has asked for its place back, and gets it: stopping() follows.

        Args:
            reason: why.
        """
        self._enter(HaState.FAILING_BACK, reason)

    def deactivated(self) -> None:
        """Clients may not come or stay."""
        self._is_activated = False

    def stopped(self) -> None:
        """Nothing runs any more."""
        self.state = ServerState.STOPPED
        self._is_activated = False
        self._step = "stopped"
        self._enter(HaState.STOPPED, "nothing runs any more")

    def fail(self, error: Exception) -> bool:
        """Be active no more, at once; False if something had failed before. From any thread."""
        if self.failure is not None:
            return False
        self.failure = error
        self._enter(HaState.FAILED, str(error))
        return True
