"""A backup on files has the system read the journal while it waits, so that a load is fast.

    look() ─▶ names, times of change, sizes ─▶ unchanged since the last look ─▶ read ahead
    finish() ─▶ changed since ─▶ dropped from the cache

Nothing of it is kept here: the system's page cache has the bytes, and the load reads them from
there, with all of its checks. The system drops what is written from its cache by itself; finish()
does so once more for each file that was changed since it was read, or may have been.

Files that change are left alone: on a busy primary they are soon used again, and each read would
take time of its disk.

Threads: the one that waits.
"""

from __future__ import annotations

import logging
import os
from collections import deque
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from journal.options import JournalOptions

__all__ = ["ReadAhead"]

log = logging.getLogger("broker")

# With ten calls a second (node_lock) a look each ten seconds, and a file of 10 MiB each tenth.
_CALLS_PER_LOOK: Final = 100
# Of the machine's memory: others need theirs, and the cache of what is read later, too.
_MEMORY_SHARE: Final = 0.25

# What changes with every write: time of change in ns, size, and which file it is.
_Version: TypeAlias = tuple[int, int, int]


class ReadAhead:
    """See the module's text.

    Args:
        options: of the journal.
        limit: bytes that are read ahead at most; None is a quarter of the memory.
    """

    def __init__(self, options: JournalOptions, limit: int | None = None) -> None:
        self._folder = options.directory
        self._names = f"{options.prefix}-", f".{options.extension}"
        self._left = _memory() * _MEMORY_SHARE if limit is None else limit
        self._calls = 0
        self._seen: dict[str, _Version] = {}
        self._read: dict[str, _Version] = {}
        self._pending: deque[str] = deque()

    def look(self) -> None:
        """Go on; called about ten times a second while the backup waits. Never raises OSError."""
        try:
            if self._calls % _CALLS_PER_LOOK == 0:
                self._find_unchanged()
            self._calls += 1
            if self._pending:
                self._read_ahead(self._pending.popleft())
        except OSError as error:
            # The load, which needs the file, will say what is wrong with it.
            log.debug("not read ahead: %s", error)

    def _find_unchanged(self) -> None:
        seen = {}
        first, last = self._names
        for entry in os.scandir(self._folder):
            if entry.name.startswith(first) and entry.name.endswith(last):
                seen[entry.name] = _version(entry.stat(follow_symlinks=False))
        self._pending = deque(
            name
            for name, version in sorted(seen.items())
            if self._seen.get(name) == version != self._read.get(name)
        )
        self._seen = seen

    def _read_ahead(self, name: str) -> None:
        fd = self._open(name)
        try:
            version = _version(os.fstat(fd))
            size = version[1]
            if version != self._seen.get(name) or size > self._left:
                return
            if name not in self._read:
                self._left -= size
            self._read[name] = version
            os.posix_fadvise(fd, 0, size, os.POSIX_FADV_WILLNEED)
        finally:
            os.close(fd)

    def finish(self) -> None:
        """Have nothing in the cache that may be older than its file; with the lock, before a load.

        Never raises OSError: the load does, where it matters.
        """
        for name, version in self._read.items():
            try:
                fd = self._open(name)
                try:
                    if _version(os.fstat(fd)) != version:
                        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
                finally:
                    os.close(fd)
            except OSError as error:
                log.debug("read ahead, and gone: %s", error)
        self._read.clear()

    def _open(self, name: str) -> int:
        return os.open(self._folder / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)


def _version(found: os.stat_result) -> _Version:
    return found.st_mtime_ns, found.st_size, found.st_ino


def _memory() -> int:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
