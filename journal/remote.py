"""Paths of files that no file system of this machine has, such as those of an object store.

A module that knows a store gives its files as RemotePath; the readers of a journal's files take
them in place of a Path. They are read in ranges and never written: no lock, no rename, no sync.
"""

from __future__ import annotations

import os
from abc import abstractmethod
from pathlib import Path
from typing import Final

__all__ = ["REMOTE_STEP", "AnyPath", "RemotePath", "path_of"]

# Bytes of one read: a request takes tens of milliseconds, whatever it asks for.
REMOTE_STEP: Final = 4 << 20


class RemotePath(os.PathLike[str]):
    """A file or a folder. Everything that looks at it raises JournalIOError."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The last part."""

    @property
    @abstractmethod
    def parent(self) -> RemotePath:
        """The folder that it is in."""

    @abstractmethod
    def __fspath__(self) -> str:
        """The URL, without anything secret."""

    def __str__(self) -> str:
        return self.__fspath__()

    @abstractmethod
    def __truediv__(self, name: str) -> RemotePath:
        """What is called so in this folder, whether it is there or not."""

    @abstractmethod
    def is_dir(self) -> bool:
        """Whether it is a folder."""

    @abstractmethod
    def is_file(self) -> bool:
        """Whether it is a file."""

    @abstractmethod
    def names(self) -> list[str]:
        """What is in the folder, as it is now."""

    @abstractmethod
    def sizes(self) -> dict[str, int]:
        """Bytes of each file of the folder, by its name, as they are now."""

    @abstractmethod
    def size(self) -> int:
        """Bytes of the file; ENOENT where there is none."""

    @abstractmethod
    def read(self, offset: int, size: int) -> bytes:
        """So many bytes of the file, all within its size(); ESTALE where there are fewer."""

    def read_bytes(self) -> bytes:
        """All of a small file."""
        return self.read(0, self.size())


AnyPath = Path | RemotePath


def path_of(path: str | os.PathLike[str]) -> AnyPath:
    """A path of either kind as an object.

    >>> path_of("data/journal")
    PosixPath('data/journal')
    """
    return path if isinstance(path, RemotePath) else Path(path)
