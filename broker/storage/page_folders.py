"""Where pages are kept: a folder for each address, a file for each page.

    paging-directory / <uuid> / address.txt       the address, one line
                              / 000000001.page …  pages, from 1, up by 1, appended to and deleted

`PageFolder` and `PageFolders` are what paging needs of any place for pages; tables of a database
offer the same (page_tables.py). A folder is made with its first page.

Threads: the pages of one folder are written by one thread at a time and read by any. After the
start the event loop calls nothing of it but `keep_room`, beside a write, a sync or a delete.

Before anything is written, made or deleted the owner of the folder proves that it is one.

Durability: what was appended is on the disk when `sync` returns, the names of page, folder and all
that lies in between too; a page that was deleted stays deleted when `delete` returns.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
import sys
import uuid
from typing import TYPE_CHECKING, Final, Protocol

from journal.errors import Damage, JournalDamaged, JournalFull, JournalIOError
from journal.files.base import keep_room
from journal.pool import NO_SPACE

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["ADDRESS_FILE", "FileFolder", "FileFolders", "PageFolder", "PageFolders", "page_number"]

log = logging.getLogger("broker")

_NAME: Final = re.compile(r"(\d{9,19})\.page")
ADDRESS_FILE: Final = "address.txt"
# Of a page that something is wrong with, when it would be deleted (Page.delete).
INVALID_SUFFIX: Final = ".invalidPage"
_APPEND: Final = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
_READ: Final = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
# os.writev takes so many buffers at once (IOV_MAX of Linux).
_BUFFERS_MAX: Final = 1024


class PageFolder(Protocol):
    """The pages of one address. Everything raises JournalIOError when the device fails."""

    @property
    def place(self) -> Path | None:
        """The folder; None where there is none, of tables."""

    def sizes(self) -> dict[int, int]:
        """Give the bytes of each page, by its number."""

    def keep_room(self, page: int, size: int, least: int) -> int:
        """Have the disk keep room for the first bytes of a page, which is made if there is none.

        Args:
            page: the one that is appended to, or the next one.
            size: bytes that are wanted.
            least: bytes that are needed.

        Waits for no write and no sync of data; what it makes is durable after the next `sync`.

        Returns:
            Bytes of the page that an append finds room for: `least`, or more.

        Raises:
            JournalFull: there is no room; the page holds what it held.
        """

    def append(self, page: int, data: list[bytes]) -> None:
        """Put bytes at the end of a page, which is made if there is none of that number."""

    def sync(self, page: int) -> None:
        """Return once all that was appended to the page is durable."""

    def read(self, page: int, offset: int, size: int) -> bytes:
        """Give at most `size` bytes; fewer only at the end."""

    def delete(self, page: int, *, is_invalid: bool) -> None:
        """Remove a page, or with `is_invalid` put it aside; it does not come back.

        Nothing where there is no such page: nothing of it was written.
        """

    def destroy(self) -> None:
        """Remove everything, durably."""

    def close(self) -> None:
        """Give up what is held open. Idempotent."""


class PageFolders(Protocol):
    """The pages of all addresses."""

    def load(self, drop_unused: Callable[[PageFolder, int], bool]) -> dict[str, PageFolder]:
        """Give what is there, by address.

        Args:
            drop_unused: deletes a page of a folder if no queue is left that has a message in it;
                whether it did. Called where an address has two pages of one number.
        """

    def create(self, address: str, store_id: int) -> PageFolder:
        """Give an address, which has none, a folder; nothing is written before its first page.

        Args:
            address: its name.
            store_id: an id of the broker's that was never used.
        """


def _always() -> None:
    """Of a folder that no other broker can want."""


class FileFolders:
    """All folders below one (paging-directory).

    Args:
        folder: made when it is needed.
        check: asked before each change; raises JournalIOError once the folder is another owner's.
    """

    def __init__(self, folder: Path, check: Callable[[], object] = _always) -> None:
        self._folder = folder
        self._check = check

    def load(self, drop_unused: Callable[[PageFolder, int], bool]) -> dict[str, PageFolder]:
        """Give the folders that have an address; two of one address become one; see PageFolders.

        Raises:
            JournalIOError: the disk fails.
            JournalDamaged: two folders of an address have a page of the same number, both in use.
        """
        found: dict[str, Path] = {}
        for address, path in self._paths():
            target = found.setdefault(address, path)
            if target is not path:
                self._check()
                try:
                    _merge(address, path, target, drop_unused)
                except OSError as error:
                    raise _failure(error, "cannot move the pages of", path) from error
        return {address: FileFolder(path, None, self._check) for address, path in found.items()}

    def view(self) -> dict[str, PageFolder]:
        """Give the folders that have an address, for reading only: nothing is changed.

        Raises:
            JournalIOError: the disk fails.
            JournalDamaged: an address has two; the next start of its broker makes them one.
        """
        found: dict[str, Path] = {}
        for address, path in self._paths():
            other = found.setdefault(address, path)
            if other is not path:
                reason = f"address {address!r} has pages in {other} too: its broker joins them"
                raise JournalDamaged([Damage(str(path), 0, 0, reason)])
        return {address: FileFolder(path) for address, path in found.items()}

    def _paths(self) -> list[tuple[str, Path]]:
        found = []
        try:
            names = sorted(os.listdir(self._folder)) if self._folder.exists() else []
            for name in names:
                path = self._folder / name
                file = path / ADDRESS_FILE
                if path.is_dir() and file.is_file():
                    address = file.read_text("utf-8").split("\n", 1)[0].strip()
                    if address:
                        found.append((address, path))
        except OSError as error:
            raise _failure(error, "cannot read the paging directory", self._folder) from error
        return found

    def create(self, address: str, store_id: int) -> PageFolder:
        """Give an address a folder of a name that was never used before."""
        return FileFolder(self._folder / str(uuid.uuid1()), address, self._check)


class FileFolder:
    """The folder of one address.

    Args:
        path: of it.
        address: to be written into it when it is made; None where it is there.
        check: as of FileFolders.
    """

    def __init__(
        self, path: Path, address: str | None = None, check: Callable[[], object] = _always
    ) -> None:
        self._path = path
        self._check = check
        self._to_make = address
        self._fd = -1
        self._page = 0
        # Its name may not be durable.
        self._is_new_page = False
        # Those in which a folder was made, whose name is not durable yet.
        self._new_folders: list[Path] = []

    @property
    def place(self) -> Path | None:
        """See PageFolder."""
        return self._path

    def sizes(self) -> dict[int, int]:
        """See PageFolder."""
        found: dict[int, int] = {}
        try:
            if self._to_make is None:
                with os.scandir(self._path) as entries:
                    for entry in entries:
                        page = page_number(entry.name)
                        if page is not None and entry.is_file(follow_symlinks=False):
                            found[page] = entry.stat().st_size
        except OSError as error:
            raise _failure(error, "cannot list pages", self._path) from error
        return dict(sorted(found.items()))

    def _file(self, page: int) -> Path:
        return self._path / f"{page:09d}.page"

    def keep_room(self, page: int, size: int, least: int) -> int:
        """See PageFolder. Where the file system keeps no room, appends may find the disk full."""
        path = self._file(page)
        self._check()
        try:
            self._make_once()
            is_new = not path.exists()
            fd = os.open(path, _APPEND, 0o644)
            try:
                return _keep_room(fd, size, least)
            except JournalFull:
                if is_new:
                    path.unlink()
                raise
            finally:
                os.close(fd)
        except OSError as error:
            if error.errno in NO_SPACE:
                raise JournalFull(error.errno, "no room for a page", str(path)) from error
            raise _failure(error, "cannot make a page", path) from error

    def append(self, page: int, data: list[bytes]) -> None:
        """See PageFolder. After an error it is unknown how much of the data is there."""
        self._check()
        try:
            self._make_once()
            if page != self._page:
                self.close()
                self._is_new_page = True
                self._fd = os.open(self._file(page), _APPEND, 0o644)
                self._page = page
            for start in range(0, len(data), _BUFFERS_MAX):
                self._write(data[start : start + _BUFFERS_MAX])
        except OSError as error:
            raise _failure(error, "cannot write a page", self._file(page)) from error

    def _write(self, data: list[bytes]) -> None:
        written = os.writev(self._fd, data)
        size = sum(map(len, data))
        if written < size:
            rest = memoryview(b"".join(data))[written:]
            while rest:
                rest = rest[os.write(self._fd, rest) :]

    def _make_once(self) -> None:
        if self._to_make is None:
            return
        folders = (self._path, *self._path.parents)
        # After an error some are there already, and in the list.
        self._new_folders += [folder.parent for folder in folders if not folder.exists()]
        self._path.mkdir(parents=True, exist_ok=True)
        (self._path / ADDRESS_FILE).write_text(f"{self._to_make}\n", "utf-8")
        self._to_make = None

    def sync(self, page: int) -> None:
        """See PageFolder; `page` is the one that was appended to last."""
        assert page == self._page, "pages are written one after the other"
        try:
            os.fdatasync(self._fd)
            if self._new_folders:
                _sync(self._path / ADDRESS_FILE, _READ)
            if self._is_new_page:
                _sync_folder(self._path)
                self._is_new_page = False
            for folder in self._new_folders:
                _sync_folder(folder)
            self._new_folders = []
        except OSError as error:
            raise _failure(error, "cannot sync a page", self._file(page)) from error

    def read(self, page: int, offset: int, size: int) -> bytes:
        """See PageFolder."""
        path = self._file(page)
        try:
            fd = os.open(path, _READ)
            try:
                return os.pread(fd, size, offset)
            finally:
                os.close(fd)
        except OSError as error:
            raise _failure(error, "cannot read a page", path) from error

    def delete(self, page: int, *, is_invalid: bool) -> None:
        """See PageFolder."""
        if self._to_make is not None:
            return
        if page == self._page:
            self.close()
        self._check()
        path = self._file(page)
        try:
            if is_invalid:
                path.rename(path.with_name(path.name + INVALID_SUFFIX))
            else:
                path.unlink(missing_ok=True)
            _sync_folder(self._path)
        except OSError as error:
            raise _failure(error, "cannot delete a page", path) from error

    def destroy(self) -> None:
        """See PageFolder."""
        self.close()
        self._check()
        try:
            if self._to_make is None:
                shutil.rmtree(self._path)
                _sync_folder(self._path.parent)
        except FileNotFoundError:
            return
        except OSError as error:
            raise _failure(error, "cannot delete a folder of pages", self._path) from error

    def close(self) -> None:
        """See PageFolder."""
        if self._fd >= 0:
            try:
                # Room that was kept behind its end is given back.
                self._check()
                os.ftruncate(self._fd, os.fstat(self._fd).st_size)
            except OSError as error:
                path = self._file(self._page)
                log.warning("cannot release the space behind the end of %s: %s", path, error)
            os.close(self._fd)
            self._fd = -1
            self._page = 0


def page_number(name: str) -> int | None:
    """The number in the name of a page's file; None of another file.

    >>> page_number("000000012.page"), page_number("address.txt")
    (12, None)
    """
    match = _NAME.fullmatch(name)
    return None if match is None else int(match[1])


def _merge(
    address: str, source: Path, target: Path, drop_unused: Callable[[PageFolder, int], bool]
) -> None:
    """Move all pages to another folder of the same address, and remove what they were in.

    A broker that was killed may leave two: the one that an address gave up, and its next one, where
    numbers of pages go on. Which of their messages still count the records say. Older brokers began
    anew with 1 while the folder of the deleted address was being removed. It may be called again
    after a crash.
    """
    ours, others = FileFolder(source), FileFolder(target)
    for page in sorted(ours.sizes().keys() & others.sizes().keys()):
        if not drop_unused(ours, page) and not drop_unused(others, page):
            reason = (
                f"address {address!r} has another page {page} in {target}: move one folder away"
            )
            raise JournalDamaged([Damage(str(source), 0, 0, reason)])
    log.warning("two folders of pages for address %s: %s goes to %s", address, source, target)
    for name in sorted(os.listdir(source)):
        if name != ADDRESS_FILE and not (target / name).exists():
            (source / name).rename(target / name)
    _sync_folder(target)
    _sync_folder(source)
    (source / ADDRESS_FILE).unlink()
    shutil.rmtree(source)
    _sync_folder(source.parent)


def _keep_room(fd: int, size: int, least: int) -> int:
    try:
        return size if keep_room(fd, size) else sys.maxsize
    except JournalFull:
        if size == least:
            raise
        keep_room(fd, least)
        return least


def _sync_folder(folder: Path) -> None:
    _sync(folder, _FOLDER)


def _sync(path: Path, flags: int) -> None:
    fd = os.open(path, flags)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _failure(error: OSError, what: str, path: Path) -> JournalIOError:
    return JournalIOError(error.errno or 0, what, str(path))
