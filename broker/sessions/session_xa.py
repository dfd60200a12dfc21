"""A session's work for transactions that a manager names: start, end, suspend, decide.

One session works for one transaction at a time, and one transaction may be worked for by several
sessions in turn. Deciding needs no session that works for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.errors import BrokerError, ErrorCode
from broker.transactions.transaction import TransactionState
from broker.transactions.xa import XaCode, XaError

if TYPE_CHECKING:
    from broker.model.xid import Xid
    from broker.storage.context import After, OperationContext
    from broker.transactions.transaction import Transaction
    from broker.transactions.xa import XaTransactions

__all__ = ["XaWork"]


class XaWork:
    """The part of a Session that is about XA.

    Attributes:
        tx: what the session works for; None is nothing.
        context: what the session waits by.
    """

    _transactions: XaTransactions
    tx: Transaction | None
    context: OperationContext
    # None: the broker's own. Of this session alone: a client must not shorten another's.
    _xa_timeout_ms: int | None = None

    def xa_start(self, xid: Xid) -> None:
        """Work for a new transaction from now on.

        Raises:
            XaError: the session works for one, or there is one of that name.
        """
        self._check_free()
        self._drop_local()
        self.tx = self._transactions.start(xid)
        self.tx.timeout_ms = self._xa_timeout_ms

    def xa_join(self, xid: Xid) -> None:
        """Work for a transaction that is there already.

        Raises:
            XaError: the session works for one, or there is none of that name.
        """
        self._check_free()
        found = self._transactions.get(xid)
        if found.state is TransactionState.SUSPENDED:
            raise XaError(XaCode.PROTOCOL, f"Cannot join tx, it is suspended {xid}")
        self._drop_local()
        self.tx = found

    def _check_free(self) -> None:
        if self.tx is not None and self.tx.xid is not None:
            raise XaError(
                XaCode.PROTOCOL,
                f"Cannot start, session is already doing work in a transaction {self.tx.xid}",
            )

    def _drop_local(self) -> None:
        """Work done before the manager came belongs to no transaction of its own."""
        if self.tx is not None and not self.tx.is_empty:
            self.tx.rollback(self.context)
        self.tx = None

    def xa_end(self, xid: Xid, *, has_failed: bool) -> None:
        """Work for it no more.

        Raises:
            XaError: the session does not work for it, or it took too long and is rolled back.
        """
        if self.tx is not None and self.tx.xid == xid:
            if self.tx.state is TransactionState.SUSPENDED:
                raise XaError(XaCode.PROTOCOL, f"Cannot end, transaction is suspended {xid}")
            if self.tx.state is TransactionState.ROLLEDBACK:
                code = XaCode.ROLLED_BACK_FOR_TIME if self.tx.is_late else XaCode.PROTOCOL
                self.tx = None
                raise XaError(code, f"Cannot end, transaction is rolled back {xid}")
            if has_failed:
                self.tx.fail(
                    BrokerError(ErrorCode.TRANSACTION_ROLLED_BACK, f"{xid} was ended as failed")
                )
            self.tx = None
            return
        # A suspended one may be ended without being resumed.
        found = self._transactions.get(xid)
        if found.state is TransactionState.ACTIVE:
            # Ended before: managers that do it twice, in Artemis too, are not told off.
            return
        if found.state is not TransactionState.SUSPENDED:
            raise XaError(XaCode.PROTOCOL, f"Transaction is not suspended {xid}")
        found.state = TransactionState.ACTIVE

    def xa_suspend(self) -> None:
        """Leave the transaction for now.

        Raises:
            XaError: the session works for none.
        """
        if self.tx is None or self.tx.xid is None:
            raise XaError(
                XaCode.PROTOCOL, "Cannot suspend, session is not doing work in a transaction"
            )
        if self.tx.state is TransactionState.ACTIVE:
            self.tx.state = TransactionState.SUSPENDED
        self.tx = None

    def xa_resume(self, xid: Xid) -> None:
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
        self.tx = found

    def _check_not_working(self, xid: Xid, what: str) -> None:
        if self.tx is not None and self.tx.xid == xid:
            raise XaError(
                XaCode.PROTOCOL,
                f"Cannot {what} transaction, session is currently doing work in transaction {xid}",
            )

    def xa_prepare(self, xid: Xid, done: After, *arguments: object) -> None:
        """Let it survive until it is decided; `done(error, *arguments)` once that is durable.

        Raises:
            XaError: it cannot be prepared.
        """
        self._check_not_working(xid, "prepare")
        self._transactions.prepare(xid, self.context, done, *arguments)

    def xa_commit(self, xid: Xid, one_phase: bool, done: After, *arguments: object) -> None:
        """Let it count; `done(error, *arguments)` once that is durable.

        Raises:
            XaError: it cannot be committed.
        """
        self._check_not_working(xid, "commit")
        self._transactions.commit(xid, self.context, done, *arguments, one_phase=one_phase)

    def xa_rollback(self, xid: Xid, done: After, *arguments: object) -> None:
        """Let it not count; `done(error, *arguments)` once that is durable.

        All that was delivered to this session comes again, as after a local rollback: its client
        forgets what it has not looked at.

        Raises:
            XaError: it cannot be rolled back.
        """
        self._check_not_working(xid, "roll back")
        tx = self._transactions.take(xid)
        self._rollback(tx, has_failed=False, first_was_delivered=False)
        self.context.after(done, *arguments)

    def _rollback(self, tx: Transaction, *, has_failed: bool, first_was_delivered: bool) -> None:
        """Roll it back with what consumers of this session have; the session's own work."""
        raise NotImplementedError

    def xa_forget(self, xid: Xid, done: After, *arguments: object) -> None:
        """The manager knows what an operator decided.

        Raises:
            XaError: nothing was decided about this one.
        """
        self._check_not_working(xid, "forget")
        self._transactions.forget(xid, self.context)
        self.context.after(done, *arguments)

    def xa_failed(self, xid: Xid) -> None:
        """The client was away: what it did for this transaction may be incomplete."""
        error = BrokerError(ErrorCode.TRANSACTION_ROLLED_BACK, f"the connection broke during {xid}")
        found = self._transactions.find(xid)
        if found is None:
            found = self._transactions.start(xid)
        found.fail(error)
        self._drop_local()
        self.tx = found

    def xa_in_doubt(self) -> tuple[Xid, ...]:
        """Give the names of all that wait for a decision."""
        return self._transactions.in_doubt()

    @property
    def xa_timeout_seconds(self) -> int:
        """How long a transaction may take by the broker's configuration, as Artemis says."""
        return self._transactions.timeout_ms // 1000

    def xa_set_timeout(self, seconds: int) -> None:
        """Let what this session works for, and begins from now on, take so long.

        Args:
            seconds: 0, or less, is the configured time (XAResource.setTransactionTimeout).
        """
        self._xa_timeout_ms = seconds * 1000 if seconds > 0 else None
        if self.tx is not None and self.tx.xid is not None:
            self.tx.timeout_ms = self._xa_timeout_ms
