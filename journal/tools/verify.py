"""Verifies a journal: reads all of it and reports damage; read-only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from journal.errors import Damage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from journal.folder import JournalFile
    from journal.loaded import LoadResult

__all__ = ["VerifyReport", "verify_report"]


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """What reading all of a journal has shown.

    Attributes:
        file_count: journal files, short ones included.
        record_count: whole records, of any kind.
        checksum_count: those of them whose checksum was there and right.
        live_count: records that a load gives.
        damages: what does not hold what was written, in the order of files and offsets. Also what
            breaks off at the end of a file that has no checksums: it is unknown whether that was
            ever acknowledged.
        torn: tails of files with checksums that a crash left, never acknowledged: not damage.
    """

    file_count: int
    record_count: int
    checksum_count: int
    live_count: int
    damages: tuple[Damage, ...]
    torn: tuple[Damage, ...]

    @property
    def is_sound(self) -> bool:
        """Whether no damage was found."""
        return not self.damages


def verify_report(files: Sequence[JournalFile], result: LoadResult) -> VerifyReport:
    """Tell what a load of all of the files has found; damage is quarantined.

    Args:
        files: of the folder, short ones too.
        result: of the load.
    """
    checked = {file.name for file in result.files if file.has_checksums}
    short = [
        Damage(file.name, 0, file.size, f"{file.size} bytes are less than a header: ignored")
        for file in files
        if file.is_short
    ]
    torn = tuple(damage for damage in result.damages if damage.torn and damage.file in checked)
    return VerifyReport(
        file_count=len(files),
        record_count=sum(file.record_count for file in result.files),
        checksum_count=sum(file.checksum_count for file in result.files),
        live_count=result.record_count,
        damages=tuple(short + [damage for damage in result.damages if damage not in torn]),
        torn=torn,
    )
