"""What a bridge needs of a transaction manager: ours (`coordinator.py`), or one from outside.

A transaction has two branches, one at the source and one at the target. The resources are sessions
of both: they have the verbs of the XA standard (`providers.TwoPhaseSession`).
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from broker.bridges.jms.providers import TwoPhaseSession

__all__ = ["Role", "Transaction", "TransactionManager"]


class Role(Enum):
    """Which side of a bridge a branch belongs to."""

    SOURCE = "source"
    TARGET = "target"


class Transaction(Protocol):
    """One distributed transaction."""

    async def commit(self) -> None:
        """End both branches, prepare them, decide, and commit them.

        Raises:
            InDoubtError: it is decided, and a side has not heard of it: `recover()` tells it.
            Exception: it is rolled back, or will be by `recover()`.
        """

    async def rollback(self) -> None:
        """Roll both branches back; a side that cannot be reached is left to `recover()`."""


class TransactionManager(Protocol):
    """Begins transactions, and ends those that a failure has left prepared."""

    async def begin(self, resources: Mapping[Role, TwoPhaseSession]) -> Transaction:
        """Begin a transaction with a branch on each resource.

        Args:
            resources: sessions of both sides; what they do from now on belongs to it.
        """

    async def recover(self, resources: Mapping[Role, TwoPhaseSession]) -> float | None:
        """End the transactions that earlier connections have left, as they were decided.

        Args:
            resources: sessions of both sides, without a transaction.

        Returns:
            Seconds after which it is to be called again, as something may turn up that a side does
            not know yet; None where the next connection is soon enough.
        """
