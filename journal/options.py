"""Every `journal-*` parameter, with the reference's default and unit.

Sources: ActiveMQDefaultConfiguration and ArtemisConstants of the reference for the defaults,
JournalImpl and JournalStorageManager.fixJournalFileSize for the limits.
"""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Final

from journal.errors import OptionError

__all__ = ["JournalOptions", "JournalType", "parse_duration_ns", "parse_size"]


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


FILE_SIZE_MINIMUM: Final = 1024  # JournalImpl refuses less.
DEFAULT_BUFFER_SIZE: Final = 490 * 1024
DEFAULT_BUFFER_TIMEOUT_NS: Final = {True: 500_000, False: 3_333_333}  # by is_direct
DEFAULT_MAX_IO: Final = {True: 4096, False: 1}


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalOptions:
    """How one journal is kept. Frozen: `replace()` gives a changed copy.

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
        lock_acquisition_timeout_ms: milliseconds to wait for the folder's lock; -1 for ever, 0
            not at all (journal-lock-acquisition-timeout).
        datasync: sync for power failure, not only for the process's (journal-datasync).
        device_block_size: bytes a direct write is aligned to; None probes the device
            (journal-device-block-size).
        file_open_timeout_s: seconds after which an append that waits for the next file says so
            in the log (journal-file-open-timeout).
        max_attic_files: files kept in attic/ at most, see FilePool.to_attic
            (journal-max-attic-files).
        retention_directory: folder of history copies; None keeps no history
            (journal-retention-directory).
        retention_period_ms: milliseconds a history copy is kept; -1 without limit.
        retention_max_bytes: bytes of history copies kept; -1 without limit.
        user_version: of the records; files with another are refused.
        checksums: write leaders and marks; off writes bytes as the reference does.
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

    def __post_init__(self) -> None:
        """Check every value; OptionError names the first that is wrong."""
        object.__setattr__(self, "directory", Path(self.directory))
        try:
            object.__setattr__(self, "journal_type", JournalType(self.journal_type))
        except ValueError:
            names = ", ".join(JournalType)
            raise OptionError(
                f"journal-type is {self.journal_type!r}; it is one of {names}"
            ) from None
        if self.retention_directory is not None:
            object.__setattr__(self, "retention_directory", Path(self.retention_directory))
        for name in ("prefix", "extension"):
            if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]*", getattr(self, name)):
                raise OptionError(f"{name} is {getattr(self, name)!r}; it is part of a file name")
        self._at_least("file_size", FILE_SIZE_MINIMUM)
        self._at_least("min_files", 2)
        self._at_least("pool_files", -1)
        self._at_least("buffer_size", FILE_SIZE_MINIMUM)
        self._at_least("compact_min_files", 0)
        self._at_least("compact_percentage", 0)
        self._at_least("lock_acquisition_timeout_ms", -1)
        self._at_least("max_attic_files", 0)
        self._at_least("retention_period_ms", -1)
        self._at_least("retention_max_bytes", -1)
        if self.max_io is not None:
            self._at_least("max_io", 1)
        if self.buffer_timeout_ns is not None:
            self._at_least("buffer_timeout_ns", 0)
        if self.file_size > 0x7FFFFFFF:
            raise OptionError(f"journal-file-size is {self.file_size}; at most 2147483647 bytes")
        if self.compact_percentage > 100:
            raise OptionError(
                f"journal-compact-percentage is {self.compact_percentage}; from 0 to 100"
            )
        if not self.file_open_timeout_s > 0:
            raise OptionError(
                f"journal-file-open-timeout is {self.file_open_timeout_s}; more than 0 seconds"
            )
        block = self.device_block_size
        if block is not None and (block < 512 or block > 65536 or block & (block - 1)):
            raise OptionError(
                f"journal-device-block-size is {block}; a power of two from 512 to 65536"
            )
        if self.damage not in ("fail", "quarantine"):
            raise OptionError(f"damage is {self.damage!r}; it is 'fail' or 'quarantine'")
        if self.retention_directory is not None and (
            self.retention_period_ms == -1 and self.retention_max_bytes == -1
        ):
            raise OptionError("journal-retention-directory needs a period or a storage-limit")

    def _at_least(self, name: str, least: int) -> None:
        value = getattr(self, name)
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            shown = "journal-" + re.sub(r"_(ns|ms|s)$", "", name).replace("_", "-")
            raise OptionError(f"{shown} is {value!r}; at least {least}")

    def replace(self, **changes: object) -> JournalOptions:
        """A copy with some values changed; OptionError as on construction."""
        known = {field.name for field in fields(self)}
        for name in changes:
            if name not in known:
                raise OptionError(f"no option is called {name!r}")
        return replace(self, **changes)  # type: ignore[arg-type]

    def effective_max_io(self) -> int:
        """Writes in flight at most, with the type's default where none is given."""
        return DEFAULT_MAX_IO[self.journal_type.is_direct] if self.max_io is None else self.max_io

    def effective_buffer_timeout_ns(self) -> int:
        """Nanoseconds in the buffer at most, with the type's default where none is given."""
        if self.buffer_timeout_ns is None:
            return DEFAULT_BUFFER_TIMEOUT_NS[self.journal_type.is_direct]
        return self.buffer_timeout_ns

    def corrected_file_size(self, alignment: int) -> int:
        """The file size as the reference corrects it: the nearest multiple of `alignment`.

        >>> JournalOptions(directory=".", file_size=10_000).corrected_file_size(4096)
        8192
        """
        rest = self.file_size % alignment
        if self.file_size <= alignment:
            return alignment
        return self.file_size - rest + (alignment if rest >= alignment / 2 and rest else 0)


SIZE_UNITS: Final = {"": 1, "B": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
TIME_UNITS_NS: Final = {"": 1, "ns": 1, "us": 1000, "ms": 10**6, "s": 10**9, "m": 60 * 10**9}


def parse_size(text: str) -> int:
    """Bytes of `10485760`, `10M`, `10MiB`, `10mb`, `490K` (all powers of two, as the reference).

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
    """Nanoseconds of `500000`, `500000ns`, `0.5ms`, `2s`.

    Raises:
        OptionError: anything else.

    >>> parse_duration_ns("0.5ms")
    500000
    """
    match = re.fullmatch(r"\s*(-?\d+(?:\.\d+)?)\s*(ns|us|ms|s|m|)\s*", text)
    if match is None:
        raise OptionError(f"{text!r} is not a time; write 500000ns, 0.5ms or 2s")
    return round(float(match[1]) * TIME_UNITS_NS[match[2]])
