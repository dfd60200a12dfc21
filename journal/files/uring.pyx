"""IO_URING: O_DIRECT and io_uring, in whole blocks, with up to journal-max-io writes in flight.

A lone write goes by pwrite and fdatasync in the flusher thread: with one in flight no queue is
faster, and a queued sync completes in a kernel worker, 10 to 20 us later. The queue is for
producers that fill buffers faster than one write takes. docs/decisions/ has the figures.
"""

from libc.stdint cimport uint8_t, uint32_t, uint64_t

from journal.files.base cimport (
    BackEnd, OpenFile, uring_close, uring_open, uring_submit, uring_wait)
from journal.native cimport qv_uring_queue, qv_completion

from journal.errors import JournalIOError


cdef class UringBackEnd(BackEnd):
    """Direct writes, overlapped by io_uring.

    Raises JournalIOError when the kernel gives no queue; EAGAIN is its system-wide limit.
    """

    cdef qv_uring_queue *queue

    def __init__(self, str name, uint32_t alignment, bint direct, uint32_t depth):
        cdef int result = uring_open(depth, &self.queue)
        if result < 0:
            raise JournalIOError(-result, "cannot open a queue for io_uring")

    def close(self):
        """Give back the queue. Idempotent."""
        uring_close(self.queue)
        self.queue = NULL

    def __dealloc__(self):
        uring_close(self.queue)

    cdef int submit(self, OpenFile *file, const uint8_t *data, uint64_t size, uint64_t offset,
                    bint sync, uint64_t tag) noexcept nogil:
        return uring_submit(self.queue, file.fd, data, size, offset, sync, tag)

    cdef int wait(self, uint32_t least, qv_completion *out, uint32_t most) noexcept nogil:
        return uring_wait(self.queue, least, out, most)
