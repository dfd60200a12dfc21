"""Files written whole, in large chunks: the typed header of chunks.pyx."""

from libc.stdint cimport uint8_t, uint32_t, uint64_t

from journal.files.guard cimport WriteGuard
from journal.native cimport qv_aio_queue

cdef enum:
    CHUNK_COUNT = 3             # two on their way to the disk while one fills

cdef struct Chunk:
    uint8_t *data
    uint64_t room
    uint64_t size               # bytes on their way; 0: none
    uint32_t file               # number of the file that they belong to

cdef class ChunkWriter:
    # Settings.
    cdef uint64_t file_size
    cdef WriteGuard guard
    cdef readonly bint direct
    cdef qv_aio_queue *queue
    # The file being written.
    cdef int fd
    cdef uint32_t file
    cdef uint64_t offset        # where the chunk that fills begins
    cdef uint64_t used          # bytes of it
    # Memory.
    cdef Chunk[CHUNK_COUNT] chunks
    cdef int filling            # number of the chunk
    cdef readonly int failed    # -errno of a write that was under way

    cdef void begin(self, int fd) noexcept nogil
    cdef uint8_t *make_room(self, uint64_t size) noexcept nogil
    cdef int end(self) noexcept nogil
    cdef bint is_written(self, uint32_t file) noexcept nogil
    cdef int settle(self, uint32_t file) noexcept nogil
    cdef int send(self) noexcept nogil
    cdef int await_one(self) noexcept nogil
