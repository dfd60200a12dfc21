# Fields of page_records.py's classes, compiled; see setup.py (COMPILED).

cimport cython

cimport broker.model.message_bytes as walk
from broker.model.message cimport Message

cdef int _AMQP_LARGE
cdef int _CORE
cdef int _END
cdef int _HEAD_SIZE
cdef int _LARGE
cdef int _LARGE_OLD
cdef int _LARGE_OTHER
cdef int _LENGTH_END
cdef int _START


@cython.freelist(64)
cdef class PageEntry:
    cdef public Py_ssize_t end
    cdef public bint is_core
    cdef public bint is_large
    cdef public Py_ssize_t message_at
    cdef public Py_ssize_t message_size
    cdef public Py_ssize_t number
    cdef public tuple queue_ids
    cdef public long long tx_id

    cpdef object fill(
        self,
        Py_ssize_t number,
        long long tx_id,
        bint is_large,
        bint is_core,
        Py_ssize_t message_at,
        Py_ssize_t message_end,
        tuple queue_ids,
        Py_ssize_t end,
    )

    @cython.locals(
        at=Py_ssize_t,
        end=Py_ssize_t,
        size="long long",
        message_id="long long",
        has_address=bint,
        message=Message,
    )
    cpdef object message(self, bytes data)
    cpdef long long message_id(self, bytes data) except? -1


cdef class PageEntries:
    cdef Py_ssize_t _at
    cdef bytes _data
    cdef Py_ssize_t _number

    @cython.locals(
        data=bytes,
        at=Py_ssize_t,
        size=Py_ssize_t,
        begin=Py_ssize_t,
        stop=Py_ssize_t,
        entry=PageEntry,
    )
    cpdef PageEntry next(self)


@cython.locals(length="long long")
cpdef Py_ssize_t entry_size(bytes data, Py_ssize_t at) except -1


@cython.locals(
    tx_id="long long",
    large=int,
    begin=Py_ssize_t,
    end=Py_ssize_t,
    is_large_core=bint,
    is_large=bint,
    is_core=bint,
    count="long long",
    ids=tuple,
    entry=PageEntry,
)
cdef PageEntry _entry(bytes data, Py_ssize_t at, Py_ssize_t stop, Py_ssize_t number)


@cython.locals(size="long long", has_address=bint)
cdef Py_ssize_t _core_end(bytes data, Py_ssize_t at) except? -1


cdef Py_ssize_t _other_end(bytes data, Py_ssize_t at, Py_ssize_t stop) except? -1
