"""MAPPED: files are mapped; batches without a waiter are stored through the map, no system call.

A batch that is to be synced, or is large, is written through the descriptor instead, into the same
pages of the page cache, and a sync is fdatasync. Further down msync and fdatasync are
the same. But every sync write-protects the pages that it wrote, so the next store into them is a
page fault and dirties the whole folio. A record of 1 KiB in folios of 64 KiB: 56 us for a store and
its sync, 39 us for a write and its sync. All figures: docs/decisions/0009.

The file's blocks were written before it is mapped, so a full disk cannot kill the process with
SIGBUS.
"""

from libc.stdint cimport uint8_t, uint64_t

from journal.files.base cimport BackEnd, OpenFile, io_close, io_map, io_store, io_unmap

# Larger batches fault more than they save. Bytes.
cdef uint64_t STORE_MAX = 64 * 1024


cdef class MappedBackEnd(BackEnd):
    """Stores into the map, unless the batch is to be synced: then what the base does."""

    cdef int attach(self, OpenFile *file) noexcept nogil:
        return io_map(file.fd, file.size, True, <void **>&file.map)

    cdef int detach(self, OpenFile *file) noexcept nogil:
        cdef int result = io_unmap(file.map, file.size)
        cdef int closed = io_close(file.fd)
        file.map = NULL
        return result if result < 0 else closed

    cdef int write(self, OpenFile *file, const uint8_t *data, uint64_t size, uint64_t offset,
                   bint sync) noexcept nogil:
        cdef int result
        if sync or size >= STORE_MAX:
            return BackEnd.write(self, file, data, size, offset, sync)
        result = io_store(file.fd, file.map, data, size, offset)
        if result == 0:
            self.start_sync(file, offset + size)
        return result
