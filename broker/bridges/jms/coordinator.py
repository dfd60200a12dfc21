"""The bridge's own transaction manager: two-phase commit, with its decisions in a journal.

    end T, end S · prepare T · prepare S · decide (journal, synced) · commit T · commit S · forget

T is the branch at the target, S the one at the source. The order says by itself how far a
transaction came, even if the log is lost:

    prepared      it was                                     so
    T             not decided                                roll back
    T and S       decided or not; committed nowhere          as the log says; without it roll back
    S             committed at the target                    commit

Without the log the first and the last are certain only if both sides list all they have: see
orphans.py.

A rollback goes the other way, S before T, so that what it leaves reads the same. It is sent to both
sides even if only one has prepared: a prepare that is still on its way finds no branch.

What a bridge has left is ended by recover(). A side may say that it has no such branch (NOTA), and
have it later:

- What a lost connection carried may arrive after a rollback, and begin a branch with messages.
  The side is told again, less and less often, for SETTLED_S.
- A commit may have been done before, or the side has lost sight of a prepared branch until its
  restart. Artemis does when the connection breaks between the two phases. The decision is kept, as
  those of KEPT_MAX such transactions are.

recover() runs whenever both sides have been connected to, and again while the bridge runs, as long
as something may still turn up. What is prepared is in the lists of the brokers, and so found by any
later one. It leaves alone what is on its way (`pipelined_two_phase.py`): several transactions at
once, each in the order above, decided in the order of their batches.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final

from broker.bridges.jms.errors import (
    XA_RBBASE,
    XA_RBEND,
    XAER_NOTA,
    BridgeConfigError,
    BridgeError,
    InDoubtError,
    XaError,
)
from broker.bridges.jms.providers import BranchSession
from broker.bridges.jms.transactions import Role
from broker.model.xid import Xid
from journal.errors import JournalError, JournalFull

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from broker.bridges.jms.decision_log import DecisionLog
    from broker.bridges.jms.providers import TwoPhaseSession
    from broker.environment import Clock

__all__ = [
    "AT_ONCE",
    "BRANCHES",
    "FORMAT_ID",
    "KEPT_MAX",
    "SETTLED_S",
    "Coordinator",
    "branch",
    "commit_branches",
    "roll_back_branches",
]

log = logging.getLogger("broker.bridges")

# "QBRG": tells the transactions of bridges from those of all other transaction managers.
FORMAT_ID: Final = 0x51425247
BRANCHES: Final = {Role.SOURCE: b"S", Role.TARGET: b"T"}
# XA_HEURRB … XA_HEURMIX, XA_HEURHAZ: an operator has ended the branch.
_HEURISTIC: Final = (5, 6, 7, 8)
_HEURISTICALLY_COMMITTED: Final = 7
# What a connection carried can arrive as long as its broker has not given it up: 60 s by the
# connection-ttl of Artemis and ours.
SETTLED_S: Final = 120.0
# Recovery tells a side again what it did not know: after a second, and then at twice the age.
_AGAIN_S: Final = 1.0
# Decisions about transactions that have ended, as far as a side says: the latest of them. One lost
# connection may leave as many as were on their way, 512: those of twenty. Artemis lists them after
# its restart.
KEPT_MAX: Final = 10_240
# Transactions that recovery ends side by side, if sessions have several branches on their way.
AT_ONCE: Final = 64


def branch(role: Role, transaction: bytes) -> Xid:
    """Give the name of a branch.

    Args:
        role: whose.
        transaction: global id.
    """
    return Xid(FORMAT_ID, BRANCHES[role], transaction)


async def roll_back_branches(resources: Mapping[Role, TwoPhaseSession], transaction: bytes) -> bool:
    """Roll both branches back, the source's first; whether both were there.

    Args:
        resources: sessions of both sides.
        transaction: global id.

    Raises:
        XaError: a side refuses, for another reason than that it has no such branch.
    """
    were_there = [
        await _end(resources[role], branch(role, transaction), is_commit=False)
        for role in (Role.SOURCE, Role.TARGET)
    ]
    return all(were_there)


async def commit_branches(resources: Mapping[Role, TwoPhaseSession], transaction: bytes) -> bool:
    """Commit both branches, the target's first; whether both were there.

    Args:
        resources: sessions of both sides.
        transaction: global id, decided.

    Raises:
        XaError: a side refuses, for another reason than that it has no such branch.
    """
    were_there = [
        await _end(resources[role], branch(role, transaction), is_commit=True)
        for role in (Role.TARGET, Role.SOURCE)
    ]
    return all(were_there)


async def _end(resource: TwoPhaseSession, xid: Xid, *, is_commit: bool) -> bool:
    """Commit a branch, or roll it back; whether it was there."""
    try:
        if is_commit:
            await resource.xa_commit(xid)
        else:
            await resource.xa_rollback(xid)
    except XaError as error:
        if error.code == XAER_NOTA:
            return False
        if error.code in _HEURISTIC:
            if is_commit != (error.code == _HEURISTICALLY_COMMITTED):
                log.error(
                    "an operator has ended branch %s of transaction %s in another way than "
                    "decided (XA code %d): compare source and target",
                    *(xid.bq.decode(), xid.gtx.hex(), error.code),
                )
            await resource.xa_forget(xid)
        elif is_commit or not XA_RBBASE <= error.code <= XA_RBEND:
            raise
    return True


async def _each(steps: Sequence[Callable[[], Awaitable[object]]], many: int) -> None:
    """Take steps, so many at once; raise the first error behind all that went with it."""
    for first in range(0, len(steps), many):
        group = [step() for step in steps[first : first + many]]
        outcomes = await asyncio.gather(*group, return_exceptions=True)
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome


@dataclass(slots=True)
class Recovered:
    """What a recovery did: counts of transactions."""

    committed: int = 0
    rolled_back: int = 0


@dataclass(slots=True)
class Coordinator:
    """See the module's text. For one bridge at a time.

    Attributes:
        decisions: its log, open.
        name: of the bridge.
        clock: for how long it is that a side was told first.
        recovered: what recoveries did so far.
        on_their_way: transactions that a transfer will end; recovery ends all others.
    """

    decisions: DecisionLog
    name: str
    clock: Clock
    recovered: Recovered = field(default_factory=Recovered)
    on_their_way: set[bytes] = field(default_factory=set)
    # Undecided transactions that both sides were told to roll back, and one did not know.
    _doubtful: dict[bytes, _Doubtful] = field(default_factory=dict)
    # Decided ones that both sides were told to commit, and one did not know; the oldest first.
    _kept: dict[bytes, None] = field(default_factory=dict)
    _failure: JournalError | None = None
    # Held while decisions are written.
    _deciding: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def in_doubt(self) -> int:
        """How many transactions are decided, not on their way, and unknown to a side."""
        # Asked for each batch: what is kept may be many, and is decided.
        moving = sum(
            self.decisions.is_decided(one) and one not in self._kept for one in self.on_their_way
        )
        return self.decisions.decided_count - len(self._kept) - moving

    async def begin(self, resources: Mapping[Role, TwoPhaseSession]) -> CoordinatedTransaction:
        """Begin a transaction; see `TransactionManager`."""
        transaction = await self.new_transaction()
        for role in (Role.TARGET, Role.SOURCE):
            await resources[role].xa_start(branch(role, transaction))
        return CoordinatedTransaction(self, resources, transaction)

    async def new_transaction(self, spare: int = 0) -> bytes:
        """Give the global id of a transaction that may begin now.

        Args:
            spare: how many more may soon be asked for.

        Raises:
            BridgeError: the log has no room.
            BridgeConfigError: the log has failed.
        """
        self._check()
        try:
            return await self.decisions.begin(self.name, spare)
        except JournalFull as error:
            raise BridgeError(f"the transaction log has no room: {error}") from error
        except JournalError as error:
            self._failure = error
            self._check()
            raise

    async def recover(self, resources: Mapping[Role, TwoPhaseSession]) -> float | None:
        """End what earlier connections have left; see `TransactionManager`."""
        self._check()
        async with self._deciding:
            # A transfer that was given up may still be at it.
            pass
        # Before and behind the question: what is on its way may end at any await.
        moving = set(self.on_their_way)
        prepared = await self._prepared(resources)
        moving |= self.on_their_way
        # A side is told of many at once where its session carries them.
        many = AT_ONCE if all(isinstance(one, BranchSession) for one in resources.values()) else 1
        await _each(
            [
                partial(self._recover_undecided, resources, one, one in prepared)
                for one in {**dict.fromkeys(self.decisions.undecided), **prepared}
                if one not in moving and not self.decisions.is_decided(one)
            ],
            many,
        )
        moving = set(self.on_their_way)
        await _each(
            [
                partial(self._recover_decided, resources, one)
                for one in self.decisions.decided
                if one not in moving and (one in prepared or one not in self._kept)
            ],
            many,
        )
        if not self._doubtful:
            return None
        due_s = min(one.due_s for one in self._doubtful.values())
        return max(0.0, due_s - self.clock.monotonic_s())

    async def _prepared(self, resources: Mapping[Role, TwoPhaseSession]) -> dict[bytes, None]:
        """Give the transactions of this log that a side has prepared."""
        return {
            xid.gtx: None
            for resource in resources.values()
            for xid in await resource.xa_recover()
            if xid.format_id == FORMAT_ID and self.decisions.is_own(xid.gtx)
        }

    async def _recover_undecided(
        self, resources: Mapping[Role, TwoPhaseSession], transaction: bytes, is_prepared: bool
    ) -> None:
        now_s = self.clock.monotonic_s()
        doubtful = self._doubtful.get(transaction)
        if doubtful is not None and not is_prepared and now_s < doubtful.due_s:
            return
        were_there = await roll_back_branches(resources, transaction)
        if doubtful is None:
            self.recovered.rolled_back += 1
            log.info("%s: rolled back transaction %s", self.name, transaction.hex())
        since_s = now_s if doubtful is None else doubtful.since_s
        age_s = now_s - since_s
        if were_there or age_s >= SETTLED_S:
            self.forget(transaction)
        elif transaction in self.decisions.undecided:
            self._doubtful[transaction] = _Doubtful(since_s, now_s + max(_AGAIN_S, age_s))

    async def _recover_decided(
        self, resources: Mapping[Role, TwoPhaseSession], transaction: bytes
    ) -> None:
        await self.commit(resources, transaction)
        self.recovered.committed += 1
        log.info("%s: committed transaction %s", self.name, transaction.hex())

    async def commit(self, resources: Mapping[Role, TwoPhaseSession], transaction: bytes) -> None:
        """Commit both branches of a decided transaction.

        Args:
            resources: sessions of both sides.
            transaction: global id.

        Raises:
            XaError: a side refuses.
        """
        if await commit_branches(resources, transaction):
            self.forget(transaction)
            return
        self._kept[transaction] = None
        while len(self._kept) > KEPT_MAX:
            self.forget(next(iter(self._kept)))

    def forget(self, transaction: bytes) -> None:
        """It has ended on both sides, for certain.

        A log that has no room, or has failed, keeps it: what is told once more changes nothing. A
        failure shows at the next transaction.

        Args:
            transaction: global id.
        """
        self._doubtful.pop(transaction, None)
        self._kept.pop(transaction, None)
        self.on_their_way.discard(transaction)
        try:
            self.decisions.forget(transaction)
        except JournalFull as error:
            log.info("%s: transaction %s stays in the log: %s", self.name, transaction.hex(), error)
        except JournalError as error:
            self._failure = self._failure or error

    async def decide(self, *transactions: bytes) -> None:
        """Decide to commit.

        Args:
            transactions: global ids, one or more; prepared on both sides.

        Raises:
            BridgeError: the log has no room; recovery rolls back those that are not decided.
            InDoubtError: the log has failed; nothing is begun or decided any more.
        """
        last = transactions[-1].hex()
        try:
            async with self._deciding:
                await self.decisions.decide(*transactions)
        except JournalFull as error:
            raise BridgeError(
                f"transaction {last} is rolled back: the transaction log has no room: {error}"
            ) from error
        except JournalError as error:
            self._failure = error
            raise InDoubtError(
                f"transaction {last}: the transaction log has failed; whether it is decided shows "
                f"when the bridge is started again: {error}"
            ) from error

    def _check(self) -> None:
        if self._failure is not None:
            raise BridgeConfigError(
                f"the transaction log has failed; start the bridge again: {self._failure}"
            )


@dataclass(frozen=True, slots=True)
class _Doubtful:
    """When both sides were told first to roll a transaction back, and when they are told again."""

    since_s: float
    due_s: float


@dataclass(slots=True)
class CoordinatedTransaction:
    """A transaction of a `Coordinator`."""

    _coordinator: Coordinator
    _resources: Mapping[Role, TwoPhaseSession]
    _transaction: bytes

    async def commit(self) -> None:
        """Commit both branches; see `Transaction`."""
        resources, transaction = self._resources, self._transaction
        for role in (Role.TARGET, Role.SOURCE):
            await resources[role].xa_end(branch(role, transaction))
        for role in (Role.TARGET, Role.SOURCE):
            await resources[role].xa_prepare(branch(role, transaction))
        await self._coordinator.decide(transaction)
        try:
            await self._coordinator.commit(resources, transaction)
        except Exception as error:
            raise InDoubtError(
                f"transaction {transaction.hex()} is decided, and not committed on both sides "
                f"yet: {error}"
            ) from error

    async def rollback(self) -> None:
        """Roll both branches back; see `Transaction`."""
        outcomes = [await self._roll_back(role) for role in (Role.SOURCE, Role.TARGET)]
        for one in outcomes:
            if isinstance(one, Exception):
                raise one
        if all(outcomes):
            self._coordinator.forget(self._transaction)

    async def _roll_back(self, role: Role) -> bool | Exception:
        """Roll one branch back; whether it was there, or why that is not known.

        A side that is lost, or has rolled back for time, keeps nothing from the other one.
        """
        resource, xid = self._resources[role], branch(role, self._transaction)
        try:
            with suppress(XaError):
                await resource.xa_end(xid, failed=True)
            return await _end(resource, xid, is_commit=False)
        except Exception as error:  # noqa: BLE001 - raised when both were told.
            return error
