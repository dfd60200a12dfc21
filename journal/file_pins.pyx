"""What pins each file of a journal, and what its records release.

Artemis's rules (JournalFileImpl): a file has positives, the records and transactions that pin it,
and negatives, how many pins of which file its deletes and ends of transactions release. A file
with deletes must outlive the files whose records they delete, or those records would come back.

A file may be reused when all its positives are released by files from it onwards, and no older
file that still lives needs its negatives (reclaim.pyx).

No lock here: the journal's own lock guards it. Nothing here raises; -1 is "out of memory".
"""

from libc.stdlib cimport free, realloc
from libc.string cimport memset

from journal.id_map cimport FIRST_ROOM, NO_MEMORY


cdef class FilePins:
    """The counters of every file of one journal, by slot."""

    def __dealloc__(self):
        cdef int32_t file
        for file in range(self.file_room):
            free(self.files[file].negatives)
        free(self.files)

    cdef int32_t file_new(self, int64_t file_id) noexcept nogil:
        """A slot for a file, its counters at zero."""
        cdef int32_t file, room
        cdef FileCounts *files
        for file in range(self.file_room):
            if not self.files[file].used:
                break
        else:
            room = self.file_room * 2 if self.file_room else FIRST_ROOM
            files = <FileCounts *>realloc(self.files, room * sizeof(FileCounts))
            if files == NULL:
                return NO_MEMORY
            memset(files + self.file_room, 0, (room - self.file_room) * sizeof(FileCounts))
            self.files = files
            file = self.file_room
            self.file_room = room
        self.files[file].used = True
        self.files[file].file_id = file_id
        return file

    cdef void file_drop(self, int32_t file) noexcept nogil:
        """Forget a file that holds nothing any more, and what others remember for it."""
        cdef int32_t other, i
        cdef FileCounts *counts
        for other in range(self.file_room):
            counts = &self.files[other]
            for i in range(counts.negative_count):
                if counts.negatives[i].target == file:
                    counts.negative_count -= 1
                    counts.negatives[i] = counts.negatives[counts.negative_count]
                    counts.negative_hint = 0
                    break
        free(self.files[file].negatives)
        memset(&self.files[file], 0, sizeof(FileCounts))

    cdef int64_t negative(self, int32_t file, int32_t target) noexcept nogil:
        """How many pins of `target` the records in `file` release."""
        cdef FileCounts *counts = &self.files[file]
        cdef int32_t i
        for i in range(counts.negative_count):
            if counts.negatives[i].target == target:
                return counts.negatives[i].count
        return 0

    cdef int negate(self, int32_t file, int32_t target, int64_t count) noexcept nogil:
        cdef FileCounts *counts = &self.files[file]
        cdef Negative *negatives
        cdef int32_t i = counts.negative_hint, room
        # A commit adds deletes to files that were left, and checked, long before.
        counts.negatives_met = False
        if i < counts.negative_count and counts.negatives[i].target == target:
            counts.negatives[i].count += count
            return 0
        for i in range(counts.negative_count):
            if counts.negatives[i].target == target:
                counts.negatives[i].count += count
                counts.negative_hint = i
                return 0
        if counts.negative_count == counts.negative_room:
            room = counts.negative_room * 2 if counts.negative_room else 4
            negatives = <Negative *>realloc(counts.negatives, room * sizeof(Negative))
            if negatives == NULL:
                return NO_MEMORY
            counts.negatives = negatives
            counts.negative_room = room
        counts.negatives[counts.negative_count].target = target
        counts.negatives[counts.negative_count].count = count
        counts.negative_hint = counts.negative_count
        counts.negative_count += 1
        return 0
