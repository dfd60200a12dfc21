"""The history of a journal: a copy of every file that was filled, kept for a time or up to a size.

    <history>/<prefix>-<yyyyMMddHHmmss>-<file id>.<extension>      local time of the copy

Names are Artemis's (JournalImpl.setHistoryFolder), so its tools and ours read either history.
A copy is written under another name, synced, renamed, and the folder synced: a name in the history
always stands for a whole file. Until its copy is there the journal neither reuses nor compacts a
file (FileCounts.held).

Artemis renames a file to `.bkp` until it is copied, and so makes it invisible to a load that
knows of no history. Here no file changes its name: after a crash, the files with an id above the
newest in the history are those without a copy. Files called `.bkp` that Artemis left are
copied and get their names back, or only that where no history is kept: what they hold was
acknowledged (docs/decisions/0006-copy-to-history-without-renaming.md).

Threads: one at a time.
"""

from __future__ import annotations

import errno
import logging
import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from journal.errors import JournalIOError
from journal.files.base import Folder
from journal.folder import JournalName, list_names, parse_name
from journal.remote import path_of

if TYPE_CHECKING:
    import os
    from collections.abc import Callable
    from pathlib import Path

    from journal.remote import AnyPath

__all__ = ["History", "HistoryFile", "list_history", "restore_names"]

log = logging.getLogger("journal")

COPY_SIZE: Final = 1 << 20
TIME_FORMAT: Final = "%Y%m%d%H%M%S"
BACKUP: Final = ".bkp"
PARTIAL: Final = ".tmp"


@dataclass(frozen=True, slots=True, order=True)
class HistoryFile:
    """One copy in a history; they sort by time.

    Attributes:
        time: local time of the copy, from the name, to the second.
        file_id: of the file when it was copied.
        name: in the history folder.
        path: the whole of it.
    """

    time: datetime
    file_id: int
    name: str
    path: AnyPath


def history_name(name: JournalName, time: datetime, file_id: int) -> str:
    """The name of a copy.

    >>> history_name(JournalName(), datetime(1972, 1, 19, 4, 5, 7), 1)
    'activemq-data-19720119040507-1.amq'
    """
    return f"{name.prefix}-{time.strftime(TIME_FORMAT)}-{file_id}.{name.extension}"


def parse_history_name(name: JournalName, file: str) -> tuple[datetime, int] | None:
    """Time and file id in a copy's name; None where it is not one of this journal's.

    >>> parse_history_name(JournalName(), "activemq-data-19720119040507-15.amq")
    (datetime.datetime(1972, 1, 19, 4, 5, 7), 15)
    >>> parse_history_name(JournalName(), "other-19720119040507-15.amq") is None
    True
    """
    pattern = (
        rf"{re.escape(name.prefix)}-([0-9]{{14}})-([0-9]{{1,19}})\.{re.escape(name.extension)}"
    )
    match = re.fullmatch(pattern, file)
    if match is None:
        return None
    try:
        return datetime.strptime(match[1], TIME_FORMAT), int(match[2])  # noqa: DTZ007 - local time is the format
    except ValueError:
        return None


def list_history(folder: str | os.PathLike[str], name: JournalName) -> list[HistoryFile]:
    """The copies in a history folder, oldest first; anything else there is left out.

    Raises:
        JournalIOError: the folder cannot be read.
    """
    folder = path_of(folder)
    found = []
    for file in list_names(folder):
        parsed = parse_history_name(name, file)
        if parsed is not None:
            found.append(HistoryFile(*parsed, file, folder / file))
    return sorted(found)


def restore_names(folder: Folder, name: JournalName) -> list[str]:
    """Give files called `.bkp` their names back; those names. Call it before anything is loaded.

    Raises:
        JournalIOError: a rename failed, or would replace another file.
    """
    present = set(folder.names())
    restored = []
    for backup in sorted(present):
        if parse_name(name, backup, BACKUP) is None:
            continue
        file = backup.removesuffix(BACKUP)
        if file in present:
            raise JournalIOError(errno.EEXIST, f"{backup} cannot be renamed: {file} exists", file)
        folder.rename(backup, file)
        restored.append(file)
    if restored:
        folder.sync()
    return restored


class History:
    """Makes copies of one journal's files, and removes those that are too old or too many.

    Args:
        folder: the journal's.
        directory: of the history; made if it is not there.
        name: the journal's.
        file_size: bytes of a file, in which `max_bytes` is counted.
        period_ms: milliseconds that a copy is kept; -1 for ever.
        max_bytes: of all copies, in whole files; less than one file: no limit, as Artemis's.
        clock: the local time.

    Raises:
        JournalIOError: the directory cannot be made or opened.
    """

    def __init__(
        self,
        folder: Folder,
        directory: Path,
        name: JournalName,
        *,
        file_size: int,
        period_ms: int = -1,
        max_bytes: int = -1,
        clock: Callable[[], datetime] = datetime.now,
    ) -> None:
        self.folder = folder
        self.name = name
        self.period_ms = period_ms
        self.files_max = max_bytes // file_size if max_bytes > 0 else 0
        self.clock = clock
        try:
            directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise JournalIOError(
                error.errno or 0, "cannot make the history directory", str(directory)
            ) from error
        self.history = Folder(directory)
        self.history.guard = folder.guard
        self._remove_partial()

    def close(self) -> None:
        """Close the history's folder. Idempotent."""
        self.history.close()

    def newest_id(self) -> int:
        """The largest file id in the history; 0 where it is empty."""
        return max((copy.file_id for copy in self.copies()), default=0)

    def copies(self) -> list[HistoryFile]:
        """What is in the history, oldest first."""
        return list_history(self.history.path, self.name)

    def copy(self, file: str, file_id: int) -> str:
        """Copy a closed file, then remove what is too old; the copy's name.

        Raises:
            JournalIOError: reading, writing or syncing failed; no copy is there then.
        """
        target = history_name(self.name, self.clock(), file_id)
        partial = f"{target}{PARTIAL}"
        try:
            self._copy(file, partial)
        except JournalIOError:
            self._discard(partial)
            raise
        self.history.rename(partial, target)
        self.history.sync()
        self.clean()
        return target

    def clean(self) -> list[str]:
        """Remove copies older than the period, then the oldest of too many; their names.

        The one of the newest file stays.

        Raises:
            JournalIOError: one cannot be removed.
        """
        copies = self.copies()
        expired = 0
        if self.period_ms >= 0:
            oldest = self._oldest()
            while expired < len(copies) and copies[expired].time < oldest:
                expired += 1
        if self.files_max > 0:
            expired = max(expired, len(copies) - self.files_max)
        newest_id = self.newest_id()
        # Also where the clock was set back, and it is not the last by its time: it says which files
        # have a copy.
        expired_names = [copy.name for copy in copies[:expired] if copy.file_id != newest_id]
        for name in expired_names:
            self.history.unlink(name)
        if expired_names:
            self.history.sync()
        return expired_names

    def _oldest(self) -> datetime:
        """Since when copies are kept."""
        try:
            return self.clock() - timedelta(milliseconds=self.period_ms)
        except OverflowError:
            return datetime.min  # noqa: DTZ901 - local as the rest; before the year 1, or past timedelta

    def _copy(self, file: str, target: str) -> None:
        source = self.folder.open(file)
        try:
            copy = self.history.open(target, create=True)
            try:
                offset = 0
                while data := self.folder.read(source, COPY_SIZE, offset, file):
                    self.history.write(copy, data, offset, target)
                    offset += len(data)
                self.history.sync_file(copy, target, metadata=True)
            finally:
                self.history.close_file(copy, target)
        finally:
            self.folder.close_file(source, file)

    def _discard(self, partial: str) -> None:
        try:
            self.history.unlink(partial)
        except JournalIOError as error:
            log.warning("after a copy that failed: %s", error)

    def _remove_partial(self) -> None:
        """Remove copies that a crash left unfinished."""
        partial = [
            file
            for file in self.history.names()
            if file.endswith(PARTIAL)
            and parse_history_name(self.name, file.removesuffix(PARTIAL)) is not None
        ]
        for file in partial:
            self.history.unlink(file)
