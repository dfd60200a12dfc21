"""Which back end a journal gets: the type asked for, or the next that works here."""

from __future__ import annotations

import errno
import logging
import os
from pathlib import Path
from typing import TYPE_CHECKING

from journal.errors import JournalIOError
from journal.files.aio import AioBackEnd
from journal.files.mapped import MappedBackEnd
from journal.files.nio import NioBackEnd
from journal.files.uring import UringBackEnd
from journal.options import JournalType

if TYPE_CHECKING:
    from journal.files.base import BackEnd, Folder
    from journal.options import JournalOptions

__all__ = ["choose_back_end"]

log = logging.getLogger("journal")

# More writes in flight than there are buffers to fill can never happen; Artemis's default
# of 4096 would only take that many of the system's aio-max-nr.
DEPTH_MAX = 16

ALIGNMENT_MAX = 4096


def choose_back_end(folder: Folder, options: JournalOptions) -> BackEnd:
    """The back end for a folder, falling back IO_URING, ASYNCIO, NIO with one warning.

    Raises:
        JournalIOError: the folder cannot be probed.
    """
    back_end = _choose(folder, options)
    # Without datasync nothing waits for the disk, so the kernel may choose when to write.
    back_end.starts_early = options.datasync and not back_end.direct
    return back_end


def _choose(folder: Folder, options: JournalOptions) -> BackEnd:
    wanted = options.journal_type
    if wanted is JournalType.NIO:
        return NioBackEnd("NIO")
    if wanted is JournalType.MAPPED:
        return MappedBackEnd("MAPPED")
    reasons: list[str] = []
    if not folder.supports_direct():
        reasons.append("the file system refuses O_DIRECT")
    else:
        alignment = options.device_block_size or _alignment(folder)
        depth = min(options.effective_max_io(), DEPTH_MAX)
        kinds = {JournalType.IO_URING: UringBackEnd, JournalType.ASYNCIO: AioBackEnd}
        order = list(kinds) if wanted is JournalType.IO_URING else [JournalType.ASYNCIO]
        for kind in order:
            try:
                back_end = kinds[kind](kind.value, alignment, True, depth)
            except JournalIOError as error:
                reasons.append(_reason(kind, error, depth))
                continue
            if reasons:
                _warn(wanted, kind, reasons)
            return back_end
    _warn(wanted, JournalType.NIO, reasons)
    return NioBackEnd("NIO")


def _alignment(folder: Folder) -> int:
    """The file system's block, as Artemis takes it, or what the device needs if more.

    Disks that accept 512 bytes often write 4096: a torn physical block would take neighbours with
    it, and smaller writes are not faster.
    """
    return max(folder.block_size(), min(os.fstatvfs(folder.fd).f_bsize, ALIGNMENT_MAX))


def _warn(wanted: JournalType, used: JournalType, reasons: list[str]) -> None:
    log.warning(
        "journal-type %s is not available here, %s is used: %s", wanted, used, "; ".join(reasons)
    )


def _reason(kind: JournalType, error: JournalIOError, depth: int) -> str:
    if kind is JournalType.ASYNCIO and error.errno == errno.EAGAIN:
        try:
            used, most = (
                Path("/proc/sys/fs", name).read_text().strip() for name in ("aio-nr", "aio-max-nr")
            )
        except OSError:
            used, most = "?", "?"
        return f"{depth} more requests would exceed aio-max-nr ({used} of {most} are in use)"
    if kind is JournalType.IO_URING and error.errno in (errno.EPERM, errno.EACCES):
        return "the kernel forbids io_uring (seccomp or kernel.io_uring_disabled)"
    if error.errno == errno.ENOSYS:
        return f"the kernel has no {'io_uring' if kind is JournalType.IO_URING else 'AIO'}"
    return f"{kind}: {error}"
