"""File systems of 64 MB that a test fills up: loop mounts of ext4 and xfs, and tmpfs."""

import contextlib
import ctypes
import errno
import functools
import os
import shutil
import subprocess

import pytest

from journal.options import JournalType

SIZE_MIB = 64
CLONE_NEWNS = 0x20000  # <linux/sched.h>
# What mkfs.xfs makes without asking for more: newer versions refuse less than 300 MB, unless they
# believe that xfs's own tests call them, which set these.
XFS_TESTS = {"TEST_DIR": "small", "TEST_DEV": "small", "QA_CHECK_FS": "small"}
FILE_SYSTEMS = ("ext4", "xfs", "tmpfs")
# Each file system with each kind of I/O. `make test-all` has every one of both, `make soak` all.
_OF_TEST_ALL = {
    *(("ext4", kind) for kind in JournalType),
    ("xfs", JournalType.IO_URING),
    ("tmpfs", JournalType.ASYNCIO),
}
SYSTEMS_AND_KINDS = [
    pytest.param(system, kind, marks=() if (system, kind) in _OF_TEST_ALL else pytest.mark.soak)
    for system in FILE_SYSTEMS
    for kind in JournalType
]


@contextlib.contextmanager
def small_disk(kind, folder):
    """Mount an empty file system of that kind; its mount point. Skips where it cannot."""
    mount = folder / "disk"
    mount.mkdir()
    if os.geteuid() != 0:
        pytest.skip("only root may mount a file system")
    _take_own_mounts()
    if kind == "tmpfs":
        command = ["mount", "-t", "tmpfs", "-o", f"size={SIZE_MIB}m", "tmpfs", str(mount)]
    else:
        if shutil.which(f"mkfs.{kind}") is None:
            pytest.skip(f"mkfs.{kind} is not installed")
        image = folder / "image"
        with image.open("wb") as file:
            file.truncate(SIZE_MIB << 20)
        made = subprocess.run(
            [f"mkfs.{kind}", "-q", str(image)],
            env={**os.environ, **XFS_TESTS},
            capture_output=True,
            text=True,
            check=False,
        )
        if made.returncode:
            pytest.skip(f"mkfs.{kind} makes none of {SIZE_MIB} MB: {made.stderr.strip()}")
        command = ["mount", "-o", "loop", str(image), str(mount)]
    mounted = subprocess.run(command, capture_output=True, text=True, check=False)
    if mounted.returncode:
        pytest.skip(f"{kind} cannot be mounted: {mounted.stderr.strip()}")
    try:
        yield mount
    finally:
        # A failed test may leave a process there; the mount goes with it.
        subprocess.run(["umount", "--lazy", str(mount)], check=True)


@functools.cache
def _take_own_mounts():
    """What this thread mounts from now on goes with the process, however that ends (unshare(2)).

    What stayed could not be deleted, not even by the next run.
    """
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNS):
        pytest.skip(f"mounts cannot be its own: {os.strerror(ctypes.get_errno())}")
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)


def fill(mount, leave=0):
    """Write a ballast that leaves so many bytes; with 0 until not one byte more is taken."""
    fd = os.open(mount / "ballast", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        for step in (1 << 20, 4096, 512, 1):
            with contextlib.suppress(_Full):
                while not leave or _free(mount) >= leave + step:
                    _write(fd, step)
        os.fsync(fd)
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
    finally:
        os.close(fd)


def empty(mount):
    """Take the ballast off."""
    (mount / "ballast").unlink()


class _Full(Exception):
    """The disk takes no more of this size."""


def _write(fd, size):
    try:
        written = os.write(fd, b"b" * size)
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        raise _Full from error
    if written < size:
        raise _Full


def _free(mount):
    found = os.statvfs(mount)
    return found.f_bavail * found.f_frsize
