"""One journal file as found, and as validated then: the typed header of scan.pyx."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from journal.format cimport HEADER_SIZE, LEADER_SIZE, Header, Record, Scan
from journal.window cimport FileWindow, Window

# What stands at a place of a file: SCAN_* of format.pxd, and this.
cdef enum:
    ITEM_HOLE = 16              # bytes that are neither record, mark nor filling

cdef enum:
    NO_CLAIM = -1

# What is to be done with a record.
cdef enum Verdict:
    LIVE = 0
    DAMAGED = 1                 # its leader disowns it, before the last mark
    TORN = 2                    # behind the first failure after the last mark: cut
    SUSPECT = 3                 # whole, but where it stands it may be part of another's body

# Where a record without a leader comes from, behind what our marks count.
cdef enum Source:
    SOURCE_BODY = 0             # it is part of the body of a torn record
    SOURCE_UNSURE = 1
    SOURCE_SURE = 2             # Artemis appended it

cdef struct Item:
    # Of a hole: offset, size and, if it began like a record, `broken`. Of a leader alone:
    # body_offset = where its record says that it ends.
    Record record
    uint8_t what
    uint8_t verdict
    uint8_t source              # of a record without a leader, if validate_beyond met it
    bint broken                 # hole: began like a record of this file

cdef class FileScan:
    # Identity.
    cdef readonly str name
    cdef Header header
    cdef uint8_t[HEADER_SIZE + LEADER_SIZE] head    # The file's first bytes.
    cdef uint64_t size
    cdef int32_t user_version
    # Found by scan().
    cdef Item *items
    cdef size_t count
    cdef size_t room
    cdef bint is_short          # no whole header: not a journal file
    cdef bint has_leaders       # this file was, at least in part, written with checksums
    cdef uint64_t record_count  # whole records of this file
    cdef uint64_t hole_count
    cdef bint is_sound          # nothing is missing, disowned, mixed or left over: all is live
    cdef bint is_ended          # an end mark
    cdef uint32_t marked        # so many records of ours are synced, by the last mark
    cdef int64_t header_claim   # file id that the header's leader vouches for; -1: no quarrel
    cdef uint64_t scanned_end   # end of the last whole record, as Artemis sees it
    cdef uint64_t data_file_marks
    cdef uint64_t used_end      # end of the last byte that is not zero, for files with leaders
    # Decided by validate() of validation.pyx.
    cdef uint32_t next_ordinal
    cdef uint64_t last_data_position    # end of the last live record
    cdef uint64_t append_position       # end of the last live record or mark
    cdef uint64_t torn_offset
    cdef uint64_t torn_size
    cdef bint is_closed         # Artemis went on behind a torn tail of ours: never append
    cdef bint has_lost          # records vanished, and their ids are unknown
    cdef bint loses_at_end      # and some of them behind the last one that is there
    cdef list found             # of (Damage, bool: acknowledged data of ours is concerned)

    cdef int scan(self, const uint8_t *data, uint64_t size) noexcept nogil
    cdef int push(self, uint8_t what, const Record *record) noexcept nogil
    cdef int scan_file(self, FileWindow window) noexcept nogil
    cdef int scan_through(self, Scan *scan, Window *window) noexcept nogil
    cdef void begin(self, Scan *scan) noexcept nogil
    cdef int go_on(self, Scan *scan) noexcept nogil
    cdef int finish(self, Scan *scan, Window *window) noexcept nogil
    cdef int push_hole(self, const Scan *scan, uint64_t end) noexcept nogil
    cdef uint64_t end_of_last(self) noexcept nogil
    cdef int examine_header(self, Scan *scan, Window *window) noexcept nogil
    cdef bint has_data(self) noexcept nogil
    cdef bint breaks_off(self) noexcept nogil

cdef FileScan scan_bytes(str name, data, int32_t user_version)
