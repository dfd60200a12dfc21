"""The files thread: the typed header of file_maintenance.pyx."""

from journal.compaction cimport Compaction
from journal.data_files cimport DataFiles
from journal.history cimport HistoryMaintenance

cdef class FileMaintenance:
    cdef DataFiles files
    cdef HistoryMaintenance history
    cdef Compaction compaction
    cdef object thread
