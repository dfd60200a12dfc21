"""The timed buffer and its flusher thread: the typed header of buffer.pyx."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from journal.files.base cimport BackEnd, OpenFile
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

cdef enum:
    SLOTS_MAX = 16

# What reserve() says.
cdef enum:
    RESERVED = 0
    NEED_ROOM = 1               # every slot waits for the disk: wait_for_room()
    NEED_FILE = 2               # the file is full: roll()
    FAILED = 3                  # the flusher met an error: `error`

# What a record asks of accept().
cdef enum:
    UNSYNCED = 0
    SYNCED = 1                  # somebody waits
    SYNCED_IN_TIME = 2          # nobody does: with what is synced next, or when its time is up

cdef struct Slot:
    uint8_t *data
    OpenFile *file
    uint64_t offset             # in the file
    uint64_t used               # bytes filled
    uint64_t size               # bytes to write, once sealed: `used` in whole blocks
    uint64_t records
    uint64_t awaited            # of its records, those that somebody waits for
    uint64_t started_ns         # when its first record came
    uint32_t ordinal_end        # leaders in the file up to here
    uint32_t marked_ordinal     # what its own mark claims
    bint closes_file

cdef class GroupBuffer:
    # Identity.
    cdef BackEnd back_end
    # Settings.
    cdef uint64_t capacity, timeout_ns, group_delay_ns, idle_ns
    cdef bint datasync, leaders, marks, timer_off
    cdef uint32_t slot_count
    # State, all under `lock`.
    cdef pthread_mutex_t lock
    cdef pthread_t thread
    cdef bint running, stopping, parked, is_prewarmed
    cdef Slot slots[SLOTS_MAX]
    cdef OpenFile *file                 # what the slot being filled goes to
    cdef uint64_t head                  # number of the batch being filled
    cdef uint64_t taken                 # batches below are given to the disk
    cdef uint64_t written               # batches below are in their files
    cdef uint64_t synced                # batches below are on disk
    cdef uint64_t wanted                # batches below are to be synced as soon as can be
    cdef uint64_t flush_to               # batches below are to be written as soon as can be
    cdef uint64_t sync_due              # batches below are to be synced when they are written
    cdef uint64_t last_group_awaited
    cdef uint64_t idle_since_ns
    cdef uint64_t parked_until          # when the parked flusher looks by itself
    cdef int error                      # errno of the first failure, 0: none
    cdef uint8_t *mark_block            # one aligned block
    # Waiting.
    cdef uint32_t signal                # parks the flusher
    cdef uint32_t room_word, room_waiters
    cdef Waiters waiting            # of those who wait for batches
    cdef int event_fd
    cdef bint event_wanted
    # Counters.
    cdef uint64_t flushes, syncs, bytes_written, records, io_ns, io_ns_max

    cdef int start(self) except -1
    cdef void halt(self) noexcept nogil
    cdef void begin_file(self, OpenFile *file) noexcept nogil
    cdef int reserve(self, uint32_t size, uint8_t **where, bint frees) noexcept nogil
    cdef uint64_t accept(self, int sync) noexcept nogil
    cdef bint roll(self, OpenFile *following) noexcept nogil
    cdef uint64_t file_room(self, OpenFile *file) noexcept nogil
    cdef uint64_t sync_all(self) noexcept nogil
    cdef int64_t last_ticket(self) noexcept nogil
    cdef void flush_now(self) noexcept nogil
    cdef void prewarm(self) noexcept nogil
    cdef void release(self) noexcept nogil
    cdef void wake(self) noexcept nogil
    cdef void want(self, uint64_t batch) noexcept nogil
    cdef int wait_synced(self, uint64_t batch) noexcept nogil
    cdef int wait_written(self, uint64_t batch) noexcept nogil
    cdef int wait_for_room(self) noexcept nogil
    cdef void fail(self, int error) noexcept nogil

    cdef uint64_t padded(self, const OpenFile *file, uint64_t size) noexcept nogil
    cdef uint64_t mark_end(self, OpenFile *file, uint64_t end) noexcept nogil
    cdef uint64_t mark_offset(self, OpenFile *file) noexcept nogil
    cdef void begin_slot(self) noexcept nogil
    cdef void seal(self) noexcept nogil
    cdef bint next_is_free(self) noexcept nogil
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
