# Fields of reference_lists.py's classes, compiled; see setup.py (COMPILED).

cimport cython

from broker.model.message cimport Message
from broker.queues.reference cimport Reference


cdef class StoredRun(Reference):
    cdef public object parts


cdef class ReferenceList:
    cdef public Reference head
    cdef public int level
    cdef public Reference tail
    cdef Reference _last_back
    cdef long long _last_sequence

    @cython.locals(found=Reference)
    cpdef Reference first(self)

    @cython.locals(found=Reference)
    cpdef Reference after(self, Reference reference)

    @cython.locals(found=Reference)
    cpdef Reference made_after(self, Reference reference)

    @cython.locals(reference=Reference)
    cdef object _make(self, StoredRun run)
    cpdef object add_tail(self, Reference reference)

    @cython.locals(last=Reference)
    cdef object _append(self, Reference reference, long long sequence)

    @cython.locals(first=Reference)
    cpdef object add_head(self, Reference reference)

    @cython.locals(
        place=Reference,
        reference=Reference,
        following=Reference,
        passed=Py_ssize_t,
    )
    cpdef object add_back(self, references)
    cdef object _link(self, Reference reference, Reference previous, Reference following)
    cpdef object remove(self, Reference reference)


@cython.locals(found=Reference)
cdef Reference _made_before(Reference reference)


cdef class Cursor:
    cdef PriorityList _owner
    cdef public list places

    @cython.locals(level=int, references=ReferenceList, place=Reference, found=Reference)
    cpdef Reference advance(self)


cdef class PriorityList:
    cdef public Py_ssize_t count
    cdef public list cursors
    cdef public list levels
    cdef public Cursor scan
    cdef public tuple used
    cdef public object watcher

    cpdef ReferenceList level_of(self, Message message)
    cdef ReferenceList _level(self, int priority)
    cpdef object add_tail(self, Reference reference)
    cpdef object add_head(self, Reference reference)

    @cython.locals(level=ReferenceList)
    cdef object _came_back(self, ReferenceList level, references)
    cpdef Reference head(self)
    cpdef object remove(self, Reference reference)
