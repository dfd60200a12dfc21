"""How full the disks are that the broker writes to, looked at from time to time.

    look() ─▶ statvfs of every folder ─▶ GlobalMemory.set_disk_full()

A limit is reached when any of the disks reaches it: min-disk-free where that is set, else
max-disk-usage. What follows for producers: flow_control.py. Consumers go on, for they make room.

Threads: the event loop's alone; the system knows these numbers without asking the device.
"""

from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from broker.queues.memory import GlobalMemory

__all__ = ["DiskMonitor", "DiskSpace", "disk_space"]

log = logging.getLogger("broker")


class DiskSpace(NamedTuple):
    """Of one disk, in bytes: what the broker may still write, and all there is."""

    usable: int
    total: int

    @property
    def usage_percent(self) -> float:
        """How much of it cannot be written any more (FileStoreMonitor.calculateUsage)."""
        return 100 - 100 * self.usable / self.total if self.total else 0.0


def disk_space(folder: Path) -> DiskSpace:
    """Look at the disk of a folder, or of the nearest one above it that exists.

    Raises:
        OSError: it cannot be looked at.
    """
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    found = os.statvfs(folder)
    return DiskSpace(found.f_bavail * found.f_frsize, found.f_blocks * found.f_frsize)


class DiskMonitor:
    """See the module's text.

    Args:
        folders: that are written to.
        memory: of the broker, which is told.
        max_usage_percent: max-disk-usage; -1 without limit.
        min_free: min-disk-free in bytes; -1 takes max_usage_percent.
        measure: looks at a folder's disk.
    """

    def __init__(
        self,
        folders: Sequence[Path],
        memory: GlobalMemory,
        *,
        max_usage_percent: int,
        min_free: int = -1,
        measure: Callable[[Path], DiskSpace] = disk_space,
    ) -> None:
        self._folders = folders
        self._memory = memory
        self._max_usage_percent = max_usage_percent
        self._min_free = min_free
        self._measure = measure

    def look(self) -> None:
        """Find out whether a limit is reached, and say so when that changes."""
        found = []
        for folder in self._folders:
            try:
                found.append(self._measure(folder))
            except OSError as error:
                log.warning("the disk of %s cannot be looked at: %s", folder, error)
        if not found:
            return
        fullest = max(found, key=self._fullness)
        is_full = not self._is_within_limit(fullest)
        self._memory.disk_usage = fullest.usage_percent / 100
        if is_full != self._memory.is_disk_full:
            self._tell(fullest, is_full=is_full)
            self._memory.set_disk_full(is_full=is_full)

    def _fullness(self, space: DiskSpace) -> float:
        """By what the limit is about."""
        return -space.usable if self._min_free >= 0 else space.usage_percent

    def _is_within_limit(self, space: DiskSpace) -> bool:
        if self._min_free >= 0:
            return space.usable > self._min_free
        return self._max_usage_percent < 0 or space.usage_percent < self._max_usage_percent

    def _tell(self, space: DiskSpace, *, is_full: bool) -> None:
        by_free = self._min_free >= 0
        if is_full:
            log.warning(
                "%s: %d of %d bytes of the disk are free, usage %.1f %%, beyond the configured %s: "
                "producers are blocked",
                "AMQ224128" if by_free else "AMQ222210",
                space.usable,
                space.total,
                space.usage_percent,
                "min-disk-free" if by_free else "max-disk-usage",
            )
        else:
            log.info(
                "%s: %d of %d bytes of the disk are free, usage %.1f %%: producers go on",
                "AMQ224129" if by_free else "AMQ222211",
                space.usable,
                space.total,
                space.usage_percent,
            )
