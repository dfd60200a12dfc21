"""The only place that opens stores: files, tables or none, from plain options.

    lock ─▶ bindings open ─▶ messages open ─▶ (recovery loads both) ─▶ activated ─▶ … ─▶ close

The lock is looked at first and goes last: two brokers on one folder, or one set of
tables, would each write what the other does not know of.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol, Unpack, cast

from broker.model.wire import RecordType
from broker.storage.history import MessageHistory
from broker.storage.large_files import LargeFiles
from broker.storage.large_tables import LargeTable
from broker.storage.node_lock import NodeLock
from broker.storage.page_folders import FileFolders
from broker.storage.page_tables import TableFolders
from broker.storage.waiting import StartWait
from journal import Journal
from journal.errors import JournalError, JournalLocked, OptionError
from journal.folder import JournalName, list_files
from journal.options import JournalOptions, JournalType
from journal.reader import check_headers

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.storage.large_bodies import LargeBodies
    from broker.storage.loop_store import LoopStore
    from broker.storage.page_folders import PageFolders
    from jdbcstore.node import NodeManager
    from jdbcstore.options import DatabaseStoreOptions
    from journal.api import RecordStore
    from journal.options import JournalSettings

__all__ = [
    "FileStoreOptions",
    "Ownership",
    "Stores",
    "bindings_options",
    "messages_options",
    "open_stores",
    "take_lease",
    "transaction_log_store",
]

# Where the system keeps temporary files that may be large: not in memory, as /tmp may be.
LARGE_TEMPORARY_FOLDER: Final = "/var/tmp"
LOCKED_PAUSE_S: Final = 0.1  # Before a pair's folder is looked at again that another one took.
TRANSACTION_LOG_FILE_SIZE: Final = 64 * 1024
BINDINGS_FILE_SIZE: Final = 1048576  # JournalStorageManager: fixed, and always NIO.
# Of updates of these only the last matters, which compaction may use (JournalStorageManager).
REPLACEABLE: Final = frozenset(
    (int(RecordType.UPDATE_DELIVERY_COUNT), int(RecordType.SET_SCHEDULED_DELIVERY_TIME))
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileStoreOptions:
    """Where and how the two journals of a broker are kept.

    Attributes:
        bindings: of the bindings journal; see `bindings_options`.
        messages: of the message journal; see `messages_options`.
        large_messages: large-messages-directory; None is `largemessages` beside the journal.
        paging: paging-directory; None is `paging` beside the journal.
        lock_directory: node-manager-lock-directory; None is the message journal's folder.
        lock_timeout_ms: milliseconds to wait for another broker to end; -1 for ever, 0 not at all.
    """

    bindings: JournalOptions
    messages: JournalOptions
    large_messages: Path | None = None
    paging: Path | None = None
    lock_directory: Path | None = None
    lock_timeout_ms: int = 0

    def check_folders(self) -> None:
        """See that no two kinds of data lie in one folder, by whatever path it is reached.

        Raises:
            OptionError: two do.
        """
        folders = {
            "journal-directory": self.messages.directory,
            "bindings-directory": self.bindings.directory,
            "paging-directory": _paging_folder(self),
            "large-messages-directory": _large_folder(self),
            "journal-retention-directory": self.messages.retention_directory,
        }
        found: dict[Path, str] = {}
        for name, folder in folders.items():
            if folder is None:
                continue
            other = found.setdefault(folder.resolve(), name)
            if other != name:
                raise OptionError(
                    f"{name} is {folder}, the folder of {other}; each needs one of its own"
                )


def bindings_options(
    directory: str | os.PathLike[str], **changes: Unpack[JournalSettings]
) -> JournalOptions:
    """Give the options of a bindings journal: NIO, files of 1 MiB, `activemq-bindings-N.bindings`.

    Raises:
        OptionError: a changed option is outside its range.
    """
    return JournalOptions(
        directory=Path(directory),
        prefix="activemq-bindings",
        extension="bindings",
        file_size=BINDINGS_FILE_SIZE,
        journal_type=JournalType.NIO,
        lock_acquisition_timeout_ms=0,
    ).replace(**changes)


def messages_options(
    directory: str | os.PathLike[str], **changes: Unpack[JournalSettings]
) -> JournalOptions:
    """Give the options of a message journal; `changes` are those of JournalOptions.

    Raises:
        OptionError: a changed option is outside its range.
    """
    return JournalOptions(
        directory=Path(directory), replaceable_types=REPLACEABLE, lock_acquisition_timeout_ms=0
    ).replace(**changes)


def transaction_log_store(directory: str | os.PathLike[str]) -> RecordStore:
    """Give the store of a transaction manager's decisions; not open. Its folder is made by open().

    One record for a transaction that has not ended: files of 64 KiB, NIO, locked against others.

    Args:
        directory: of this log alone.
    """
    return Journal(
        JournalOptions(
            directory=Path(directory),
            prefix="transactions",
            extension="log",
            file_size=TRANSACTION_LOG_FILE_SIZE,
            journal_type=JournalType.NIO,
            lock_acquisition_timeout_ms=0,
        )
    )


class Ownership(Protocol):
    """That this broker, and no other one, has the stores: by a lock, or a lease."""

    @property
    def reason(self) -> str:
        """Why it could take them."""

    @property
    def epoch(self) -> int:
        """Rises with every owner; 0 where they are not counted."""

    @property
    def last_sign_ms(self) -> int | None:
        """When the owner before was alive for the last time that is known, ms since 1970.

        None where there was none, or it has left nothing that tells.
        """

    def check(self) -> bool:
        """See that it has them: asked before answers to clients, and so cheap.

        Returns:
            Whether that is in doubt now, and may be certain again.

        Raises:
            JournalError: it has not, for good.
        """

    def is_awaiting_failback(self) -> bool:
        """Whether a primary has asked for its place back. May wait for a disk or a database.

        Raises:
            JournalError: that cannot be found out now.
        """

    def is_other_waiting(self) -> bool:
        """Whether another broker would serve if this one stopped. May wait as the one before.

        Raises:
            JournalError: that cannot be found out now.
            OSError: likewise.
        """

    def proof_age_s(self) -> float:
        """Give the seconds since it was proved last."""


@dataclass(slots=True)
class Stores:
    """The open stores of one broker; load both before anything is appended.

    Attributes:
        bindings: addresses, queues, settings, ids.
        messages: messages and all that is about them.
        node_id: of this broker, or of the pair it belongs to; UUID as text.
        is_shared: whether other nodes can reach them: a database.
        large: bodies of large messages; None without storage for them.
        pages: of messages; None without storage for them.
        history: of the message journal; None where none is kept.
        folders: that are written to; none of a database.
        spill_folder: on a disk, with room for bytes of messages that wait.
        page_size_max: bytes of one page at most; None as the settings of addresses say.
        sync_transactional: what transactions do is synced (journal-sync-transactional).
        sync_non_transactional: and everything else (journal-sync-non-transactional).
        message_files: `messages`, if it is a journal of files.
        ownership: of what other brokers may want, too; None where none can.
    """

    bindings: LoopStore
    messages: LoopStore
    node_id: str
    is_shared: bool
    large: LargeBodies | None
    pages: PageFolders | None
    history: MessageHistory | None
    folders: tuple[Path, ...]
    spill_folder: Path
    page_size_max: int | None
    sync_transactional: bool
    sync_non_transactional: bool
    _activated: Callable[[], object]
    _paused: Callable[[], object]
    _closers: list[Callable[[], object]]
    _check_lock: Callable[[], object] | None = None
    message_files: Journal | None = None
    ownership: Ownership | None = None

    def activated(self) -> None:
        """Say that the broker has loaded and serves.

        Raises:
            JournalError: the lock was lost, or cannot be written.
        """
        self._activated()

    def check_lock(self) -> None:
        """See that the lock is still held; a database's lease is looked after by itself.

        Raises:
            JournalIOError: it is not, or that cannot be found out.
        """
        if self._check_lock is not None:
            self._check_lock()

    def close(self, *, in_good_order: bool) -> None:
        """Close both stores and give the lock up; the first error is raised when all is closed.

        Args:
            in_good_order: no backup has to take over.

        Raises:
            JournalError: a store had failed, or fails now.
        """
        closers = [self.messages.close, self.bindings.close, *self._closers]
        if in_good_order:
            closers.insert(2, self._paused)
        if self.large is not None:
            # What is being written proves the lease, and ends before that goes.
            closers.insert(0, self.large.close)
        _close_all(closers)


def _close_all(closers: list[Callable[[], object]]) -> None:
    first: JournalError | None = None
    for closer in closers:
        try:
            closer()
        except JournalError as error:
            first = first or error
    if first is not None:
        raise first


def open_stores(
    options: FileStoreOptions | DatabaseStoreOptions,
    *,
    on_lost: Callable[[Exception], object],
    is_backup: bool = False,
    is_pair: bool = False,
    wait: StartWait | None = None,
) -> Stores:
    """Take the lock and open both stores; nothing is loaded yet. May be called in a thread.

    Args:
        options: of files, or of a database.
        on_lost: called, from a thread of the lock or lease, when that is lost; the broker has to
            stop.
        is_backup: of a pair on one store: the lock is taken once the primary has failed, or has
            stopped with failover-on-shutdown.
        is_pair: one of a pair: the primary asks a backup that serves for its place.
        wait: what another thread interrupts while the lock is waited for.

    Raises:
        JournalLocked: another broker has them.
        JournalClosed: the wait was interrupted.
        JournalIOError: a device or database fails.
        UnsupportedFormat: a journal is of another format or user version; nothing was written.
        OptionError: the database's URL or driver is not known; two kinds of data would lie in one
            folder or table.
    """
    wait = wait or StartWait()
    if isinstance(options, FileStoreOptions):
        lock = NodeLock(
            options.lock_directory or options.messages.directory,
            is_backup=is_backup,
            is_pair=is_pair or is_backup,
            on_lost=on_lost,
        )
        return _open_files(options, lock, wait)
    return _open_tables(options, on_lost, wait, is_backup=is_backup)


def _large_folder(options: FileStoreOptions) -> Path:
    return options.large_messages or options.messages.directory.parent / "largemessages"


def _paging_folder(options: FileStoreOptions) -> Path:
    return options.paging or options.messages.directory.parent / "paging"


def _folders(options: FileStoreOptions) -> tuple[Path, ...]:
    return (
        options.messages.directory,
        options.bindings.directory,
        _paging_folder(options),
        _large_folder(options),
    )


def _open_files(options: FileStoreOptions, lock: NodeLock, wait: StartWait) -> Stores:
    options.check_folders()
    try:
        while True:
            lock.await_free(options.lock_timeout_ms, sleep=wait.sleep, on_wait=wait.waits)
            try:
                return _open_free_files(options, lock, wait)
            except JournalLocked:
                # Another one was faster.
                if options.lock_timeout_ms >= 0:
                    raise
            wait.sleep(LOCKED_PAUSE_S)
    except BaseException:
        lock.release()
        raise


def _open_free_files(options: FileStoreOptions, lock: NodeLock, wait: StartWait) -> Stores:
    bindings, messages = Journal(options.bindings), Journal(options.messages)
    try:
        bindings.open()
        messages.open()
        # Of both, before either is written to.
        _check_headers(options.bindings)
        _check_headers(options.messages)
        # Behind them: see NodeLock.acquire().
        lock.acquire(sleep=wait.sleep)
        # From here on: what lost the lock writes no more, whatever it has accepted.
        bindings.guard_writes(lock.guard)
        messages.guard_writes(lock.guard)
        large = LargeFiles(_large_folder(options), lock.check)
    except BaseException:
        _close_all([messages.close, bindings.close, lock.release])
        raise
    return Stores(
        bindings=cast("LoopStore", bindings),
        messages=cast("LoopStore", messages),
        node_id=lock.node_id,
        is_shared=False,
        large=large,
        pages=FileFolders(_paging_folder(options), lock.check),
        history=MessageHistory(messages) if options.messages.retention_directory else None,
        folders=_folders(options),
        spill_folder=options.messages.directory,
        page_size_max=None,
        sync_transactional=options.messages.sync_transactional,
        sync_non_transactional=options.messages.sync_non_transactional,
        _activated=lock.activated,
        _paused=lock.paused,
        _closers=[lock.release],
        _check_lock=lock.look_after,
        message_files=messages,
        ownership=lock,
    )


def _check_headers(options: JournalOptions) -> None:
    name = JournalName(options.prefix, options.extension)
    check_headers(list_files(options.directory, name), user_version=options.user_version)


def take_lease(node: NodeManager, *, is_backup: bool, wait: StartWait | None = None) -> None:
    """Wait until the tables are this broker's: the primary's lease is held then.

    Args:
        node: not started.
        is_backup: of a pair: it waits until the primary fails.
        wait: is told that another broker is waited for.

    Raises:
        JournalClosed: node.interrupt() was called.
        JournalIOError: the database fails.
    """
    node.start()

    def waits() -> None:
        if wait is not None:
            wait.waits(node.node_id)

    if is_backup:
        waits()
        node.start_backup()
        node.await_primary()
        node.release_backup()
    else:
        node.start_primary(on_wait=waits)


def _open_tables(
    options: DatabaseStoreOptions,
    on_lost: Callable[[Exception], object],
    wait: StartWait,
    *,
    is_backup: bool,
) -> Stores:
    # Here, for a broker on files runs without SQLAlchemy.
    from jdbcstore import Database, NodeManager, SqlStore
    from jdbcstore.blobs import SqlFiles
    from jdbcstore.pages import PageStores

    options.check_tables()
    database = Database(options)
    node = NodeManager(database, on_lost=on_lost)
    wait.on_interrupt(node.interrupt)
    try:
        take_lease(node, is_backup=is_backup, wait=wait)
        bindings = SqlStore(
            options, options.bindings_table_name, database=database, lease=node.primary_lease
        )
        messages = SqlStore(
            options,
            options.message_table_name,
            database=database,
            lease=node.primary_lease,
        )
        pages = PageStores(database, fence=node.primary_lease)
        bodies = SqlFiles(database, options.large_message_table_name, fence=node.primary_lease)
        try:
            bindings.open()
            messages.open()
            pages.start()
            bodies.start()
        except BaseException:
            _close_all([messages.close, bindings.close])
            raise
    except BaseException:
        _close_all([node.stop, database.close])
        raise
    large = LargeTable(bodies)
    return Stores(
        bindings=bindings,
        messages=messages,
        node_id=node.node_id,
        is_shared=True,
        large=large,
        history=None,
        pages=TableFolders(pages),
        folders=(),
        spill_folder=Path(os.environ.get("TMPDIR") or LARGE_TEMPORARY_FOLDER),
        page_size_max=options.max_page_size_bytes,
        # Replies wait for the database in any case, see config/unsupported.py.
        sync_transactional=True,
        sync_non_transactional=True,
        _activated=node.activated,
        _paused=node.pause_primary,
        _closers=[node.stop, database.close],
        ownership=node,
    )
