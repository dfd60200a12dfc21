"""A file seen through a small window, so that what is read is looked at while it is in the cache.

A journal file is some megabytes, a core's own cache one. Read as a whole and then scanned, its
bytes go to main memory and come back; read in steps of STEP_SIZE they stay where they are. Which
also bounds the memory: a window grows only for a record that does not fit it.
"""

import os

from cpython.bytes cimport PyBytes_AS_STRING
from libc.errno cimport EIO, ENOMEM
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memmove

from journal.errors import JournalIOError
from journal.files.base import Folder
from journal.folder import open_regular
from journal.remote import REMOTE_STEP, RemotePath

from journal.files.base cimport io_read

__all__ = ["STEP_SIZE", "FileWindow"]

STEP_SIZE = 256 << 10           # a quarter of a core's own cache on servers of today

cdef enum:
    ROOM_KEPT = 64 << 10        # for what begins in one step and ends in the next


cdef int64_t remote_read(FileWindow window, uint8_t *buffer, uint64_t count,
                         uint64_t offset) noexcept:
    """As io_read(), of a RemotePath; what went wrong is the window's `failure`."""
    cdef bytes data
    try:
        data = window.remote.read(offset, count)
        count = min(count, <uint64_t>len(data))
        memcpy(buffer, PyBytes_AS_STRING(data), count)
    except BaseException as error:
        window.failure = error
        return -EIO
    return <int64_t>count


cdef int window_more(Window *window, Scan *scan) noexcept nogil:
    """Move the window of a scan on by a step; 0, or -errno.

    What begins at the scan's position stays in it, or all that was read. A file that turns out to
    be shorter than it was is scanned to its end.
    """
    cdef uint64_t first = min(scan.position, scan.end)
    cdef uint64_t kept = scan.end - first, room = window.room
    # As much again as a record that does not fit, or a false one could be moved at every step.
    cdef uint64_t count = min(max(window.step, kept), scan.size - scan.end)
    cdef uint8_t *buffer = window.buffer
    cdef int64_t got
    if kept + count > room:
        room = window.step + max(2 * kept, <uint64_t>ROOM_KEPT)
        buffer = <uint8_t *>malloc(room)
        if buffer == NULL:
            return -ENOMEM
    if kept:
        memmove(buffer, scan.data + (first - scan.base), kept)
    if buffer != window.buffer:
        free(window.buffer)
        window.buffer = buffer
        window.room = room
    scan.data = buffer
    scan.base = first
    if window.owner == NULL:
        got = io_read(window.fd, buffer + kept, count, scan.end)
    else:
        with gil:
            got = remote_read(<FileWindow>window.owner, buffer + kept, count, scan.end)
    if got < 0:
        return <int>got
    scan.end += got
    if <uint64_t>got < count:
        scan.size = scan.end
    return 0


cdef class FileWindow:
    """Reads one file after another; its buffer stays.

    Args:
        step_size: bytes read at once, at least the 25 of a header and its leader.

    Threads: one at a time.
    """

    def __init__(self, uint64_t step_size=STEP_SIZE):
        self.window.fd = -1
        self.window.step = step_size

    def __dealloc__(self):
        free(self.window.buffer)

    def read(self, path, look):
        """Open a file, have `look(self)` read it, and close it; what that gave.

        Args:
            path: of a regular file, a symbolic link is none; or a RemotePath.
            look: called with this window.

        Raises:
            JournalIOError: the file cannot be opened or measured; a remote one, read.
        """
        if isinstance(path, RemotePath):
            return self.read_remote(path, look)
        place, name = os.path.split(path)
        with Folder(place or ".") as folder:
            self.window.fd = open_regular(folder, name)
            try:
                self.size = folder.size(self.window.fd, name)
                return look(self)
            finally:
                folder.close_file(self.window.fd, name)
                self.window.fd = -1

    cdef read_remote(self, path, look):
        cdef uint64_t step = self.window.step
        self.size = path.size()
        self.remote = path
        self.window.owner = <void *>self
        self.window.step = max(step, <uint64_t>REMOTE_STEP)
        try:
            return look(self)
        except JournalIOError:
            if self.failure is None:
                raise
            raise self.failure from None
        finally:
            self.window.owner = NULL
            self.window.step = step
            self.remote = self.failure = None
