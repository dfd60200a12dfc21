"""When an open journal is compacted: the typed header of compaction.pyx."""

from journal.data_files cimport DataFiles

cdef class Compaction:
    cdef DataFiles files
    cdef object lock            # one compaction at a time
    cdef object compactor       # the Compactor at work
    cdef bint ending            # the journal closes
