"""What is in one journal file: every record, and the leaders, marks and holes between them.

`FileScan` finds them by Artemis's rules; validation.pyx decides which of them count.

Memory: 80 bytes a record of one file. Nothing here keeps the file's bytes.
"""

from libc.errno cimport ENOMEM
from libc.stdlib cimport free, realloc
from libc.string cimport memcmp, memcpy, memset

from journal.format cimport (
    CHECKSUM_BAD, CHECKSUM_NONE, CHECKSUM_OK, COMMIT_RECORD, DELETE_RECORD, EVENT_RECORD,
    FORMAT_VERSION, HEADER_SIZE, LEADER_SIZE, PREPARE_RECORD, ROLLBACK_RECORD, SCAN_END,
    SCAN_END_MARK, SCAN_LEADER_ALONE, SCAN_MORE, SCAN_RECORD, UPDATE_RECORD, Scan, decode_header,
    encode_header, encode_header_leader, record_size, scan_begin, scan_in_windows, scan_next)
from journal.window cimport window_more

__all__ = ["FileScan"]

cdef enum:
    FIRST_ROOM = 256
    CLAIMS_MAX = 8              # file ids tried for a header that its leader disowns


cdef inline void begin_over(Scan *scan, const Header *header, uint64_t position) noexcept nogil:
    """Scan by another header from `position` on, with what is in memory as it is."""
    cdef const uint8_t *data = scan.data
    cdef uint64_t base = scan.base, end = scan.end
    scan_begin(scan, data, scan.size, header, position)
    scan.base = base
    scan.end = end


cdef uint64_t claimed_end(const Scan *scan, const Record *record) noexcept nogil:
    """Where a record that is not whole says that it ends; at most the end of the file."""
    cdef uint64_t field = 5 if scan.version < 2 else 6, end = record.offset
    cdef const uint8_t *data = scan.data + (record.offset - scan.base)
    cdef uint32_t body_size = 0
    cdef int i
    if record.type == COMMIT_RECORD or record.type == ROLLBACK_RECORD \
            or record.type == DELETE_RECORD:
        return min(scan.size, record.offset + record_size(record.type, 0))
    # Behind one number, or behind two: a transaction and a record, or a count of four bytes.
    field += 8 if record.type <= UPDATE_RECORD else 12 if record.type == PREPARE_RECORD else 16
    if record.offset + field + 4 <= scan.size:
        for i in range(4):
            body_size = (body_size << 8) | data[field + i]
    end += <uint64_t>record_size(record.type, 0) + body_size
    return min(scan.size, end)


# Arrays of scans that are done with, for the next ones: fresh memory of some megabytes a file costs
# more in page faults than the scan itself. Guarded by the GIL.
cdef enum:
    KEPT_ITEMS_MAX = 16
    KEPT_ROOM_MAX = 1 << 18     # items; a larger array was for an odd file

cdef struct KeptItems:
    Item *items
    size_t room

cdef KeptItems[KEPT_ITEMS_MAX] kept_items
cdef int kept_items_count = 0


cdef void take_kept_items(FileScan scan) noexcept:
    global kept_items_count
    kept_items_count -= 1
    scan.items = kept_items[kept_items_count].items
    scan.room = kept_items[kept_items_count].room


cdef void keep_items(FileScan scan) noexcept:
    global kept_items_count
    if scan.items != NULL and scan.room <= KEPT_ROOM_MAX and kept_items_count < KEPT_ITEMS_MAX:
        kept_items[kept_items_count].items = scan.items
        kept_items[kept_items_count].room = scan.room
        kept_items_count += 1
    else:
        free(scan.items)
    scan.items = NULL


cdef class FileScan:
    """One file: scan() needs its bytes; what it found stays.

    Args:
        name: the file's name, for reports.
        user_version: what the header must say.

    Threads: scan() may run on any thread without the GIL; one call at a time.
    """

    def __init__(self, str name, int32_t user_version=0):
        self.name = name
        self.user_version = user_version
        self.header_claim = NO_CLAIM
        self.found = []
        if kept_items_count:
            take_kept_items(self)

    def __dealloc__(self):
        keep_items(self)

    # --- what is there -------------------------------------------------------------------------

    cdef int push(self, uint8_t what, const Record *record) noexcept nogil:
        cdef size_t room
        cdef Item *items
        if self.count == self.room:
            room = self.room * 2 if self.room else FIRST_ROOM
            items = <Item *>realloc(self.items, room * sizeof(Item))
            if items == NULL:
                return -1
            self.items = items
            self.room = room
        self.items[self.count].record = record[0]
        self.items[self.count].what = what
        self.items[self.count].verdict = LIVE
        self.items[self.count].broken = False
        self.count += 1
        return 0

    cdef int push_hole(self, const Scan *scan, uint64_t end) noexcept nogil:
        """Remember what the scan passed on its way to `end`, unless it was only zeros."""
        cdef Record record
        memset(&record, 0, sizeof(Record))
        record.offset = scan.broken_offset if scan.broken_offset else scan.noise_offset
        if record.offset == 0 or record.offset >= end:
            return 0
        record.size = <uint32_t>min(end - record.offset, <uint64_t>0xFFFFFFFF)
        if self.push(ITEM_HOLE, &record) < 0:
            return -ENOMEM
        self.items[self.count - 1].broken = scan.broken_offset != 0
        self.hole_count += 1
        return 0

    cdef int scan(self, const uint8_t *data, uint64_t size) noexcept nogil:
        """Find everything in a file that is in memory as a whole; 0, or -ENOMEM."""
        cdef Scan scan
        memset(&scan, 0, sizeof(Scan))
        scan.data = data
        scan.end = size
        scan.size = size
        return self.scan_through(&scan, NULL)

    cdef int scan_file(self, FileWindow window) noexcept nogil:
        """Find everything in the file that `window` is open on; 0, or -errno."""
        cdef Scan scan
        cdef int failed
        memset(&scan, 0, sizeof(Scan))
        scan_in_windows(&scan, window.size)
        failed = window_more(&window.window, &scan)
        return failed if failed else self.scan_through(&scan, &window.window)

    cdef int scan_through(self, Scan *scan, Window *window) noexcept nogil:
        """Find everything in the file whose first bytes are in memory; 0, or -errno.

        Args:
            scan: holds the bytes from the file's start on, as many as there are so far.
            window: a FileWindow to read more through; NULL if that is all.
        """
        cdef int what, failed
        self.begin(scan)
        what = self.go_on(scan)
        while what == SCAN_MORE:
            failed = window_more(window, scan)
            if failed:
                return failed
            what = self.go_on(scan)
        return self.finish(scan, window) if what == SCAN_END else what

    # The same in steps, for who uses records as they are found.

    cdef void begin(self, Scan *scan) noexcept nogil:
        """The first bytes of the file are in memory: read its header."""
        self.is_short = decode_header(scan.data, scan.end, &self.header) < 0
        self.size = scan.size
        if self.is_short:
            return
        memcpy(self.head, scan.data, min(<uint64_t>sizeof(self.head), scan.end))
        begin_over(scan, &self.header, HEADER_SIZE)
        if self.header.checksum != CHECKSUM_NONE:
            scan.position += LEADER_SIZE
        self.is_sound = True

    cdef int go_on(self, Scan *scan) noexcept nogil:
        """Find all that is in memory: SCAN_MORE, SCAN_END behind the last of the file, or -ENOMEM.

        Of records found since begin() the bytes are in memory until window_more(); `is_sound`
        holds for what was found so far.
        """
        cdef Record record
        cdef int what
        cdef uint64_t end
        cdef uint32_t expected = self.next_ordinal
        memset(&record, 0, sizeof(Record))
        if self.is_short:
            return SCAN_END
        while True:
            what = scan_next(scan, &record)
            if what == SCAN_MORE or what == SCAN_END:
                self.next_ordinal = expected
                return what
            end = record.offset
            if what == SCAN_LEADER_ALONE or (what == SCAN_RECORD
                                             and record.checksum != CHECKSUM_NONE):
                end -= LEADER_SIZE
                self.has_leaders = True
            if scan.noise_offset and self.push_hole(scan, end) < 0:
                return -ENOMEM
            if what == SCAN_RECORD:
                self.record_count += 1
                if record.checksum == CHECKSUM_OK and record.ordinal == expected:
                    expected += 1
                elif record.checksum != CHECKSUM_NONE:
                    self.is_sound = False
            elif what == SCAN_LEADER_ALONE:
                self.is_sound = False
                record.body_offset = claimed_end(scan, &record)
            else:
                self.has_leaders = True
                self.marked = max(self.marked, record.ordinal)
                self.is_ended = what == SCAN_END_MARK
            if self.push(<uint8_t>what, &record) < 0:
                return -ENOMEM
            self.is_sound = (self.is_sound and self.hole_count == 0
                             and (expected == self.record_count or not self.has_leaders))

    cdef int finish(self, Scan *scan, Window *window) noexcept nogil:
        """All was found; 0, or -errno."""
        if self.is_short:
            return 0
        self.size = scan.size
        if scan.broken_offset and self.push_hole(scan, scan.size) < 0:
            return -ENOMEM
        self.scanned_end = scan.last_data_position
        self.data_file_marks = scan.data_file_marks
        if self.has_leaders:
            self.used_end = max(scan.noise_end, self.end_of_last())
        # Nothing to weigh: all records with leaders and none missing, or all without.
        self.is_sound = (self.is_sound and self.hole_count == 0
                         and self.marked <= self.next_ordinal
                         and (self.next_ordinal == self.record_count or not self.has_leaders))
        if self.header.checksum == CHECKSUM_BAD:
            return self.examine_header(scan, window)
        return 0

    cdef uint64_t end_of_last(self) noexcept nogil:
        """End of the last byte of the last record or mark that is not zero."""
        cdef size_t i = self.count
        cdef const Record *record
        cdef uint32_t check_size
        cdef uint64_t end
        while i:
            i -= 1
            if self.items[i].what == ITEM_HOLE:
                continue
            record = &self.items[i].record
            end = record.offset + record.size
            if self.items[i].what != SCAN_RECORD:
                return end
            # A record ends with its size; that of its last byte may be zero.
            check_size = record.size
            while check_size & 0xFF == 0:
                check_size >>= 8
                end -= 1
            return end
        return HEADER_SIZE + LEADER_SIZE

    cdef int examine_header(self, Scan *scan, Window *window) noexcept nogil:
        """The header's leader disowns the header: which file id does it vouch for instead?

        Tried are the header's own id and those that the records in the file carry. Artemis
        writes only 16 bytes when it uses a file again, so a stale leader may be left behind it.
        """
        cdef Record record
        cdef Header claim = self.header
        cdef uint8_t[HEADER_SIZE + LEADER_SIZE] header
        cdef int64_t[CLAIMS_MAX] claims
        cdef int32_t count = 1, i
        cdef int64_t file_id
        cdef int what, failed
        claims[0] = self.header.file_id
        claim.version = FORMAT_VERSION
        begin_over(scan, &claim, HEADER_SIZE + LEADER_SIZE)
        if window != NULL:
            scan_in_windows(scan, scan.size)
        scan.reclaimed = True
        while count < CLAIMS_MAX:
            what = scan_next(scan, &record)
            if what == SCAN_END:
                break
            if what == SCAN_MORE:
                failed = window_more(window, scan)
                if failed:
                    return failed
                continue
            if record.size <= LEADER_SIZE:
                continue
            file_id = 0
            for i in range(1, 5):
                file_id = (file_id << 8) | scan.data[record.offset - scan.base + i]
            for i in range(count):
                if claims[i] == file_id:
                    break
            else:
                claims[count] = file_id
                count += 1
        for i in range(count):
            encode_header(header, self.user_version, claims[i])
            encode_header_leader(header, claim.full_size)
            if memcmp(header + HEADER_SIZE, self.head + HEADER_SIZE, LEADER_SIZE) == 0:
                self.header_claim = claims[i]
                return 0
        return 0

    cdef bint has_data(self) noexcept nogil:
        """Whether Artemis would keep the file, or anything of ours may be lost in it."""
        cdef size_t i
        if self.breaks_off() or self.marked:
            return True
        for i in range(self.count):
            if self.items[i].what == SCAN_LEADER_ALONE:
                return True
            if self.items[i].what == SCAN_RECORD and (
                    self.items[i].record.type != EVENT_RECORD
                    or self.items[i].record.checksum == CHECKSUM_BAD):
                return True
        return False

    cdef bint breaks_off(self) noexcept nogil:
        """Whether Artemis keeps the file for what only begins like a record of it.

        Behind a header of ours that is chance: the bytes of an earlier use, where a record's id
        and size read as a type and this file's id. A torn record of ours has its leader.
        """
        return self.data_file_marks > 0 and self.header.checksum != CHECKSUM_OK


cdef FileScan scan_bytes(str name, data, int32_t user_version):
    """Find everything in `data`, a whole file; the bytes are not needed afterwards.

    Without the GIL meanwhile.
    """
    cdef FileScan scan = FileScan(name, user_version)
    cdef const uint8_t[::1] view
    cdef const uint8_t *first = NULL
    cdef uint64_t size = len(data)
    cdef int failed
    if size:
        view = data
        first = &view[0]
    with nogil:
        failed = scan.scan(first, size)
    if failed:
        raise MemoryError
    return scan
