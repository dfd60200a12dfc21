"""What of a journal file can be believed: the typed header of validation.pyx."""

from journal.scan cimport FileScan

cdef object validate(FileScan scan, bint is_newest)
cdef object check_header(FileScan scan)
