"""A session's branches of transactions that a manager names: start, end, suspend, decide.

One session works for one transaction at a time, and one transaction may be worked for by several
sessions in turn. Deciding needs no session that works for it.

Threads: the event loop's alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from broker.errors import BrokerError, ErrorCode
from broker.transactions.transaction import TransactionState
from broker.transactions.xa import XaCode, XaError

if TYPE_CHECKING:
    from broker.model.xid import Xid
    from broker.storage.context import After, OperationContext
    from broker.transactions.transaction import Transaction
    from broker.transactions.xa import XaTransactions

__all__ = ["XaResource"]


class TransactedSession(Protocol):
    """What its branches need of a session."""

    tx: Transaction | None
    """What it works for; None is nothing."""
    pending: Transaction | None
    """What it has ended last, and was not told to commit or roll back; None is nothing."""
    context: OperationContext
    """What it waits by."""

    def roll_back(self, tx: Transaction, *, has_failed: bool, first_was_delivered: bool) -> None:
        """Roll a transaction back, and give back what consumers of the session have."""


class XaResource:
    """See the module's text.

    commit(), rollback() and in_doubt() note what all sessions have appended. Answers wait for that:
    a manager that hears that there is no such transaction may forget its decision, which must not
    be before the end that another session has asked for is durable.

    Args:
        session: whose `tx` is what it works for.
        transactions: of transaction managers.
    """

    __slots__ = ("_session", "_timeout_ms", "_transactions")

    def __init__(self, session: TransactedSession, transactions: XaTransactions) -> None:
        self._session = session
        self._transactions = transactions
        # None: the broker's own. Of this session alone: a client must not shorten another's.
        self._timeout_ms: int | None = None

    def start(self, xid: Xid) -> None:
        """Work for a new transaction from now on.

        Raises:
            XaError: the session works for one, or there is one of that name.
        """
        self._check_free()
        self._drop_local()
        tx = self._session.tx = self._transactions.start(xid)
        tx.timeout_ms = self._timeout_ms

    def join(self, xid: Xid) -> None:
        """Work for a transaction that is there already.

        Raises:
            XaError: the session works for one, or there is none of that name.
        """
        self._check_free()
        found = self._transactions.get(xid)
        if found.state is TransactionState.SUSPENDED:
            raise XaError(XaCode.PROTOCOL, f"Cannot join tx, it is suspended {xid}")
        self._drop_local()
        self._session.tx = found

    def _check_free(self) -> None:
        tx = self._session.tx
        if tx is not None and tx.xid is not None:
            raise XaError(
                XaCode.PROTOCOL,
                f"Cannot start, session is already doing work in a transaction {tx.xid}",
            )

    def _drop_local(self) -> None:
        """Work done before the manager came belongs to no transaction of its own."""
        tx = self._session.tx
        if tx is not None and not tx.is_empty:
            tx.rollback(self._session.context)
        self._session.tx = None

    def end(self, xid: Xid, *, has_failed: bool) -> None:
        """Work for it no more.

        Raises:
            XaError: the session does not work for it, or it took too long and is rolled back.
        """
        tx = self._session.tx
        if tx is not None and tx.xid == xid:
            if tx.state is TransactionState.SUSPENDED:
                raise XaError(XaCode.PROTOCOL, f"Cannot end, transaction is suspended {xid}")
            if tx.state is TransactionState.ROLLEDBACK:
                code = XaCode.ROLLED_BACK_FOR_TIME if tx.is_late else XaCode.PROTOCOL
                self._session.tx = None
                raise XaError(code, f"Cannot end, transaction is rolled back {xid}")
            if has_failed:
                tx.fail(
                    BrokerError(ErrorCode.TRANSACTION_ROLLED_BACK, f"{xid} was ended as failed")
                )
            self._session.pending, self._session.tx = tx, None
            return
        # A suspended one may be ended without being resumed.
        found = self._transactions.get(xid)
        if found.state is TransactionState.ACTIVE:
            # Ended before: managers that do it twice, in Artemis too, are not told off.
            return
        if found.state is not TransactionState.SUSPENDED:
            raise XaError(XaCode.PROTOCOL, f"Transaction is not suspended {xid}")
        found.state = TransactionState.ACTIVE

    def transaction(self, xid: Xid) -> Transaction:
        """Give a transaction for `ExplicitTransactions.within()`.

        Raises:
            XaError: there is none of that name.
        """
        return self._transactions.get(xid)

    def suspend(self) -> None:
        """Leave the transaction for now.

        Raises:
            XaError: the session works for none.
        """
        tx = self._session.tx
        if tx is None or tx.xid is None:
            raise XaError(
                XaCode.PROTOCOL, "Cannot suspend, session is not doing work in a transaction"
            )
        if tx.state is TransactionState.ACTIVE:
            tx.state = TransactionState.SUSPENDED
        self._session.tx = None

    def resume(self, xid: Xid) -> None:
        """Come back to a transaction that was suspended.

        Raises:
            XaError: the session works for one, or it was not suspended.
        """
        self._check_free()
        found = self._transactions.get(xid)
        if found.state is not TransactionState.SUSPENDED:
            raise XaError(XaCode.PROTOCOL, f"Cannot resume transaction, it is not suspended {xid}")
        found.state = TransactionState.ACTIVE
        self._drop_local()
        self._session.tx = found

    def _check_not_working(self, xid: Xid, what: str) -> None:
        tx = self._session.tx
        if tx is not None and tx.xid == xid:
            raise XaError(
                XaCode.PROTOCOL,
                f"Cannot {what} transaction, session is currently doing work in transaction {xid}",
            )

    def prepare(self, xid: Xid, done: After, *arguments: object) -> None:
        """Let it survive until it is decided; `done(error, *arguments)` once that is durable.

        Raises:
            XaError: it cannot be prepared.
        """
        self._check_not_working(xid, "prepare")
        self._transactions.prepare(xid, self._session.context, done, *arguments)

    def commit(self, xid: Xid, one_phase: bool, done: After, *arguments: object) -> None:
        """Let it count; `done(error, *arguments)` once that is durable.

        Raises:
            XaError: it cannot be committed.
        """
        self._check_not_working(xid, "commit")
        self._session.pending = None
        self._session.context.note()
        self._transactions.commit(xid, self._session.context, done, *arguments, one_phase=one_phase)

    def rollback(self, xid: Xid, done: After, *arguments: object) -> None:
        """Let it not count; `done(error, *arguments)` once that is durable.

        All that was delivered to this session comes again, as after a local rollback: its client
        forgets what it has not looked at. Also where there is no such transaction, as in Artemis:
        the client has asked for it all the same.

        Raises:
            XaError: it cannot be rolled back.
        """
        self._check_not_working(xid, "roll back")
        self._session.pending = None
        self._session.context.note()
        try:
            tx = self._transactions.take(xid)
        except XaError:
            nothing = self._transactions.begin()
            self._session.roll_back(nothing, has_failed=False, first_was_delivered=False)
            raise
        self._session.roll_back(tx, has_failed=False, first_was_delivered=False)
        self._session.context.after(done, *arguments)

    def forget(self, xid: Xid, done: After, *arguments: object) -> None:
        """The manager knows what an operator decided.

        Raises:
            XaError: nothing was decided about this one.
        """
        self._check_not_working(xid, "forget")
        self._transactions.forget(xid, self._session.context)
        self._session.context.after(done, *arguments)

    def failed(self, xid: Xid) -> None:
        """The client was away: what it did for this transaction may be incomplete."""
        error = BrokerError(ErrorCode.TRANSACTION_ROLLED_BACK, f"the connection broke during {xid}")
        found = self._transactions.find(xid)
        if found is None:
            found = self._transactions.start(xid)
        found.fail(error)
        self._drop_local()
        self._session.tx = found

    def in_doubt(self) -> tuple[Xid, ...]:
        """Give the names of all that wait for a decision; of answers, see `XaResource`."""
        self._session.context.note()
        return self._transactions.in_doubt()

    @property
    def timeout_seconds(self) -> int:
        """How long a transaction may take by the broker's configuration, as Artemis says."""
        return self._transactions.timeout_ms // 1000

    def set_timeout(self, seconds: int) -> None:
        """Let what this session works for, and begins from now on, take so long.

        Args:
            seconds: 0, or less, is the configured time (XAResource.setTransactionTimeout).
        """
        self._timeout_ms = seconds * 1000 if seconds > 0 else None
        tx = self._session.tx
        if tx is not None and tx.xid is not None:
            tx.timeout_ms = self._timeout_ms
