"""What outlives a store in memory: a log of records, and its disk with their faults.

appended │ written │ synced        a crash leaves a prefix, see `RecordLog.crash`
"""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING, Any, NamedTuple

from journal.errors import JournalIOError
from journal.loaded import DeletedRecord, FailedTransaction, PreparedTransaction

if TYPE_CHECKING:
    import random

    from tests.sim.store import MemoryStore

NOTHING, ADD, UPDATE, DELETE, PREPARE, COMMIT, ROLLBACK = range(7)


class Entry(NamedTuple):
    """One record of the log; `tx` None counts by itself."""

    kind: int
    record_id: int = 0
    user_type: int = 0
    body: bytes = b""
    tx: int | None = None


class MemoryRecord(NamedTuple):
    """A live record, as a load gives it."""

    record_id: int
    is_update: bool
    user_type: int
    body: bytes
    compact_count: int = 0


class Disk:
    """What the stores of one node have in common, and its faults.

    Attributes:
        write_s, sync_s: least and most seconds of each.
        is_full: what adds is refused.
        fails: the next write or sync fails.
        fails_to_sync: the next sync does.
        writes, syncs: so far.
    """

    def __init__(self, seeded: random.Random) -> None:
        self.seeded = seeded
        self.write_s = (0.00001, 0.0002)
        self.sync_s = (0.0001, 0.002)
        self.is_full = False
        self.fails = self.fails_to_sync = False
        self.writes = self.syncs = 0

    @property
    def is_failing(self) -> bool:
        """Whether a sync would fail."""
        return self.fails or self.fails_to_sync

    def check_sync(self, what: str) -> None:
        """See that it can be synced.

        Raises:
            JournalIOError: it fails.
        """
        self.check(what)
        if self.fails_to_sync:
            raise JournalIOError(errno.EIO, what, "in memory")

    def check(self, what: str) -> None:
        """See that it can be used.

        Raises:
            JournalIOError: it fails.
        """
        if self.fails:
            raise JournalIOError(errno.EIO, what, "in memory")

    def duration(self, bounds: tuple[float, float]) -> float:
        """Seconds, by the seed."""
        return bounds[0] + self.seeded.random() * (bounds[1] - bounds[0])


class RecordLog:
    """What outlives a store.

    Attributes:
        entries: in log order.
        written, synced: so many of them.
        is_torn: a write failed: how much is there is not known.
        owner: the store that is open.
    """

    def __init__(self, disk: Disk) -> None:
        self.disk = disk
        self.entries: list[Entry] = []
        self.written = self.synced = 0
        self.is_torn = False
        self.owner: MemoryStore | None = None

    def crash(self, seeded: random.Random, *, is_power: bool) -> int:
        """Leave one of the states that a crash may; how many entries were lost."""
        owner, self.owner = self.owner, None
        if owner is not None:
            owner.is_dead = True
        count = len(self.entries)
        least = self.synced if is_power or self.is_torn else self.written
        del self.entries[seeded.randint(least, count) :]
        self.written = self.synced = len(self.entries)
        self.is_torn = False
        return count - self.written


def replay(
    entries: list[Entry],
) -> tuple[list[MemoryRecord], list[PreparedTransaction], list[FailedTransaction], int]:
    """What counts, in log order: records, transactions prepared and left open, the largest id."""
    records: list[MemoryRecord | None] = []
    places: dict[int, list[int]] = {}
    transactions: dict[int, list[Entry]] = {}
    extras: dict[int, bytes] = {}
    max_id = -1

    def apply(entry: Entry) -> None:
        if entry.kind == DELETE:
            for place in places.pop(entry.record_id, ()):
                records[place] = None
            return
        is_update = entry.kind == UPDATE
        places.setdefault(entry.record_id, []).append(len(records))
        records.append(MemoryRecord(entry.record_id, is_update, entry.user_type, entry.body))

    for entry in entries:
        kind, tx = entry.kind, entry.tx
        if kind in (ADD, UPDATE):
            max_id = max(max_id, entry.record_id)
        if kind == NOTHING:
            continue
        if tx is None:
            apply(entry)
        elif kind == COMMIT:
            extras.pop(tx, None)
            operations = transactions.pop(tx, ())
            for operation in operations:
                if operation.kind != DELETE:
                    apply(operation)
            for operation in operations:
                if operation.kind == DELETE:
                    apply(operation)
        elif kind == ROLLBACK:
            extras.pop(tx, None)
            transactions.pop(tx, None)
        elif kind == PREPARE:
            transactions.setdefault(tx, [])
            extras[tx] = entry.body
        else:
            transactions.setdefault(tx, []).append(entry)
    prepared, failed = [], []
    for tx, operations in transactions.items():
        parts = _parts(operations)
        if tx in extras:
            prepared.append(PreparedTransaction(tx, extras[tx], *parts))
        else:
            failed.append(FailedTransaction(tx, *parts))
    return [one for one in records if one is not None], prepared, failed, max_id


def _parts(
    operations: list[Entry],
) -> tuple[tuple[MemoryRecord, ...], tuple[DeletedRecord, ...]]:
    records = tuple(
        MemoryRecord(one.record_id, one.kind == UPDATE, one.user_type, one.body)
        for one in operations
        if one.kind != DELETE
    )
    return records, tuple(
        DeletedRecord(one.record_id, one.body) for one in operations if one.kind == DELETE
    )


def operations_of(prepared: PreparedTransaction) -> list[Entry]:
    entries = [
        Entry(UPDATE if one.is_update else ADD, one.record_id, one.user_type, one.body)
        for one in prepared.records
    ]
    return entries + [Entry(DELETE, one.record_id) for one in prepared.deletes]


def number_of(value: Any) -> int:
    """An id."""
    if not isinstance(value, int):
        raise TypeError(f"{value!r} is not an id")
    if not -(2**63) <= value < 2**63:
        raise OverflowError(f"{value} is not an id")
    return value


def tx_of(value: Any, *, is_needed: bool = False) -> int | None:
    """The id of a transaction; None where it is none."""
    return value if value is None and not is_needed else number_of(value)


def type_of(value: Any) -> int:
    """A user type."""
    if not isinstance(value, int):
        raise TypeError(f"{value!r} is not a user type")
    if not 0 <= value < 256:
        raise ValueError(f"{value} is not a user type")
    return value


def data_of(body: Any) -> bytes:
    """The bytes of a body."""
    return body if type(body) is bytes else bytes(memoryview(body))
