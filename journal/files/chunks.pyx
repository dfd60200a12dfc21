"""Writes one file after another, each from its first byte on, in large chunks.

    caller ──encodes──▶ chunk ──kernel AIO, O_DIRECT──▶ disk
                        chunk ──on its way────────────▶
                        chunk ──on its way────────────▶

For files that are not read soon. Past the page cache a MiB costs the processor 0.05 ms in place of
0.3, and evicts no pages that are in use. The caller fills a chunk while the disk is busy with two.

Without O_DIRECT or a queue, a chunk goes into the page cache, which is told to begin writing it.

Nothing is durable before the file was synced, after settle().

Memory: CHUNK_COUNT chunks.
"""

import errno

from libc.string cimport memcpy, memset

from journal.files.base cimport (
    Folder, aio_close, aio_open, aio_submit, aio_wait, io_alloc, io_free, io_start_sync, io_write)
from journal.files.guard cimport may_write
from journal.native cimport qv_completion

__all__ = ["ChunkWriter"]

cdef enum:
    CHUNK_SIZE = 512 << 10      # from here on the disk gets no faster
    DIRECT_SIZE_MIN = 2 * CHUNK_SIZE
    # Of offsets, sizes and memory of direct writes: the largest block that qv_block_size() finds.
    ALIGNMENT = 4096


cdef class ChunkWriter:
    """What one file after another is written through.

    Args:
        folder: in which the files are.
        file_size: bytes of each; they are not written past the page cache unless it is a multiple
            of 4096.

    Order of calls: open(); for each file begin(), then make_room(), and `used` moved on, any number
    of times, then end(); settle() before the file is synced or closed; rest(), and all over again;
    close(). After a failure only rest() and close(). Threads: one.

    Raises JournalIOError when the folder cannot be probed.
    """

    def __cinit__(self, Folder folder, uint64_t file_size):
        self.fd = -1
        self.file_size = file_size
        self.guard = folder.guard
        # Small files are not worth a queue, of which a system has a limited number.
        self.direct = (file_size >= DIRECT_SIZE_MIN and file_size % ALIGNMENT == 0
                       and folder.supports_direct() and folder.block_size() <= ALIGNMENT
                       and aio_open(CHUNK_COUNT, &self.queue) == 0)

    def __dealloc__(self):
        self.close()

    def open(self):
        """Have chunks to fill.

        Raises:
            MemoryError: there is no room for them.
        """
        cdef int i
        for i in range(CHUNK_COUNT if self.direct else 1):
            if self.chunks[i].data == NULL:
                self.chunks[i].room = min(<uint64_t>CHUNK_SIZE, self.file_size + ALIGNMENT)
                self.chunks[i].data = <uint8_t *>io_alloc(self.chunks[i].room, ALIGNMENT)
                if self.chunks[i].data == NULL:
                    raise MemoryError

    def rest(self):
        """Wait for what is on its way, whatever becomes of it, and give back the memory."""
        cdef int i
        with nogil:
            while not self.is_written(self.file) and self.await_one() >= 0:
                pass
        for i in range(CHUNK_COUNT):
            # If the wait itself failed, what is on its way keeps its memory until close().
            if self.chunks[i].size == 0:
                io_free(self.chunks[i].data)
                self.chunks[i].data = NULL

    def close(self):
        """Wait for what is on its way, and give everything back. Idempotent.

        The kernel takes 30 ms to give up a queue, so it is kept from one use to the next.
        """
        cdef int i
        with nogil:
            aio_close(self.queue)
        self.queue = NULL
        for i in range(CHUNK_COUNT):
            io_free(self.chunks[i].data)
            self.chunks[i].data = NULL
            self.chunks[i].size = 0

    cdef void begin(self, int fd) noexcept nogil:
        """Write to another file from now on: O_DIRECT if `direct`, and of its full size then."""
        self.fd = fd
        self.file += 1
        self.offset = 0
        self.used = 0

    cdef uint8_t *make_room(self, uint64_t size) noexcept nogil:
        """Where the next bytes of the file go, at least `size`; NULL: see `failed`.

        Good until the next call; `used` is the caller's to move on.
        """
        cdef Chunk *chunk = &self.chunks[self.filling]
        cdef uint8_t *data
        cdef uint64_t room
        if self.used + size > chunk.room:
            if self.send() < 0:
                return NULL
            chunk = &self.chunks[self.filling]
        if self.used + size > chunk.room:
            room = (self.used + size + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT
            data = <uint8_t *>io_alloc(room, ALIGNMENT)
            if data == NULL:
                self.failed = -errno_ENOMEM
                return NULL
            memcpy(data, chunk.data, self.used)
            io_free(chunk.data)
            chunk.data = data
            chunk.room = room
        return chunk.data + self.used

    cdef int end(self) noexcept nogil:
        """Send the rest of the file, and zeros up to a whole block; 0 or -errno.

        What lies behind `offset` then was not written.
        """
        cdef uint64_t tail = self.used % ALIGNMENT
        if self.direct and tail:
            # There is room: a chunk is whole blocks.
            memset(self.chunks[self.filling].data + self.used, 0, ALIGNMENT - tail)
            self.used += ALIGNMENT - tail
        return self.send()

    cdef int send(self) noexcept nogil:
        """Put the chunk that fills on its way, and go on in the next; 0 or -errno.

        Of a direct file only whole blocks go; the rest goes over into the next chunk.
        """
        cdef Chunk *full = &self.chunks[self.filling]
        cdef uint64_t kept = self.used % ALIGNMENT if self.direct else 0
        cdef uint64_t size = self.used - kept
        cdef int result
        if size == 0:
            return 0
        result = may_write(self.guard)
        if result < 0:
            self.failed = result
            return result
        if not self.direct:
            result = io_write(self.fd, full.data, size, self.offset, False)
            if result < 0:
                self.failed = result
                return result
            # A hint: if it fails, so does the sync.
            io_start_sync(self.fd, self.offset, size)
        else:
            result = aio_submit(self.queue, self.fd, full.data, size, self.offset, False,
                                <uint64_t>self.filling)
            if result < 0:
                self.failed = result
                return result
            full.size = size
            full.file = self.file
            self.filling = (self.filling + 1) % CHUNK_COUNT
            while self.chunks[self.filling].size:
                self.await_one()
                if self.failed:
                    return self.failed
            memcpy(self.chunks[self.filling].data, full.data + size, kept)
        self.offset += size
        self.used = kept
        return 0

    cdef int await_one(self) noexcept nogil:
        """Wait until one more chunk has arrived, or has not, see `failed`; -errno: no wait."""
        cdef qv_completion done
        cdef int count = aio_wait(self.queue, 1, &done, 1)
        cdef Chunk *chunk
        if count < 0:
            self.failed = count
            return count
        if count:
            chunk = &self.chunks[done.tag]
            if done.result < 0:
                self.failed = <int>done.result
            elif <uint64_t>done.result != chunk.size:
                self.failed = -errno_EIO
            chunk.size = 0
        return 0

    cdef bint is_written(self, uint32_t file) noexcept nogil:
        """Whether nothing of that file, and of those before it, is on its way."""
        cdef int i
        for i in range(CHUNK_COUNT):
            if self.chunks[i].size and self.chunks[i].file <= file:
                return False
        return True

    cdef int settle(self, uint32_t file) noexcept nogil:
        """Wait until all of that file, and of those before it, was written; 0 or -errno."""
        while not self.failed and not self.is_written(file):
            self.await_one()
        return self.failed


cdef int errno_ENOMEM = errno.ENOMEM
cdef int errno_EIO = errno.EIO
