"""What pins each file, and what its records release: the typed header of file_pins.pyx.

All functions are nogil and need the caller's lock. Files are named by slot, a small number given by
file_new and free again after file_drop. NO_MEMORY (-1): memory is out, and nothing changed.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t

# What a compaction in progress does with a file.
cdef enum:
    STAYS = 0
    LEAVES = 1                  # its records are being copied; it goes when that is published
    ARRIVES = 2                 # being written by the compaction

cdef struct Negative:
    int32_t target              # slot of the file whose records were deleted
    int64_t count

cdef struct FileCounts:
    int64_t file_id
    bint used
    int64_t positives           # adds, update entries and transactions that pin the file
    int64_t live_bytes
    int64_t add_count           # never decreases
    int64_t replaceable_count   # never decreases
    Negative *negatives         # this file's deletes, by the file they concern
    int32_t negative_count
    int32_t negative_room
    int32_t negative_hint       # where the last look-up ended: deletes come in runs
    bint negatives_met          # sticky, see can_reclaim
    bint positives_met          # sticky
    bint awaits_copy            # not reclaimable: waits for its retention copy
    uint8_t compaction          # STAYS, LEAVES or ARRIVES

cdef class FilePins:
    cdef FileCounts *files
    cdef int32_t file_room

    cdef int32_t file_new(self, int64_t file_id) noexcept nogil      # slot
    cdef void file_drop(self, int32_t file) noexcept nogil     # also its negatives elsewhere
    # How many pins of `target` the records in `file` release; and that they release `count` more.
    cdef int64_t negative(self, int32_t file, int32_t target) noexcept nogil
    cdef int negate(self, int32_t file, int32_t target, int64_t count) noexcept nogil
