"""Ids for everything: messages, queues, addresses, transactions and all other records.

One counter, never reset. The journal does not learn of each id. Record 24 says up to where they may
have been given out, a step of 2**31 - 1 ahead; one at a clean stop says the exact place. After a
crash ids go on behind the step (BatchingIDGenerator).

    fresh    0 is given out, record 24 has id 1 and value 2147483647; ids go on with 2
    stop     record 24, id = value = n         start    ids go on with n + 1
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker.records.binding_records import IdCounter
from broker.records.records import encode_record

if TYPE_CHECKING:
    from journal.api import RecordStore

__all__ = ["CHECKPOINT_SIZE", "IdGenerator"]

CHECKPOINT_SIZE: Final = 2**31 - 1  # JournalStorageManager.CHECKPOINT_BATCH_SIZE


class IdGenerator:
    """Gives ids that no record on disk has, and none will have twice.

    Args:
        store: of the bindings; None keeps nothing, for a broker without persistence.
        checkpoint_size: ids between two records.
    """

    __slots__ = ("_checkpoint_size", "_limit", "_loaded_records", "_next", "_store")

    def __init__(self, store: RecordStore | None, checkpoint_size: int = CHECKPOINT_SIZE) -> None:
        self._store = store
        self._checkpoint_size = checkpoint_size
        self._next = 0
        self._limit = 0
        self._loaded_records: list[int] = []

    def loaded(self, record_id: int, counter: IdCounter) -> None:
        """Record 24 was read back; the last one counts."""
        self._next = self._limit = counter.value + 1
        self._loaded_records.append(record_id)

    def clean_up(self) -> None:
        """After the load: delete all records but the last, without waiting."""
        if self._store is not None:
            for record_id in self._loaded_records[:-1]:
                self._store.delete(record_id, sync=False, wait=False)
        del self._loaded_records[:-1]

    def skip_to(self, used_id: int) -> None:
        """No id up to `used_id` is given out: it was seen on disk."""
        self._next = max(self._next, used_id + 1)

    def new_id(self) -> int:
        """Give an id. Once in 2**31 ids this waits for the disk.

        Raises:
            JournalIOError: the step could not be recorded.
        """
        given = self._next
        self._next = given + 1
        if given >= self._limit:
            self._take_step()
        return given

    def _take_step(self) -> None:
        self._limit = max(self._limit, self._next - 1) + self._checkpoint_size
        if self._store is not None:
            record_id = self._next
            self._next += 1
            body = encode_record(IdCounter(self._limit))
            # Before an id of the step is used, or a crash would give it out again. On a full disk,
            # too: consumers need ids.
            self._store.add(record_id, IdCounter.record_type, body, sync=True, makes_room=True)

    def stop(self) -> None:
        """At a clean stop: record the exact place, durably."""
        if self._store is not None:
            here = self._next
            self._next += 1
            body = encode_record(IdCounter(here))
            self._store.add(here, IdCounter.record_type, body, sync=True, makes_room=True)
