"""Facts about the disk of a folder: file system, block sizes, write cache, safety on power loss.

Figures of a journal mean little without it: a disk with a volatile cache that ignores flushes is
fast and loses acknowledged records, and memory is faster still.
"""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from pathlib import Path
from typing import Final

__all__ = ["DiskFacts", "disk_facts"]

MEMORY: Final = ("tmpfs", "ramfs", "devtmpfs")
NETWORK: Final = ("nfs", "nfs4", "cifs", "smb3", "ceph", "9p", "virtiofs", "fuse.sshfs")
NO_BARRIER: Final = ("nobarrier", "barrier=0")


@dataclass(frozen=True, slots=True)
class DiskFacts:
    """What lies under a folder. None where the system does not say.

    Attributes:
        file_system: its type, as the kernel names it.
        mount_options: of the mount and of the file system, in one line.
        device: name of the block device.
        block_size: of the file system, in bytes.
        logical_block_size: what the device can address, in bytes.
        physical_block_size: what the device writes at once, in bytes.
        write_cache: "write back" (volatile) or "write through".
        fua: whether one write can be forced to the medium.
        rotational: whether it turns.
        kernel: its release.
        cpu_count: that this process may use.
        power_loss: what all this means for a power loss, in one sentence.
    """

    file_system: str | None
    mount_options: str | None
    device: str | None
    block_size: int
    logical_block_size: int | None
    physical_block_size: int | None
    write_cache: str | None
    fua: bool | None
    rotational: bool | None
    kernel: str
    cpu_count: int
    power_loss: str


def disk_facts(
    folder: str | os.PathLike[str],
    *,
    datasync: bool = True,
    system: Path = Path("/sys"),
    mounts: Path = Path("/proc/self/mountinfo"),
) -> DiskFacts:
    """What lies under `folder`.

    Args:
        folder: exists.
        datasync: whether the journal syncs for a power failure at all.
        system: where the kernel's view of the devices is mounted.
        mounts: the kernel's list of mounts.

    Raises:
        OSError: the folder cannot be looked at.
    """
    number = os.stat(folder).st_dev
    kind, options, source = _mount_of(Path(folder).resolve(), number, mounts)
    queue = _queue_of(number, source, system)
    cache = _text(queue, "write_cache")
    fua = _number(queue, "fua")
    rotational = _number(queue, "rotational")
    return DiskFacts(
        file_system=kind,
        mount_options=options,
        device=queue.parent.name if queue else None,
        block_size=os.statvfs(folder).f_bsize,
        logical_block_size=_number(queue, "logical_block_size"),
        physical_block_size=_number(queue, "physical_block_size"),
        write_cache=cache,
        fua=None if fua is None else fua == 1,
        rotational=None if rotational is None else rotational == 1,
        kernel=f"{platform.system()} {platform.release()}",
        cpu_count=len(os.sched_getaffinity(0)),
        power_loss=_power_loss(kind, options, cache, fua, datasync=datasync),
    )


def _power_loss(
    kind: str | None, options: str | None, cache: str | None, fua: int | None, *, datasync: bool
) -> str:
    if kind in MEMORY:
        return "this is memory: nothing survives a power loss"
    if not datasync:
        return "without datasync, what was acknowledged in the last seconds is lost with the power"
    if any(option in NO_BARRIER for option in (options or "").split(",")):
        return "the file system is mounted without barriers: a power loss may take what was synced"
    if kind in NETWORK:
        return "a server keeps the data: what a power loss takes is for its settings to say"
    if cache == "write through":
        return (
            "the device has no volatile write cache: what was synced survives a power loss,"
            " and a sync costs no flush"
        )
    if cache == "write back":
        forced = "a forced write (FUA)" if fua == 1 else "a flush of the whole cache"
        return (
            "the device has a volatile write cache: what was synced survives a power loss only"
            f" because every sync is followed by {forced}, if the device obeys it"
        )
    return (
        "the device does not say whether its write cache is volatile: pull the plug on it once"
        " before trusting it"
    )


def _mount_of(folder: Path, number: int, mounts: Path) -> tuple[str | None, str | None, str | None]:
    """File system type, options and source of the mount that holds a folder."""
    device = f"{os.major(number)}:{os.minor(number)}"
    best: tuple[int, str, str, str] | None = None
    try:
        lines = mounts.read_text("utf-8", "surrogateescape").splitlines()
    except OSError:
        return None, None, None
    for line in lines:
        # Fields: id, parent, device, root, mount point, options, optional ..., -, type, source, ...
        before, _, after = line.partition(" - ")
        words, rest = before.split(), after.split()
        if len(words) < 6 or len(rest) < 3:
            continue
        point = words[4].replace("\\040", " ")
        is_above = folder.is_relative_to(point)
        rank = len(point) if is_above else 0
        # A bind mount or a subvolume may show another device: the path decides, then the device.
        rank = rank * 2 + (words[2] == device)
        if is_above and (best is None or rank >= best[0]):
            best = (
                rank,
                rest[0],
                ",".join(dict.fromkeys(f"{words[5]},{rest[2]}".split(","))),
                rest[1],
            )
    return best[1:] if best else (None, None, None)


def _queue_of(number: int, source: str | None, system: Path) -> Path | None:
    """The request queue of the whole disk below a device number or device file."""
    names = [f"{os.major(number)}:{os.minor(number)}"]
    if source and source.startswith("/dev/"):
        try:
            found = os.stat(source).st_rdev
            names.append(f"{os.major(found)}:{os.minor(found)}")
        except OSError:
            pass  # The device file is not there, in a container for example: no fact, no fault.
    for name in names:
        try:
            place = (system / "dev" / "block" / name).resolve(strict=True)
        except OSError:
            continue
        for disk in (place, place.parent):  # A partition has no queue of its own.
            if (disk / "queue").is_dir():
                return disk / "queue"
    return None


def _text(queue: Path | None, name: str) -> str | None:
    if queue is None:
        return None
    try:
        return (queue / name).read_text().strip() or None
    except OSError:
        return None  # This kernel does not have it.


def _number(queue: Path | None, name: str) -> int | None:
    text = _text(queue, name)
    return int(text) if text is not None and text.isdigit() else None
