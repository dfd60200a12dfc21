"""The ring of batches: the typed header of batch_ring.pyx."""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from journal.files.base cimport BackEnd, OpenFile

cdef enum:
    SLOTS_MAX = 16
    BUFFER_ALIGNMENT = 4096

# What reserve() says.
cdef enum:
    RESERVED = 0
    NEED_ROOM = 1               # every slot waits for the disk: wait_for_room()
    NEED_FILE = 2               # the file is full: roll()
    FAILED = 3                  # a write or sync failed: `error`

# What a record asks of accept().
cdef enum:
    UNSYNCED = 0
    SYNCED = 1                  # somebody waits
    SYNCED_IN_TIME = 2          # no waiter: with what is synced next, or when its time is up

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

cdef class BatchRing:
    # Identity.
    cdef BackEnd back_end
    # Settings.
    cdef uint64_t capacity
    cdef bint leaders, marks, timer_off
    cdef uint32_t slot_count
    # State, all under the lock of the buffer.
    cdef bint stopping
    cdef Slot slots[SLOTS_MAX]
    cdef OpenFile *file                 # what the slot being filled goes to
    cdef uint64_t head                  # number of the batch being filled
    cdef uint64_t taken                 # batches below are given to the disk
    cdef uint64_t written               # batches below are in their files
    cdef uint64_t synced                # batches below are on disk
    cdef uint64_t wanted                # batches below are to be synced as soon as can be
    cdef uint64_t flush_to               # batches below are to be written as soon as can be
    cdef uint64_t sync_due              # batches below are to be synced when they are written
    cdef int error                      # errno of the first failure, 0: none
    cdef uint64_t records               # accepted so far

    cdef void begin_file(self, OpenFile *file) noexcept nogil
    cdef int reserve(self, uint32_t size, uint8_t **where, bint frees) noexcept nogil
    cdef uint64_t accept(self, int sync) noexcept nogil
    cdef bint roll(self, OpenFile *following) noexcept nogil
    cdef uint64_t file_room(self, OpenFile *file) noexcept nogil
    cdef uint64_t sync_all(self) noexcept nogil
    cdef int64_t last_ticket(self) noexcept nogil

    cdef uint64_t padded(self, const OpenFile *file, uint64_t size) noexcept nogil
    cdef uint64_t mark_end(self, OpenFile *file, uint64_t end) noexcept nogil
    cdef uint64_t mark_offset(self, OpenFile *file) noexcept nogil
    cdef void begin_slot(self) noexcept nogil
    cdef void seal(self) noexcept nogil
    cdef bint next_is_free(self) noexcept nogil
