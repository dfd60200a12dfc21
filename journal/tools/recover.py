"""Salvage what can be read of a journal into a new one; the source is only read.

In this order, each record once:

    live        what a load gives that goes on without what is damaged, prepared transactions too
    lost        updates of live records in files that a load refuses (a foreign or damaged header)
    others      adds, and their updates, that a load does not give: deleted, rolled back, never
                committed, or left in a file that was used again or waits to be. The first add of an
                id counts, as in Artemis's own `data recover`, and no delete does.

Every id under which a file holds records is read as if it were the file's own (journal.salvage),
so that checksums can be tested. A record counts if its checksum is right. A record that was written
without a checksum counts if it is whole. Copies that a compaction made are told by their compact
count.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from journal.compaction_recovery import plan_recovery
from journal.errors import Damage, UnsupportedFormat, WrongUse
from journal.folder import list_names, order_files, parse_name
from journal.index import RecordIndex
from journal.loader import Loader
from journal.reader import FileView, read_bytes, read_file
from journal.salvage import file_generations
from journal.tools.transfer import Operation, Prepared, TransferTarget

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator

    from journal.folder import JournalFile, JournalName
    from journal.journal import Journal
    from journal.reader import RawRecord

__all__ = ["RecoverReport", "recover_folder"]

BATCH: Final = 10_000  # records of one transaction in the target
HEADER_MARKER: Final = 0xF3
HEADER_SIZE: Final = 16
LEADER_SIZE: Final = 9
SIDECARS: Final = ("", ".cmp", ".bkp")
ADDS: Final = ("add", "add_tx")
UPDATES: Final = ("update", "update_tx")
DELETES: Final = ("delete", "delete_tx")


@dataclass(slots=True)
class RecoverReport:
    """Counts of what was salvaged, and what was not.

    Attributes:
        live: records that a load gives.
        others: records that it does not: ended, or in files marked for use.
        revived: ids among these that a delete in the source had ended, as far as it is still there.
        prepared: prepared transactions, kept so.
        damages: what does not hold what was written.
        refused_files: files that a load refuses; their records were read all the same.
        unwritten: records that were read but not written, and why.
    """

    live: int = 0
    others: int = 0
    revived: int = 0
    prepared: int = 0
    damages: list[Damage] = field(default_factory=list)
    refused_files: list[str] = field(default_factory=list)
    unwritten: list[str] = field(default_factory=list)


def recover_folder(
    folder: str | os.PathLike[str],
    name: JournalName,
    journal: Journal,
    *,
    user_version: int = 0,
    with_ended: bool = True,
    progress: Callable[[int, int, int, int], object] | None = None,
) -> RecoverReport:
    """Salvage the journal in `folder` into `journal`.

    Args:
        folder: of the source; only read.
        name: of its files.
        journal: loaded and empty.
        user_version: of the source's headers.
        with_ended: also what a load does not give.
        progress: called as progress(files_done, files_total, bytes_done, bytes_total).

    Raises:
        JournalIOError: the source cannot be read, or the target's disk fails.
    """
    return _Salvage(Path(folder), name, journal, user_version).run(with_ended, progress)


class _Salvage:
    """One run."""

    def __init__(self, folder: Path, name: JournalName, journal: Journal, version: int) -> None:
        self.folder = folder
        self.name = name
        self.user_version = version
        self.report = RecoverReport()
        self.target = TransferTarget(journal, (), batch=BATCH)
        self.settled: set[int] = set()  # ids of which the load has said all there is
        self.added: set[int] = set()
        self.deleted: set[int] = set()
        self.written: set[int] = set()  # of the adds that a load does not give
        self.seen: dict[tuple[int, int, bytes], int] = {}  # compact count an update came with

    def run(
        self, with_ended: bool, progress: Callable[[int, int, int, int], object] | None
    ) -> RecoverReport:
        plan = plan_recovery(self.folder, self.name)
        whole = [file for file in plan.files if self._is_loadable(file)]
        self._take_live(whole)
        if with_ended:
            self._take_files(progress)
            self.report.revived = len(self.written & self.deleted)
        self.report.prepared = self.target.finish().prepared
        return self.report

    def _is_loadable(self, file: JournalFile) -> bool:
        if file.is_short:
            reason = f"{file.size} bytes are less than a header"
            self.report.damages.append(Damage(file.name, 0, file.size, reason))
            return False
        try:
            read_file(file.path, user_version=self.user_version)
        except UnsupportedFormat as error:
            self.report.refused_files.append(file.name)
            self.report.damages.append(Damage(file.name, 0, HEADER_SIZE, str(error)))
            return False
        return True

    def _take_live(self, files: list[JournalFile]) -> None:
        loader = Loader(files, RecordIndex(), user_version=self.user_version, damage="quarantine")
        result = loader.load()
        self.report.damages += result.damages
        for record in loader.records():
            operation = Operation(
                record.record_id, record.user_type, bytes(record.body), record.is_update
            )
            self.settled.add(record.record_id)
            self.report.live += self._write(operation, record.file)
        for prepared in result.prepared:
            operations = tuple(
                Operation(one.record_id, one.user_type, bytes(one.body), one.is_update)
                for one in prepared.records
            )
            self.settled.update(one.record_id for one in operations if not one.is_update)
            deletes = tuple((delete.record_id, delete.body) for delete in prepared.deletes)
            self.target.keep(Prepared(prepared.tx_id, prepared.extra, operations, deletes))

    def _take_files(self, progress: Callable[[int, int, int, int], object] | None) -> None:
        """Everything else, in the order in which it was written: by file id, then by offset."""
        files = self._all_files()
        generations: list[tuple[int, JournalFile]] = []
        for file in files:
            data = read_bytes(file.path)
            generations += [(one, file) for one in file_generations(data, version=_version(data))]
        generations.sort(key=lambda pair: pair[0])
        size = sum(file.size for _, file in generations)
        done = 0
        for number, (generation, file) in enumerate(generations, 1):
            is_refused = file.name in self.report.refused_files
            for record in _records_of(file, generation, self.user_version):
                self._take(record, file.name, is_refused=is_refused)
            done += file.size
            if progress is not None:
                progress(number, len(generations), done, size)

    def _take(self, record: RawRecord, file: str, *, is_refused: bool) -> None:
        if record.kind in DELETES and record.record_id is not None:
            self.deleted.add(record.record_id)
        if record.kind not in ADDS + UPDATES:
            return
        if record.record_id is None or record.user_type is None or record.body is None:
            return
        operation = Operation(
            record.record_id, record.user_type, record.body, record.kind in UPDATES
        )
        if operation.record_id in self.settled:
            # The load has its updates too, unless they are where it could not look.
            if not (is_refused and operation.is_update):
                return
        elif not operation.is_update:
            if operation.record_id in self.added:
                return
            self.added.add(operation.record_id)
        if operation.is_update:
            key = (operation.record_id, operation.user_type, operation.body)
            if self.seen.setdefault(key, record.compact_count) != record.compact_count:
                return  # The same one, as a compaction copied it.
        if self._write(operation, file):
            self.report.others += 1
            if not operation.is_update:
                self.written.add(operation.record_id)

    def _write(self, operation: Operation, file: str) -> bool:
        try:
            self.target.write(operation)
        except WrongUse as error:
            self.report.unwritten.append(f"{file}: record {operation.record_id}: {error}")
            return False
        return True

    def _all_files(self) -> list[JournalFile]:
        """All files of the journal, those that a compaction or retention was cut off in too."""
        return [
            file
            for file in order_files(
                (name, self.folder / name)
                for name in list_names(self.folder)
                if any(parse_name(self.name, name, end) is not None for end in SIDECARS)
            )
            if not file.is_short
        ]


def _version(data: memoryview) -> int:
    """Format version of the records; that of this journal where the header makes no sense."""
    return 1 if bytes(data[:4]) == b"\0\0\0\1" else 2


def _records_of(file: JournalFile, generation: int, user_version: int) -> Iterator[RawRecord]:
    """The believable records that were written while the file had the id `generation`."""
    data = read_bytes(file.path)
    patched = bytearray(data)
    patched[0:4] = _version(data).to_bytes(4, "big")
    patched[4:8] = user_version.to_bytes(4, "big", signed=True)
    file_id = int.from_bytes(patched[8:16], "big")
    if file_id & 0x7FFF_FFFF != generation:  # Records carry 31 bits; checksums cover all 64.
        patched[8:16] = generation.to_bytes(8, "big")
    if len(patched) > HEADER_SIZE and patched[HEADER_SIZE] == HEADER_MARKER:
        patched[HEADER_SIZE : HEADER_SIZE + LEADER_SIZE] = bytes(LEADER_SIZE)
    view = FileView(file.name, patched, user_version=user_version)
    for record in view:
        if record.checksum == "ok" or (record.checksum == "none" and record.verdict == "live"):
            yield record
