"""Records from one store into another, whatever the two are: the whole of what a load gives.

Written are the live records in load order, then the prepared transactions. So a load of the target
gives what a load of the source gave: ids, user types, bodies, order, which are updates. Prepared
transactions keep their extra data, deletes and the bodies of these as well. Failed transactions,
which would not apply, are left out.

Records go in groups, each one transaction: what a copy leaves that was cut short is a beginning of
the source, since stores keep the order. So it can go on: the load of the target is compared with
the source record by record (`resume()`), and the rest follows. Nothing but the records themselves
says how far a copy came; they cannot be wrong about it.

An add of an id that is live already, as journals of careless writers hold them, becomes an update
in a table, where Artemis writes updates so. Everything else is the same bit for bit.

Memory: one group, what the source holds to read and the target to know its ids, and the prepared
transactions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from journal.errors import RecordTooLarge, WrongUse

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from journal.delivery import LiveRecord
    from journal.loaded import LoadResult, PreparedTransaction
    from journal.tools.stored import Store

__all__ = ["Copier", "CopyReport", "TargetDiffers", "TargetNotEmpty"]

ID_MIN: Final = -(2**63)
# Ids of the copy's own transactions, which no broker gives: from the least number up.
FIRST_TX: Final = ID_MIN
LAST_TX: Final = ID_MIN + 2**62
TX_RECORD_SIZE: Final = 32  # of the largest record in a transaction, its body left out

# A group stays below what the SQL store keeps of a transaction in memory (1 MiB), and is large
# enough that its commit costs little beside it.
GROUP_RECORDS: Final = 1000
GROUP_SIZE: Final = 512 * 1024


class TargetNotEmpty(WrongUse):
    """The target holds records, and the caller did not allow that."""


class TargetDiffers(WrongUse):
    """What the target holds is not a beginning of the source."""


@dataclass(slots=True)
class CopyReport:
    """What a copy has done.

    Attributes:
        adds: add records written.
        updates: update records written.
        prepared: prepared transactions written.
        present: records and prepared transactions that were there already, of a copy cut short.
        failed: failed transactions of the source, left out.
        damaged: places of the source that could not be read.
    """

    adds: int = 0
    updates: int = 0
    prepared: int = 0
    present: int = 0
    failed: int = 0
    damaged: int = 0


class Copier:
    """Copies one source, once. Threads: one.

    Args:
        records: of the source, in load order.

    Order of calls: the target is loaded, with `compare` as its on_batch where a copy is to go on;
    begin(); write_records(); write_prepared(); finish().
    """

    def __init__(self, records: Iterator[LiveRecord]) -> None:
        self.report = CopyReport()
        self._records = records
        self._prepared_there: dict[int, PreparedTransaction] = {}
        self._next_tx = FIRST_TX

    def compare(self, batch: Sequence[Any]) -> None:
        """Take live records of the target, which must be the next ones of the source.

        Raises:
            TargetDiffers: they are not.
        """
        for found in batch:
            wanted = next(self._records, None)
            if wanted is None or not _is_same(wanted, found):
                raise TargetDiffers(
                    f"the target has record {found.record_id} where the source has"
                    f" {'no more' if wanted is None else f'record {wanted.record_id}'}:"
                    " it is not a beginning of a copy of this source"
                )
            self.report.present += 1

    def begin(self, loaded: LoadResult, *, is_resumed: bool, is_merged: bool) -> None:
        """Look at what the target gave when it was loaded.

        Args:
            loaded: by the target.
            is_resumed: compare() saw its records.
            is_merged: it may hold anything.

        Raises:
            TargetNotEmpty: it holds something, and neither of the two.
        """
        if not is_merged and not is_resumed and (loaded.delivered_count or loaded.prepared):
            raise TargetNotEmpty(
                f"the target holds {loaded.delivered_count} records and {len(loaded.prepared)}"
                " prepared transactions; --resume goes on with a copy that was cut short,"
                " --merge adds to what is there"
            )
        self._prepared_there = {one.tx_id: one for one in loaded.prepared}
        # What a kill left open may still lie in files: its id must not be used for something else.
        used = [one.tx_id for one in loaded.failed if FIRST_TX <= one.tx_id < LAST_TX]
        self._next_tx = max(used, default=FIRST_TX - 1) + 1

    def write_records(self, store: Store, *, is_merged: bool = False) -> None:
        """Write the records of the source that are left; accepted when this returns.

        Raises:
            WrongUse: with `is_merged`: a record is there already; a body is too large.
            JournalIOError: a store fails.
        """
        tx: int | None = None
        count = size = 0
        for record in self._records:
            body = bytes(record.body)
            _check_size(store, body)
            if tx is None:
                tx = self._next_tx
                self._next_tx += 1
            if record.is_update:
                store.update(record.record_id, record.user_type, body, tx=tx, wait=False)
                self.report.updates += 1
            else:
                if is_merged and record.record_id in store:
                    if count:
                        store.rollback(tx, sync=False, wait=False)
                    raise WrongUse(
                        f"record {record.record_id} is in the target already;"
                        f" {self.report.adds + self.report.updates - count} records before it were"
                        " copied"
                    )
                store.add(record.record_id, record.user_type, body, tx=tx, wait=False)
                self.report.adds += 1
            count += 1
            size += len(body)
            if count >= GROUP_RECORDS or size >= GROUP_SIZE:
                store.commit(tx, sync=False, wait=False)
                tx = None
                count = size = 0
        if tx is not None:
            store.commit(tx, sync=False, wait=False)

    def write_prepared(self, store: Store, prepared: Iterable[PreparedTransaction]) -> None:
        """Write the prepared transactions of the source; accepted when this returns.

        Raises:
            TargetDiffers: the target has another one of the same id.
            RecordTooLarge: a body is too large.
            JournalIOError: a store fails.
        """
        for one in prepared:
            there = self._prepared_there.get(one.tx_id)
            if there is not None:
                if not _is_same_transaction(one, there):
                    raise TargetDiffers(f"the target has another transaction {one.tx_id}")
                self.report.present += 1
                continue
            if FIRST_TX <= one.tx_id < self._next_tx:
                raise WrongUse(f"transaction {one.tx_id} has an id that the copy itself used")
            for body in (one.extra, *(delete.body for delete in one.deletes)):
                _check_size(store, body)
            for record in one.records:
                body = bytes(record.body)
                _check_size(store, body)
                write = store.update if record.is_update else store.add
                write(record.record_id, record.user_type, body, tx=one.tx_id, wait=False)
            for delete in one.deletes:
                store.delete(delete.record_id, delete.body, tx=one.tx_id, wait=False)
            store.prepare(one.tx_id, one.extra, sync=False, wait=False)
            self.report.prepared += 1

    def finish(self, store: Store) -> CopyReport:
        """Make all of it durable.

        Raises:
            JournalIOError: the target fails.
        """
        store.sync()
        return self.report


def _is_same(wanted: LiveRecord, found: Any) -> bool:  # noqa: ANN401 - a record of any store.
    return (
        wanted.record_id == found.record_id
        and wanted.user_type == found.user_type
        and bytes(wanted.body) == bytes(found.body)
        # Of an id that is live an add becomes an update in a table; see above.
        and (found.is_update or not wanted.is_update)
    )


def _is_same_transaction(wanted: PreparedTransaction, found: PreparedTransaction) -> bool:
    return (
        wanted.extra == found.extra
        and len(wanted.records) == len(found.records)
        and all(map(_is_same, wanted.records, found.records))
        and [(one.record_id, one.body) for one in wanted.deletes]
        == [(one.record_id, one.body) for one in found.deletes]
    )


def _check_size(store: Store, body: bytes) -> None:
    """Refuse what does not fit before the engine does: that would end the transaction."""
    room = store.record_size_max - TX_RECORD_SIZE
    if len(body) > room:
        raise RecordTooLarge(
            f"a body of {len(body)} bytes; at most {room} fit the target: see --file-size and"
            " --buffer-size"
        )
