"""The files thread: the typed header of keeper.pyx."""

from journal.compaction cimport Compaction
from journal.data_files cimport DataFiles
from journal.history cimport HistoryKeeper

cdef class FileKeeper:
    cdef DataFiles files
    cdef HistoryKeeper history
    cdef Compaction compaction
    cdef object thread
