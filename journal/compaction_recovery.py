"""Recovers a folder after a crash: finishes or undoes a compaction that was cut off.

The rules are Artemis's (JournalImpl.checkControlFile): without a valid control file the old
files win and what the compaction wrote is deleted; with one the new files win. `plan_recovery` only
looks; `apply_recovery` does what the plan says and may be killed anywhere and run again.

Beyond Artemis:
- names in the control file are matched in full before anything is deleted;
- an old name that a new file has taken already is not deleted again;
- the folder is synced before the control file is deleted, and after.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from journal.control import ControlList, decode_control_list
from journal.errors import Damage, JournalDamaged, JournalIOError, UnsupportedFormat
from journal.folder import (
    CONTROL_FILE,
    JournalFile,
    JournalName,
    list_names,
    order_files,
    parse_name,
)
from journal.reader import read_file
from journal.remote import path_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from journal.remote import AnyPath

__all__ = [
    "FolderOperations",
    "RecoveryPlan",
    "apply_recovery",
    "plan_recovery",
    "read_control_file",
]


@dataclass(frozen=True, slots=True)
class RecoveryPlan:
    """The steps of a recovery, in order, and the folder after them.

    Attributes:
        folder: the journal's.
        deletes: old files that the compaction replaced.
        renames: (from, to), replacing what is called so.
        leftovers: half-made files (`.tmp`, `.cmp`) and the control file, to be deleted last.
        files: the journal files as they will count, in the order of their ids, short ones first.
    """

    folder: AnyPath
    deletes: tuple[str, ...]
    renames: tuple[tuple[str, str], ...]
    leftovers: tuple[str, ...]
    files: tuple[JournalFile, ...]

    @property
    def is_needed(self) -> bool:
        """Whether anything is to be done at all."""
        return bool(self.deletes or self.renames or self.leftovers)

    def describe(self) -> str:
        """One line for people; empty where nothing is to be done.

        The tools, which never write, say it on standard error.
        """
        if not self.is_needed:
            return ""
        parts = []
        if CONTROL_FILE in self.leftovers and (self.deletes or self.renames):
            parts.append(
                "a compaction was cut off after its control file was complete:"
                f" {len(self.renames)} new files replace {len(self.deletes)} old ones"
            )
        others = [name for name in self.leftovers if name != CONTROL_FILE]
        if others:
            parts.append(f"left over and ignored: {', '.join(others)}")
        if not parts:
            parts.append(f"{CONTROL_FILE} asks for nothing that is left to do")
        return "; ".join(parts)


def read_control_file(path: AnyPath) -> ControlList | None:
    """The list in a control file, or None where it holds no whole record.

    Raises:
        JournalIOError: it cannot be read.
    """
    try:
        view = read_file(path)
    except UnsupportedFormat:
        return None
    if view.is_short or view.file_id:
        return None
    for record in view:
        if record.kind == "add" and record.verdict == "live" and record.body is not None:
            try:
                return decode_control_list(record.body)
            except ValueError:
                return None
    return None


def plan_recovery(folder: str | os.PathLike[str], name: JournalName) -> RecoveryPlan:
    """Look at a folder and say what recovery would do; nothing is touched.

    Raises:
        JournalDamaged: the control file names what is no file of this journal.
        JournalIOError: the folder or a file cannot be read.
    """
    folder = path_of(folder)
    names = list_names(folder)
    present = set(names)
    control = read_control_file(folder / CONTROL_FILE) if CONTROL_FILE in present else None
    control = control or ControlList((), ())
    check_names(control, name)
    renames = [(new, new.removesuffix(".cmp")) for new in control.new_files if new in present]
    renames += [pair for pair in control.renames if pair[0] in present]
    taken = {new.removesuffix(".cmp") for new in control.new_files if new not in present}
    deletes = [old for old in control.old_files if old in present and old not in taken]
    sources = {source for source, _ in renames}
    leftovers = [
        file
        for file in names
        if file not in sources
        and (
            parse_name(name, file, ".cmp") is not None or parse_name(name, file, ".tmp") is not None
        )
    ]
    # The control file goes before the files it no longer speaks of, and after all it asks for.
    leftovers = [CONTROL_FILE, *leftovers] if CONTROL_FILE in present else leftovers
    files = {
        file: file for file in names if parse_name(name, file) is not None and file not in deletes
    }
    files.update({target: source for source, target in renames})
    return RecoveryPlan(
        folder,
        tuple(deletes),
        tuple(renames),
        tuple(leftovers),
        tuple(order_files((file, folder / place) for file, place in files.items())),
    )


def check_names(control: ControlList, name: JournalName) -> None:
    """Refuse a control file that names anything but files of this journal."""
    bad = [old for old in control.old_files if parse_name(name, old) is None]
    bad += [new for new in control.new_files if parse_name(name, new, ".cmp") is None]
    bad += [
        file
        for pair in control.renames
        for file in pair
        if parse_name(name, file.removesuffix(".cmp")) is None
    ]
    if bad:
        what = f"names a file that is none of this journal's: {bad[0]!r}"
        raise JournalDamaged([Damage(CONTROL_FILE, 0, 0, what)])


class FolderOperations(Protocol):
    """The four calls that recovery makes on a folder; names are single components."""

    def delete(self, name: str) -> None:
        """Delete a file; a missing file is ignored."""

    def rename(self, source: str, target: str) -> None:
        """Rename a file, replacing `target`."""

    def sync_file(self, name: str) -> None:
        """Make what the file holds durable."""

    def sync(self) -> None:
        """Make all deletes and renames before this durable."""


class SystemFolder:
    """FolderOperations by plain system calls."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def delete(self, name: str) -> None:
        """Delete a file; a missing file is ignored."""
        _checked("cannot delete", name, lambda: (self.folder / name).unlink(missing_ok=True))

    def rename(self, source: str, target: str) -> None:
        """Rename a file, replacing `target`."""
        _checked(
            "cannot rename", source, lambda: (self.folder / source).replace(self.folder / target)
        )

    def sync_file(self, name: str) -> None:
        """Make what the file holds durable."""
        _checked("cannot sync", name, lambda: self._sync(self.folder / name, os.O_NOFOLLOW))

    def sync(self) -> None:
        """Make all deletes and renames before this durable."""
        _checked("cannot sync folder", self.folder.name, lambda: self._sync(self.folder))

    def _sync(self, path: Path, flags: int = os.O_DIRECTORY) -> None:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | flags)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def _checked(what: str, name: str, call: Callable[[], object]) -> None:
    try:
        call()
    except OSError as error:
        raise JournalIOError(error.errno or 0, f"{name}: {what}", name) from error


def apply_recovery(plan: RecoveryPlan, operations: FolderOperations | None = None) -> None:
    """Do what the plan says; when this returns, it is durable.

    Args:
        plan: made with nothing else touching the folder since.
        operations: how; by plain system calls if not given.

    Raises:
        JournalIOError: a call failed. Plan and apply again after a new start.
    """
    if not plan.is_needed:
        return
    if operations is None:
        assert isinstance(plan.folder, Path), "what is remote is only read"
        operations = SystemFolder(plan.folder)
    if plan.deletes or plan.renames:
        # A process that was killed may have written the list and not synced it yet. If the list
        # were lost in a power cut after this, the records in the deleted files would be lost too.
        for name in (*(source for source, _ in plan.renames), CONTROL_FILE):
            operations.sync_file(name)
        operations.sync()
    for name in plan.deletes:
        operations.delete(name)
    for source, target in plan.renames:
        operations.rename(source, target)
    operations.sync()
    for name in plan.leftovers:
        operations.delete(name)
    operations.sync()
