"""A backup has the system read journal files ahead, and only those that do not change."""

import ctypes
import mmap
import os
import time
from pathlib import Path

import pytest

from broker.storage.open import messages_options
from broker.storage.read_ahead import ReadAhead

LIBC = ctypes.CDLL(None, use_errno=True)
SIZE = 1 << 20
# Of look(): one looks at the folder, each of the others reads a file.
CALLS_PER_LOOK = 100
TIMEOUT_S = 30


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "journal"


def write(folder, number, byte=b"x"):
    """A file of the journal; on the disk, and not in the cache."""
    folder.mkdir(exist_ok=True)
    path = folder / f"activemq-data-{number}.amq"
    path.write_bytes(byte * SIZE)
    forget(path)
    return path


def forget(path):
    fd = os.open(path, os.O_RDONLY)
    os.fsync(fd)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(fd)


def is_cached(path):
    """Whether its first page is in the system's cache, without reading it into there."""
    state = ctypes.create_string_buffer(1)
    with path.open("rb") as file, mmap.mmap(file.fileno(), SIZE, access=mmap.ACCESS_COPY) as mapped:
        first = ctypes.c_char.from_buffer(mapped)
        at = ctypes.c_void_p(ctypes.addressof(first))
        failed = LIBC.mincore(at, ctypes.c_size_t(mmap.PAGESIZE), state)
        del first
    assert not failed
    return bool(state.raw[0] & 1)


def await_cached(path):
    deadline_s = time.monotonic() + TIMEOUT_S
    while not is_cached(path):
        assert time.monotonic() < deadline_s
        time.sleep(0.01)


def looked(ahead, looks):
    """So many looks at the folder, with the reading behind each."""
    for _ in range(looks * CALLS_PER_LOOK):
        ahead.look()


def need_eviction(path):
    if is_cached(path):
        pytest.skip("the file system keeps in memory what it was told to forget")


def test_files_that_do_not_change_are_read_ahead(folder):
    paths = [write(folder, number) for number in (1, 2)]
    need_eviction(paths[0])
    ahead = ReadAhead(messages_options(folder))

    looked(ahead, 1)
    first = [is_cached(path) for path in paths]
    looked(ahead, 1)

    assert first == [False, False]
    for path in paths:
        await_cached(path)


def test_a_file_that_changes_and_what_is_no_journal_s_are_left_alone(folder):
    changing, other = write(folder, 1), Path(folder / "server.lock")
    other.write_bytes(b"x" * SIZE)
    forget(other)
    need_eviction(changing)
    ahead = ReadAhead(messages_options(folder))

    for byte in (b"y", b"z"):
        looked(ahead, 1)
        write(folder, 1, byte)
    looked(ahead, 1)

    assert not is_cached(changing)
    assert not is_cached(other)


def test_what_was_changed_since_is_not_taken_from_the_cache(folder):
    path = write(folder, 1)
    need_eviction(path)
    ahead = ReadAhead(messages_options(folder))
    looked(ahead, 2)
    await_cached(path)
    path.write_bytes(b"y" * SIZE)
    fd = os.open(path, os.O_RDONLY)
    os.fsync(fd)
    os.close(fd)

    ahead.finish()

    assert not is_cached(path)
    assert path.read_bytes() == b"y" * SIZE


def test_no_more_is_read_than_the_limit(folder):
    paths = [write(folder, number) for number in (1, 2)]
    need_eviction(paths[0])
    ahead = ReadAhead(messages_options(folder), limit=SIZE)

    looked(ahead, 3)

    await_cached(paths[0])
    assert not is_cached(paths[1])


def test_a_folder_that_is_not_there_yet_is_waited_for(folder):
    ahead = ReadAhead(messages_options(folder))

    looked(ahead, 1)
    path = write(folder, 1)
    need_eviction(path)
    looked(ahead, 2)

    await_cached(path)
