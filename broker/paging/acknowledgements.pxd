# Fields of acknowledgements.py's class, compiled; see setup.py (COMPILED).

cimport cython

from broker.queues.queue cimport Queue
from broker.storage.page_appends cimport PageAppends


cdef class PageAcknowledgements:
    cdef PageAppends _appends
    cdef dict _by_page
    cdef Queue _queue
    cdef public dict complete

    @cython.locals(numbers=dict)
    cpdef bint has(self, page, number) except -1
    cpdef object add(self, page, number, record_id)
