# Fields of answers.py's class, compiled; see setup.py (COMPILED).

cimport cython

cimport broker.protocols.core.packed as packed
from broker.protocols.core.channel cimport Channel
from broker.storage.context cimport OperationContext

cdef int _NULL_TYPE


cdef class Answers:
    cdef Channel _channel
    cdef OperationContext _context
    cdef object _session_name

    @cython.locals(channel=Channel)
    cdef object _send_null(self, long long correlation_id)
    cdef object _handled(self, Py_ssize_t size)
