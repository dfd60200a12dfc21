"""Copies what is live out of old files: the typed header of compactor.pyx."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

from journal.buffer cimport GroupBuffer
from journal.files.base cimport Folder
from journal.files.chunks cimport ChunkWriter
from journal.format cimport Record
from journal.pending_records cimport PendingRecord, PendingRecords, PendingTransaction
from journal.index cimport RecordIndex
from journal.relocations cimport Relocations
from journal.new_files cimport NewFiles
from journal.old_files cimport OldFiles
from journal.scan cimport FileScan

cdef class Compactor:
    # Settings.
    cdef Folder folder
    cdef RecordIndex index
    cdef GroupBuffer buffer
    cdef readonly list old_files
    cdef bint[256] replaceable
    cdef uint64_t file_size
    # What is read, what of it cannot be copied yet, and what is written.
    cdef OldFiles source
    cdef int32_t reading        # number of the file
    cdef PendingRecords pending
    cdef readonly NewFiles target
    cdef Relocations relocations       # what the index is to be told

    cdef int copy_step(self, FileScan scan) except -1 nogil
    cdef int copy_records(self, FileScan scan, const size_t *picked,
                          int count) except -1 nogil
    cdef int end_pending(self, const Record *record) except -1 nogil
    cdef int copy_committed(self, PendingTransaction *tx) except -1 nogil
    cdef int copy_open(self, PendingTransaction *tx) except -1 nogil
    cdef int pin_outputs(self, Py_ssize_t first, Py_ssize_t final) except -1 with gil
    cdef int copy_rest(self) except -1 nogil
    cdef int copy_updates(self) except -1 nogil
    cdef int note_copied(self, const PendingRecord *record) except -1 nogil
