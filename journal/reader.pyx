"""Read one journal file: what is in it, and what of that can be believed.

`scan` finds, by the reference's rules, every record of the file, and the leaders and marks between
them (format.pyx). `judge` then decides, by these rules:

A file without a leader was written by the reference. Every whole record is live, and what it
skips is reported: a hole before the last record as damage, one behind it as a torn tail.

In a file with leaders the ordinals of good leaders run 0, 1, 2, ... The last mark says how many of
them are synced. Let `next` be the ordinal that should come. Then

    before the last mark    next < marked: what is missing or disowned there was acknowledged, and
                            is damage. Reading goes on behind it.
    after the last mark     in the newest file that holds data, all from the first failure on was
                            never acknowledged: the torn tail, cut. In an older file it is damage,
                            since a file is synced before the next one begins.
    no leader               the reference appended it. But where an ordinal is missing before the
                            last mark it may be part of the lost one's body: suspect, reported,
                            never live. For the rest see judge_beyond.
    ordinal seen before     a copy of one of our records (inside a body, say): suspect.

The reference may have opened the folder after our crash, taken our torn tail for records and holes
as its rules have it, and gone on behind the last whole record. Such a tail is not cut, whichever
file it is in: that would take the reference's records with it.

Rejected: to believe a leaderless record wherever it stands. A body may hold the bytes of a record
(a broker that stores messages about its own journal does), and one flipped bit in the size of the
record around it would bring it to life.

Memory: 80 bytes a record of one file. Nothing here keeps the file's bytes.
"""

import mmap
import os
from typing import NamedTuple

from libc.errno cimport ENOMEM
from libc.stdlib cimport free, realloc
from libc.string cimport memcmp, memcpy, memset

from journal.errors import Damage, JournalIOError, UnsupportedFormat
from journal.files.base import Folder
from journal.folder import open_regular

from journal.files.base cimport io_read
from journal.format cimport (
    CHECKSUM_BAD, CHECKSUM_NONE, CHECKSUM_OK, COMMIT_RECORD, DELETE_RECORD, EVENT_RECORD,
    FORMAT_VERSION, HEADER_SIZE, LEADER_SIZE, PREPARE_RECORD, ROLLBACK_RECORD, SCAN_END,
    SCAN_END_MARK, SCAN_LEADER_ALONE, SCAN_MARK, SCAN_MORE, SCAN_RECORD, SECTOR_SIZE, UPDATE_RECORD,
    Scan, decode_header, encode_header, encode_header_leader, record_size, scan_begin,
    scan_in_windows, scan_next)
from journal.window cimport window_more

__all__ = ["FileView", "RawRecord", "read_bytes", "read_file", "read_folder"]

cdef enum:
    FIRST_ROOM = 256
    BLOCK_SIZE_MAX = 4096       # largest alignment the reference pads to
    CLAIMS_MAX = 8              # file ids tried for a header that its leader disowns

# Files above this are mapped instead of read, so that one foreign giant does not fill the memory.
MAP_SIZE_MIN = 256 << 20

KINDS = (
    "event", "add", "update", "add_tx", "update_tx", "delete_tx", "delete", "prepare", "commit",
    "rollback",
)
CHECKSUMS = ("none", "ok", "bad")
VERDICTS = ("live", "damaged", "torn", "suspect")


cdef inline void begin_over(Scan *scan, const Header *header, uint64_t position) noexcept nogil:
    """Scan by another header from `position` on, with what is in memory as it is."""
    cdef const uint8_t *data = scan.data
    cdef uint64_t base = scan.base, end = scan.end
    scan_begin(scan, data, scan.size, header, position)
    scan.base = base
    scan.end = end


cdef inline bint may_be_appended_at(uint64_t offset, uint64_t end) noexcept nogil:
    """Whether the reference, having found `end` to be the last record's, appends at `offset`."""
    cdef uint64_t block = SECTOR_SIZE
    if offset == end:
        return True
    while block <= BLOCK_SIZE_MAX:
        if offset == (end + block - 1) // block * block:
            return True
        block *= 2
    return False


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


cdef inline bint is_disowned(const Item *item) noexcept nogil:
    return item.what == SCAN_LEADER_ALONE or (item.what == SCAN_RECORD
                                              and item.record.checksum == CHECKSUM_BAD)


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
    """One file: scan() needs its bytes, judge() only what scan() found.

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
        cdef Record record
        cdef int what, failed
        cdef uint64_t end
        cdef uint32_t expected = 0
        cdef bint is_sound = True
        self.is_short = decode_header(scan.data, scan.end, &self.header) < 0
        self.size = scan.size
        if self.is_short:
            return 0
        memcpy(self.head, scan.data, min(<uint64_t>sizeof(self.head), scan.end))
        begin_over(scan, &self.header, HEADER_SIZE)
        memset(&record, 0, sizeof(Record))
        if self.header.checksum != CHECKSUM_NONE:
            scan.position += LEADER_SIZE
        while True:
            what = scan_next(scan, &record)
            if what == SCAN_MORE:
                failed = window_more(window, scan)
                if failed:
                    return failed
                continue
            if what == SCAN_END:
                break
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
                    is_sound = False
            elif what == SCAN_LEADER_ALONE:
                is_sound = False
                record.body_offset = claimed_end(scan, &record)
            else:
                self.has_leaders = True
                self.marked = max(self.marked, record.ordinal)
                self.is_ended = what == SCAN_END_MARK
            if self.push(<uint8_t>what, &record) < 0:
                return -ENOMEM
        self.size = scan.size
        if scan.broken_offset and self.push_hole(scan, scan.size) < 0:
            return -ENOMEM
        self.scanned_end = scan.last_data_position
        self.data_file_marks = scan.data_file_marks
        if self.has_leaders:
            self.used_end = max(scan.noise_end, self.end_of_last())
        # Nothing to weigh: all records with leaders and none missing, or all without.
        self.next_ordinal = expected
        self.is_sound = (is_sound and self.hole_count == 0 and self.marked <= expected
                         and (expected == self.record_count or not self.has_leaders))
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

        Tried are the header's own id and those that the records in the file carry. The reference
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
        """Whether the reference would keep the file, or anything of ours may be lost in it."""
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
        """Whether the reference keeps the file for what only begins like a record of it.

        Behind a header of ours that is chance: the bytes of an earlier use, where a record's id
        and size read as a type and this file's id. A torn record of ours has its leader.
        """
        return self.data_file_marks > 0 and self.header.checksum != CHECKSUM_OK

    # --- what to believe -----------------------------------------------------------------------

    cdef object add_damage(self, uint64_t offset, uint64_t size, str reason,
                           bint is_torn=False, bint is_ours=True):
        self.found.append((Damage(self.name, offset, size, reason, is_torn),
                           bool(is_ours and not is_torn)))

    cdef object judge(self, bint is_newest):
        """Give every record its verdict and list the damage.

        Args:
            is_newest: no file with a higher id holds data.

        Raises:
            UnsupportedFormat: a foreign format or user version, in a header nothing speaks against.
        """
        cdef size_t unresolved
        if self.is_short:
            return
        if self.header.checksum == CHECKSUM_BAD and self.header_claim != NO_CLAIM \
                and (self.header_claim ^ self.header.file_id) & 0x7FFFFFFF == 0:
            # An id that differs in the upper half only is none that the file was used again with,
            # and one that its records, with 31 bits of it, do not show.
            self.add_damage(0, HEADER_SIZE, "header damaged: its checksum does not match")
        elif self.header.version != 1 and self.header.version != FORMAT_VERSION:
            raise UnsupportedFormat(f"{self.name}: format version {self.header.version} is not"
                                    f" supported (this journal reads 1 and {FORMAT_VERSION})")
        elif self.header.user_version != self.user_version:
            raise UnsupportedFormat(f"{self.name}: user version {self.header.user_version} does not"
                                    f" match the journal's {self.user_version}")
        self.judge_size()
        if self.is_sound:
            self.last_data_position = self.scanned_end
            self.append_position = max(self.scanned_end, self.end_of(self.count))
            return
        if self.has_leaders:
            unresolved = self.judge_by_leaders(is_newest)
            self.judge_rest(unresolved, is_newest)
        else:
            self.judge_by_reference()
        self.finish()

    cdef object judge_size(self):
        """No journal makes a file that is smaller than its header leader says, or so small."""
        cdef uint64_t leader_end = HEADER_SIZE + LEADER_SIZE
        if self.header.checksum == CHECKSUM_OK and self.size < self.header.full_size:
            self.add_damage(self.size, self.header.full_size - self.size,
                            f"cut from {self.header.full_size} to {self.size} bytes")
            self.has_lost = not self.is_ended
        elif self.size < leader_end:
            self.add_damage(self.size, leader_end - self.size,
                            f"cut to {self.size} bytes, within its header or right behind it",
                            False, False)

    cdef object judge_by_reference(self):
        cdef size_t i, last = 0
        cdef Item *item
        cdef uint64_t end
        for i in range(self.count):
            if self.items[i].what == SCAN_RECORD:
                last = i + 1
        for i in range(self.count):
            item = &self.items[i]
            if item.what != ITEM_HOLE:
                continue
            end = item.record.offset + item.record.size
            if i >= last:
                self.judge_tail(item, self.end_of_record(last), True)
            elif item.broken:
                self.add_damage(item.record.offset, item.record.size,
                                f"not a whole record: {item.record.size} bytes skipped",
                                False, False)
            elif end % SECTOR_SIZE or not (i == 0 or self.items[i - 1].what == SCAN_RECORD):
                self.add_damage(item.record.offset, item.record.size,
                                f"not a record: {item.record.size} bytes skipped", False, False)

    cdef size_t judge_by_leaders(self, bint is_newest):
        """All that good leaders bracket; the index of the first item behind the last of them."""
        cdef size_t i, start = 0
        cdef uint32_t expected = 0, ordinal
        cdef Item *item
        cdef bint is_whole
        for i in range(self.count):
            item = &self.items[i]
            if item.what != SCAN_RECORD or item.record.checksum != CHECKSUM_OK:
                continue
            ordinal = item.record.ordinal
            if ordinal < expected:
                item.verdict = SUSPECT
                self.add_damage(item.record.offset, item.record.size,
                                f"a copy of record number {ordinal} of this file: not loaded",
                                False, False)
                continue
            is_whole = ordinal == expected
            if start != i and is_whole:
                is_whole = self.accept(start, i)
            if not is_whole:
                if expected >= self.marked:
                    self.next_ordinal = expected
                    if self.judge_beyond(start, is_newest):
                        return self.count
                self.judge_loss(start, i, expected, ordinal)
            expected = ordinal + 1
            start = i + 1
        self.next_ordinal = expected
        return start

    cdef bint accept(self, size_t start, size_t end) except -1:
        """Items between two neighbours of ours: the reference's, unless some are disowned."""
        cdef size_t i
        cdef Item *item
        for i in range(start, end):
            if is_disowned(&self.items[i]):
                return False
        for i in range(start, end):
            item = &self.items[i]
            if item.what == ITEM_HOLE and item.broken:
                self.add_damage(item.record.offset, item.record.size,
                                f"not a whole record: {item.record.size} bytes skipped",
                                False, False)
        return True

    cdef object judge_loss(self, size_t start, size_t end, uint32_t ordinal, uint32_t next_good):
        """Records `ordinal` to `next_good` - 1 are not there as written; items say what is."""
        cdef size_t i
        cdef Item *item
        cdef int64_t missing = <int64_t>next_good - ordinal
        cdef uint64_t from_offset, to_offset
        for i in range(start, end):
            item = &self.items[i]
            if item.what == SCAN_LEADER_ALONE:
                item.verdict = DAMAGED
                missing -= 1
                self.add_damage(item.record.offset, 0,
                                f"record number {item.record.ordinal} of this file is not whole:"
                                " its size or check size is damaged")
            elif item.what == SCAN_RECORD and item.record.checksum == CHECKSUM_BAD:
                item.verdict = DAMAGED
                missing -= 1
                self.add_damage(item.record.offset, item.record.size,
                                f"record number {item.record.ordinal} of this file does not match"
                                " its checksum")
            elif item.what == SCAN_RECORD and item.verdict == LIVE:
                item.verdict = SUSPECT
                self.add_damage(item.record.offset, item.record.size,
                                "a record without its checksum where one of this file is missing:"
                                " not loaded")
        if missing > 0:
            from_offset = self.end_of(start)
            to_offset = self.items[end].record.offset - LEADER_SIZE if end < self.count \
                else max(self.used_end, from_offset)
            what = f"{missing} records are" if missing > 1 else "a record is"
            self.add_damage(from_offset, to_offset - from_offset,
                            f"{what} missing between number {<int64_t>ordinal - 1} and number"
                            f" {next_good} of this file")
            self.has_lost = True
            self.loses_at_end = end == self.count

    cdef uint64_t end_of(self, size_t index) noexcept nogil:
        """Where the last record or mark before item `index` ends."""
        cdef Item *item
        while index:
            index -= 1
            item = &self.items[index]
            if item.what != ITEM_HOLE:
                return item.record.offset + item.record.size
        return HEADER_SIZE + (LEADER_SIZE if self.header.checksum != CHECKSUM_NONE else 0)

    cdef object judge_rest(self, size_t start, bint is_newest):
        """Everything behind the last good leader."""
        cdef size_t i
        cdef Item *item
        if self.marked > self.next_ordinal:
            self.judge_loss(start, self.count, self.next_ordinal, self.marked)
            self.next_ordinal = self.marked
            return
        if self.is_ended or (start == 0 and self.header.checksum == CHECKSUM_NONE):
            # A file ended by us, or begun by the reference, was its to append to.
            for i in range(start, self.count):
                item = &self.items[i]
                if is_disowned(item):
                    break
                if item.what == ITEM_HOLE and item.broken:
                    self.judge_tail(item, self.end_of_record(i), is_newest)
            else:
                return
        if not self.judge_beyond(start, is_newest):
            self.judge_loss(start, self.count, self.next_ordinal, self.next_ordinal)

    cdef bint judge_beyond(self, size_t start, bint is_newest) except -1:
        """Everything from item `start` on, none of which a mark counts; ours run out before it.

        The reference appends behind every whole record that it sees, so where ours broke off its
        records come last: at the end of that record, or at the next multiple of its block. Ours
        never begin at such an end, since a leader, a mark or padding goes before each. At a
        multiple of a block they may be part of a torn record's body. That is ruled out where they
        stand, or run on, beyond the end that the torn record's head gives; else nobody can tell,
        and since they may have been acknowledged the load has to stop there: nothing is cut.

        A record anywhere else is part of a body, and so is what follows only such a one.

        Returns:
            False, with nothing done, if there is a failure in a file that is not the newest, and
            nothing but damage explains it.
        """
        cdef size_t i, last = 0, cut_from = start
        cdef Item *item
        cdef uint64_t end = self.end_of_record(start), claim = 0
        cdef uint32_t expected = self.next_ordinal
        cdef Source before = SOURCE_SURE, source
        cdef bint has_failed = False, is_overtaken = False
        for i in range(start, self.count):
            if self.items[i].what == SCAN_RECORD and self.items[i].record.checksum != CHECKSUM_NONE:
                last = i
        for i in range(start, self.count):
            item = &self.items[i]
            if item.what == SCAN_LEADER_ALONE:
                claim = max(claim, item.record.body_offset)
                has_failed = True
            elif item.what == SCAN_RECORD and item.record.checksum == CHECKSUM_NONE:
                source = self.source_of(i, end, claim, i < last)
                before = min(before, source)
                item.source = before
                end = item.record.offset + item.record.size
                if before != SOURCE_BODY and (has_failed or before == SOURCE_UNSURE):
                    is_overtaken = True
                has_failed |= before == SOURCE_BODY
                if not has_failed and before == SOURCE_SURE:
                    cut_from = i + 1
            elif item.what == SCAN_RECORD:
                before = SOURCE_SURE
                end = item.record.offset + item.record.size
                has_failed |= (item.record.checksum == CHECKSUM_BAD
                               or item.record.ordinal != expected)
                if not has_failed:
                    expected += 1
                    cut_from = i + 1
        if is_overtaken:
            self.judge_overtaken(cut_from)
            return True
        if has_failed and not is_newest:
            return False
        end = self.end_of_record(cut_from)
        if has_failed:
            self.next_ordinal = expected
            self.cut(cut_from)
        else:
            for i in range(cut_from, self.count):
                if self.items[i].what == ITEM_HOLE and self.items[i].broken:
                    self.judge_tail(&self.items[i], end, is_newest)
        return True

    cdef Source source_of(self, size_t index, uint64_t end, uint64_t claim,
                          bint is_followed) noexcept nogil:
        """Where the record at `index`, without a leader, comes from, if `end` can be relied on.

        Args:
            index: of the item.
            end: of the whole record before it.
            claim: where the torn records before it say that they end.
            is_followed: a whole record with a leader comes later.
        """
        cdef uint64_t offset = self.items[index].record.offset
        if offset == end:
            return SOURCE_SURE
        if not may_be_appended_at(offset, end):
            return SOURCE_BODY
        if is_followed or self.chain_end(index) <= claim:
            return SOURCE_UNSURE
        return SOURCE_SURE

    cdef uint64_t chain_end(self, size_t index) noexcept nogil:
        """Where the records without leader end that follow one another from item `index` on."""
        cdef uint64_t end = self.items[index].record.offset
        cdef Item *item
        while index < self.count:
            item = &self.items[index]
            if item.what == SCAN_RECORD and item.record.checksum != CHECKSUM_NONE:
                break
            if item.what == SCAN_RECORD:
                if not may_be_appended_at(item.record.offset, end):
                    break
                end = item.record.offset + item.record.size
            index += 1
        return end

    cdef object judge_overtaken(self, size_t start):
        """The reference went on behind our torn tail: what of it is whole, it has made its own."""
        cdef size_t i
        cdef Item *item
        cdef uint64_t torn_from = self.end_of(start), torn_size = 0
        self.is_closed = True
        for i in range(start, self.count):
            item = &self.items[i]
            if item.what == SCAN_RECORD and item.record.checksum == CHECKSUM_OK:
                if item.record.ordinal < self.next_ordinal:
                    item.verdict = SUSPECT
                    self.add_damage(item.record.offset, item.record.size,
                                    f"a copy of record number {item.record.ordinal} of this file:"
                                    " not loaded", False, False)
                    continue
                self.next_ordinal = item.record.ordinal + 1
            elif is_disowned(item):
                item.verdict = TORN
                torn_size = max(torn_size, item.record.offset + item.record.size - torn_from)
            elif item.what == SCAN_RECORD and item.source == SOURCE_UNSURE:
                item.verdict = SUSPECT
                self.add_damage(item.record.offset, item.record.size,
                                "a record without its checksum within what a crash left: appended"
                                " later by a writer without checksums, or part of a torn record's"
                                " body; not loaded, and nothing is cut")
            elif item.what == SCAN_RECORD and item.source == SOURCE_BODY:
                item.verdict = SUSPECT
                self.add_damage(item.record.offset, item.record.size,
                                "part of what a crash left of a record, never acknowledged: not"
                                " loaded", True)
        self.add_damage(torn_from, torn_size,
                        "what a crash left here was never acknowledged; a writer without checksums"
                        " went on behind it: nothing is cut", True)

    cdef object judge_tail(self, const Item *hole, uint64_t end, bint is_torn):
        """What begins like a record behind the last one, at `end`, if it stands where one may.

        Further on it is what an earlier use of the file left, and looks so by chance.
        """
        if may_be_appended_at(hole.record.offset, end):
            self.add_damage(hole.record.offset, 0, "a record begins here and breaks off", is_torn,
                            False)

    cdef uint64_t end_of_record(self, size_t index) noexcept nogil:
        """Where the last record before item `index` ends."""
        cdef Item *item
        while index:
            index -= 1
            item = &self.items[index]
            if item.what == SCAN_RECORD and item.verdict == LIVE:
                return item.record.offset + item.record.size
        return HEADER_SIZE

    cdef object cut(self, size_t start):
        """Everything from item `start` on was never acknowledged."""
        cdef size_t i
        while start < self.count and self.items[start].what == SCAN_MARK:
            start += 1      # The mark itself was synced; what it opened may not be.
        self.torn_offset = self.end_of(start)
        self.torn_size = max(self.used_end, self.torn_offset) - self.torn_offset
        for i in range(start, self.count):
            self.items[i].verdict = TORN
        self.add_damage(self.torn_offset, self.torn_size,
                        f"torn tail of {self.torn_size} bytes, never acknowledged: cut", True)

    cdef void finish(self) noexcept nogil:
        """Where the live records end, and where the next one may go."""
        cdef size_t i
        cdef Item *item
        cdef uint64_t end
        self.last_data_position = HEADER_SIZE
        self.append_position = HEADER_SIZE
        if self.header.checksum != CHECKSUM_NONE and self.has_leaders:
            self.append_position += LEADER_SIZE
        for i in range(self.count):
            item = &self.items[i]
            end = item.record.offset + item.record.size
            if item.what == ITEM_HOLE or item.verdict == TORN:
                continue
            if item.what == SCAN_RECORD and item.verdict == LIVE:
                self.last_data_position = max(self.last_data_position, end)
            self.append_position = max(self.append_position, end)
        if self.torn_size == 0 and self.next_ordinal == self.marked and self.loses_at_end:
            self.append_position = max(self.append_position, self.used_end)


# --- for tools: one Python object a record -----------------------------------------------------

class RawRecord(NamedTuple):
    """One record as it stands in a file.

    Attributes:
        kind: "add", "update", "delete", "add_tx", "update_tx", "delete_tx", "prepare", "commit",
            "rollback" or "event".
        offset: bytes from the start of the file to the type byte.
        size: bytes from the type byte to the check size, both included.
        record_id, tx_id, user_type, body, records_in_file: None where the kind has none.
        user_type: 0 … 255.
        body: the body, or the extra data of a prepare.
        checksum: "ok", "none" (no leader) or "bad".
        ordinal: the record's number among those with a leader; None without one.
        verdict: "live", "damaged", "torn" or "suspect".
    """

    kind: str
    offset: int
    size: int
    record_id: int | None
    tx_id: int | None
    user_type: int | None
    compact_count: int
    body: bytes | None
    records_in_file: int | None
    checksum: str
    ordinal: int | None
    verdict: str

    @property
    def is_update(self):
        """Whether it updates an earlier add."""
        return self.kind in ("update", "update_tx")


cdef object raw_record(const Item *item, const uint8_t *data):
    cdef const Record *record = &item.record
    cdef uint8_t type = record.type
    kind = KINDS[type - EVENT_RECORD]
    is_tx = 13 <= type <= 15 or type >= PREPARE_RECORD
    has_body = type < 16 or type == PREPARE_RECORD
    return RawRecord(
        kind, record.offset, record.size,
        record.record_id if type < PREPARE_RECORD else None,
        record.tx_id if is_tx else None,
        record.user_type if type < 15 else None,
        record.compact_count,
        (<const char *>data + record.body_offset)[:record.body_size] if has_body else None,
        record.records_in_file if PREPARE_RECORD <= type < ROLLBACK_RECORD else None,
        CHECKSUMS[record.checksum],
        record.ordinal if record.checksum != CHECKSUM_NONE else None,
        VERDICTS[item.verdict])


cdef class FileView:
    """One journal file, judged; iterating gives its records in file order.

    Holds the file's bytes until it is dropped. Records whose verdict is not "live" are given too.
    """

    cdef FileScan scan_result
    cdef object data
    cdef readonly bint is_newest

    def __init__(self, str name, data, *, is_newest=True, user_version=0):
        """Scan and judge `data`, the whole file.

        Raises:
            UnsupportedFormat: a foreign format or user version.
        """
        cdef const uint8_t[::1] view
        cdef FileScan scan = FileScan(name, user_version)
        cdef const uint8_t *first = NULL
        cdef uint64_t size = len(data)
        cdef int failed
        self.scan_result = scan
        self.data = data
        self.is_newest = is_newest
        if size:
            view = data
            first = &view[0]
        with nogil:
            failed = scan.scan(first, size)
        if failed:
            raise MemoryError
        scan.judge(is_newest)

    def __iter__(self):
        cdef const uint8_t[::1] view
        cdef FileScan scan = self.scan_result
        cdef size_t i
        if scan.count == 0:
            return
        view = self.data
        for i in range(scan.count):
            if scan.items[i].what == SCAN_RECORD:
                yield raw_record(&scan.items[i], &view[0])

    def __len__(self):
        """Number of records, those that do not count included."""
        return self.scan_result.record_count

    @property
    def name(self):
        """The file's name."""
        return self.scan_result.name

    @property
    def size(self):
        """Bytes."""
        return self.scan_result.size

    @property
    def is_short(self):
        """No whole header: the reference ignores such a file."""
        return bool(self.scan_result.is_short)

    @property
    def version(self):
        """Format version."""
        return self.scan_result.header.version

    @property
    def user_version(self):
        """User version."""
        return self.scan_result.header.user_version

    @property
    def file_id(self):
        """What orders the files."""
        return self.scan_result.header.file_id

    @property
    def header_checksum(self):
        """Of the header: "ok", "none" or "bad"."""
        return CHECKSUMS[self.scan_result.header.checksum]

    @property
    def header_claim(self):
        """The file id that the header's leader vouches for, where that is not the header's."""
        claim = self.scan_result.header_claim
        return None if claim in (NO_CLAIM, self.file_id) else claim

    @property
    def has_checksums(self):
        """Whether any of it was written with leaders."""
        return bool(self.scan_result.has_leaders)

    @property
    def has_data(self):
        """Whether the file may not be used again: it holds, or held, more than events."""
        return bool(self.scan_result.has_data())

    @property
    def is_ended(self):
        """Whether an end mark closes it."""
        return bool(self.scan_result.is_ended)

    @property
    def is_closed(self):
        """The reference went on behind a torn tail of ours: nothing may be appended."""
        return bool(self.scan_result.is_closed)

    @property
    def synced_count(self):
        """So many of its records with a leader are synced, says the last mark."""
        return self.scan_result.marked

    @property
    def next_ordinal(self):
        """Of the next record with a leader."""
        return self.scan_result.next_ordinal

    @property
    def last_data_position(self):
        """End of the last live record, in bytes from the start of the file."""
        return self.scan_result.last_data_position

    @property
    def append_position(self):
        """End of the last live record or mark, in bytes from the start of the file."""
        return self.scan_result.append_position

    @property
    def data_file_marks(self):
        """How often the reference would have marked it as a data file for something broken."""
        return self.scan_result.data_file_marks

    @property
    def damages(self):
        """What does not hold what was written, in file order."""
        return [damage for damage, _ in self.scan_result.found]


def read_bytes(path, buffer=None):
    """The whole of a regular file, never through a symbolic link.

    Args:
        path: of the file.
        buffer: a bytearray to use again; it grows to the file's size and is never shrunk.

    Returns:
        A read-only memoryview of the file's bytes: over `buffer` if given, over bytes of its own if
        not, or over a map of a file of more than 256 MiB.

    Raises:
        JournalIOError: it cannot be opened or read.
    """
    cdef uint8_t[::1] room
    cdef int64_t count = 0
    cdef uint64_t size
    cdef int fd
    place, name = os.path.split(path)
    with Folder(place or ".") as folder:
        fd = open_regular(folder, name)
        try:
            size = folder.size(fd, name)
            if size > <uint64_t>MAP_SIZE_MIN:
                return memoryview(mmap.mmap(fd, size, prot=mmap.PROT_READ))
            if buffer is None:
                return memoryview(folder.read(fd, size, 0, name))
            if len(buffer) < size:
                buffer.extend(bytes(size - len(buffer)))
            if size:
                room = buffer
                with nogil:
                    count = io_read(fd, &room[0], size, 0)
                room = None
            if count < 0:
                raise JournalIOError(<int>-count, "cannot read", os.fspath(path))
            return memoryview(buffer)[:count].toreadonly()
        finally:
            folder.close_file(fd, name)


def read_file(path, *, is_newest=True, user_version=0):
    """One journal file, scanned and judged.

    Args:
        path: of the file.
        is_newest: judge what fails behind the last mark as a torn tail, not as damage.
        user_version: what the header must say.

    Raises:
        UnsupportedFormat: a foreign format or user version.
        JournalIOError: it cannot be read.
    """
    return FileView(os.path.basename(path), read_bytes(path), is_newest=is_newest,
                    user_version=user_version)


def read_folder(files, *, user_version=0):
    """The files of a journal in the order of their ids, one FileView at a time.

    Args:
        files: what journal.folder.list_files gives.
        user_version: what the headers must say.

    Memory: one file, two while the caller keeps the last one.
    """
    newest = newest_with_data(files, user_version)
    for index, file in enumerate(files):
        yield FileView(file.name, read_bytes(file.path), is_newest=index >= newest,
                       user_version=user_version)


def newest_with_data(files, user_version=0):
    """Index in `files` of the newest one that holds data; 0 if none does."""
    cdef FileScan scan
    cdef const uint8_t[::1] view
    cdef int failed
    buffer = bytearray()
    for index in range(len(files) - 1, 0, -1):
        scan = FileScan(files[index].name, user_version)
        data = read_bytes(files[index].path, buffer)
        if len(data):
            view = data
            with nogil:
                failed = scan.scan(&view[0], view.shape[0])
            view = None
            if failed:
                raise MemoryError
        data.release()
        if scan.has_data():
            return index
    return 0
