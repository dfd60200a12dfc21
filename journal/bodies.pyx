"""Bodies of live records, read from their files again, mostly in the order they stand there.

Through a small window, as a scan reads (window.pyx): what was read is copied on while it is in
the cache. A body that lies somewhere else, as those of transactions may, is read alone.
"""

import errno
import os

from cpython.bytes cimport PyBytes_AS_STRING
from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from journal.errors import JournalIOError
from journal.files.base import Folder
from journal.folder import open_regular
from journal.remote import REMOTE_STEP, RemotePath

from journal.files.base cimport io_read

__all__ = ["BodyReader"]

cdef enum:
    ID_OFFSET = 8               # of the file id in a header
    ID_SIZE = 8
    STEP_SIZE = 256 << 10       # as in window.pyx
    NEAR_TO_ALONE = 64          # of a step is read where nothing says that the next body is near


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
        self.remote = None
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
        cdef uint64_t count, step = STEP_SIZE
        cdef uint8_t *buffer
        if file != self.file:
            self.change(file)
        if self.remote is not None:
            step = REMOTE_STEP
        count = step if self.start <= offset <= self.end + step else step / NEAR_TO_ALONE
        count = max(<uint64_t>size, min(count, <uint64_t>self.loaded[file].size - offset))
        if count > self.room or self.buffer == NULL:
            buffer = <uint8_t *>malloc(max(count, step))
            if buffer == NULL:
                raise MemoryError
            free(self.buffer)
            self.buffer = buffer
            self.room = max(count, step)
        self.start = self.end = 0
        self.fill(file, offset, count)
        self.start = offset
        self.end = offset + count
        return 0

    cdef int fill(self, int32_t file, uint64_t offset, uint64_t count) except -1:
        """Read bytes of the file into the buffer."""
        cdef int64_t got, id_got
        cdef uint8_t id_bytes[ID_SIZE]
        cdef bytes data
        if self.remote is not None:
            data = self.remote.read(offset, count)
            if <uint64_t>len(data) != count:
                raise self.changed(file)
            memcpy(self.buffer, PyBytes_AS_STRING(data), count)
            return 0
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
        return 0

    cdef int change(self, int32_t file) except -1:
        """Open another file."""
        self.close()
        self.start = self.end = 0
        if isinstance(self.loaded[file].path, RemotePath):
            self.remote = self.loaded[file].path
            self.file = file
            if not self.is_remote_same(file):
                raise self.changed(file)
            return 0
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

    cdef bint is_remote_same(self, int32_t file) except -1:
        """Whether a remote file is the one that was loaded; asked once, when it is opened."""
        loaded = self.loaded[file]
        if self.remote.size() != loaded.size:
            return False
        found = self.remote.read(ID_OFFSET, ID_SIZE)
        return bool(int.from_bytes(found, "big", signed=True) == loaded.file_id)

    def changed(self, file):
        """The error for a file that is not as it was loaded."""
        name = self.loaded[file].name
        return JournalIOError(errno.ESTALE, f"{name}: changed while it was being read", name)
