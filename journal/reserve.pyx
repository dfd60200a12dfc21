"""How many files a journal keeps for what makes room: deletes, acknowledgements, ends, compaction.

    live records, open operations ─▶ bytes that end them all ─▶ files
    older files ─▶ one to go on in, some to copy a tenth of them into

The files are made ahead, since a full disk has no room for them when they are needed. Records that
do not make room never get the last of them (data_files.pyx).
"""

from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

from journal.format cimport HEADER_SIZE, LEADER_SIZE
from journal.id_map cimport id_map_get
from journal.index cimport RecordIndex

__all__ = []

cdef enum:
    # What ends one pin, with its leader and padding: an update of 8 bytes in a transaction of its
    # own, its commit, a mark for each batch, and the delete. Twice that is two pins, add and
    # reference; batches are not padded there.
    END_SIZE = 80
    # Of files in which a tenth is live a compaction makes a tenth as many. It also needs one that
    # is not filled, and COMPACTION_MORE.
    COMPACTION_SHARE = 10


cdef int64_t open_count(RecordIndex index) noexcept nogil:
    """Adds and updates that are live, and operations that are undecided. Under the lock."""
    cdef int64_t count = 0
    cdef int32_t file, i
    cdef uint32_t place
    for file in range(index.file_room):
        if index.files[file].used:
            count += index.files[file].positives
            for i in range(index.files[file].negative_count):
                count -= index.files[file].negatives[i].count
    for place in range(index.tx_used):
        if id_map_get(&index.tx_map, index.transactions[place].tx_id) == place:
            count += index.transactions[place].operation_count
    return max(count, 0)


cdef int64_t reserve_size(int64_t count, int64_t older, uint64_t file_size,
                          bint compacts) noexcept nogil:
    """Files to keep while `count` pins are live and there are `older` data files."""
    cdef int64_t room = <int64_t>file_size - 2 * (HEADER_SIZE + LEADER_SIZE)
    cdef int64_t files = max((count * END_SIZE + room - 1) // room, 1)
    if compacts:
        # Of few files not more than half as many: they wait for what is live in them to end.
        files += min(older // 2,
                     COMPACTION_MORE + 1 + (older + COMPACTION_SHARE - 1) // COMPACTION_SHARE)
    return files
