"""The history of an open journal: the typed header of history.pyx."""

from journal.data_files cimport DataFiles

cdef class HistoryMaintenance:
    cdef DataFiles files
    cdef object history         # retention.History; None where none is kept
    cdef object thread
    cdef object restored        # names of files that a crash left waiting for their copy
    cdef object uncopied        # closed files that wait for their copy, oldest first
