"""One journal folder and the files in it: the typed header of base.pyx."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from journal.files.guard cimport WriteGuard
from journal.native cimport qv_aio_queue, qv_completion, qv_io_hook, qv_uring_queue

# A journal file that is open for appending. Owned by the journal; the flusher thread is the
# only one that writes to it between attach and detach.
cdef struct OpenFile:
    # Identity.
    int fd
    int32_t slot                # in the RecordIndex
    int64_t file_id
    int64_t number              # in its name
    # Settings.
    uint64_t size               # bytes, fixed
    uint64_t first              # where the first batch may begin: after the header block
    uint32_t alignment          # of its batches: the back end's; 1 once it is written cached
    uint8_t *map                # MAPPED only
    # State, under the journal's lock.
    uint64_t position           # where the next batch begins; a multiple of the alignment
    uint32_t ordinal            # leaders written so far
    uint32_t synced_ordinal     # leaders known to be on disk
    uint32_t marked_ordinal     # what the last mark on disk claims
    bint is_done                # full, and the flusher will not touch it again
    bint is_reserved            # the disk is full: only for records that make room
    uint64_t started            # what lies before is on its way to the disk (flusher only)

cdef class BackEnd:
    cdef readonly str name
    cdef readonly uint32_t alignment
    cdef readonly uint32_t queue_depth
    cdef readonly bint direct
    cdef public bint starts_early
    cdef public WriteGuard guard    # asked before each batch; None: there is none

    cdef int attach(self, OpenFile *file) noexcept nogil
    cdef int detach(self, OpenFile *file) noexcept nogil
    cdef int put(self, OpenFile *file, const uint8_t *data, uint64_t size, uint64_t offset,
                 bint sync) noexcept nogil
    cdef int put_later(self, OpenFile *file, const uint8_t *data, uint64_t size, uint64_t offset,
                       bint sync, uint64_t tag) noexcept nogil
    cdef int write(self, OpenFile *file, const uint8_t *data, uint64_t size, uint64_t offset,
                   bint sync) noexcept nogil
    cdef void start_sync(self, OpenFile *file, uint64_t end) noexcept nogil
    cdef int sync(self, OpenFile *file) noexcept nogil
    cdef int submit(self, OpenFile *file, const uint8_t *data, uint64_t size, uint64_t offset,
                    bint sync, uint64_t tag) noexcept nogil
    cdef int wait(self, uint32_t least, qv_completion *out, uint32_t most) noexcept nogil

# What ext/ does, for other modules: its objects are linked into this one alone.
cdef int64_t io_read(int fd, void *buffer, uint64_t size, uint64_t offset) noexcept nogil
cdef int io_write(int fd, const void *data, uint64_t size, uint64_t offset,
                  bint sync) noexcept nogil
cdef int io_start_sync(int fd, uint64_t offset, uint64_t size) noexcept nogil
cdef int io_close(int fd) noexcept nogil
cdef int io_map(int fd, uint64_t size, bint writable, void **address) noexcept nogil
cdef int io_unmap(void *address, uint64_t size) noexcept nogil
cdef int io_store(int fd, void *address, const void *data, uint64_t size,
                  uint64_t offset) noexcept nogil
cdef int io_advise(int fd, uint64_t offset, uint64_t size, bint willneed) noexcept nogil
cdef void *io_alloc(uint64_t size, uint64_t alignment) noexcept nogil
cdef void io_free(void *memory) noexcept nogil

cdef int aio_open(uint32_t depth, qv_aio_queue **queue) noexcept nogil
cdef int aio_submit(qv_aio_queue *queue, int fd, const void *data, uint64_t size,
                    uint64_t offset, bint sync, uint64_t tag) noexcept nogil
cdef int aio_wait(qv_aio_queue *queue, uint32_t least, qv_completion *out,
                  uint32_t most) noexcept nogil
cdef void aio_close(qv_aio_queue *queue) noexcept nogil

cdef int uring_open(uint32_t depth, qv_uring_queue **queue) noexcept nogil
cdef int uring_submit(qv_uring_queue *queue, int fd, const void *data, uint64_t size,
                      uint64_t offset, bint sync, uint64_t tag) noexcept nogil
cdef int uring_wait(qv_uring_queue *queue, uint32_t least, qv_completion *out,
                    uint32_t most) noexcept nogil
cdef void uring_close(qv_uring_queue *queue) noexcept nogil

# For tests (tap.pyx).
cdef void set_io_hook(qv_io_hook hook, void *context) noexcept nogil

cdef class Folder:
    cdef readonly object path
    cdef readonly int fd
    cdef public WriteGuard guard    # asked before each change; None: there is none

    cdef int check_guard(self) except -1
    cdef object fail(self, int64_t result, str what, str name)
