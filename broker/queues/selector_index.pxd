# Fields of selector_index.py's classes, compiled; see setup.py (COMPILED).

cimport cython

from broker.model.message cimport Message
from broker.queues.consumer cimport Consumer
from broker.queues.consumers cimport Consumers
from broker.queues.contents cimport QueueContents
from broker.queues.reference cimport Reference
from broker.queues.reference_lists cimport Cursor, PriorityList


cdef class Lane:
    cdef public object filter
    cdef public bint is_exact
    cdef public Py_ssize_t member_count
    cdef public dict ready
    cdef public Cursor cursor
    cdef dict _entries
    cdef Py_ssize_t _sweep_at

    cpdef object add_last(self, Reference reference)
    cdef object _of_level(self, int level)

    @cython.locals(count=Py_ssize_t)
    cpdef Py_ssize_t count_max(self, QueueContents queue) except -1

    @cython.locals(waiting=PriorityList, reference=Reference, level=int)
    cpdef Reference take(self, QueueContents queue)


@cython.locals(reference=Reference)
cdef Reference _take_head(QueueContents queue)


@cython.locals(message=Message)
cdef bint _has_expired(QueueContents queue, Reference reference) except -1


cdef class _Turns:
    cdef public object priority
    cdef public Py_ssize_t last
    cdef public dict active

    @cython.locals(found=list, turn=list, ready=list, lane=Lane, count=Py_ssize_t, start=Py_ssize_t)
    cdef list candidates(self, QueueContents queue)
    cdef Py_ssize_t _place_in(self, list consumers) except -1


cdef class Values:
    cdef public object fetch_key
    cdef public object lanes


cdef class SelectorIndex:
    cdef public bint is_closed
    cdef QueueContents _queue
    cdef Consumers _consumers
    cdef Cursor _scan
    cdef dict _lanes
    cdef dict _by_name
    cdef list _others
    cdef list _behind
    cdef list _turns
    cdef dict _numbers
    cdef Py_ssize_t _next_number

    @cython.locals(lane=Lane, ready=list, at=Py_ssize_t)
    cpdef object wake(self, Consumer consumer)

    @cython.locals(ready=list, at=Py_ssize_t)
    cdef object _rest(self, Consumer consumer, Lane lane)

    @cython.locals(turns=_Turns)
    cdef object _activate(self, Lane lane)

    @cython.locals(count=Py_ssize_t, reference=Reference, lane=Lane)
    cpdef Py_ssize_t look(self, Py_ssize_t count_max) except -1

    @cython.locals(values=Values, lane=Lane)
    cdef list _lanes_of(self, Message message)

    @cython.locals(turns=_Turns, count=Py_ssize_t)
    cpdef Py_ssize_t serve(self) except -1

    @cython.locals(
        candidates=list,
        queue=QueueContents,
        consumer=Consumer,
        lane=Lane,
        reference=Reference,
        number=Py_ssize_t,
        count=Py_ssize_t,
    )
    cdef Py_ssize_t _serve(self, _Turns turns) except -1
