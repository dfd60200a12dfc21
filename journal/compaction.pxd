"""When an open journal is compacted: the typed header of compaction.pyx."""

from journal.data_files cimport DataFiles
from journal.files.chunks cimport ChunkWriter

cdef class Compaction:
    cdef DataFiles files
    cdef object lock            # one compaction at a time
    cdef object compactor       # the Compactor at work
    cdef ChunkWriter writer     # what it writes through
    cdef bint ending            # the journal closes
    cdef double not_before_s    # by the monotonic clock: none is begun by itself
