"""Every `journal-*` parameter, with Artemis's default and unit.

Sources: ActiveMQDefaultConfiguration and ArtemisConstants of Artemis for the defaults,
JournalImpl and JournalStorageManager.fixJournalFileSize for the limits.
"""

from __future__ import annotations

import enum
import os
import re
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypedDict, Unpack

from journal.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = [
    "JournalChanges",
    "JournalOptions",
    "JournalSettings",
    "JournalType",
    "parse_duration_ns",
    "parse_size",
]


class JournalType(enum.StrEnum):
    """How bytes reach the disk."""

    NIO = "NIO"
    ASYNCIO = "ASYNCIO"
    MAPPED = "MAPPED"
    IO_URING = "IO_URING"

    @property
    def is_direct(self) -> bool:
        """Whether writes pass the page cache by, in whole blocks."""
        return self in (JournalType.ASYNCIO, JournalType.IO_URING)


USER_VERSION_MIN: Final = -(2**31)
USER_VERSION_MAX: Final = 2**31 - 1
FILE_SIZE_MINIMUM: Final = 1024  # JournalImpl refuses less.
DEFAULT_BUFFER_SIZE: Final = 490 * 1024
DEFAULT_BUFFER_TIMEOUT_NS: Final = {True: 500_000, False: 3_333_333}  # by is_direct
DEFAULT_MAX_IO: Final = {True: 4096, False: 1}


class JournalSettings(TypedDict, total=False):
    """Keyword arguments of a journal's options, except its folder, for type checkers."""

    create_directory: bool
    prefix: str
    extension: str
    journal_type: JournalType | Literal["NIO", "ASYNCIO", "MAPPED", "IO_URING"]
    sync_transactional: bool
    sync_non_transactional: bool
    file_size: int | str
    min_files: int
    pool_files: int
    max_io: int | None
    buffer_timeout_ns: int | str | None
    buffer_size: int | str
    compact_min_files: int
    compact_percentage: int
    lock_acquisition_timeout_ms: int | str
    datasync: bool
    device_block_size: int | str | None
    file_open_timeout_s: float
    max_attic_files: int
    retention_directory: str | os.PathLike[str] | None
    retention_period_ms: int | str
    retention_max_bytes: int | str
    user_version: int
    checksums: bool
    replaceable_types: Iterable[int]
    damage: Literal["fail", "quarantine"]


class JournalChanges(JournalSettings, total=False):
    """Keyword arguments of JournalOptions.replace(), for type checkers."""

    directory: str | os.PathLike[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalOptions:
    """How one journal is kept. Frozen: `replace()` gives a changed copy.

    Every value is checked, OptionError names the first that is wrong. Sizes may be text with a
    unit ("10M"), and so may times ("0.5ms", "5s").

    Attributes:
        directory: folder of the files (journal-directory).
        create_directory: make the folder, and those above it, when missing (create-journal-dir).
        prefix: files are named `<prefix>-<number>.<extension>`.
        extension: see prefix; no dot.
        journal_type: NIO, ASYNCIO, MAPPED or IO_URING (journal-type). The last two fall back,
            IO_URING to ASYNCIO to NIO, with one warning that says why.
        sync_transactional: commit, prepare and rollback wait for the disk unless the call says
            otherwise (journal-sync-transactional).
        sync_non_transactional: the same for all other records (journal-sync-non-transactional).
        file_size: bytes of one file, at least 1024; corrected to the nearest multiple of the
            block size (journal-file-size).
        min_files: files that exist at least, 2 or more (journal-min-files).
        pool_files: files to shrink back to when files become free; -1 keeps all
            (journal-pool-files).
        max_io: writes in flight; None is the type's default, 4096 direct, else 1
            (journal-max-io).
        buffer_timeout_ns: nanoseconds that a record may wait in the buffer for company; 0 writes
            each record at once; None is the type's default (journal-buffer-timeout).
        buffer_size: bytes of the buffer, which a record must fit (journal-buffer-size).
        compact_min_files: data files before compaction is considered; 0 never compacts by itself
            (journal-compact-min-files).
        compact_percentage: percent of live bytes below which it starts, 0 to 100
            (journal-compact-percentage).
        lock_acquisition_timeout_ms: milliseconds to wait for the folder's lock; -1, the default,
            for ever, 0 not at all (journal-lock-acquisition-timeout).
        datasync: sync for power failure, not only for the process's (journal-datasync).
        device_block_size: bytes a direct write is aligned to; None probes the device
            (journal-device-block-size).
        file_open_timeout_s: seconds after which an append that waits for the next file says so
            in the log (journal-file-open-timeout).
        max_attic_files: files kept at most in attic/ below the folder, where a load puts files that
            it does not understand; past the limit these stay (journal-max-attic-files).
        retention_directory: folder of history copies; None keeps no history
            (journal-retention-directory).
        retention_period_ms: milliseconds a history copy is kept; -1 without limit.
        retention_max_bytes: bytes of history copies kept; -1 without limit.
        user_version: of the records; files with another are refused.
        checksums: write leaders and marks; off writes bytes as Artemis does.
        replaceable_types: user types of updates of which only the last matters; the broker's
            are 34 and 36 (JournalStorageManager).
        damage: what load does on damage of acknowledged data: "fail" refuses with
            JournalDamaged, "quarantine" goes on without it.
    """

    directory: Path
    create_directory: bool = True
    prefix: str = "activemq-data"
    extension: str = "amq"
    journal_type: JournalType = JournalType.ASYNCIO
    sync_transactional: bool = True
    sync_non_transactional: bool = True
    file_size: int = 10 * 1024 * 1024
    min_files: int = 2
    pool_files: int = -1
    max_io: int | None = None
    buffer_timeout_ns: int | None = None
    buffer_size: int = DEFAULT_BUFFER_SIZE
    compact_min_files: int = 10
    compact_percentage: int = 30
    lock_acquisition_timeout_ms: int = -1
    datasync: bool = True
    device_block_size: int | None = None
    file_open_timeout_s: float = 5.0
    max_attic_files: int = 10
    retention_directory: Path | None = None
    retention_period_ms: int = -1
    retention_max_bytes: int = -1
    user_version: int = 0
    checksums: bool = True
    replaceable_types: frozenset[int] = frozenset()
    damage: str = "fail"

    if TYPE_CHECKING:  # The fields have the types that are kept; texts and iterables are taken too.

        def __init__(
            self, *, directory: str | os.PathLike[str], **settings: Unpack[JournalSettings]
        ) -> None: ...

    def __post_init__(self) -> None:
        """Check every value; OptionError names the first that is wrong."""
        for name in ("directory", "retention_directory"):
            self._take_path(name)
        try:
            object.__setattr__(self, "journal_type", JournalType(self.journal_type))
        except ValueError:
            names = ", ".join(JournalType)
            raise OptionError(
                f"journal-type is {self.journal_type!r}; it is one of {names}"
            ) from None
        for name in ("prefix", "extension"):
            value = getattr(self, name)
            if not isinstance(value, str) or not NAME_PART.fullmatch(value):
                raise OptionError(f"{name} is {value!r}; it is part of a file name")
        for name, parse in PARSED.items():
            value = getattr(self, name)
            if isinstance(value, str):
                object.__setattr__(self, name, parse(value))
        for name, (least, most) in RANGES.items():
            self._within(name, least, most)
        for name in SWITCHES:
            if not isinstance(getattr(self, name), bool):
                raise OptionError(f"{_shown(name)} is {getattr(self, name)!r}; True or False")
        timeout_s: object = self.file_open_timeout_s
        if (
            isinstance(timeout_s, bool)
            or not isinstance(timeout_s, int | float)
            or not 0 < timeout_s <= SECONDS_MAX
        ):
            raise OptionError(f"journal-file-open-timeout is {timeout_s!r}; more than 0 seconds")
        block: Any = self.device_block_size
        if block is not None and not (type(block) is int and block in BLOCK_SIZES):
            raise OptionError(
                f"journal-device-block-size is {block!r}; a power of two from 512 to 65536"
            )
        if self.damage not in ("fail", "quarantine"):
            raise OptionError(f"damage is {self.damage!r}; it is 'fail' or 'quarantine'")
        self._take_replaceable()
        if self.retention_directory is not None and (
            self.retention_period_ms == -1 and self.retention_max_bytes == -1
        ):
            raise OptionError("journal-retention-directory needs a period or a storage-limit")

    def _take_path(self, name: str) -> None:
        value = getattr(self, name)
        if value is None and name == "retention_directory":
            return
        if not isinstance(value, str | os.PathLike) or not os.fspath(value):
            raise OptionError(f"{_shown(name)} is {value!r}; the path of a folder")
        object.__setattr__(self, name, Path(value))

    def _within(self, name: str, least: int, most: int) -> None:
        value = getattr(self, name)
        if value is None and name in OPTIONAL:
            return
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise OptionError(f"{_shown(name)} is {value!r}; at least {least}")
        if value > most:
            unit = " bytes" if name.endswith(("_size", "_bytes")) else ""
            raise OptionError(f"{_shown(name)} is {value}; at most {most}{unit}")

    def _take_replaceable(self) -> None:
        try:
            types = frozenset(self.replaceable_types)
        except TypeError:
            raise OptionError(
                f"replaceable_types is {self.replaceable_types!r}; a set of user types"
            ) from None
        one: Any
        for one in types:
            if not isinstance(one, int) or isinstance(one, bool) or not 0 <= one <= 255:
                raise OptionError(f"replaceable_types has {one!r}; user types are 0 to 255")
        object.__setattr__(self, "replaceable_types", types)

    def replace(self, **changes: Unpack[JournalChanges]) -> JournalOptions:
        """A copy with some values changed.

        Args:
            **changes: options by their names.

        Raises:
            OptionError: no option has that name, or a value is outside its range.
        """
        known = {field.name for field in fields(self)}
        for name in changes:
            if name not in known:
                raise OptionError(f"no option is called {name!r}")
        return replace(self, **changes)  # type: ignore[arg-type] # __post_init__ parses texts

    def effective_max_io(self) -> int:
        """Writes in flight at most, with the type's default where none is given."""
        return DEFAULT_MAX_IO[self.journal_type.is_direct] if self.max_io is None else self.max_io

    def effective_buffer_timeout_ns(self) -> int:
        """Nanoseconds in the buffer at most, with the type's default where none is given."""
        if self.buffer_timeout_ns is None:
            return DEFAULT_BUFFER_TIMEOUT_NS[self.journal_type.is_direct]
        return self.buffer_timeout_ns

    def corrected_file_size(self, alignment: int) -> int:
        """The file size as Artemis corrects it: the nearest multiple of `alignment`.

        >>> JournalOptions(directory=".", file_size=10_000).corrected_file_size(4096)
        8192
        """
        rest = self.file_size % alignment
        if self.file_size <= alignment:
            return alignment
        return self.file_size - rest + (alignment if rest >= alignment / 2 and rest else 0)


SIZE_UNITS: Final = {"": 1, "B": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
TIME_UNITS_NS: Final = {
    "": 1,
    "ns": 1,
    "us": 1000,
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
    "d": 86400 * 10**9,
}


def parse_size(text: str) -> int:
    """Bytes of `10485760`, `10M`, `10MiB`, `10mb`, `490K` (all powers of two, as Artemis).

    Raises:
        OptionError: anything else.

    >>> parse_size("10M") == parse_size("10MiB") == 10485760
    True
    """
    match = re.fullmatch(r"\s*(-?\d+)\s*([KMGT]?)(?:i?B)?\s*", text, re.IGNORECASE)
    if match is None:
        raise OptionError(f"{text!r} is not a size; write 10485760, 10M or 10MiB")
    return int(match[1]) * SIZE_UNITS[match[2].upper()]


def parse_duration_ns(text: str) -> int:
    """Nanoseconds of `500000`, `500000ns`, `0.5ms`, `2s`, `5m`, `12h`, `7d`.

    Raises:
        OptionError: anything else.

    >>> parse_duration_ns("0.5ms"), parse_duration_ns("7d") // 10**9
    (500000, 604800)
    """
    match = re.fullmatch(r"\s*(-?\d+(?:\.\d+)?)\s*(ns|us|ms|s|m|h|d|)\s*", text)
    if match is None:
        raise OptionError(f"{text!r} is not a time; write 500000ns, 0.5ms, 2s, 5m, 12h or 7d")
    return round(float(match[1]) * TIME_UNITS_NS[match[2]])


def _parse_ms(text: str) -> int:
    """Milliseconds of `5s` or `500ms`; of a bare number, that many."""
    return int(text) if re.fullmatch(r"-?\d+", text) else parse_duration_ns(text) // 10**6


def _shown(name: str) -> str:
    """The parameter as broker.xml calls it."""
    return "journal-" + re.sub(r"_(ns|ms|s)$", "", name).replace("_", "-")


NAME_PART: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
COUNT_MAX: Final = 2**31 - 1
LONG_MAX: Final = 2**63 - 1
BLOCK_SIZES: Final = tuple(512 << power for power in range(8))
SECONDS_MAX: Final = 10**9
# By field: the least and the highest value.
RANGES: Final[dict[str, tuple[int, int]]] = {
    "file_size": (FILE_SIZE_MINIMUM, COUNT_MAX),
    "min_files": (2, COUNT_MAX),
    "pool_files": (-1, COUNT_MAX),
    "buffer_size": (FILE_SIZE_MINIMUM, COUNT_MAX),
    "compact_min_files": (0, COUNT_MAX),
    "compact_percentage": (0, 100),
    "lock_acquisition_timeout_ms": (-1, LONG_MAX),
    "max_attic_files": (0, COUNT_MAX),
    "retention_period_ms": (-1, LONG_MAX),
    "retention_max_bytes": (-1, LONG_MAX),
    "max_io": (1, COUNT_MAX),
    "buffer_timeout_ns": (0, LONG_MAX),
    "user_version": (USER_VERSION_MIN, USER_VERSION_MAX),
}
# Fields that may be None: the type's default, or what the device says.
OPTIONAL: Final = ("max_io", "buffer_timeout_ns", "device_block_size")
SWITCHES: Final = (
    "create_directory",
    "sync_transactional",
    "sync_non_transactional",
    "datasync",
    "checksums",
)
# Fields that may be given as text with a unit.
PARSED: Final[dict[str, Callable[[str], int]]] = {
    "file_size": parse_size,
    "buffer_size": parse_size,
    "device_block_size": parse_size,
    "retention_max_bytes": parse_size,
    "buffer_timeout_ns": parse_duration_ns,
    "retention_period_ms": _parse_ms,
    "lock_acquisition_timeout_ms": _parse_ms,
}
