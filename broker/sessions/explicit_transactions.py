"""Transactions in a session whose requests count alone otherwise.

    together(done)                                    what is done in its body counts as one
    begin() ─▶ within(tx) … ─▶ end(tx, done)          as one, what several sessions do in turn
                            └▶ abandon(tx)

Threads: the event loop's alone; nothing here waits.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker.sessions.session_transaction import SessionTransaction
    from broker.storage.context import After, OperationContext
    from broker.transactions.transaction import Transaction
    from broker.transactions.xa import XaTransactions

__all__ = ["ExplicitTransactions"]


class AutoCommitSession(Protocol):
    """What this needs of a session."""

    context: OperationContext
    """What it waits by."""
    sends_alone: bool
    """Whether each message that is sent counts by itself."""
    acknowledges_alone: bool
    """Whether each acknowledgement counts by itself."""


class ExplicitTransactions:
    """See the module's text.

    Args:
        session: of the client.
        own: what the session works for.
        transactions: where those begin that several sessions work for.
    """

    __slots__ = ("_own", "_session", "_transactions")

    def __init__(
        self, session: AutoCommitSession, own: SessionTransaction, transactions: XaTransactions
    ) -> None:
        self._session = session
        self._own = own
        self._transactions = transactions

    @contextlib.contextmanager
    def together(self, done: After, *arguments: object) -> Iterator[None]:
        """Let what is sent and acknowledged in the body count together, or not at all.

        `done(error, *arguments)` once it is durable. If the body raises, nothing of it counts.

        Raises:
            BrokerError: something of it was refused.
        """
        self._join()
        own = self._own
        try:
            own.usable()
            yield
        except BaseException:
            own.end_alone(None)
            raise
        else:
            own.end_alone(done, *arguments)
        finally:
            self._part()

    @contextlib.contextmanager
    def within(self, tx: Transaction) -> Iterator[None]:
        """Let what is sent and acknowledged in the body count with a transaction of begin().

        Raises:
            BrokerError: it has ended.
        """
        tx.check_usable()
        self._join()
        self._own.tx = tx
        try:
            yield
        finally:
            self._own.tx = None
            self._part()

    def _join(self) -> None:
        """No request of the session counts alone from now on."""
        session = self._session
        assert session.sends_alone, "it has no transaction"
        assert session.acknowledges_alone, "it has no transaction"
        session.sends_alone = session.acknowledges_alone = False

    def _part(self) -> None:
        self._session.sends_alone = self._session.acknowledges_alone = True

    def begin(self) -> Transaction:
        """Begin a transaction that several sessions may work for; end() or abandon() ends it."""
        return self._transactions.begin()

    def end(self, tx: Transaction, done: After, *arguments: object) -> None:
        """Let a transaction of begin() count; `done(error, *arguments)` once that is durable.

        Raises:
            BrokerError: something of it was refused: abandon() it.
        """
        tx.commit(self._session.context, done, *arguments)

    def abandon(self, tx: Transaction) -> None:
        """Let nothing of a transaction of begin() count."""
        tx.rollback(self._session.context)
