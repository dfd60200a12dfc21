"""The journal file format: the one place that knows bytes.

A file is a header block, then records, with anything in between that does not start like a
record of this file. All integers are big-endian. docs/format/journal.md draws every field.

    file     header 16 | [header leader 9] | ... | { [mark] { [pad] [leader] record }* }* | ...
    record   type 1 | file id 4 | compact count 1 | fields by type | check size 4

The reader of Artemis skips, byte by byte, whatever does not begin with a type (10 to 19)
followed by the file's id. Leaders and marks use that gap: every byte of theirs is >= 0x80.

    leader, mark     marker 1 | 8 bytes of 7 bits: crc32c (32) | ordinal (24)

Invariants:
- A leader and the first ten bytes of its record lie in one 512-byte sector.
- The crc of a leader covers file id, ordinal and the whole record, so that a record of an
  earlier use of the file, or one moved within it, never passes.
- The ordinal of a record is the count of leaders before it in this file.
- The header leader has, in the place of an ordinal, the file's size in sectors (0: not said). So
  a file that was cut does not read as one that was never filled further.

Sources: JournalImpl, dataformat.* of Artemis for sizes and order of fields, and
JournalImpl.readJournalFile for what the scanner skips. Every function here is pure.
"""

from libc.string cimport memcpy

from journal.native cimport qv_crc32c

cdef extern from *:
    """
    #include <stdint.h>
    #include <string.h>
    static inline void qv_put32(uint8_t *p, uint32_t v) {
        v = __builtin_bswap32(v);
        memcpy(p, &v, 4);
    }

    static inline void qv_put64(uint8_t *p, uint64_t v) {
        v = __builtin_bswap64(v);
        memcpy(p, &v, 8);
    }

    static inline uint64_t qv_word(const uint8_t *p) {
        uint64_t v;
        memcpy(&v, p, 8);
        return v;
    }
    static inline int qv_four_zero(const uint8_t *p) {
        return (qv_word(p) | qv_word(p + 8) | qv_word(p + 16) | qv_word(p + 24)) == 0;
    }
    static inline uint64_t qv_get64(const uint8_t *p) { return __builtin_bswap64(qv_word(p)); }
    static inline uint32_t qv_get32(const uint8_t *p) {
        uint32_t v;
        memcpy(&v, p, 4);
        return __builtin_bswap32(v);
    }
    """
    void put32 "qv_put32"(uint8_t *p, uint32_t value) noexcept nogil
    void put64 "qv_put64"(uint8_t *p, uint64_t value) noexcept nogil
    uint32_t get32 "qv_get32"(const uint8_t *p) noexcept nogil
    uint64_t get64 "qv_get64"(const uint8_t *p) noexcept nogil
    uint64_t native_word "qv_word"(const uint8_t *p) noexcept nogil
    bint native_words_are_zero "qv_four_zero"(const uint8_t *p) noexcept nogil

cdef enum:
    HIGH_BITS = 0x80
    FIELDS_SIZE_MAX = 27        # type to user type, of an add or update in a transaction

# Bytes of a record beside its body, format 2, by type (10 to 19). Source: spec of JournalImpl.
cdef uint32_t[10] FIXED_SIZE = [23, 23, 23, 31, 31, 30, 18, 26, 22, 18]


cdef uint32_t checksum(uint32_t crc, const uint8_t *data, uint64_t size) noexcept nogil:
    """CRC-32C of `size` bytes, going on from `crc` (0 to begin)."""
    return qv_crc32c(crc, data, size)


# --- writing ---------------------------------------------------------------------------------

cdef uint32_t record_size(uint8_t type, uint32_t body_size) noexcept nogil:
    """Size in bytes of a whole record of `type` with a body (or extra data) of `body_size`."""
    return FIXED_SIZE[type - EVENT_RECORD] + body_size


cdef uint32_t encode_record(
        uint8_t *out, uint8_t type, int64_t file_id, uint8_t compact_count, int64_t tx_id,
        int64_t record_id, uint8_t user_type, const uint8_t *body, uint32_t body_size,
        int32_t records_in_file) noexcept nogil:
    """Write one record at `out`, which has room for record_size(type, body_size); its size.

    Fields that the type does not have are ignored.
    """
    cdef uint8_t *p = out
    cdef uint32_t size = FIXED_SIZE[type - EVENT_RECORD]
    p[0] = type
    put32(p + 1, <uint32_t>(file_id & 0x7FFFFFFF))
    p[5] = compact_count
    p += 6
    if type == DELETE_RECORD:
        put64(p, <uint64_t>record_id)
        put32(p + 8, size)
        return size
    if type == EVENT_RECORD or type == ADD_RECORD or type == UPDATE_RECORD:
        put64(p, <uint64_t>record_id)
        put32(p + 8, body_size)
        p[12] = user_type
        p += 13
    else:
        put64(p, <uint64_t>tx_id)
        p += 8
        if type == ADD_RECORD_TX or type == UPDATE_RECORD_TX:
            put64(p, <uint64_t>record_id)
            put32(p + 8, body_size)
            p[12] = user_type
            p += 13
        elif type == DELETE_RECORD_TX:
            put64(p, <uint64_t>record_id)
            put32(p + 8, body_size)
            p += 12
        elif type == PREPARE_RECORD:
            put32(p, <uint32_t>records_in_file)
            put32(p + 4, body_size)
            p += 8
        elif type == COMMIT_RECORD:
            put32(p, <uint32_t>records_in_file)
            put32(p + 4, size)
            return size
        else:
            put32(p, size)
            return size
    if body_size:
        memcpy(p, body, body_size)
        p += body_size
    size += body_size
    put32(p, size)
    return size


cdef void encode_header(uint8_t *out, int32_t user_version, int64_t file_id) noexcept nogil:
    """Write the 16 bytes every file begins with."""
    put32(out, FORMAT_VERSION)
    put32(out + 4, <uint32_t>user_version)
    put64(out + 8, <uint64_t>file_id)


cdef inline void put_seven_bits(uint8_t *out, uint8_t marker, uint32_t crc,
                                uint32_t ordinal) noexcept nogil:
    cdef uint64_t bits = (<uint64_t>crc << 24) | ordinal
    cdef uint64_t word = HIGH_BITS * <uint64_t>0x0101010101010101
    cdef int i
    for i in range(8):
        word |= ((bits >> (7 * i)) & 0x7F) << (8 * i)
    out[0] = marker
    put64(out + 1, word)


cdef inline bint get_seven_bits(const uint8_t *data, uint32_t *crc,
                                uint32_t *ordinal) noexcept nogil:
    """Read the eight bytes after a marker; false when one lacks its top bit."""
    cdef uint64_t word = get64(data)
    cdef uint64_t bits = 0
    cdef int i
    if (word & (HIGH_BITS * <uint64_t>0x0101010101010101)) != \
            HIGH_BITS * <uint64_t>0x0101010101010101:
        return False
    for i in range(8):
        bits |= ((word >> (8 * i)) & 0x7F) << (7 * i)
    crc[0] = <uint32_t>(bits >> 24)
    ordinal[0] = <uint32_t>(bits & ORDINAL_MAX)
    return True


cdef inline uint32_t leader_crc(int64_t file_id, uint32_t ordinal, const uint8_t *record,
                                uint64_t size) noexcept nogil:
    cdef uint8_t[12] place
    put64(place, <uint64_t>file_id)
    put32(place + 8, ordinal)
    return qv_crc32c(qv_crc32c(0, place, 12), record, size)


cdef inline uint32_t mark_crc(uint8_t marker, int64_t file_id, uint32_t ordinal) noexcept nogil:
    return leader_crc(file_id, ordinal, &marker, 1)


cdef inline uint32_t header_crc(const uint8_t *header, uint32_t sectors) noexcept nogil:
    cdef uint8_t[4] size
    put32(size, sectors)
    return qv_crc32c(qv_crc32c(0, header, HEADER_SIZE), size, 4)


cdef void encode_header_leader(uint8_t *header, uint64_t file_size) noexcept nogil:
    """Write the leader of a 16-byte header right behind it, at `header` + 16.

    `file_size` in bytes is kept in whole sectors; 0, and what 24 bits do not hold, is not said.
    """
    cdef uint64_t sectors = file_size // SECTOR_SIZE
    if sectors > ORDINAL_MAX:
        sectors = 0
    put_seven_bits(header + HEADER_SIZE, HEADER_LEADER,
                   header_crc(header, <uint32_t>sectors), <uint32_t>sectors)


cdef void encode_leader(uint8_t *record, int64_t file_id, uint32_t ordinal,
                        uint32_t size) noexcept nogil:
    """Write the leader of a finished record of `size` bytes into the nine bytes before it."""
    put_seven_bits(record - LEADER_SIZE, LEADER, leader_crc(file_id, ordinal, record, size),
                   ordinal)


cdef uint64_t mark_place(uint64_t end, uint64_t file_size, uint64_t alignment) noexcept nogil:
    """Where the mark goes that stands behind records ending at `end`: in a sector of its own.

    One lost sector must not take both. Disks of today lose 4096 bytes at once; files too small for
    that are spared 512.
    """
    cdef uint64_t sector = MARK_SECTOR if file_size >= MARK_SECTOR_FILE else SECTOR_SIZE
    sector = max(sector, alignment)
    return (end + sector - 1) & ~(sector - 1)


cdef void encode_mark(uint8_t *out, uint8_t marker, int64_t file_id,
                      uint32_t ordinal) noexcept nogil:
    """Write a mark (MARK or END_MARK): the first `ordinal` records of the file are synced."""
    put_seven_bits(out, marker, mark_crc(marker, file_id, ordinal), ordinal)


cdef uint32_t leader_padding(uint64_t offset) noexcept nogil:
    """Zero bytes to put at `offset` so that a leader and its record's head share a sector."""
    cdef uint32_t within = <uint32_t>(offset % SECTOR_SIZE)
    if within + LEADER_SIZE + HEAD_SIZE > SECTOR_SIZE:
        return SECTOR_SIZE - within
    return 0


# --- reading ---------------------------------------------------------------------------------

cdef int decode_header(const uint8_t *data, uint64_t size, Header *header) noexcept nogil:
    """Read the header; 0, or -1 when there are fewer than 16 bytes. Versions are not checked."""
    cdef uint32_t crc = 0, ordinal = 0
    if size < HEADER_SIZE:
        return -1
    header.version = <int32_t>get32(data)
    header.user_version = <int32_t>get32(data + 4)
    header.file_id = <int64_t>get64(data + 8)
    header.checksum = CHECKSUM_NONE
    header.full_size = 0
    if size >= HEADER_SIZE + LEADER_SIZE and data[HEADER_SIZE] == HEADER_LEADER \
            and get_seven_bits(data + HEADER_SIZE + 1, &crc, &ordinal):
        header.full_size = <uint64_t>ordinal * SECTOR_SIZE
        header.checksum = CHECKSUM_OK if crc == header_crc(data, ordinal) else CHECKSUM_BAD
    return 0


cdef void scan_begin(Scan *scan, const uint8_t *data, uint64_t size, const Header *header,
                     uint64_t position) noexcept nogil:
    """Point `scan` at `position` of a whole file in memory; `data` must outlive the scan."""
    scan.data = data
    scan.base = 0
    scan.end = size
    scan.size = size
    scan.position = position
    scan.file_id = header.file_id
    scan.version = header.version
    scan.reclaimed = False
    scan.leaders = True
    scan.last_data_position = HEADER_SIZE
    scan.data_file_marks = 0
    scan.noise_end = 0
    scan.noise_offset = 0
    scan.broken_offset = 0
    scan.is_halfway = False


cdef enum Parsed:
    PARSED = 0
    NOT_A_RECORD = 1            # nothing that would make Artemis keep the file
    BROKEN_RECORD = 2           # began like a record of this file: a data file, torn or damaged
    NOT_IN_MEMORY = 3


cdef Parsed parse_record(const Scan *scan, uint64_t position, Record *record) noexcept nogil:
    """The eleven checks of JournalImpl.readJournalFile, in its order, at one position."""
    cdef const uint8_t *data = scan.data + (position - scan.base)   # The record's own.
    cdef uint64_t size = scan.size - position       # Of the file, from here on.
    cdef uint64_t known = scan.end - position       # In memory, from here on.
    cdef uint64_t p = 1
    cdef uint8_t type = data[0]
    cdef int64_t body_size = 0
    cdef uint64_t total
    if known < FIELDS_SIZE_MAX and known < size:
        return NOT_IN_MEMORY
    record.compact_count = 0
    record.tx_id = 0
    record.record_id = 0
    record.user_type = 0
    record.records_in_file = 0
    if size - p < 4:
        return BROKEN_RECORD
    if get32(data + p) != <uint32_t>(scan.file_id & 0x7FFFFFFF) and not scan.reclaimed:
        return NOT_A_RECORD
    p += 4
    if scan.version >= 2:
        if size - p < 1:
            return BROKEN_RECORD
        record.compact_count = data[p]
        p += 1
    if (ADD_RECORD_TX <= type <= DELETE_RECORD_TX) or type >= PREPARE_RECORD:
        if size - p < 8:
            return BROKEN_RECORD
        record.tx_id = <int64_t>get64(data + p)
        p += 8
    if type < PREPARE_RECORD:
        if size - p < 8:
            return BROKEN_RECORD
        record.record_id = <int64_t>get64(data + p)
        p += 8
    if type <= DELETE_RECORD_TX:
        if size - p < 4:
            return BROKEN_RECORD
        body_size = <int32_t>get32(data + p)
        p += 4
        if type != DELETE_RECORD_TX:
            if size - p < 1:
                return NOT_A_RECORD
            record.user_type = data[p]
            p += 1
        if body_size < 0 or <uint64_t>body_size > size - p:
            return NOT_A_RECORD
    elif type == PREPARE_RECORD or type == COMMIT_RECORD:
        if size - p < 4:
            return NOT_A_RECORD
        record.records_in_file = <int32_t>get32(data + p)
        p += 4
        if type == PREPARE_RECORD:
            if size - p < 4:
                return NOT_A_RECORD
            body_size = <int32_t>get32(data + p)
            p += 4
            if body_size < 0:
                return BROKEN_RECORD
    total = FIXED_SIZE[type - EVENT_RECORD] + <uint64_t>body_size
    if scan.version < 2:
        total -= 1
    if total > size:
        return BROKEN_RECORD
    if total > known:
        return NOT_IN_MEMORY
    if get32(data + total - 4) != total:
        return BROKEN_RECORD
    record.type = type
    record.offset = position
    record.size = <uint32_t>total
    record.body_offset = position + p
    record.body_size = <uint32_t>body_size
    return PARSED


cdef inline bint starts_like_a_record(const Scan *scan, uint64_t position) noexcept nogil:
    """Whether a broken record at `position` carries this file's id, as far as the file goes."""
    cdef uint32_t file_id = <uint32_t>(scan.file_id & 0x7FFFFFFF)
    cdef const uint8_t *data = scan.data + (position - scan.base)
    cdef uint64_t i
    if scan.size - position >= 5:
        return get32(data + 1) == file_id
    for i in range(1, scan.size - position):
        if data[i] != <uint8_t>(file_id >> (32 - 8 * i)):
            return False
    return True


cdef inline int scan_found(Scan *scan, uint64_t begin, uint64_t end, int what) noexcept nogil:
    """Something begins at `begin`, its leader included; go on at `end`."""
    if scan.noise_offset >= begin:
        scan.noise_offset = 0
    scan.position = end
    scan.is_halfway = False
    return what


cdef void scan_in_windows(Scan *scan, uint64_t size) noexcept nogil:
    """Have a scan that begins look at nothing before scan_next asked for it by SCAN_MORE."""
    scan.end = 0
    scan.size = size


cdef int scan_next(Scan *scan, Record *record) noexcept nogil:
    """Advance to the next thing in the file; one of SCAN_*.

    Records are found by Artemis's rules alone, so that `leaders` off gives its raw view.
    A leader that stands right before a record validates it (record.checksum, record.ordinal).
    Marks are given only when their crc holds for this file: others are noise or stale.
    After SCAN_MORE the next call goes on where this one stopped.
    """
    cdef const uint8_t *data = scan.data
    cdef uint64_t base = scan.base, p = scan.position
    cdef uint64_t leader_end = 0      # where a well-formed leader just passed ends; 0: none
    cdef uint32_t crc = 0, ordinal = 0
    cdef uint8_t byte
    cdef Parsed parsed
    if scan.is_halfway:
        leader_end = scan.leader_end
    else:
        scan.noise_offset = 0
        scan.broken_offset = 0
    while p < scan.end:
        byte = data[p - base]
        if byte == 0:
            p += 1
            while scan.end - p >= 32 and native_words_are_zero(data + (p - base)):
                p += 32
            while scan.end - p >= 8 and native_word(data + (p - base)) == 0:
                p += 8
            continue
        if <uint8_t>(byte - EVENT_RECORD) < 10:
            parsed = parse_record(scan, p, record)
            if parsed == PARSED:
                record.checksum = CHECKSUM_NONE
                record.ordinal = 0
                scan.last_data_position = p + record.size
                if leader_end != p or not p:
                    return scan_found(scan, p, p + record.size, SCAN_RECORD)
                record.ordinal = scan.leader_ordinal
                record.checksum = CHECKSUM_BAD
                if scan.leader_sum == leader_crc(scan.file_id, scan.leader_ordinal,
                                                 data + (p - base), record.size):
                    record.checksum = CHECKSUM_OK
                return scan_found(scan, p - LEADER_SIZE, p + record.size, SCAN_RECORD)
            if parsed == NOT_IN_MEMORY:
                break
            if parsed == BROKEN_RECORD:
                scan.data_file_marks += 1
            if starts_like_a_record(scan, p):
                if leader_end == p and p:
                    record.type = byte
                    record.offset = p
                    record.ordinal = scan.leader_ordinal
                    record.size = 0
                    scan.noise_end = p + 1
                    return scan_found(scan, p - LEADER_SIZE, p + 1, SCAN_LEADER_ALONE)
                if scan.broken_offset == 0:
                    scan.broken_offset = p
        elif scan.leaders and LEADER <= byte <= END_MARK and byte != HEADER_LEADER \
                and scan.size - p >= LEADER_SIZE:
            if scan.end - p < LEADER_SIZE:
                break
            if get_seven_bits(data + (p - base) + 1, &crc, &ordinal):
                if byte == LEADER:
                    if scan.noise_offset == 0:
                        scan.noise_offset = p
                    leader_end = p + LEADER_SIZE
                    scan.noise_end = leader_end
                    scan.leader_sum = crc
                    scan.leader_ordinal = ordinal
                    p = leader_end
                    continue
                if crc == mark_crc(byte, scan.file_id, ordinal):
                    record.offset = p
                    record.size = LEADER_SIZE
                    record.ordinal = ordinal
                    return scan_found(scan, p, p + LEADER_SIZE,
                                      SCAN_MARK if byte == MARK else SCAN_END_MARK)
        if scan.noise_offset == 0:
            scan.noise_offset = p
        p += 1
        scan.noise_end = p
    scan.position = p
    scan.leader_end = leader_end
    scan.is_halfway = scan.end < scan.size
    return SCAN_MORE if scan.is_halfway else SCAN_END


# --- for Python ------------------------------------------------------------------------------

def header_block(int64_t file_id, int32_t user_version=0, *, uint64_t file_size=0,
                 bint leader=True, uint32_t alignment=1):
    """The first bytes of a file: header, header leader, zeros up to a multiple of `alignment`.

    `file_size` in bytes is what the header leader says; 0 says nothing.

    >>> header_block(1, leader=False).hex()
    '00000002000000000000000000000001'
    """
    cdef uint8_t[HEADER_SIZE + LEADER_SIZE] block
    cdef uint32_t size = HEADER_SIZE + LEADER_SIZE if leader else HEADER_SIZE
    encode_header(block, user_version, file_id)
    if leader:
        encode_header_leader(block, file_size)
    return (<char *>block)[:size] + bytes(-size % alignment)
