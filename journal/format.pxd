"""What a journal file is made of, byte by byte: the typed header of format.pyx."""

from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t

cdef enum:
    EVENT_RECORD = 10
    ADD_RECORD = 11
    UPDATE_RECORD = 12
    ADD_RECORD_TX = 13
    UPDATE_RECORD_TX = 14
    DELETE_RECORD_TX = 15
    DELETE_RECORD = 16
    PREPARE_RECORD = 17
    COMMIT_RECORD = 18
    ROLLBACK_RECORD = 19

cdef enum:
    FORMAT_VERSION = 2
    HEADER_SIZE = 16
    LEADER_SIZE = 9
    SECTOR_SIZE = 512
    MARK_SECTOR = 4096          # what a mark behind the records shares with none of them
    MARK_SECTOR_FILE = 65536    # in files of so many bytes; in smaller ones SECTOR_SIZE
    HEAD_SIZE = 10              # type, file id, compact count and half a record id
    MINIMUM_RECORD_SIZE = 17
    ORDINAL_MAX = 0xFFFFFF
    COMPACT_COUNT_MAX = 127

# The first byte of what stands between records. All nine bytes of each are >= 0x80.
cdef enum:
    LEADER = 0xF1
    MARK = 0xF2
    HEADER_LEADER = 0xF3
    END_MARK = 0xF4

# Whether a record's leader vouches for it.
cdef enum:
    CHECKSUM_NONE = 0           # no leader: written by Artemis, or checksums off
    CHECKSUM_OK = 1
    CHECKSUM_BAD = 2

# What scan_next found.
cdef enum:
    SCAN_END = 0
    SCAN_RECORD = 1
    SCAN_MARK = 2               # `record.ordinal` records of this file are synced
    SCAN_END_MARK = 3           # the same, and no record of ours follows in this file
    SCAN_LEADER_ALONE = 4       # a leader of this file with no record behind it
    SCAN_MORE = 5               # what is in memory ends before it can be told: see Scan.end

cdef struct Header:
    int32_t version
    int32_t user_version
    int64_t file_id
    int8_t checksum             # of the header leader
    uint64_t full_size          # by the header leader, in whole sectors; 0: not said

cdef struct Record:
    uint64_t offset             # of the type byte, from the start of the file
    uint32_t size               # type byte to check size, both included
    uint64_t body_offset        # of the body or the prepare's extra data
    uint32_t body_size
    int64_t record_id           # 0 where the kind has none
    int64_t tx_id               # 0 where the kind has none
    int32_t records_in_file     # prepare and commit
    uint32_t ordinal            # from the leader or mark
    uint8_t type
    uint8_t user_type
    uint8_t compact_count
    int8_t checksum

# Where a scan of a file stands. `data` may be the whole file or a window on it: the bytes from
# `base` to `end`. A window may move between two calls, as long as it holds what begins at
# `position`.
cdef struct Scan:
    const uint8_t *data
    uint64_t base               # what data[0] is, in bytes from the start of the file
    uint64_t end                # end of what is in memory
    uint64_t size               # of the file
    uint64_t position           # where the next byte is looked at
    int64_t file_id
    int32_t version
    bint reclaimed              # take stale records too (recover)
    bint leaders                # look for leaders and marks
    uint64_t last_data_position  # end of the last whole record
    uint64_t data_file_marks    # how often Artemis would have marked it as a data file
    uint64_t noise_end          # end of the last byte that is neither zero nor part of anything
    # Of what the last scan_next passed on its way; 0: nothing.
    uint64_t noise_offset       # the first byte that is neither zero nor part of what it found
    uint64_t broken_offset      # the first thing that began like a record of this file and was none
    # Kept over SCAN_MORE: the leader passed last, where it ends and what it says.
    bint is_halfway
    uint64_t leader_end
    uint32_t leader_sum
    uint32_t leader_ordinal

cdef uint32_t record_size(uint8_t type, uint32_t body_size) noexcept nogil
cdef uint32_t encode_record(
    uint8_t *out, uint8_t type, int64_t file_id, uint8_t compact_count, int64_t tx_id,
    int64_t record_id, uint8_t user_type, const uint8_t *body, uint32_t body_size,
    int32_t records_in_file) noexcept nogil
cdef void encode_header(uint8_t *out, int32_t user_version, int64_t file_id) noexcept nogil
cdef void encode_header_leader(uint8_t *header, uint64_t file_size) noexcept nogil
cdef void encode_leader(uint8_t *record, int64_t file_id, uint32_t ordinal,
                        uint32_t size) noexcept nogil
cdef uint64_t mark_place(uint64_t end, uint64_t file_size, uint64_t alignment) noexcept nogil
cdef void encode_mark(uint8_t *out, uint8_t marker, int64_t file_id,
                      uint32_t ordinal) noexcept nogil
cdef uint32_t leader_padding(uint64_t offset) noexcept nogil
cdef int decode_header(const uint8_t *data, uint64_t size, Header *header) noexcept nogil
cdef void scan_begin(Scan *scan, const uint8_t *data, uint64_t size, const Header *header,
                     uint64_t position) noexcept nogil
cdef void scan_in_windows(Scan *scan, uint64_t size) noexcept nogil
cdef int scan_next(Scan *scan, Record *record) noexcept nogil
cdef uint32_t checksum(uint32_t crc, const uint8_t *data, uint64_t size) noexcept nogil
