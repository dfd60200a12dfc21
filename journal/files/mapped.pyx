"""MAPPED: copies into a shared mapping and msync.

The fastest where nothing is synced. With datasync, msync of a few pages costs two to three times
fdatasync: prefer NIO or ASYNCIO there. The file's blocks were written before it is mapped, so a
full disk cannot kill the process with SIGBUS.
"""

from libc.stdint cimport uint8_t, uint64_t
from libc.string cimport memcpy

from journal.files.base cimport BackEnd, OpenFile, io_close, io_map, io_sync_map, io_unmap

cdef uint64_t NOTHING = <uint64_t>-1


cdef class MappedBackEnd(BackEnd):
    """Writes are copies; sync is msync."""

    cdef int attach(self, OpenFile *file) noexcept nogil:
        file.dirty_from = NOTHING
        return io_map(file.fd, file.size, True, <void **>&file.map)

    cdef int detach(self, OpenFile *file) noexcept nogil:
        cdef int result = io_unmap(file.map, file.size)
        cdef int closed = io_close(file.fd)
        file.map = NULL
        return result if result < 0 else closed

    cdef int write(self, OpenFile *file, const uint8_t *data, uint64_t size, uint64_t offset,
                   bint sync) noexcept nogil:
        memcpy(file.map + offset, data, size)
        if offset < file.dirty_from:
            file.dirty_from = offset
        file.dirty_end = offset + size
        return self.sync(file) if sync else 0

    cdef int sync(self, OpenFile *file) noexcept nogil:
        cdef int result = 0
        if file.dirty_from < file.dirty_end:
            result = io_sync_map(file.fd, file.map, file.dirty_from,
                                 file.dirty_end - file.dirty_from)
            file.dirty_from = NOTHING
        return result
