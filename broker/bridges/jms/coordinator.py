"""The bridge's own transaction manager: two-phase commit, with its decisions in a journal.

    end T, end S · prepare T · prepare S · decide (journal, synced) · commit T · commit S · forget

T is the branch at the target, S the one at the source. The order says by itself how far a
transaction came, even if the log is lost:

    prepared      it was                                     so
    T             not decided                                roll back
    T and S       decided or not; committed nowhere          as the log says; without it roll back
    S             committed at the target                    commit

A rollback goes the other way, S before T, so that what it leaves reads the same. It is sent to both
sides even if only one has prepared: a prepare that is still on its way finds no branch.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from broker.bridges.jms.errors import XAER_NOTA, BridgeConfigError, InDoubtError, XaError
from broker.bridges.jms.transactions import Role
from broker.model.xid import Xid
from journal.errors import JournalError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from broker.bridges.jms.decision_log import DecisionLog
    from broker.bridges.jms.providers import TwoPhaseSession

__all__ = ["BRANCHES", "FORMAT_ID", "Coordinator", "branch", "roll_back_branches"]

log = logging.getLogger("broker.bridges")

# "QBRG": tells the transactions of bridges from those of all other transaction managers.
FORMAT_ID: Final = 0x51425247
BRANCHES: Final = {Role.SOURCE: b"S", Role.TARGET: b"T"}
# XA_HEURRB … XA_HEURMIX, XA_HEURHAZ: an operator has ended the branch.
_HEURISTIC: Final = (5, 6, 7, 8)
_HEURISTICALLY_COMMITTED: Final = 7


def branch(role: Role, transaction: bytes) -> Xid:
    """Give the name of a branch.

    Args:
        role: whose.
        transaction: global id.
    """
    return Xid(FORMAT_ID, BRANCHES[role], transaction)


async def roll_back_branches(resources: Mapping[Role, TwoPhaseSession], transaction: bytes) -> None:
    """Roll both branches back, the source's first; one that is not there is none.

    Args:
        resources: sessions of both sides.
        transaction: global id.

    Raises:
        XaError: a side refuses, for another reason than that it has no such branch.
    """
    for role in (Role.SOURCE, Role.TARGET):
        await _end(resources[role], branch(role, transaction), is_commit=False)


async def commit_branches(resources: Mapping[Role, TwoPhaseSession], transaction: bytes) -> None:
    """Commit both branches, the target's first; one that is not there has been committed.

    Args:
        resources: sessions of both sides.
        transaction: global id, decided.

    Raises:
        XaError: a side refuses, for another reason than that it has no such branch.
    """
    for role in (Role.TARGET, Role.SOURCE):
        await _end(resources[role], branch(role, transaction), is_commit=True)


async def _end(resource: TwoPhaseSession, xid: Xid, *, is_commit: bool) -> None:
    try:
        if is_commit:
            await resource.xa_commit(xid)
        else:
            await resource.xa_rollback(xid)
    except XaError as error:
        if error.code in _HEURISTIC:
            if is_commit != (error.code == _HEURISTICALLY_COMMITTED):
                log.error(
                    "an operator has ended branch %s of transaction %s in another way than "
                    "decided (XA code %d): compare source and target",
                    *(xid.bq.decode(), xid.gtx.hex(), error.code),
                )
            await resource.xa_forget(xid)
        elif error.code != XAER_NOTA:
            raise


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
        recovered: what recoveries did so far.
    """

    decisions: DecisionLog
    name: str
    recovered: Recovered = field(default_factory=Recovered)
    _failure: JournalError | None = None

    @property
    def in_doubt(self) -> int:
        """How many transactions are decided and have not ended on both sides."""
        return len(tuple(self.decisions.decided))

    async def begin(self, resources: Mapping[Role, TwoPhaseSession]) -> CoordinatedTransaction:
        """Begin a transaction; see `TransactionManager`."""
        self._check()
        transaction = self.decisions.begin(self.name)
        for role in (Role.TARGET, Role.SOURCE):
            await resources[role].xa_start(branch(role, transaction))
        return CoordinatedTransaction(self, resources, transaction)

    async def recover(self, resources: Mapping[Role, TwoPhaseSession]) -> None:
        """End what earlier connections have left; see `TransactionManager`."""
        self._check()
        found = dict.fromkeys(self.decisions.undecided)
        for resource in resources.values():
            for xid in await resource.xa_recover():
                if xid.format_id == FORMAT_ID and self.decisions.is_own(xid.gtx):
                    found[xid.gtx] = None
        for transaction in found:
            if not self.decisions.is_decided(transaction):
                await roll_back_branches(resources, transaction)
                self.decisions.forget(transaction)
                self.recovered.rolled_back += 1
                log.info("%s: rolled back transaction %s", self.name, transaction.hex())
        for transaction in self.decisions.decided:
            await commit_branches(resources, transaction)
            self.decisions.forget(transaction)
            self.recovered.committed += 1
            log.info("%s: committed transaction %s", self.name, transaction.hex())

    async def decide(self, transaction: bytes) -> None:
        """Decide to commit.

        Raises:
            InDoubtError: the log has failed; nothing is begun or decided any more.
        """
        try:
            await self.decisions.decide(transaction)
        except JournalError as error:
            self._failure = error
            raise InDoubtError(
                f"transaction {transaction.hex()}: the transaction log has failed; whether it is "
                f"decided shows when the bridge is started again: {error}"
            ) from error

    def _check(self) -> None:
        if self._failure is not None:
            raise BridgeConfigError(
                f"the transaction log has failed; start the bridge again: {self._failure}"
            )


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
            await commit_branches(resources, transaction)
        except Exception as error:
            raise InDoubtError(
                f"transaction {transaction.hex()} is decided, and not committed on both sides "
                f"yet: {error}"
            ) from error
        self._coordinator.decisions.forget(transaction)

    async def rollback(self) -> None:
        """Roll both branches back; see `Transaction`."""
        resources, transaction = self._resources, self._transaction
        for role in (Role.SOURCE, Role.TARGET):
            await resources[role].xa_end(branch(role, transaction), failed=True)
        await roll_back_branches(resources, transaction)
        self._coordinator.decisions.forget(transaction)
