"""The records of a folder, as every command that only reads sees them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from journal.errors import Damage, UnsupportedFormat
from journal.folder import order_files
from journal.index import RecordIndex
from journal.loader import Loader
from journal.reader import read_file, read_folder
from journal.tools.stat import COMPACT_MIN_FILES, COMPACT_PERCENTAGE, folder_stat
from journal.tools.verify import verify_report

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from journal.api import Progress
    from journal.compaction_recovery import RecoveryPlan
    from journal.delivery import LiveRecord
    from journal.folder import JournalFile
    from journal.loaded import FailedTransaction, LoadResult, PreparedTransaction
    from journal.reader import FileView
    from journal.tools.stat import FolderStat
    from journal.tools.verify import VerifyReport

__all__ = ["FolderRecords"]


@dataclass(slots=True)
class FolderRecords:
    """See journal.tools.stored.StoredRecords.

    Attributes:
        plan: the folder as recovery would leave it.
        user_version: of every file's header.
        replaceable: user types whose updates replace one another.
        compact_min_files: journal-compact-min-files, for stat().
        compact_percentage: journal-compact-percentage, for stat().
        is_on_disk: views() shows every file under the name that it has now, also those that
            recovery would delete.
        prepared: from records().
        failed: from records().
        damages: from records() and views().
        delivered_count: from records().
    """

    plan: RecoveryPlan
    user_version: int = 0
    replaceable: frozenset[int] = frozenset()
    compact_min_files: int = COMPACT_MIN_FILES
    compact_percentage: int = COMPACT_PERCENTAGE
    is_on_disk: bool = False
    prepared: list[PreparedTransaction] = field(default_factory=list)
    failed: list[FailedTransaction] = field(default_factory=list)
    damages: list[Damage] = field(default_factory=list)
    delivered_count: int = 0

    @property
    def name(self) -> str:
        """Of the folder."""
        return str(self.plan.folder)

    def records(self, progress: Progress) -> Iterator[LiveRecord]:
        """The live records in load order; damage is quarantined."""
        return self._delivered(progress).records()

    def add_ids(self, progress: Progress) -> Iterable[int]:
        """Ids of all records that a live add has made, ascending."""
        return self._delivered(progress).add_ids()

    def _delivered(self, progress: Progress) -> Loader:
        loader, result = self._load(progress)
        self.prepared += result.prepared
        self.failed += result.failed
        self.damages += result.damages
        self.delivered_count = result.delivered_count
        return loader

    def _load(self, progress: Progress) -> tuple[Loader, LoadResult]:
        loader = Loader(
            self.plan.files,
            RecordIndex(),
            user_version=self.user_version,
            damage="quarantine",
            replaceable=self.replaceable,
            progress=progress,
        )
        return loader, loader.load()

    def views(self, progress: Progress) -> Iterator[FileView]:
        """Every record of every file, a file at a time."""
        found = self._files_on_disk() if self.is_on_disk else self.plan.files
        files = [file for file in found if not file.is_short]
        size = sum(file.size for file in files)
        done = 0
        for number, view in enumerate(read_folder(files, user_version=self.user_version), 1):
            yield view
            self.damages += view.damages
            done += view.size
            progress(number, len(files), done, size)
        if self.is_on_disk:
            yield from self._leftovers()

    def _files_on_disk(self) -> list[JournalFile]:
        """The files that count before and after recovery, as they are called now."""
        names = [file.path.name for file in self.plan.files] + list(self.plan.deletes)
        return order_files((name, self.plan.folder / name) for name in names)

    def _leftovers(self) -> Iterator[FileView]:
        """What a compaction left behind, its control file too: none of it counts by itself."""
        for name in self.plan.leftovers:
            try:
                view = read_file(self.plan.folder / name, user_version=self.user_version)
            except UnsupportedFormat as error:
                self.damages.append(Damage(name, 0, 0, str(error), torn=True))
                continue
            if not view.is_short:
                yield view
                self.damages += [replace(damage, torn=True) for damage in view.damages]

    def stat(self, progress: Progress) -> FolderStat:
        """The figures."""
        return folder_stat(
            *self._load(progress),
            compact_min_files=self.compact_min_files,
            compact_percentage=self.compact_percentage,
        )

    def verify(self, progress: Progress) -> VerifyReport:
        """Check every record of the files that count."""
        _, result = self._load(progress)
        return verify_report(self.plan.files, result)
