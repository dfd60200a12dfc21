"""The files of a journal's folder: their names, which belong to it, and their order.

    <prefix>-<N>.<extension>            a journal file; N is its id when it was created
    <prefix>-<N>.<extension>.tmp        being created
    <prefix>-<N>.<extension>.cmp        written by a compaction, not yet in use
    <prefix>-<N>.<extension>.bkp        waits to be copied to the retention folder
    journal-rename-control.ctr          a compaction's list of what to delete and rename

The file id in the header orders the files, not the number in the name: a file that is used again
keeps its name. Names are matched in full, so that nothing foreign is ever taken for ours.
"""

from __future__ import annotations

import errno
import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from journal.errors import JournalIOError, WrongUse
from journal.files.base import Folder
from journal.remote import RemotePath, path_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from journal.remote import AnyPath

__all__ = [
    "CONTROL_FILE",
    "HEADER_SIZE",
    "JournalFile",
    "JournalName",
    "file_name",
    "guess_name",
    "list_files",
    "list_names",
    "open_regular",
    "order_files",
    "parse_name",
]

CONTROL_FILE = "journal-rename-control.ctr"
HEADER_SIZE = 16
SIDECARS = ("", ".tmp", ".cmp", ".bkp")
# Eighteen digits always fit the 64 bits that Artemis parses the number into.
NAME = re.compile(r"(?P<prefix>.+)-(?P<number>[0-9]{1,18})\.(?P<extension>[^./]+)")


@dataclass(frozen=True, slots=True)
class JournalName:
    """What the files of one journal have in common in their names."""

    prefix: str = "activemq-data"
    extension: str = "amq"


@dataclass(frozen=True, slots=True)
class JournalFile:
    """One journal file as its name and header give it.

    Attributes:
        name: what the file is, or after recovery will be, called.
        path: where it is now.
        number: the number in the name.
        file_id: from the header; 0 where the header is not whole.
        size: bytes.
    """

    name: str
    path: AnyPath
    number: int
    file_id: int
    size: int

    @property
    def is_short(self) -> bool:
        """No whole header: Artemis ignores and deletes such a file."""
        return self.size < HEADER_SIZE


def file_name(name: JournalName, number: int) -> str:
    """The name of file `number`.

    >>> file_name(JournalName(), 7)
    'activemq-data-7.amq'
    """
    return f"{name.prefix}-{number}.{name.extension}"


def parse_name(name: JournalName, file: str, sidecar: str = "") -> int | None:
    """The number in a file's name, or None where it is not one of this journal's.

    >>> parse_name(JournalName(), "activemq-data-7.amq")
    7
    >>> parse_name(JournalName(), "activemq-data-7.amq.cmp", ".cmp")
    7
    >>> parse_name(JournalName(), "../activemq-data-7.amq") is None
    True
    """
    if sidecar:
        if not file.endswith(sidecar):
            return None
        file = file.removesuffix(sidecar)
    match = NAME.fullmatch(file)
    if match is None or (match["prefix"], match["extension"]) != (name.prefix, name.extension):
        return None
    return int(match["number"])


def list_names(folder: str | os.PathLike[str]) -> list[str]:
    """The names in a folder.

    Raises:
        JournalIOError: it cannot be read.
    """
    if isinstance(folder, RemotePath):
        return sorted(folder.names())
    try:
        return sorted(os.listdir(folder))
    except OSError as error:
        raise JournalIOError(error.errno or 0, f"{os.fspath(folder)}: cannot read") from error


def guess_name(
    folder: str | os.PathLike[str], prefix: str | None = None, extension: str | None = None
) -> JournalName:
    """The one pair of prefix and extension that the files of a folder have.

    Args:
        folder: with journal files in it.
        prefix: where given, only files with this prefix count.
        extension: likewise.

    Raises:
        WrongUse: no file, or more than one pair, fits.
        JournalIOError: the folder cannot be read.
    """
    if prefix is not None and extension is not None:
        list_names(folder)  # A folder that cannot be read is said so now.
        return JournalName(prefix, extension)
    found = set()
    for name in list_names(folder):
        match = NAME.fullmatch(_without_sidecar(name))
        if match is None or (prefix not in (None, match["prefix"])):
            continue
        if extension in (None, match["extension"]):
            found.add((match["prefix"], match["extension"]))
    if not found:
        raise WrongUse(f"{os.fspath(folder)}: no journal files")
    if len(found) > 1:
        names = ", ".join(f"{prefix}-N.{extension}" for prefix, extension in sorted(found))
        raise WrongUse(
            f"{os.fspath(folder)}: more than one journal ({names}); give --prefix and --extension"
        )
    return JournalName(*found.pop())


def _without_sidecar(name: str) -> str:
    for sidecar in SIDECARS[1:]:
        name = name.removesuffix(sidecar)
    return name


def list_files(folder: str | os.PathLike[str], name: JournalName) -> list[JournalFile]:
    """The journal files of a folder in the order of their ids, short ones first.

    Raises:
        JournalIOError: the folder or a file cannot be read.
    """
    folder = path_of(folder)
    return order_files(
        (file, folder / file) for file in list_names(folder) if parse_name(name, file) is not None
    )


def order_files(files: Iterable[tuple[str, AnyPath]]) -> list[JournalFile]:
    """Read the headers of (name, path) pairs and sort by file id, short files first."""
    found = [read_header(name, path) for name, path in files]
    return sorted(found, key=lambda file: (not file.is_short, file.file_id, file.number))


def open_regular(folder: Folder, name: str) -> int:
    """A descriptor for reading a regular file, to be closed by `folder.close_file`.

    Raises:
        JournalIOError: it cannot be opened, is a link, or is something else than a file.
    """
    try:
        return folder.open(name)
    except JournalIOError as error:
        if error.errno not in (errno.EINVAL, errno.EISDIR, errno.ELOOP):
            raise
        path = os.path.join(str(folder.path), name)
        raise JournalIOError(error.errno, "not a regular file", path) from error


def read_header(name: str, path: AnyPath) -> JournalFile:
    """A file's id and size.

    Raises:
        JournalIOError: it cannot be read, or is not a regular file.
    """
    if isinstance(path, RemotePath):
        size = path.size()
        header = path.read(0, min(HEADER_SIZE, size))
    else:
        with Folder(path.parent) as folder:
            fd = open_regular(folder, path.name)
            try:
                size = folder.size(fd, path.name)
                header = folder.read(fd, HEADER_SIZE, 0, path.name)
            finally:
                folder.close_file(fd, path.name)
    match = NAME.fullmatch(name)
    file_id = int.from_bytes(header[8:16], "big", signed=True) if len(header) == HEADER_SIZE else 0
    return JournalFile(name, path, int(match["number"]) if match else 0, file_id, size)
