"""The files of an open journal: the typed header of data_files.pyx."""

from libc.stdint cimport int64_t

from journal.buffer cimport GroupBuffer
from journal.files.base cimport BackEnd, Folder, OpenFile
from journal.index cimport RecordIndex

cdef class DataFile:
    """One file that holds, or is about to hold, records."""

    cdef OpenFile opened
    cdef readonly str name
    cdef readonly bint is_open

cdef class DataFiles:
    # Identity and settings.
    cdef readonly Folder folder
    cdef BackEnd back_end
    cdef readonly object pool, options
    cdef bint leaders, keeps_history, compacts
    # State. Index and `current.opened` are guarded by the buffer's lock; Python objects by the
    # GIL, which is never taken while that lock is held.
    cdef RecordIndex index
    cdef GroupBuffer buffer     # None while loading
    cdef DataFile current
    cdef list older             # than current, in order of their ids
    cdef object ready           # opened ahead
    cdef int ahead              # so many are to be
    cdef object no_space        # the JournalIOError of the last file that could not be made
    cdef bint was_short         # an append had to wait for the reserve
    cdef int64_t ends           # of what is kept elsewhere: room is kept for them
    cdef object failure         # the JournalIOError that ended the journal
    cdef bint stopping          # it closes
    # What is to be done, and who waits for it.
    cdef bint rolled, reclaim_due, history_is_full, is_compacting
    cdef object wake            # Event: the files thread has work
    cdef object changed         # Condition: any of the above
    cdef object reclaim_lock    # one reclaims at a time: the files thread or a caller

    cdef int64_t reserve(self)
    cdef bint reserve_ends(self, int64_t count)
    cdef int64_t spare(self)
    cdef bint may_roll(self, bint frees)
    cdef int make_room(self, int result, DataFile current, bint frees) except -1
    cdef int roll_file(self, DataFile current, bint frees) except -1
    cdef bint try_roll(self, DataFile current, bint leave) except -1
    cdef void leave_older(self) noexcept
    cdef int sync(self) except -1
    cdef int check_running(self) except -1
