# Fields of subscription.py's class, compiled; see setup.py (COMPILED).

cimport cython

from broker.queues.memory cimport AddressMemory
from broker.model.message cimport Message
from broker.paging.acknowledgements cimport PageAcknowledgements
from broker.paging.cursor cimport Cursor, Found, LateRange
from broker.paging.page cimport Page
from broker.paging.reference cimport PagedReference
from broker.paging.window cimport Window
from broker.queues.queue cimport Queue
from broker.queues.reference_lists cimport PriorityList
from broker.storage.page_appends cimport PageAppends
from broker.records.page_records cimport PageEntry


cdef class PageSubscription:
    cdef PageAppends _appends
    cdef public Found _blocking
    cdef Cursor _cursor
    cdef tuple _drop_end
    cdef bint _is_held_back
    cdef AddressMemory _memory
    cdef public PageAcknowledgements acknowledgements
    cdef public Py_ssize_t held_count
    cdef public Py_ssize_t held_size
    cdef public bint is_closed
    cdef public Queue queue
    cdef public object store
    cdef public Py_ssize_t unread_count

    cpdef object became_visible(self, Py_ssize_t count=*)

    @cython.locals(window=Window, waiting=PriorityList, found=Found)
    cpdef object replenish(self)

    @cython.locals(blocking=Found, found=Found, range_of_it=LateRange)
    cdef Found _next(self)

    @cython.locals(entry=PageEntry, page=Page)
    cpdef bint is_visible(self, Found found) except -1

    @cython.locals(message=Message, reference=PagedReference)
    cdef object _place(self, Found found)
    cdef bint _is_dropped(self, Found found) except -1
    cdef bint _is_committing(self, Found found) except -1

    @cython.locals(reference=PagedReference)
    cdef PagedReference _hold(self, Message message, Page page, PageEntry entry)

    @cython.locals(message=Message)
    cpdef Message message_of(self, Page page, PageEntry entry, bytes data)

    @cython.locals(message=Message)
    cdef Message _decode(self, Page page, PageEntry entry, bytes data)

    @cython.locals(queue=Queue, appends=PageAppends, page=Page)
    cpdef bint record_gone(self, PagedReference reference, tx, bint is_last) except -1

    @cython.locals(page=Page)
    cpdef object release(self, PagedReference reference)


cdef bint _has_lost_body(Message message) except -1
