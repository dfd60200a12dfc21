# Fields of cursor.py's classes, compiled; see setup.py (COMPILED).

cimport cython

from broker.paging.page cimport Page
from broker.records.page_records cimport PageEntries, PageEntry


cdef class LateRange:
    cdef public bint is_dropped
    cdef public Py_ssize_t number
    cdef public object numbers
    cdef public Py_ssize_t offset
    cdef public Page page
    cdef public Py_ssize_t size


@cython.freelist(16)
cdef class Found:
    cdef public bytes data
    cdef public PageEntry entry
    cdef public LateRange late
    cdef public Py_ssize_t number
    cdef public Py_ssize_t offset
    cdef public Page page

    cpdef object fill(
        self,
        Page page,
        PageEntry entry,
        bytes data,
        Py_ssize_t offset,
        Py_ssize_t number,
        LateRange late,
    )


cdef class Cursor:
    cdef list _after_read
    cdef bytes _data
    cdef Py_ssize_t _data_at
    cdef Py_ssize_t _data_number
    cdef PageEntries _entries
    cdef object _late
    cdef LateRange _late_now
    cdef Py_ssize_t _number
    cdef Py_ssize_t _offset
    cdef object _on_read
    cdef Page _page
    cdef object _queue_id
    cdef Py_ssize_t _read_size
    cdef object _store
    cdef public bint is_reading

    cpdef object start_at(self, Cursor other)

    @cython.locals(entries=PageEntries, late=LateRange, entry=PageEntry, found=Found)
    cpdef Found next(self)
