"""Which files hold nothing that anybody needs: Artemis's Reclaimer.

For files in order of their ids:
- no older file that must stay may have records which this one deletes (or they would come back);
- what pins this file must have been released, by records in it or in later files.
"""

from libc.stdint cimport int32_t, int64_t

from journal.file_pins cimport FileCounts
from journal.index cimport RecordIndex


cdef int32_t find_reclaimable(RecordIndex index, const int32_t *slots, int32_t count,
                              int32_t *found) noexcept nogil:
    """Write to `found` the places in `slots` of files that can be used again; how many.

    Args:
        index: its caller holds the journal's lock.
        slots: data files in order of their ids, without the one being written.
    """
    cdef int32_t i, j, n = 0
    cdef int64_t released
    cdef FileCounts *counts
    cdef bint blocked
    for i in range(count):
        counts = &index.files[slots[i]]
        if not counts.negatives_met:
            blocked = False
            for j in range(i):
                if not can_reclaim(&index.files[slots[j]]) \
                        and index.negative(slots[i], slots[j]):
                    blocked = True
                    break
            if blocked:
                continue
            counts.negatives_met = True
        if not counts.positives_met:
            released = 0
            for j in range(i, count):
                released += index.negative(slots[j], slots[i])
                if released >= counts.positives:
                    break
            counts.positives_met = released >= counts.positives
        if can_reclaim(counts):
            found[n] = i
            n += 1
    return n


cdef inline bint can_reclaim(const FileCounts *counts) noexcept nogil:
    return counts.negatives_met and counts.positives_met and not counts.awaits_copy


def reclaimable(files):
    """Which of a table of files can be used again: find_reclaimable for tests and docs.

    Args:
        files: of each file, in order, its positives and {place of another: negatives for it}.

    >>> reclaimable([(10, {}), (0, {0: 10})])
    [0, 1]
    >>> reclaimable([(10, {}), (0, {0: 9})])
    []
    """
    cdef RecordIndex index = RecordIndex()
    cdef int32_t[64] order
    cdef int32_t[64] found
    cdef int32_t slot, n, target
    cdef int64_t positives
    if len(files) > 64:
        raise ValueError(f"{len(files)} files; at most 64")
    for number in range(len(files)):
        slot = index.file_new(number + 1)
        if slot < 0:
            raise MemoryError
        order[number] = slot
    for number, (positives, negatives) in enumerate(files):
        index.files[order[number]].positives = positives
        for place, count in negatives.items():
            target = order[<int32_t>place]
            if index.negate(order[number], target, count) < 0:
                raise MemoryError
    n = find_reclaimable(index, order, <int32_t>len(files), found)
    return [found[i] for i in range(n)]
