"""What of a journal file can be believed: `validate` checks what a FileScan found (scan.pyx).

A file without a leader was written by Artemis. Every whole record is live, and what it
skips is reported: a hole before the last record as damage, one behind it as a torn tail.

In a file with leaders the ordinals of good leaders run 0, 1, 2, ... The last mark says how many of
them are synced. Let `next` be the ordinal that should come. Then

    before the last mark    next < marked: what is missing or disowned there was acknowledged, and
                            is damage. Reading goes on behind it.
    after the last mark     in the newest file that holds data, all from the first failure on was
                            never acknowledged: the torn tail, cut. In an older file it is damage,
                            since a file is synced before the next one begins.
    no leader               Artemis appended it. But where an ordinal is missing before the
                            last mark it may be part of the lost one's body: suspect, reported,
                            never live. For the rest see validate_beyond.
    ordinal seen before     a copy of one of our records (inside a body, say): suspect.

Artemis may have opened the folder after our crash, taken our torn tail for records and holes
as its rules have it, and gone on behind the last whole record. Such a tail is not cut, whichever
file it is in: that would take Artemis's records with it.

Rejected: to believe a leaderless record wherever it stands. A body may hold the bytes of a record:
a broker may store messages about its own journal. One flipped bit in the size of the record around
it would bring it to life.
"""

from journal.errors import Damage, UnsupportedFormat

from libc.stdint cimport int64_t, uint32_t, uint64_t

from journal.format cimport (
    CHECKSUM_BAD, CHECKSUM_NONE, CHECKSUM_OK, FORMAT_VERSION, HEADER_SIZE, LEADER_SIZE,
    SCAN_LEADER_ALONE, SCAN_MARK, SCAN_RECORD, SECTOR_SIZE)
from journal.scan cimport (
    DAMAGED, ITEM_HOLE, LIVE, NO_CLAIM, SOURCE_BODY, SOURCE_SURE, SOURCE_UNSURE, SUSPECT, TORN,
    FileScan, Item, Source)

__all__ = []

cdef enum:
    BLOCK_SIZE_MAX = 4096       # largest alignment Artemis pads to


cdef object validate(FileScan scan, bint is_newest):
    """Give every record its verdict and list the damage.

    Args:
        is_newest: no file with a higher id holds data.

    Raises:
        UnsupportedFormat: a foreign format or user version, in a header nothing speaks against.
    """
    cdef size_t unresolved
    if scan.is_short:
        return
    if scan.header.checksum == CHECKSUM_BAD and scan.header_claim != NO_CLAIM \
            and (scan.header_claim ^ scan.header.file_id) & 0x7FFFFFFF == 0:
        # An id that differs in the upper half only is none that the file was used again with,
        # and one that its records, with 31 bits of it, do not show.
        add_damage(scan, 0, HEADER_SIZE, "header damaged: its checksum does not match")
    else:
        check_header(scan)
    validate_size(scan)
    if scan.is_sound:
        scan.last_data_position = scan.scanned_end
        scan.append_position = max(scan.scanned_end, end_of(scan, scan.count))
        return
    if scan.has_leaders:
        unresolved = validate_by_leaders(scan, is_newest)
        validate_rest(scan, unresolved, is_newest)
    else:
        validate_by_reference(scan)
    finish(scan)


cdef object check_header(FileScan scan):
    """See that this version reads what the header says, of a file that is not short.

    Raises:
        UnsupportedFormat: a foreign format or user version.
    """
    if scan.header.version != 1 and scan.header.version != FORMAT_VERSION:
        raise UnsupportedFormat(f"{scan.name}: format version {scan.header.version} is not"
                                f" supported (this journal reads 1 and {FORMAT_VERSION})")
    if scan.header.user_version != scan.user_version:
        raise UnsupportedFormat(f"{scan.name}: user version {scan.header.user_version} does not"
                                f" match the journal's {scan.user_version}")


cdef object validate_size(FileScan scan):
    """No journal makes a file that is smaller than its header leader says, or so small."""
    cdef uint64_t leader_end = HEADER_SIZE + LEADER_SIZE
    if scan.header.checksum == CHECKSUM_OK and scan.size < scan.header.full_size:
        add_damage(scan, scan.size, scan.header.full_size - scan.size,
                   f"cut from {scan.header.full_size} to {scan.size} bytes")
        scan.has_lost = not scan.is_ended
    elif scan.size < leader_end:
        add_damage(scan, scan.size, leader_end - scan.size,
                   f"cut to {scan.size} bytes, within its header or right behind it",
                   False, False)


cdef object validate_by_reference(FileScan scan):
    cdef size_t i, last = 0
    cdef Item *item
    cdef uint64_t end
    for i in range(scan.count):
        if scan.items[i].what == SCAN_RECORD:
            last = i + 1
    for i in range(scan.count):
        item = &scan.items[i]
        if item.what != ITEM_HOLE:
            continue
        end = item.record.offset + item.record.size
        if i >= last:
            validate_tail(scan, item, end_of_record(scan, last), True)
        elif item.broken:
            add_damage(scan, item.record.offset, item.record.size,
                       f"not a whole record: {item.record.size} bytes skipped",
                       False, False)
        elif end % SECTOR_SIZE or not (i == 0 or scan.items[i - 1].what == SCAN_RECORD):
            add_damage(scan, item.record.offset, item.record.size,
                       f"not a record: {item.record.size} bytes skipped", False, False)


cdef size_t validate_by_leaders(FileScan scan, bint is_newest):
    """All that good leaders bracket; the index of the first item behind the last of them."""
    cdef size_t i, start = 0
    cdef uint32_t expected = 0, ordinal
    cdef Item *item
    cdef bint is_whole
    for i in range(scan.count):
        item = &scan.items[i]
        if item.what != SCAN_RECORD or item.record.checksum != CHECKSUM_OK:
            continue
        ordinal = item.record.ordinal
        if ordinal < expected:
            item.verdict = SUSPECT
            add_damage(scan, item.record.offset, item.record.size,
                       f"a copy of record number {ordinal} of this file: not loaded",
                       False, False)
            continue
        is_whole = ordinal == expected
        if start != i and is_whole:
            is_whole = accept(scan, start, i)
        if not is_whole:
            if expected >= scan.marked:
                scan.next_ordinal = expected
                if validate_beyond(scan, start, is_newest):
                    return scan.count
            validate_loss(scan, start, i, expected, ordinal)
        expected = ordinal + 1
        start = i + 1
    scan.next_ordinal = expected
    return start


cdef bint accept(FileScan scan, size_t start, size_t end) except -1:
    """Items between two neighbours of ours: Artemis's, unless some are disowned."""
    cdef size_t i
    cdef Item *item
    for i in range(start, end):
        if is_disowned(&scan.items[i]):
            return False
    for i in range(start, end):
        item = &scan.items[i]
        if item.what == ITEM_HOLE and item.broken:
            add_damage(scan, item.record.offset, item.record.size,
                       f"not a whole record: {item.record.size} bytes skipped",
                       False, False)
    return True


cdef object validate_loss(FileScan scan, size_t start, size_t end, uint32_t ordinal,
                          uint32_t next_good):
    """Records `ordinal` to `next_good` - 1 are not there as written; items say what is."""
    cdef size_t i
    cdef Item *item
    cdef int64_t missing = <int64_t>next_good - ordinal
    cdef uint64_t from_offset, to_offset
    for i in range(start, end):
        item = &scan.items[i]
        if item.what == SCAN_LEADER_ALONE:
            item.verdict = DAMAGED
            missing -= 1
            add_damage(scan, item.record.offset, 0,
                       f"record number {item.record.ordinal} of this file is not whole:"
                       " its size or check size is damaged")
        elif item.what == SCAN_RECORD and item.record.checksum == CHECKSUM_BAD:
            item.verdict = DAMAGED
            missing -= 1
            add_damage(scan, item.record.offset, item.record.size,
                       f"record number {item.record.ordinal} of this file does not match"
                       " its checksum")
        elif item.what == SCAN_RECORD and item.verdict == LIVE:
            item.verdict = SUSPECT
            add_damage(scan, item.record.offset, item.record.size,
                       "a record without its checksum where one of this file is missing:"
                       " not loaded")
    if missing > 0:
        from_offset = end_of(scan, start)
        to_offset = scan.items[end].record.offset - LEADER_SIZE if end < scan.count \
            else max(scan.used_end, from_offset)
        what = f"{missing} records are" if missing > 1 else "a record is"
        add_damage(scan, from_offset, to_offset - from_offset,
                   f"{what} missing between number {<int64_t>ordinal - 1} and number"
                   f" {next_good} of this file")
        scan.has_lost = True
        scan.loses_at_end = end == scan.count


cdef uint64_t end_of(FileScan scan, size_t index) noexcept nogil:
    """Where the last record or mark before item `index` ends."""
    cdef Item *item
    while index:
        index -= 1
        item = &scan.items[index]
        if item.what != ITEM_HOLE:
            return item.record.offset + item.record.size
    return HEADER_SIZE + (LEADER_SIZE if scan.header.checksum != CHECKSUM_NONE else 0)


cdef object validate_rest(FileScan scan, size_t start, bint is_newest):
    """Everything behind the last good leader."""
    cdef size_t i
    cdef Item *item
    if scan.marked > scan.next_ordinal:
        validate_loss(scan, start, scan.count, scan.next_ordinal, scan.marked)
        scan.next_ordinal = scan.marked
        return
    if scan.is_ended or (start == 0 and scan.header.checksum == CHECKSUM_NONE):
        # A file ended by us, or begun by Artemis, was its to append to.
        for i in range(start, scan.count):
            item = &scan.items[i]
            if is_disowned(item):
                break
            if item.what == ITEM_HOLE and item.broken:
                validate_tail(scan, item, end_of_record(scan, i), is_newest)
        else:
            return
    if not validate_beyond(scan, start, is_newest):
        validate_loss(scan, start, scan.count, scan.next_ordinal, scan.next_ordinal)


cdef bint validate_beyond(FileScan scan, size_t start, bint is_newest) except -1:
    """Everything from item `start` on, none of which a mark counts; ours run out before it.

    Artemis appends behind every whole record that it sees, so where ours broke off its
    records come last: at the end of that record, or at the next multiple of its block. Ours
    never begin at such an end, since a leader, a mark or padding goes before each. At a
    multiple of a block they may be part of a torn record's body. That is ruled out where they
    stand, or run on, beyond the end that the torn record's head gives. Otherwise it is unknown.
    Since they may have been acknowledged the load has to stop there: nothing is cut.

    A record anywhere else is part of a body, and so is what follows only such a one.

    Returns:
        False, with nothing done, if there is a failure in a file that is not the newest, and
        nothing but damage explains it.
    """
    cdef size_t i, last = 0, cut_from = start
    cdef Item *item
    cdef uint64_t end = end_of_record(scan, start), claim = 0
    cdef uint32_t expected = scan.next_ordinal
    cdef Source before = SOURCE_SURE, source
    cdef bint has_failed = False, has_later_appends = False
    for i in range(start, scan.count):
        if scan.items[i].what == SCAN_RECORD and scan.items[i].record.checksum != CHECKSUM_NONE:
            last = i
    for i in range(start, scan.count):
        item = &scan.items[i]
        if item.what == SCAN_LEADER_ALONE:
            claim = max(claim, item.record.body_offset)
            has_failed = True
        elif item.what == SCAN_RECORD and item.record.checksum == CHECKSUM_NONE:
            source = source_of(scan, i, end, claim, i < last)
            before = min(before, source)
            item.source = before
            end = item.record.offset + item.record.size
            if before != SOURCE_BODY and (has_failed or before == SOURCE_UNSURE):
                has_later_appends = True
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
    if has_later_appends:
        validate_appended_behind(scan, cut_from)
        return True
    if has_failed and not is_newest:
        return False
    end = end_of_record(scan, cut_from)
    if has_failed:
        scan.next_ordinal = expected
        cut(scan, cut_from)
    else:
        for i in range(cut_from, scan.count):
            if scan.items[i].what == ITEM_HOLE and scan.items[i].broken:
                validate_tail(scan, &scan.items[i], end, is_newest)
    return True


cdef Source source_of(FileScan scan, size_t index, uint64_t end, uint64_t claim,
                      bint is_followed) noexcept nogil:
    """Where the record at `index`, without a leader, comes from, if `end` can be relied on.

    Args:
        index: of the item.
        end: of the whole record before it.
        claim: where the torn records before it say that they end.
        is_followed: a whole record with a leader comes later.
    """
    cdef uint64_t offset = scan.items[index].record.offset
    if offset == end:
        return SOURCE_SURE
    if not may_be_appended_at(offset, end):
        return SOURCE_BODY
    if is_followed or chain_end(scan, index) <= claim:
        return SOURCE_UNSURE
    return SOURCE_SURE


cdef uint64_t chain_end(FileScan scan, size_t index) noexcept nogil:
    """Where the records without leader end that follow one another from item `index` on."""
    cdef uint64_t end = scan.items[index].record.offset
    cdef Item *item
    while index < scan.count:
        item = &scan.items[index]
        if item.what == SCAN_RECORD and item.record.checksum != CHECKSUM_NONE:
            break
        if item.what == SCAN_RECORD:
            if not may_be_appended_at(item.record.offset, end):
                break
            end = item.record.offset + item.record.size
        index += 1
    return end


cdef object validate_appended_behind(FileScan scan, size_t start):
    """Artemis went on behind our torn tail: what of it is whole, it has made its own."""
    cdef size_t i
    cdef Item *item
    cdef uint64_t torn_from = end_of(scan, start), torn_size = 0
    scan.is_closed = True
    for i in range(start, scan.count):
        item = &scan.items[i]
        if item.what == SCAN_RECORD and item.record.checksum == CHECKSUM_OK:
            if item.record.ordinal < scan.next_ordinal:
                item.verdict = SUSPECT
                add_damage(scan, item.record.offset, item.record.size,
                           f"a copy of record number {item.record.ordinal} of this file:"
                           " not loaded", False, False)
                continue
            scan.next_ordinal = item.record.ordinal + 1
        elif is_disowned(item):
            item.verdict = TORN
            torn_size = max(torn_size, item.record.offset + item.record.size - torn_from)
        elif item.what == SCAN_RECORD and item.source == SOURCE_UNSURE:
            item.verdict = SUSPECT
            add_damage(scan, item.record.offset, item.record.size,
                       "a record without its checksum within what a crash left: appended"
                       " later by a writer without checksums, or part of a torn record's"
                       " body; not loaded, and nothing is cut")
        elif item.what == SCAN_RECORD and item.source == SOURCE_BODY:
            item.verdict = SUSPECT
            add_damage(scan, item.record.offset, item.record.size,
                       "part of what a crash left of a record, never acknowledged: not"
                       " loaded", True)
    add_damage(scan, torn_from, torn_size,
               "what a crash left here was never acknowledged; a writer without checksums"
               " went on behind it: nothing is cut", True)


cdef object validate_tail(FileScan scan, const Item *hole, uint64_t end, bint is_torn):
    """What begins like a record behind the last one, at `end`, if it stands where one may.

    Further on it is what an earlier use of the file left, and looks so by chance.
    """
    if may_be_appended_at(hole.record.offset, end):
        add_damage(scan, hole.record.offset, 0, "a record begins here and breaks off", is_torn,
                   False)


cdef uint64_t end_of_record(FileScan scan, size_t index) noexcept nogil:
    """Where the last record before item `index` ends."""
    cdef Item *item
    while index:
        index -= 1
        item = &scan.items[index]
        if item.what == SCAN_RECORD and item.verdict == LIVE:
            return item.record.offset + item.record.size
    return HEADER_SIZE


cdef object cut(FileScan scan, size_t start):
    """Everything from item `start` on was never acknowledged."""
    cdef size_t i
    while start < scan.count and scan.items[start].what == SCAN_MARK:
        start += 1      # The mark itself was synced; what it opened may not be.
    scan.torn_offset = end_of(scan, start)
    scan.torn_size = max(scan.used_end, scan.torn_offset) - scan.torn_offset
    for i in range(start, scan.count):
        scan.items[i].verdict = TORN
    add_damage(scan, scan.torn_offset, scan.torn_size,
               f"torn tail of {scan.torn_size} bytes, never acknowledged: cut", True)


cdef void finish(FileScan scan) noexcept nogil:
    """Where the live records end, and where the next one may go."""
    cdef size_t i
    cdef Item *item
    cdef uint64_t end
    scan.last_data_position = HEADER_SIZE
    scan.append_position = HEADER_SIZE
    if scan.header.checksum != CHECKSUM_NONE and scan.has_leaders:
        scan.append_position += LEADER_SIZE
    for i in range(scan.count):
        item = &scan.items[i]
        end = item.record.offset + item.record.size
        if item.what == ITEM_HOLE or item.verdict == TORN:
            continue
        if item.what == SCAN_RECORD and item.verdict == LIVE:
            scan.last_data_position = max(scan.last_data_position, end)
        scan.append_position = max(scan.append_position, end)
    if scan.torn_size == 0 and scan.next_ordinal == scan.marked and scan.loses_at_end:
        scan.append_position = max(scan.append_position, scan.used_end)


# --- leaves -------------------------------------------------------------------------------------

cdef object add_damage(FileScan scan, uint64_t offset, uint64_t size, str reason,
                       bint is_torn=False, bint is_ours=True):
    scan.found.append((Damage(scan.name, offset, size, reason, is_torn),
                       bool(is_ours and not is_torn)))


cdef inline bint may_be_appended_at(uint64_t offset, uint64_t end) noexcept nogil:
    """Whether Artemis, having found `end` to be the last record's, appends at `offset`."""
    cdef uint64_t block = SECTOR_SIZE
    if offset == end:
        return True
    while block <= BLOCK_SIZE_MAX:
        if offset == (end + block - 1) // block * block:
            return True
        block *= 2
    return False


cdef inline bint is_disowned(const Item *item) noexcept nogil:
    return item.what == SCAN_LEADER_ALONE or (item.what == SCAN_RECORD
                                              and item.record.checksum == CHECKSUM_BAD)
