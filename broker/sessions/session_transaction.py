"""The transaction that a session works for: its own, or a manager's that it was enlisted in.

    usable() ─▶ sends and acknowledgements ─▶ commit │ rollback ─▶ the next one of its own

Threads: the event loop's alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.errors import BrokerError, ErrorCode

if TYPE_CHECKING:
    from broker.queues.consumer import Consumer
    from broker.queues.reference import Reference
    from broker.sessions.session_options import SessionOptions
    from broker.storage.context import After, OperationContext
    from broker.transactions.transaction import Transaction
    from broker.transactions.xa import XaTransactions

__all__ = ["SessionTransaction"]


class SessionTransaction:
    """See the module's text.

    Args:
        transactions: where its own begin.
        context: what the session waits by.
        consumers: of the session, by number.
        options: how the client wants the session: in XA only those of managers count.

    Attributes:
        tx: what the session works for; None is nothing.
        pending: a manager's that the session has ended last, until it is told to end another or to
            commit or roll back; None is none.
        context: as given.
    """

    def __init__(
        self,
        transactions: XaTransactions,
        context: OperationContext,
        consumers: dict[int, Consumer],
        options: SessionOptions,
    ) -> None:
        is_local = options.is_transacted
        self._is_xa = options.is_xa
        self._transactions = transactions
        self.context = context
        self._consumers = consumers
        self.tx: Transaction | None = transactions.begin() if is_local else None
        self.pending: Transaction | None = None

    def usable(self) -> Transaction | None:
        """Give what the session works for; None where each request counts alone.

        That is an XA session between two branches, as in Artemis: a JMS XASession that no
        transaction manager enlisted sends and acknowledges like any other.

        Raises:
            BrokerError: it can only be rolled back.
        """
        tx = self.tx
        if tx is None:
            if self._is_xa:
                return None
            tx = self.tx = self._transactions.begin()
        tx.check_usable()
        return tx

    def end_alone(self, done: After | None, *arguments: object) -> None:
        """Commit what usable() began in a session that has none; None rolls it back.

        Raises:
            BrokerError: something of it was refused: it is rolled back.
        """
        tx, self.tx = self.tx, None
        assert tx is not None, "it was begun"
        if done is None:
            tx.rollback(self.context)
            return
        try:
            tx.commit(self.context, done, *arguments)
        except BrokerError:
            tx.rollback(self.context)
            raise

    def commit(self, done: After, *arguments: object) -> None:
        """Let all since the last commit count; `done(error, *arguments)` once that is durable.

        Raises:
            BrokerError: something of it was refused: it is rolled back. Or it is a manager's.
        """
        tx = self._next()
        try:
            tx.commit(self.context, done, *arguments)
        except BrokerError:
            tx.rollback(self.context)
            raise

    def rollback(
        self, done: After, *arguments: object, considers_last_delivered: bool = False
    ) -> None:
        """Let nothing since the last commit count, and deliver again what was delivered.

        Raises:
            BrokerError: the transaction is a manager's.
        """
        tx = self._next()
        self.roll_back(tx, has_failed=False, first_was_delivered=considers_last_delivered)
        self.context.after(done, *arguments)

    def _next(self) -> Transaction:
        """Give the session's own, which ends, and begin the next one."""
        tx = self.tx
        if self._is_xa and tx is not None and tx.xid is not None:
            raise BrokerError(ErrorCode.ILLEGAL_STATE, "an XA transaction is ended by its manager")
        if tx is None:
            tx = self._transactions.begin()
        self.tx = None if self._is_xa else self._transactions.begin()
        return tx

    def roll_back(self, tx: Transaction, *, has_failed: bool, first_was_delivered: bool) -> None:
        """Roll a transaction back, and give all that consumers here have to their queues again.

        Args:
            tx: local, or a manager's.
            has_failed: the connection broke.
            first_was_delivered: the client has looked at the last message that it was given.
        """
        # No consumer takes anything before all is back, or the order would be lost.
        taking = [consumer for consumer in self._consumers.values() if consumer.is_started]
        for consumer in taking:
            consumer.stop()
        seen: list[Reference] = []
        unseen: list[Reference] = []
        for consumer in self._consumers.values():
            first, others = consumer.take_all_back(
                has_failed=has_failed, first_was_delivered=first_was_delivered
            )
            seen += first
            unseen += others
        tx.rollback(self.context, seen, unseen)
        if not has_failed:
            for consumer in taking:
                consumer.start()

    def close(self, *, has_failed: bool) -> None:
        """The session ends: its own is rolled back, a manager's goes on without it.

        Where the connection broke, the manager's that it worked for, or ended last, is rolled back
        as well unless it is prepared, as in Artemis: it held messages until its timeout otherwise.
        """
        tx, self.tx = self.tx, None
        pending, self.pending = self.pending, None
        for one in (tx, pending):
            if one is not None and (
                one.xid is None or (has_failed and self._transactions.give_up(one))
            ):
                self.roll_back(one, has_failed=has_failed, first_was_delivered=False)
