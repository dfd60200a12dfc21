"""Folders in object stores, as fsspec reads them: `s3a://bucket/orders/data`.

They are read in ranges, and never written. Folders there have no lock, and brokers do not write to
them: their files are copies, and do not change while a query reads them.
"""

from __future__ import annotations

import errno
import json
import re
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

from journal.errors import JournalError, JournalIOError, OptionError, WrongUse
from journal.extras import install_line
from journal.remote import RemotePath

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["EXTRA", "OBJECT_STORES", "ObjectPath", "find_folders", "is_object_url", "parse_options"]

# The extra that brings all packages below.
EXTRA: Final = "object-store"
# The scheme of a URL, as Hadoop or as others write it: fsspec's, and the package that reads it.
OBJECT_STORES: Final = {
    "s3": ("s3", "s3fs"),
    "s3a": ("s3", "s3fs"),
    "s3n": ("s3", "s3fs"),
    "abfss": ("abfss", "adlfs"),
    "abfs": ("abfs", "adlfs"),
    "gs": ("gs", "gcsfs"),
    "gcs": ("gs", "gcsfs"),
}
_URL: Final = re.compile(r"([A-Za-z0-9]+)://([^/]+)(?:/+(.*))?")
_GLOB: Final = re.compile(r"[*?[]")


def is_object_url(path: str) -> bool:
    """Whether a path is in an object store.

    >>> is_object_url("s3a://bucket/data"), is_object_url("sqlite:///a.db"), is_object_url("data")
    (True, False, False)
    """
    return path.partition("://")[0].lower() in OBJECT_STORES and "://" in path


def parse_options(text: str | None) -> dict[str, Any]:
    """Read the option storageOptions: a JSON object, whose names are fsspec's parameters.

    Raises:
        OptionError: it is none; its values are not repeated.
    """
    try:
        found = json.loads(text or "{}")
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise OptionError(
            'storageOptions must be a JSON object, such as {"endpoint_url": "http://host:9000"}'
        )
    return found


@dataclass(frozen=True, slots=True)
class ObjectPath(RemotePath):
    """A file or a folder of an object store.

    Attributes:
        root: scheme and bucket or container, as they were given.
        key: what is behind it, without a slash at either end.
        options: of fsspec's file system; never shown.
    """

    root: str
    key: str
    options: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def parse(cls, url: str, options: dict[str, Any] | None = None) -> ObjectPath:
        """Read a URL.

        >>> ObjectPath.parse("s3a://bucket/orders/data/").parent
        ObjectPath(root='s3a://bucket', key='orders')

        Raises:
            WrongUse: it names no bucket.
        """
        found = _URL.fullmatch(url)
        if found is None:
            raise WrongUse(f"{url}: no URL of an object store: write s3a://BUCKET/FOLDER")
        scheme, bucket, key = found.groups()
        return cls(f"{scheme.lower()}://{bucket}", (key or "").rstrip("/"), options or {})

    @property
    def name(self) -> str:
        """See RemotePath."""
        return self.key.rpartition("/")[2]

    @property
    def parent(self) -> ObjectPath:
        """See RemotePath."""
        return ObjectPath(self.root, self.key.rpartition("/")[0], self.options)

    @property
    def bucket(self) -> str:
        """Or container, without its account."""
        return self.root.partition("://")[2].partition("@")[0]

    def __fspath__(self) -> str:
        """See RemotePath."""
        return f"{self.root}/{self.key}" if self.key else self.root

    __str__ = __fspath__

    def __truediv__(self, name: str) -> ObjectPath:
        """See RemotePath."""
        return ObjectPath(self.root, f"{self.key}/{name}" if self.key else name, self.options)

    # --- what is there --------------------------------------------------------------------------

    def is_dir(self) -> bool:
        """See RemotePath."""
        return self._type() == "directory"

    def is_file(self) -> bool:
        """See RemotePath."""
        return self._type() == "file"

    def _type(self) -> str | None:
        with self._asked("look at") as (files, path):
            try:
                return str(files.info(path)["type"])
            except FileNotFoundError:
                return None

    def names(self) -> list[str]:
        """See RemotePath."""
        with self._asked("list") as (files, path):
            found = [str(one).rstrip("/") for one in files.ls(path, detail=False)]
            # A folder may be in its own list, as an object without bytes.
            return [one.rpartition("/")[2] for one in found if one != path]

    def sizes(self) -> dict[str, int]:
        """See RemotePath."""
        with self._asked("list") as (files, path):
            return {
                one["name"].rpartition("/")[2]: int(one["size"])
                for one in files.ls(path, detail=True)
                if one["type"] == "file" and one["name"].rstrip("/") != path
            }

    def size(self) -> int:
        """See RemotePath."""
        with self._asked("look at") as (files, path):
            return int(files.info(path)["size"])

    def read(self, offset: int, size: int) -> bytes:
        """See RemotePath."""
        if not size:
            return b""
        with self._asked("read") as (files, path):
            data = bytes(files.cat_file(path, start=offset, end=offset + size))
        if len(data) != size:
            what = f"{self}: changed while it was being read"
            raise JournalIOError(errno.ESTALE, what, str(self))
        return data

    def folders(self) -> list[ObjectPath]:
        """The folders that this path means, read as a glob; in order."""
        with self._asked("list") as (files, path):
            found = files.glob(path, detail=True)
        prefix = f"{self.bucket}/"
        return [
            ObjectPath(self.root, name.removeprefix(prefix).rstrip("/"), self.options)
            for name, one in sorted(found.items())
            if one["type"] == "directory"
        ]

    # --- fsspec ---------------------------------------------------------------------------------

    @contextmanager
    def _asked(self, what: str) -> Iterator[tuple[Any, str]]:
        """The file system of fsspec, and the path in it.

        Raises:
            WrongUse: its package is not installed.
            JournalIOError: the store refuses, or cannot be reached.
        """
        try:
            files = self._files()
            # Of what another query of this process has listed, perhaps long ago.
            files.invalidate_cache()
            yield files, f"{self.bucket}/{self.key}".rstrip("/")
        except JournalError:
            raise
        except Exception as error:  # Each store's package has errors of its own.
            number = getattr(error, "errno", None)
            if not isinstance(number, int):
                number = errno.ENOENT if isinstance(error, FileNotFoundError) else errno.EIO
            told = " ".join(str(error).split()) or type(error).__name__
            raise JournalIOError(number, f"cannot {what}: {told}", str(self)) from error

    def _files(self) -> Any:  # noqa: ANN401 - fsspec has no types.
        scheme, _, authority = self.root.partition("://")
        protocol, package = OBJECT_STORES[scheme]
        for one in ("fsspec", package):
            if find_spec(one) is None:
                raise WrongUse(
                    f"{scheme}:// needs the Python package {one}: type {install_line(EXTRA)}"
                )
        from fsspec.core import url_to_fs

        # fsspec keeps file systems, and their connections, by protocol and options.
        return url_to_fs(f"{protocol}://{authority}", **self.options)[0]


def find_folders(url: str, options: dict[str, Any]) -> list[ObjectPath]:
    """The folder of that URL, or those that a glob names; none where there is none.

    Raises:
        WrongUse: it is not the URL of a folder, or the store's package is not installed.
        JournalIOError: the store refuses, or cannot be reached.
    """
    path = ObjectPath.parse(url, options)
    if path.is_dir():
        return [path]
    return path.folders() if _GLOB.search(path.key) else []
