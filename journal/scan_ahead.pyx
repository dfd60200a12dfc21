"""The files of a journal scanned ahead of their readers, on as many threads as there are CPUs.

Scanning needs no GIL. Each thread reads through a window of its own (window.pyx), so that a file's
bytes are looked at while they are in the cache.

Memory: a FileScan a file read ahead (80 bytes a record of it), and a window a thread; no file as a
whole.
"""

import os
from collections import deque
from concurrent.futures import ThreadPoolExecutor

from libc.errno cimport ENOMEM
from libc.stdint cimport int32_t, int64_t

from journal.errors import JournalIOError

from journal.validation cimport validate
from journal.scan cimport FileScan
from journal.window cimport FileWindow

__all__ = ["ScanAhead", "scan_window"]


cdef class ScanAhead:
    """Iterating gives (file, validated FileScan) of each file, in order; once.

    Args:
        files: journal files in the order of their ids, none of them short.
        user_version: what every header must say.
        readahead: files scanned ahead of the one that is taken.
        step_size: bytes of a file that are read, then scanned, at once.
        progress: called after each file was used, with files done, files in all, bytes done, bytes
            in all; or None.

    Raises, while iterating:
        UnsupportedFormat: a foreign format or user version.
        JournalIOError: a file cannot be read.
    """

    cdef list files
    cdef int32_t user_version
    cdef int readahead
    cdef int64_t step_size
    cdef object progress
    cdef object windows             # a deque of those that no thread uses

    def __init__(self, list files not None, int32_t user_version, int readahead,
                 int64_t step_size, progress):
        self.files = files
        self.user_version = user_version
        self.readahead = readahead
        self.step_size = step_size
        self.progress = progress
        self.windows = deque()

    def __iter__(self):
        """(file, validated FileScan) in the order of ids, reading ahead."""
        cdef FileScan scan
        total = sum(file.size for file in self.files)
        done = 0
        # Its threads start with the first submit, so that a small folder costs none.
        with ThreadPoolExecutor(self._thread_count(), "journal-load") as pool:
            ahead = deque()
            following = 0
            newest = -1
            known = {}
            try:
                for number, file in enumerate(self.files):
                    while following < len(self.files) and len(ahead) < self.readahead:
                        if following in known:
                            ahead.append(known.pop(following))
                        else:
                            ahead.append(pool.submit(self._scan, self.files[following]))
                        following += 1
                    if newest < 0:
                        newest, known = self._find_newest(ahead)
                    self._help(ahead, number)
                    first = ahead.popleft()
                    scan = first if isinstance(first, FileScan) else first.result()
                    first = None
                    validate(scan, number >= newest)
                    yield file, scan
                    done += file.size
                    if self.progress is not None:
                        self.progress(number + 1, len(self.files), done, total)
            finally:
                for future in ahead:
                    if not isinstance(future, FileScan):
                        future.cancel()

    def _scan(self, file):
        """Read and scan one file, through a window that is free or a new one; on any thread."""
        try:
            window = self.windows.pop()
        except IndexError:
            window = FileWindow(self.step_size)
        scan = window.read(file.path, lambda window: scan_window(file, self.user_version, window))
        self.windows.append(window)
        return scan

    def _help(self, ahead, number):
        """Scan what no thread has begun, as long as the first file ahead is not done."""
        for place, future in enumerate(ahead):
            first = ahead[0]
            if isinstance(first, FileScan) or first.done():
                return
            if not isinstance(future, FileScan) and future.cancel():
                ahead[place] = self._scan(self.files[number + place])

    def _thread_count(self):
        # The caller's thread scans too.
        return max(1, min(self.readahead, len(os.sched_getaffinity(0)) - 1))

    def _find_newest(self, ahead):
        """Index of the newest file with data, and the scans that finding it took.

        Args:
            ahead: scans of the first files, done or not.
        """
        cdef FileScan scan
        known = {}
        for number in range(len(self.files) - 1, -1, -1):
            if number < len(ahead):
                scan = ahead[number].result()
            else:
                scan = self._scan(self.files[number])
                known[number] = scan
            if scan.has_data():
                return number, known
        return 0, known


def scan_window(file, int32_t user_version, FileWindow window not None):
    """Scan the file that `window` is open on."""
    cdef FileScan scan = FileScan(file.name, user_version)
    cdef int failed
    with nogil:
        failed = scan.scan_file(window)
    if failed == -ENOMEM:
        raise MemoryError
    if failed:
        raise JournalIOError(-failed, "cannot read", os.fspath(file.path))
    return scan
