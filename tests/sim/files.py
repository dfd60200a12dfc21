"""Pages and bodies of large messages in memory, cut by a crash as files are.

killed           everything written stays
without power    everything synced stays, and any prefix of what was written behind it
"""

from __future__ import annotations

import errno
import sys
from typing import TYPE_CHECKING, Any

from journal.errors import JournalFull, JournalIOError

if TYPE_CHECKING:
    import random
    from collections.abc import Callable
    from pathlib import Path

    from tests.sim.record_log import Disk


class _File:
    """Bytes, of which so many are synced; `is_named` once its name is durable."""

    __slots__ = ("data", "is_named", "synced")

    def __init__(self) -> None:
        self.data = bytearray()
        self.synced = 0
        self.is_named = False

    def sync(self) -> None:
        self.synced = len(self.data)
        self.is_named = True

    def crash(self, seeded: random.Random, *, is_power: bool) -> bool:
        """Whether it is there afterwards."""
        if is_power:
            if not self.is_named and seeded.random() < 0.5:
                return False
            del self.data[seeded.randint(self.synced, len(self.data)) :]
        self.synced = len(self.data)
        self.is_named = True
        return True


class MemoryFolder:
    """The pages of one address; see broker.storage.page_folders.PageFolder."""

    place: Path | None = None

    def __init__(self, owner: MemoryFolders, address: str) -> None:
        self.owner = owner
        self.address = address
        self.pages: dict[int, _File] = {}

    def sizes(self) -> dict[int, int]:
        return {number: len(one.data) for number, one in sorted(self.pages.items())}

    def keep_room(self, page: int, size: int, least: int) -> int:
        self.owner.disk.check("cannot make a page")
        if self.owner.disk.is_full:
            raise JournalFull(errno.ENOSPC, "no room for a page")
        del page, size, least
        return sys.maxsize

    def append(self, page: int, data: list[bytes]) -> None:
        self.owner.disk.check("cannot write a page")
        file = self.pages.setdefault(page, _File())
        for one in data:
            file.data += one

    def sync(self, page: int) -> None:
        self.owner.disk.check_sync("cannot sync a page")
        self.pages[page].sync()
        self.owner.folders.setdefault(self.address, self)

    def read(self, page: int, offset: int, size: int) -> bytes:
        self.owner.disk.check("cannot read a page")
        if page not in self.pages:
            raise JournalIOError(errno.ENOENT, "cannot read a page", str(page))
        return bytes(self.pages[page].data[offset : offset + size])

    def delete(self, page: int, *, is_invalid: bool) -> None:
        del is_invalid
        self.owner.disk.check("cannot delete a page")
        self.pages.pop(page, None)

    def destroy(self) -> None:
        self.pages.clear()
        if self.owner.folders.get(self.address) is self:
            del self.owner.folders[self.address]

    def close(self) -> None:
        """Nothing is held open."""


class MemoryFolders:
    """The pages of all addresses; see broker.storage.page_folders.PageFolders."""

    def __init__(self, disk: Disk) -> None:
        self.disk = disk
        self.folders: dict[str, MemoryFolder] = {}
        self.made: list[MemoryFolder] = []

    def load(self, drop_unused: object) -> dict[str, Any]:
        del drop_unused  # An address has one folder here.
        return dict(self.folders)

    def create(self, address: str, store_id: int) -> MemoryFolder:
        del store_id
        made = MemoryFolder(self, address)
        self.made.append(made)
        return made

    def taken_over(self, disk: Disk) -> MemoryFolders:
        """Give them to the next owner, with its way to the disk; who had them has none any more."""
        made = MemoryFolders(disk)
        for address, folder in self.folders.items():
            mine = made.create(address, 0)
            mine.pages, folder.pages = folder.pages, {}
            made.folders[address] = mine
        self.folders = {}
        return made

    def crash(self, seeded: random.Random, *, is_power: bool) -> None:
        """Leave one of the states that a crash may."""
        found: dict[str, MemoryFolder] = {}
        for folder in (*self.folders.values(), *self.made):
            if found.get(folder.address) is folder:
                continue
            # A process that is no more may still hold the old object.
            kept = MemoryFolder(self, folder.address)
            for number, file in folder.pages.items():
                if file.crash(seeded, is_power=is_power):
                    kept.pages[number] = file
            if kept.pages:
                other = found.get(folder.address)
                if other is not None:
                    kept.pages |= other.pages
                found[folder.address] = kept
            folder.pages = {}
        self.folders, self.made = found, []


class MemoryBody:
    """The body of one large message; see broker.storage.large_bodies.LargeUpload."""

    def __init__(self, owner: MemoryBodies, message_id: int, file: _File, durable: bool) -> None:
        self._owner = owner
        self._id = message_id
        self._file = file
        self.is_durable = durable

    @property
    def size(self) -> int:
        return len(self._file.data)

    def append(self, chunk: bytes) -> None:
        self._owner.disk.check("cannot write a large message")
        if self._owner.disk.is_full:
            raise JournalIOError(errno.ENOSPC, "cannot write a large message")
        self._file.data += chunk

    def has_room(self, callback: Callable[[], object]) -> bool:
        del callback
        return True

    def finish(self, *, sync: bool, callback: Callable[[], object] | None = None) -> bool:
        del callback
        self._owner.disk.check("cannot end a large message")
        if sync:
            self._owner.disk.check_sync("cannot sync a large message")
            self._file.sync()
        return True

    def settle(self) -> None:
        """Nothing is on its way."""

    def is_ready(self, offset: int, size: int, callback: Callable[[], object]) -> bool:
        del offset, size, callback
        return True

    def read(self, offset: int, size: int) -> bytes:
        self._owner.disk.check("cannot read a large message")
        return bytes(self._file.data[offset : offset + size])

    def hold(self) -> None:
        """It is there as long as it is known."""

    def release(self) -> None:
        """See hold()."""

    def close(self) -> None:
        """Nothing is held open."""

    def copy(self, message_id: int) -> MemoryBody:
        made = self._owner.create(message_id, is_durable=self.is_durable)
        made._file.data += self._file.data
        made._file.sync()
        return made

    def delete(self) -> None:
        self._owner.files.pop((self._id, self.is_durable), None)


class MemoryBodies:
    """The bodies of all large messages; see broker.storage.large_bodies.LargeBodies."""

    def __init__(self, disk: Disk) -> None:
        self.disk = disk
        self.files: dict[tuple[int, bool], _File] = {}

    def taken_over(self, disk: Disk) -> MemoryBodies:
        """Give them to the next owner; see MemoryFolders."""
        made = MemoryBodies(disk)
        made.files, self.files = self.files, {}
        return made

    def start(self, loop: Any, executor: Any) -> None:
        """Nothing to do without threads."""

    def close(self) -> None:
        """Nothing is held."""

    def create(self, message_id: int, *, is_durable: bool) -> MemoryBody:
        if (message_id, is_durable) in self.files:
            raise JournalIOError(errno.EEXIST, "cannot make a large message", str(message_id))
        file = self.files[message_id, is_durable] = _File()
        return MemoryBody(self, message_id, file, is_durable)

    def find(self, message_id: int) -> MemoryBody | None:
        for durable in (True, False):
            file = self.files.get((message_id, durable))
            if file is not None:
                return MemoryBody(self, message_id, file, durable)
        return None

    def sweep_temporary(self) -> int:
        return self._sweep(lambda _, durable: not durable)

    def sweep(self, kept: set[int], below: int = 2**63) -> int:
        return self._sweep(lambda one, durable: one < below and (not durable or one not in kept))

    def _sweep(self, is_doomed: Callable[[int, bool], bool]) -> int:
        doomed = [key for key in self.files if is_doomed(*key)]
        for key in doomed:
            del self.files[key]
        return len(doomed)

    def crash(self, seeded: random.Random, *, is_power: bool) -> None:
        """Leave one of the states that a crash may."""
        self.files = {
            key: file for key, file in self.files.items() if file.crash(seeded, is_power=is_power)
        }
