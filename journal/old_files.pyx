"""Reads the files that a compaction copies from, one ahead of the one that is being copied.

    thread "journal-compaction-read":  file n + 1 ──read, checked in steps──▶ one of two buffers
    the compaction:                    file n, in the other buffer

To read 10 MiB out of the page cache and to verify its checksums takes as long as to copy what is
live of it, so both go on at once where there are two cores.

A file is checked as it comes, in steps that stay in the core's own cache (window.pyx); and it is
read to its end before any of it is used, since only the end says what of it is damaged.

Rejected: a map of the file, which saves the copy but turns an error of the disk into SIGBUS.

Memory: two files.
"""

import errno
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from libc.stdlib cimport free, realloc
from libc.string cimport memset

from journal.errors import JournalIOError
from journal.window import STEP_SIZE

from journal.files.base cimport io_advise
from journal.format cimport Scan, scan_in_windows
from journal.window cimport window_more

__all__ = ["OldFile", "OldFiles"]


class OldFile(NamedTuple):
    """A file to compact: closed, and older than every file that is not."""

    name: str
    number: int
    file_id: int
    slot: int


cdef class OldFiles:
    """The files of one compaction, in order, each read and scanned.

    Args:
        folder: the journal's.
        files: OldFile of each, at least one.
        user_version: the journal's.

    Order of calls: read_ahead(), take() for each file, close(). Threads: one, beside its own.
    """

    def __cinit__(self, Folder folder, list files, int32_t user_version):
        self.folder = folder
        self.files = files
        self.user_version = user_version

    def __dealloc__(self):
        free(self.windows[0].buffer)
        free(self.windows[1].buffer)

    def read_ahead(self):
        """Begin to read the first file."""
        self.thread = ThreadPoolExecutor(1, "journal-compaction-read")
        self.ahead = self.thread.submit(self.read, 0)

    cdef FileScan take(self):
        """The next file, scanned and not judged; its bytes are at `data` until the next call.

        Raises:
            JournalIOError: it cannot be read.
            MemoryError: no room for the whole file.
        """
        cdef FileScan scan = self.ahead.result()
        self.data = self.windows[self.given % 2].buffer
        self.bytes_read += scan.size
        self.given += 1
        self.ahead = None
        if self.given < len(self.files):
            self.ahead = self.thread.submit(self.read, self.given)
        return scan

    def read(self, Py_ssize_t number):
        """Read a file as a whole into its buffer and scan it; its FileScan.

        Raises:
            JournalIOError: it cannot be read, or has lost its end.
            MemoryError: no room for the whole file.
        """
        cdef Window *window = &self.windows[number % 2]
        cdef int failed
        cdef uint64_t size
        name = self.files[number].name
        cdef FileScan scan = FileScan(name, self.user_version)
        window.fd = self.folder.open(name)
        try:
            size = self.folder.size(window.fd, name)
            with nogil:
                failed = self.scan_whole(scan, window, size)
        finally:
            self.folder.close_file(window.fd, name)
        if failed == -errno_ENOMEM:
            raise MemoryError("no memory for a file to compact")
        if failed:
            raise JournalIOError(-failed, "cannot read a file to compact", str(self.folder.path))
        return scan

    cdef int scan_whole(self, FileScan scan, Window *window, uint64_t size) noexcept nogil:
        """Read the file that `window` is open on; 0, or -errno."""
        cdef Scan state
        cdef uint8_t *buffer
        cdef int failed
        # Advice that is not taken costs nothing but time.
        io_advise(window.fd, 0, size, True)
        if size > window.room:
            buffer = <uint8_t *>realloc(window.buffer, size)
            if buffer == NULL:
                return -errno_ENOMEM
            window.buffer = buffer
            window.room = size
        window.step = step_size
        window.keeps_all = True
        memset(&state, 0, sizeof(Scan))
        scan_in_windows(&state, size)
        failed = window_more(window, &state)
        if not failed:
            failed = scan.scan_through(&state, window)
        if not failed and scan.size != size:
            return -errno_EIO
        return failed

    def close(self):
        """Wait for what is being read, and free the memory."""
        cdef int i
        if self.thread is not None:
            self.thread.shutdown()
        for i in range(2):
            free(self.windows[i].buffer)
            memset(&self.windows[i], 0, sizeof(Window))
        self.data = NULL


cdef uint64_t step_size = STEP_SIZE
cdef int errno_ENOMEM = errno.ENOMEM
cdef int errno_EIO = errno.EIO
