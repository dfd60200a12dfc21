"""Count what is in a journal: files, records, bytes, and whether compaction is due."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from journal.loaded import FileShare, LoadedFile, LoadResult
    from journal.loader import Loader

__all__ = ["FolderStat", "folder_stat"]

REPLACEABLE_FACTOR = 10  # JournalImpl.UPDATE_FACTOR
COMPACT_MIN_FILES = 10  # journal-compact-min-files
COMPACT_PERCENTAGE = 30  # journal-compact-percentage


@dataclass(frozen=True, slots=True)
class FolderStat:
    """The figures of one journal.

    Attributes:
        files: all journal files, short ones left out.
        data_files: hold data, the one being written included.
        free_files: wait to be used.
        reclaimable_files: data files that nothing needs any more.
        records: whole records of any kind.
        live_records: live ids.
        live_updates: updates of live ids.
        dead_records: all others: deleted, replaced, deletes, ends of transactions, events.
        checksum_records: records with a good checksum.
        prepared_transactions: undecided.
        failed_transactions: open without a prepare, or damaged.
        size_bytes: of all files.
        data_bytes: of data files.
        live_bytes: of live records.
        live_percentage: live bytes in percent of the data files' bytes.
        is_compaction_due: by the two thresholds and what is live.
        damages: places that do not hold what was written, torn tails included.
    """

    files: int
    data_files: int
    free_files: int
    reclaimable_files: int
    records: int
    live_records: int
    live_updates: int
    dead_records: int
    checksum_records: int
    prepared_transactions: int
    failed_transactions: int
    size_bytes: int
    data_bytes: int
    live_bytes: int
    live_percentage: float
    is_compaction_due: bool
    damages: int

    def as_object(self) -> dict[str, Any]:
        """Every figure by its name."""
        return asdict(self)

    def as_rows(self) -> dict[str, str]:
        """For people."""
        f = self
        return {
            "files": f"{f.files} ({f.data_files} data, {f.free_files} free,"
            f" {f.reclaimable_files} to be reclaimed)",
            "records": f"{f.records} ({f.live_records} live, {f.live_updates} updates of them,"
            f" {f.dead_records} dead)",
            "with a checksum": f"{f.checksum_records}",
            "transactions": f"{f.prepared_transactions} prepared, {f.failed_transactions} failed",
            "bytes": f"{f.size_bytes} ({f.data_bytes} in data files)",
            "live bytes": f"{f.live_bytes} ({f.live_percentage} %)",
            "compaction": "due" if f.is_compaction_due else "not due",
            "damaged places": f"{f.damages}",
        }


def folder_stat(
    loader: Loader,
    result: LoadResult,
    *,
    compact_min_files: int = COMPACT_MIN_FILES,
    compact_percentage: int = COMPACT_PERCENTAGE,
) -> FolderStat:
    """Count what a load has found.

    Args:
        loader: of the folder; damage is quarantined.
        result: of its load.
        compact_min_files: journal-compact-min-files; 0 is never.
        compact_percentage: journal-compact-percentage.
    """
    shares = loader.shares()
    data = [
        (file, share) for file, share in zip(result.files, shares, strict=True) if file.has_data
    ]
    reclaimable = sum(share.is_reclaimable for _, share in data)
    records = sum(file.record_count for file in result.files)
    adds = sum(1 for _ in loader.add_ids())
    data_bytes = sum(file.size for file, _ in data)
    live_bytes = sum(share.live_bytes for _, share in data)
    return FolderStat(
        files=len(result.files),
        data_files=len(data),
        free_files=len(result.files) - len(data),
        reclaimable_files=reclaimable,
        records=records,
        live_records=adds,
        live_updates=result.delivered_count - adds,
        dead_records=records - result.delivered_count,
        checksum_records=sum(file.checksum_count for file in result.files),
        prepared_transactions=len(result.prepared),
        failed_transactions=len(result.failed),
        size_bytes=sum(file.size for file in result.files),
        data_bytes=data_bytes,
        live_bytes=live_bytes,
        live_percentage=round(100 * live_bytes / data_bytes, 1) if data_bytes else 100.0,
        is_compaction_due=is_compaction_due(data[:-1], compact_min_files, compact_percentage),
        damages=len(result.damages),
    )


def is_compaction_due(
    data: list[tuple[LoadedFile, FileShare]], min_files: int, percentage: int
) -> bool:
    """Artemis's rule (JournalImpl.needsCompact).

    Args:
        data: data files without the newest, which is being written.
        min_files: not with so few; 0 is never.
        percentage: due below so many percent of live bytes.
    """
    occupied = [(file, share) for file, share in data if not share.is_reclaimable]
    if min_files == 0 or len(occupied) <= min_files:
        return False
    adds = sum(share.add_count for _, share in occupied)
    replaceable = sum(share.replaceable_count for _, share in occupied)
    if adds and replaceable // adds > REPLACEABLE_FACTOR:
        return True
    size = max(file.size for file, _ in occupied)
    return sum(share.live_bytes for _, share in occupied) < len(occupied) * size * percentage // 100
