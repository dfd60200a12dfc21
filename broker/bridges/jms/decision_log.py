"""The decisions of a transaction manager, kept in a journal.

A record each: the log's own identity, once; every transaction that may have begun; every decision
to commit, until both sides have heard of it. What may have begun and is not decided is rolled back,
and so is what has no record at all (presumed abort).

    decide(n):   may begin n + 1 │ commit n       two records, one sync
    begin():     n + 1

A transaction has its record before any broker hears of it: a branch that has ended and is not
prepared is in no list of a broker, and holds messages. The record of the next one goes with the
decision about this one, so that it costs no sync of its own. So do as many as are decided at once.

Durability: `begin()` and `decide()` return once their records would survive a power failure.
Nothing else waits: a record that is still there after a crash is told once more, which changes
nothing.
Thread: the bridge's event loop; the store blocks threads of the loop's executor.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Final

from broker.bridges.jms.errors import BridgeError
from journal.errors import JournalFull

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from broker.environment import Ids
    from journal.api import RecordStore

__all__ = ["PREFIX_SIZE", "DecisionLog"]

# User types of its records.
IDENTITY: Final = 1
COMMIT: Final = 2
BEGUN: Final = 3
_IDENTITY_SIZE: Final = 16
_SEQUENCE_SIZE: Final = 8
# Of a global id: identity and sequence of the log that made it; the bridge's name follows.
PREFIX_SIZE: Final = _IDENTITY_SIZE + _SEQUENCE_SIZE


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
        # By user type, global transaction ids and their records.
        self._records: dict[int, dict[bytes, int]] = {BEGUN: {}, COMMIT: {}}
        # Have their records, and no broker has heard of them yet.
        self._spare: deque[bytes] = deque()
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
            elif record.user_type in self._records:
                self._records[record.user_type][bytes(record.body)] = record.record_id

    def _new_id(self) -> int:
        found, self._next_id = self._next_id, self._next_id + 1
        return found

    def _new_transaction(self, name: bytes) -> bytes:
        sequence, self._next_sequence = self._next_sequence, self._next_sequence + 1
        return self.identity + sequence.to_bytes(_SEQUENCE_SIZE, "big") + name

    async def begin(self, name: str, spare: int = 0) -> bytes:
        """Give the global id of a new transaction: at most 64 bytes, as the XA standard says.

        Returns once a restart would find that it may have begun.

        Args:
            name: of the bridge, for operators.
            spare: how many more to record, for later calls, where this one records any.

        Raises:
            JournalFull: there is no room; nothing has begun, and the log goes on.
            JournalError: the log has failed.
        """
        if self._spare and self._spare[0][PREFIX_SIZE:] != name.encode():
            self._spare.clear()
        if not self._spare:
            made = [self._new_transaction(name.encode()) for _ in range(1 + spare)]
            await self._add(*((BEGUN, one) for one in made))
            self._spare.extend(made)
        return self._spare.popleft()

    async def _add(self, *records: tuple[int, bytes]) -> None:
        """Append records, by user type and global id; return once they are durable.

        Cancelled, they are written all the same, and count if they are there.
        """
        ids = [self._new_id() for _ in records]
        last = ids[-1]
        added: list[tuple[int, bytes, int]] = []

        def add() -> None:
            ticket = None
            try:
                for record_id, (user_type, transaction) in zip(ids, records, strict=True):
                    # Synced in their order: the last one says so for all.
                    is_last = record_id == last
                    ticket = self._store.add(record_id, user_type, transaction, sync=is_last)
                    added.append((user_type, transaction, record_id))
            except JournalFull:
                # Those before it count: what is told of them must be durable.
                if ticket is not None:
                    self._store.wait(ticket)
                raise

        writing = asyncio.ensure_future(asyncio.to_thread(add))
        try:
            await asyncio.shield(writing)
        finally:
            await asyncio.wait((writing,))
            # If this is cancelled, no caller gets it, and asyncio would report it.
            writing.exception()
            # Of a full log the first one may be there, and the last one is not.
            for user_type, transaction, record_id in added:
                self._records[user_type][transaction] = record_id

    def is_own(self, transaction: bytes) -> bool:
        """Whether a global id was made here."""
        return transaction.startswith(self.identity)

    def is_decided(self, transaction: bytes) -> bool:
        """Whether the transaction is to be committed."""
        return transaction in self._records[COMMIT]

    @property
    def decided(self) -> tuple[bytes, ...]:
        """The transactions that are decided and not forgotten, in the order of the decisions."""
        return tuple(self._records[COMMIT])

    @property
    def decided_count(self) -> int:
        """How many those are."""
        return len(self._records[COMMIT])

    @property
    def undecided(self) -> tuple[bytes, ...]:
        """The transactions that may have begun, and are neither decided nor forgotten."""
        others = {*self._records[COMMIT], *self._spare}
        return tuple(one for one in self._records[BEGUN] if one not in others)

    async def decide(self, *transactions: bytes) -> None:
        """Decide to commit; returns once that is durable.

        Args:
            transactions: global ids, one or more; prepared on both sides.

        Raises:
            BridgeError: one is decided already.
            JournalFull: no room for all of them; `is_decided` tells which are. The log stays open.
            JournalError: whether they are decided shows when the log is opened again.
        """
        for one in transactions:
            if self.is_decided(one):
                raise BridgeError(f"transaction {one.hex()} is decided already")
        name = transactions[0][PREFIX_SIZE:]
        missing = max(0, len(transactions) - len(self._spare))
        following = [self._new_transaction(name) for _ in range(missing)]
        await self._add(
            *((BEGUN, one) for one in following), *((COMMIT, one) for one in transactions)
        )
        self._spare.extend(following)

    def forget(self, transaction: bytes) -> None:
        """It has ended on both sides, for certain.

        Args:
            transaction: global id.
        """
        # The decision last: a beginning alone would be rolled back.
        for user_type in (BEGUN, COMMIT):
            record_id = self._records[user_type].pop(transaction, None)
            if record_id is not None:
                self._store.delete(record_id, sync=False)

    def close(self) -> None:
        """Give the store up. Idempotent."""
        spare, self._spare = self._spare, deque()
        try:
            for one in spare:
                # No broker has heard of it.
                self.forget(one)
        finally:
            self._store.close()
