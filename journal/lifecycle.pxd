"""A journal's lifecycle: the typed header of lifecycle.pyx."""

from libc.stdint cimport int64_t, uint32_t

from journal.buffer cimport GroupBuffer
from journal.compaction cimport Compaction
from journal.completion cimport BufferCompletions
from journal.data_files cimport DataFiles
from journal.files.base cimport BackEnd, Folder
from journal.history cimport HistoryMaintenance
from journal.index cimport RecordIndex
from journal.file_maintenance cimport FileMaintenance

cdef class JournalLifecycle:
    # Identity and settings.
    cdef object __weakref__
    cdef object owner_pid       # the process that opened it
    cdef readonly object options
    cdef readonly Folder folder
    cdef BackEnd back_end
    cdef readonly object pool
    cdef readonly uint32_t record_size_max
    # State. Index and buffer are guarded by the buffer's lock; Python objects by the GIL, which is
    # never taken while that lock is held.
    cdef readonly str state
    cdef bint loaded            # appends are welcome
    cdef RecordIndex index
    cdef GroupBuffer buffer
    cdef int64_t next_tx_id
    cdef BufferCompletions completions
    # The files, and who looks after them; from load() on.
    cdef DataFiles files
    cdef HistoryMaintenance history
    cdef Compaction compaction
    cdef FileMaintenance maintenance

    cdef int roll_back(self, list tx_ids) except -1
    cdef int check_was_loaded(self) except -1
    cdef int check_own(self) except -1
    cdef int check_usable(self) except -1
