"""Transactions that a transaction manager names and decides about.

    start ─▶ work ─▶ end ─▶ prepare ─▶ commit | rollback          one session, or several in turn
                       └─▶ commit in one phase | rollback

A prepared one is in the journal and waits for its decision, over any number of restarts. An
operator may decide in its place (heuristic completion): then the outcome is remembered until the
manager forgets it. One that is not prepared and takes too long is rolled back.

Codes are those of XAException, which the Core protocol carries as they are.
"""

from __future__ import annotations

import logging
from enum import IntEnum
from typing import TYPE_CHECKING, Final

from broker.errors import BrokerError
from broker.transactions.transaction import Transaction, TransactionState

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.model.xid import Xid
    from broker.queues.counters import Counters
    from broker.storage.context import After, OperationContext
    from broker.storage.manager import StorageManager

__all__ = ["TIMEOUT_MS_DEFAULT", "XaCode", "XaError", "XaTransactions"]

log = logging.getLogger("broker")

TIMEOUT_MS_DEFAULT: Final = 300_000  # transaction-timeout


class XaCode(IntEnum):
    """Why an XA request was refused (javax.transaction.xa.XAException)."""

    HEURISTIC_ROLLBACK = 6
    HEURISTIC_COMMIT = 7
    RESOURCE_MANAGER_ERROR = -3
    NO_SUCH_XID = -4
    INVALID_ARGUMENTS = -5
    PROTOCOL = -6
    RESOURCE_MANAGER_FAILED = -7
    DUPLICATE_XID = -8
    ROLLED_BACK_FOR_TIME = 106  # XA_RBTIMEOUT


class XaError(Exception):
    """An XA request that is refused.

    Attributes:
        code: for the transaction manager.
        text: for people.
    """

    def __init__(self, code: XaCode, text: str) -> None:
        super().__init__(text)
        self.code = code
        self.text = text


class XaTransactions:
    """All of them, by their names; local ones, which have none, begin here too.

    Args:
        storage: where records go.
        clock_ms: wall clock, ms since 1970.
        monotonic_s: seconds, by which timeouts end: a step of the wall clock ends none.
        counters: for metrics.
        timeout_ms: of one that is not prepared (transaction-timeout).
    """

    def __init__(
        self,
        *,
        storage: StorageManager,
        clock_ms: Callable[[], int],
        monotonic_s: Callable[[], float],
        counters: Counters,
        timeout_ms: int = TIMEOUT_MS_DEFAULT,
    ) -> None:
        self._storage = storage
        self._clock_ms = clock_ms
        self._monotonic_s = monotonic_s
        self._counters = counters
        self.timeout_ms = timeout_ms
        self._by_xid: dict[Xid, Transaction] = {}
        # Ended by an operator: the record's id, and whether it was committed.
        self._heuristic: dict[Xid, tuple[int, bool]] = {}

    def __len__(self) -> int:
        return len(self._by_xid)

    def begin(self, xid: Xid | None = None, tx_id: int | None = None) -> Transaction:
        """Begin a transaction that is not found by its name: a local one, or a loaded one.

        Args:
            xid: the name a transaction manager gave it; None for a local one.
            tx_id: of its records; None takes a new one.
        """
        return Transaction(self._storage, self._counters, self._clock_ms(), xid, tx_id)

    def find(self, xid: Xid) -> Transaction | None:
        """Give a transaction; None where there is none of that name."""
        return self._by_xid.get(xid)

    def get(self, xid: Xid) -> Transaction:
        """Give a transaction.

        Raises:
            XaError: there is none of that name, or an operator has ended it.
        """
        found = self._by_xid.get(xid)
        if found is None:
            if xid in self._heuristic:
                _, is_commit = self._heuristic[xid]
                code = XaCode.HEURISTIC_COMMIT if is_commit else XaCode.HEURISTIC_ROLLBACK
                raise XaError(code, f"transaction has been heuristically ended: {xid}")
            raise XaError(XaCode.NO_SUCH_XID, f"Cannot find xid in resource manager: {xid}")
        return found

    def start(self, xid: Xid) -> Transaction:
        """Make a transaction.

        Raises:
            XaError: there is one of that name.
        """
        if xid in self._by_xid:
            raise XaError(XaCode.DUPLICATE_XID, f"Cannot start tx, there is already an xid {xid}")
        made = self._by_xid[xid] = self.begin(xid)
        made.began_s = self._monotonic_s()
        return made

    def load(self, transaction: Transaction) -> None:
        """Take a prepared transaction from the journal."""
        assert transaction.xid is not None, "it was prepared under a name"
        self._by_xid[transaction.xid] = transaction

    def load_heuristic(self, record_id: int, xid: Xid, *, is_commit: bool) -> None:
        """Take an operator's decision from the journal."""
        self._heuristic[xid] = (record_id, is_commit)

    def prepare(self, xid: Xid, context: OperationContext, done: After, *arguments: object) -> None:
        """Let one survive until it is decided; `done(error, *arguments)` once that is durable.

        Raises:
            XaError: it cannot be prepared.
        """
        found = self.get(xid)
        self._check_ended(found)
        if found.state is TransactionState.PREPARED:
            raise XaError(XaCode.PROTOCOL, f"it is prepared already: {xid}")
        try:
            found.prepare(context, done, *arguments)
        except BrokerError as error:
            del self._by_xid[xid]
            found.rollback(context)
            raise XaError(XaCode.RESOURCE_MANAGER_ERROR, error.text) from error

    def commit(
        self,
        xid: Xid,
        context: OperationContext,
        done: After,
        *arguments: object,
        one_phase: bool = False,
    ) -> None:
        """Let one count; `done(error, *arguments)` once that is durable.

        Raises:
            XaError: it is not there, or not where it could be committed.
        """
        found = self.get(xid)
        self._check_ended(found)
        if one_phase == (found.state is TransactionState.PREPARED):
            phase = "one phase" if one_phase else "two phases"
            raise XaError(XaCode.PROTOCOL, f"cannot commit {xid} in {phase}: {found.state.name}")
        del self._by_xid[xid]
        try:
            found.commit(context, done, *arguments)
        except BrokerError as error:
            found.rollback(context)
            raise XaError(XaCode.RESOURCE_MANAGER_ERROR, error.text) from error

    def take(self, xid: Xid) -> Transaction:
        """Give one to be rolled back, and forget it.

        Raises:
            XaError: it is not there, or still at work.
        """
        found = self.get(xid)
        self._check_ended(found)
        del self._by_xid[xid]
        return found

    @staticmethod
    def _check_ended(transaction: Transaction) -> None:
        if transaction.state is TransactionState.SUSPENDED:
            raise XaError(XaCode.PROTOCOL, f"it is suspended: {transaction.xid}")

    def give_up(self, transaction: Transaction) -> bool:
        """Forget one whose client is gone; whether it is there, and to be rolled back.

        Not one that is prepared: it waits for its decision.
        """
        xid = transaction.xid
        if (
            xid is None
            or transaction.state is TransactionState.PREPARED
            or self._by_xid.get(xid) is not transaction
        ):
            return False
        del self._by_xid[xid]
        return True

    def all(self) -> list[Transaction]:
        """Give all that are not decided."""
        return list(self._by_xid.values())

    def prepared(self) -> list[Transaction]:
        """Give those that wait for a decision."""
        return [one for one in self._by_xid.values() if one.state is TransactionState.PREPARED]

    def decided(self, *, is_commit: bool) -> list[Xid]:
        """Give the names of those that operators have committed, or rolled back."""
        return [xid for xid, (_, committed) in self._heuristic.items() if committed == is_commit]

    def in_doubt(self) -> tuple[Xid, ...]:
        """Give the names of what waits for a decision, or for its operator's to be forgotten."""
        prepared = (
            xid for xid, one in self._by_xid.items() if one.state is TransactionState.PREPARED
        )
        return (*prepared, *self._heuristic)

    def end_heuristically(
        self, xid: Xid, context: OperationContext, done: After, *, is_commit: bool
    ) -> bool:
        """Decide in the manager's place; whether there was such a prepared transaction."""
        found = self._by_xid.get(xid)
        if found is None or found.state is not TransactionState.PREPARED:
            return False
        del self._by_xid[xid]
        if is_commit:
            found.commit(context, done)
        else:
            found.rollback(context)
            context.after(done)
        record_id = self._storage.store_heuristic_completion(xid, is_commit=is_commit)
        context.note()
        self._heuristic[xid] = (record_id, is_commit)
        return True

    def forget(self, xid: Xid, context: OperationContext) -> None:
        """The manager knows what an operator decided.

        Raises:
            XaError: nothing was decided about this one.
        """
        found = self._heuristic.pop(xid, None)
        if found is None:
            raise XaError(XaCode.NO_SUCH_XID, f"nothing to forget of {xid}")
        if found[0]:
            self._storage.delete_heuristic_completion(found[0])
            context.note()

    def reap(self, context: OperationContext) -> int:
        """Roll back what takes too long; how many."""
        now_s = self._monotonic_s()
        late = [
            (xid, one)
            for xid, one in self._by_xid.items()
            if one.state is not TransactionState.PREPARED
            and (now_s - one.began_s) * 1000
            >= (self.timeout_ms if one.timeout_ms is None else one.timeout_ms)
        ]
        for xid, transaction in late:
            log.warning("AMQ222103: transaction with xid %s timed out", xid)
            del self._by_xid[xid]
            transaction.rollback(context)
            transaction.is_late = True
        return len(late)
