"""The timed buffer and its flusher thread: the typed header of buffer.pyx."""

from libc.stdint cimport uint8_t, uint32_t, uint64_t

from journal.batch_ring cimport BatchRing, Slot
from journal.files.base cimport OpenFile
from journal.waiters cimport Waiters

cdef extern from "<pthread.h>" nogil:
    ctypedef struct pthread_mutex_t:
        pass
    ctypedef struct pthread_t:
        pass
    int pthread_mutex_init(pthread_mutex_t *mutex, void *attributes)
    int pthread_mutex_destroy(pthread_mutex_t *mutex)
    int pthread_mutex_lock(pthread_mutex_t *mutex)
    int pthread_mutex_unlock(pthread_mutex_t *mutex)
    int pthread_create(pthread_t *thread, void *attributes, void *(*run)(void *) noexcept nogil,
                       void *argument)
    int pthread_join(pthread_t thread, void **result)

cdef class GroupBuffer(BatchRing):
    # Settings.
    cdef uint64_t timeout_ns, group_delay_ns, idle_ns
    cdef bint datasync
    # State, all under `lock`.
    cdef pthread_mutex_t lock
    cdef pthread_t thread
    cdef bint running, parked, is_prewarmed
    cdef uint32_t idle_prewarms
    cdef uint64_t last_group_awaited
    cdef uint64_t idle_since_ns
    cdef uint64_t parked_until          # when the parked flusher looks by itself
    cdef uint8_t *mark_block            # one aligned block
    # Waiting.
    cdef uint32_t signal                # parks the flusher
    cdef uint32_t room_word, room_waiters
    cdef Waiters waiting            # of those who wait for batches
    cdef int event_fd
    cdef bint event_wanted
    # Counters.
    cdef uint64_t flushes, syncs, bytes_written, io_ns, io_ns_max

    cdef int start(self) except -1
    cdef void halt(self) noexcept nogil
    cdef void flush_now(self) noexcept nogil
    cdef void prewarm(self) noexcept nogil
    cdef void release(self) noexcept nogil
    cdef void wake(self) noexcept nogil
    cdef void want(self, uint64_t batch) noexcept nogil
    cdef int wait_synced(self, uint64_t batch) noexcept nogil
    cdef int wait_written(self, uint64_t batch) noexcept nogil
    cdef int wait_for_room(self) noexcept nogil
    cdef void fail(self, int error) noexcept nogil

    cdef void notify(self, uint64_t first, uint64_t end) noexcept nogil
    cdef void run(self) noexcept nogil
    cdef bint due(self, uint64_t now) noexcept nogil
    cdef void sleep(self, uint64_t now) noexcept nogil
    cdef void poll_for_record(self, uint64_t until) noexcept nogil
    cdef void delay_group(self) noexcept nogil
    cdef void flush_group(self) noexcept nogil
    cdef int write_group(self, uint64_t first, uint64_t end, bint sync) noexcept nogil
    cdef int write_overlapped(self, uint64_t first, uint64_t end) noexcept nogil
    cdef int write_end_mark(self, Slot *slot) noexcept nogil
    cdef int put_mark(self, OpenFile *file, uint64_t start, uint64_t offset, uint8_t marker,
                      uint32_t ordinal, bint sync) noexcept nogil
    cdef void sync_only(self) noexcept nogil
    cdef bint mark_due(self) noexcept nogil
    cdef void write_mark(self) noexcept nogil

# What ext/ does, for journal.pyx: its objects are linked into this module alone.
cdef void event_bump(int fd) noexcept nogil
cdef uint64_t event_take(int fd) noexcept nogil
