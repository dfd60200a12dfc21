"""The storage interface: `RecordStore`, implemented by the file journal and the SQL store.

`journal.Journal` (files), the SQL store and the memory store implement `RecordStore` and pass one
contract suite (tests/contract). A new thing to persist is a record type, never a store method.

    open() ─ load() ─ add, update, delete, prepare, commit, rollback ... ─ close()

Tickets. Every append returns a ticket, an int that never falls. `wait(ticket)` returns once all
that was appended up to it is durable, so one wait does for many appends. `done` callbacks run in
append order, from reap() or the event loop; `durable(ticket)` is the same as an awaitable.

Errors are those of journal.errors. After a failed write or sync the store is closed: every waiter
gets the error, and only a new open() tells what survived.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from typing_extensions import Buffer

    from journal.delivery import LiveRecord
    from journal.loaded import FailedTransaction, LoadResult, PreparedTransaction
    from journal.reader import FileView

__all__ = ["Done", "Progress", "RecordDecoder", "RecordId", "RecordStore", "Ticket", "TxId"]

RecordId: TypeAlias = int
TxId: TypeAlias = int
Ticket: TypeAlias = int
Done: TypeAlias = "Callable[[Exception | None], object]"
# progress(files done, files in all, bytes or rows done, of how many)
Progress: TypeAlias = "Callable[[int, int, int, int], object]"


@runtime_checkable
class RecordStore(Protocol):
    """Records with an id, appended, updated and deleted, alone or in transactions.

    Durability: with `sync` a record is acknowledged (the call returns, `done` runs, the future
    ends) only after it and everything before it would survive a power failure. Without, it is
    accepted and follows in order. `sync=None` takes the store's configured default. With
    `flush_now=False` a record has no waiter: it is synced with the next sync, at the latest when
    the store's timer ends. It costs no sync of its own.

    A full disk: a store on files refuses records with JournalFull and goes on. What
    makes room is accepted all the same, from files made ahead: deletes, the ends of transactions,
    and what the caller says so of (`makes_room=True`), such as an acknowledgement.

    Threads: any number may append and wait.
    """

    def open(self) -> None:
        """Take the store: create what is missing and lock out other owners.

        Raises:
            JournalLocked: somebody else has it.
            JournalIOError: the device fails.
        """
        ...

    def load(
        self,
        on_batch: Callable[[Sequence[Any]], object] | None = None,
        *,
        progress: Callable[[int, int, int, int], object] | None = None,
    ) -> LoadResult:
        """Read back what counts, in log order, then accept appends.

        Args:
            on_batch: called with batches of live records, LiveRecord or, of the SQL store,
                SqlRecord; bodies are valid during the call.
            progress: called as progress(files_done, files_total, bytes_done, bytes_total).

        Returns:
            Counts and damage; `prepared` has the prepared transactions, to be committed or rolled
            back by their `tx_id`.

        Raises:
            JournalDamaged: acknowledged data cannot be read back.
            UnsupportedFormat: it was written by something this store does not read.
        """
        ...

    def add(
        self,
        record_id: RecordId,
        user_type: int,
        body: Buffer,
        *,
        tx: TxId | None = None,
        sync: bool | None = None,
        done: Done | None = None,
        wait: bool = True,
        flush_now: bool = True,
        makes_room: bool = False,
    ) -> Ticket:
        """Append a record with an id that was never used before."""
        ...

    def add_many(
        self,
        record_ids: Sequence[RecordId],
        user_type: int,
        bodies: Sequence[bytes],
        *,
        tx: TxId | None = None,
        sync: bool | None = None,
        done: Done | None = None,
        wait: bool = True,
    ) -> Ticket:
        """Append many records with one call and at most one wait."""
        ...

    def update(
        self,
        record_id: RecordId,
        user_type: int,
        body: Buffer,
        *,
        tx: TxId | None = None,
        sync: bool | None = None,
        done: Done | None = None,
        wait: bool = True,
        flush_now: bool = True,
        makes_room: bool = False,
    ) -> Ticket:
        """Append an update of a live record.

        Raises:
            UnknownRecord: it is not live (not checked in a transaction).
        """
        ...

    def delete(
        self,
        record_id: RecordId,
        body: Buffer = b"",
        *,
        tx: TxId | None = None,
        sync: bool | None = None,
        done: Done | None = None,
        wait: bool = True,
    ) -> Ticket:
        """Append a delete of a live record.

        Raises:
            UnknownRecord: it is not live (not checked in a transaction).
        """
        ...

    def prepare(
        self,
        tx: TxId,
        extra: Buffer = b"",
        *,
        sync: bool | None = None,
        done: Done | None = None,
        wait: bool = True,
    ) -> Ticket:
        """Let the transaction survive as prepared, until it is committed or rolled back."""
        ...

    def commit(
        self,
        tx: TxId,
        *,
        sync: bool | None = None,
        done: Done | None = None,
        wait: bool = True,
        flush_now: bool = True,
    ) -> Ticket:
        """Let all of the transaction count, at once; `flush_now` is as for add().

        Raises:
            UnknownTransaction: it has no record, or has ended.
        """
        ...

    def rollback(
        self,
        tx: TxId,
        *,
        sync: bool | None = None,
        done: Done | None = None,
        wait: bool = True,
    ) -> Ticket:
        """Let none of the transaction count.

        Raises:
            UnknownTransaction: it has no record, or has ended.
        """
        ...

    def wait(self, ticket: Ticket) -> None:
        """Return once everything up to `ticket` is durable.

        Raises:
            JournalIOError: the device failed.
        """
        ...

    def flush_now(self) -> None:
        """Make durable, as soon as possible, what was appended without flush_now; do not wait."""
        ...

    def prewarm(self) -> None:
        """Wake the flusher for a record that a caller will wait for; the record may not come."""
        ...

    def reserve_ends(self, count: int) -> bool:
        """Reserve room for `count` more records that free space, beside those for live records.

        The last count holds. Returns at once.

        Returns:
            False while a full disk has no room for them.
        """
        ...

    def durable(self, ticket: Ticket) -> Awaitable[None]:
        """The same as an awaitable of the running event loop."""
        ...

    def sync(self) -> None:
        """Return once everything accepted so far is durable."""
        ...

    def reap(self) -> int:
        """Run the callbacks that are due; how many."""
        ...

    def compact(self) -> object:
        """Remove dead records now; appends go on meanwhile."""
        ...

    def close(self) -> None:
        """Make everything accepted durable and give the store up. Idempotent."""
        ...


class RecordDecoder(Protocol):
    """What reads the bodies of records for people: found by entry point, never imported.

    The group is `quiver.journal.decoders`; the broker registers one for its own records. Nothing
    here raises on damaged bodies.
    """

    def decode(
        self, user_type: int, body: bytes, *, record_id: int, is_update: bool
    ) -> dict[str, Any] | None:
        """The record as JSON values; None when the type is not known. Damage is `{"error": …}`."""
        ...

    def print_files(self, path: str, files: Iterable[FileView]) -> Iterator[str]:
        """Lines for every record of every file, in Artemis's words (`data print`)."""
        ...

    def beside(self, folder: Path) -> list[Path]:
        """Folders that are not empty, and that the records of the journal in `folder` refer to."""
        ...

    def print_surviving(
        self,
        committed: Iterable[LiveRecord],
        prepared: Iterable[PreparedTransaction],
        failed: Iterable[FailedTransaction],
    ) -> Iterator[str]:
        """Lines for what a load gave."""
        ...
