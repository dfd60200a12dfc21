"""The decisions of a transaction manager, kept in a journal.

A record each: the log's own identity, once; every transaction that was begun; every decision to
commit, until both sides have heard of it. What was begun and not decided is rolled back, and so is
what has no record at all (presumed abort).

Durability: `decide()` returns once the decision would survive a power failure. Nothing else waits:
a decision that is still there after a crash is told once more, which changes nothing; a beginning
that is not there leaves a branch to the broker's transaction-timeout.
Thread: the bridge's event loop; the store blocks threads of the loop's executor.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from broker.bridges.jms.errors import BridgeError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from broker.environment import Ids
    from journal.api import RecordStore

__all__ = ["DecisionLog"]

# User types of its records.
IDENTITY: Final = 1
COMMIT: Final = 2
BEGUN: Final = 3
_SEQUENCE_SIZE: Final = 8


class DecisionLog:
    """See the module's text.

    Args:
        store: of this log alone; not open.
        ids: make its identity.

    Attributes:
        identity: 16 bytes that name this log for good.
    """

    def __init__(self, store: RecordStore, ids: Ids) -> None:
        self._store = store
        self._ids = ids
        self.identity = b""
        # Global transaction id: its record.
        self._decisions: dict[bytes, int] = {}
        self._begun: dict[bytes, int] = {}
        self._next_id = 1
        self._next_sequence = 1

    def open(self) -> None:
        """Take the store and read it.

        Raises:
            JournalLocked: another bridge has it.
            JournalError: it is damaged, or the device fails.
        """
        self._store.open()
        try:
            self._store.load(self._read)
            if not self.identity:
                self.identity = self._ids.random_uuid().bytes
                self._store.add(self._new_id(), IDENTITY, self.identity, sync=True)
            # Numbers of an earlier run are not used again: one of its branches may be left.
            self._next_sequence = int.from_bytes(self._ids.random_uuid().bytes[:6], "big") << 16
        except BaseException:
            self._store.close()
            raise

    def _read(self, batch: Sequence[Any]) -> None:
        for record in batch:
            self._next_id = max(self._next_id, record.record_id + 1)
            if record.user_type == IDENTITY:
                self.identity = bytes(record.body)
            elif record.user_type == COMMIT:
                self._decisions[bytes(record.body)] = record.record_id
            elif record.user_type == BEGUN:
                self._begun[bytes(record.body)] = record.record_id

    def _new_id(self) -> int:
        found, self._next_id = self._next_id, self._next_id + 1
        return found

    def begin(self, name: str) -> bytes:
        """Give the global id of a new transaction: at most 64 bytes, as the XA standard says.

        Args:
            name: of the bridge, for operators.
        """
        sequence, self._next_sequence = self._next_sequence, self._next_sequence + 1
        transaction = self.identity + sequence.to_bytes(_SEQUENCE_SIZE, "big") + name.encode()
        record_id = self._begun[transaction] = self._new_id()
        self._store.add(record_id, BEGUN, transaction, sync=False)
        return transaction

    def is_own(self, transaction: bytes) -> bool:
        """Whether a global id was made here."""
        return transaction.startswith(self.identity)

    def is_decided(self, transaction: bytes) -> bool:
        """Whether the transaction is to be committed."""
        return transaction in self._decisions

    @property
    def decided(self) -> Iterable[bytes]:
        """The transactions that are decided and not forgotten."""
        return tuple(self._decisions)

    @property
    def undecided(self) -> Iterable[bytes]:
        """The transactions that were begun, and neither decided nor forgotten."""
        return tuple(one for one in self._begun if one not in self._decisions)

    async def decide(self, transaction: bytes) -> None:
        """Decide to commit; returns once that is durable.

        Args:
            transaction: global id; prepared on both sides.

        Raises:
            BridgeError: it is decided already.
            JournalError: whether it is decided shows when the log is opened again.
        """
        if transaction in self._decisions:
            raise BridgeError(f"transaction {transaction.hex()} is decided already")
        record_id = self._new_id()
        writing = asyncio.ensure_future(
            asyncio.to_thread(self._store.add, record_id, COMMIT, transaction, sync=True)
        )
        try:
            await asyncio.shield(writing)
        finally:
            # Cancelled, the record is written all the same: the decision stands if it is there.
            await asyncio.wait((writing,))
            if writing.exception() is None:
                self._decisions[transaction] = record_id

    def forget(self, transaction: bytes) -> None:
        """It has ended on both sides.

        Args:
            transaction: global id.
        """
        # The decision last: a beginning alone would be rolled back.
        for records in (self._begun, self._decisions):
            record_id = records.pop(transaction, None)
            if record_id is not None:
                self._store.delete(record_id, sync=False)

    def close(self) -> None:
        """Give the store up. Idempotent."""
        self._store.close()
