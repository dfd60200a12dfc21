"""Bodies of live records, read from their files again, mostly in the order they stand there.

Through a small window, as a scan reads (window.pyx): what was read is copied on while it is in
the cache. A body that lies somewhere else, as those of transactions may, is read alone.
"""

import errno
import os

from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc

from journal.errors import JournalIOError
from journal.files.base import Folder
from journal.folder import open_regular

from journal.files.base cimport io_read

__all__ = ["BodyReader"]

cdef enum:
    ID_OFFSET = 8               # of the file id in a header
    ID_SIZE = 8
    STEP_SIZE = 256 << 10       # as in window.pyx
    ALONE_SIZE = 4 << 10        # read where nothing says that the next body is near


cdef class BodyReader:
    """Reads bodies of records of loaded files; close() it.

    Args:
        loaded: LoadedFile of each, by number.

    Threads: one at a time.
    """

    def __cinit__(self, *args):
        self.file = -1

    def __init__(self, loaded):
        self.loaded = loaded

    def __dealloc__(self):
        free(self.buffer)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()

    def close(self):
        """Close the file that was read last."""
        if self.folder is not None:
            folder, self.folder = self.folder, None
            with folder:
                folder.close_file(self.fd, self.loaded[self.file].name)
        self.file = -1

    cdef const uint8_t *get(self, int32_t file, uint64_t offset, uint32_t size) except NULL:
        """The body that stands there; it holds until the next call.

        Raises:
            JournalIOError: the file cannot be read again, or has changed since it was loaded.
        """
        if file != self.file or offset < self.start or offset + size > self.end:
            self.move(file, offset, size)
        return self.buffer + (offset - self.start)

    cdef int move(self, int32_t file, uint64_t offset, uint32_t size) except -1:
        """Read a body, and what is behind it if the next ones are likely to stand there."""
        cdef uint64_t count = ALONE_SIZE
        cdef int64_t got, id_got
        cdef uint8_t *buffer
        cdef uint8_t id_bytes[ID_SIZE]
        if file != self.file:
            self.change(file)
        if self.start <= offset <= self.end + STEP_SIZE:
            count = STEP_SIZE
        count = max(<uint64_t>size, min(count, <uint64_t>self.loaded[file].size - offset))
        if count > self.room or self.buffer == NULL:
            buffer = <uint8_t *>malloc(max(count, <uint64_t>STEP_SIZE))
            if buffer == NULL:
                raise MemoryError
            free(self.buffer)
            self.buffer = buffer
            self.room = max(count, <uint64_t>STEP_SIZE)
        self.start = self.end = 0
        with nogil:
            got = io_read(self.fd, self.buffer, count, offset)
            # Behind the bodies: a file gets another id before it is used again (pool.py).
            id_got = io_read(self.fd, id_bytes, ID_SIZE, ID_OFFSET)
        if got < 0 or id_got < 0:
            raise JournalIOError(
                <int>-min(got, id_got), "cannot read", os.fspath(self.loaded[file].path))
        if <uint64_t>got != count or id_got != ID_SIZE:
            raise self.changed(file)
        if int.from_bytes(id_bytes[:ID_SIZE], "big", signed=True) != self.loaded[file].file_id:
            raise self.changed(file)
        self.start = offset
        self.end = offset + count
        return 0

    cdef int change(self, int32_t file) except -1:
        """Open another file."""
        self.close()
        self.start = self.end = 0
        place, name = os.path.split(self.loaded[file].path)
        folder = Folder(place or ".")
        try:
            self.fd = open_regular(folder, name)
        except BaseException as error:
            folder.close()
            if isinstance(error, JournalIOError) and error.errno == errno.ENOENT:
                raise self.changed(file) from error
            raise
        self.folder = folder
        self.file = file
        if folder.size(self.fd, name) != self.loaded[file].size:
            raise self.changed(file)
        return 0

    def changed(self, file):
        """The error for a file that is not as it was loaded."""
        name = self.loaded[file].name
        return JournalIOError(errno.ESTALE, f"{name}: changed while it was being read", name)
