# Fields of session.py's class that every message touches, compiled; see setup.py (COMPILED).

cimport cython

from broker.queues.consumer cimport Consumer
from broker.model.message cimport Message
from broker.routing.postoffice cimport PostOffice
from broker.routing.cached_routes cimport CachedRoute
from broker.sessions.permissions cimport Permissions
from broker.sessions.sending cimport Sending
from broker.sessions.session_transaction cimport SessionTransaction
from broker.storage.context cimport OperationContext
from broker.storage.manager cimport StorageManager


@cython.final
cdef class Session:
    cdef object __weakref__
    cdef object _history
    cdef object _large
    cdef object _prefixes
    cdef StorageManager _storage
    cdef SessionTransaction _transaction
    cdef object _xa_transactions
    cdef object _uploads
    cdef object _xa
    cdef object _addresses
    cdef object _administration
    cdef object _queue_administration
    cdef object _dead_letters
    cdef object _management
    cdef object _notifications
    cdef object _parse_filter
    cdef PostOffice _postoffice
    cdef object _resource_limits
    cdef Permissions _permissions
    cdef Sending _sending
    cdef object _settings
    cdef public bint acknowledges_alone
    cdef public dict consumers
    cdef public OperationContext context
    cdef public object created_ms
    cdef public bint is_closed
    cdef public bint is_started
    cdef readonly object flow_control
    cdef public dict metadata
    cdef public object name
    cdef public object options
    cdef public object origin
    cdef public dict producers
    cdef public bint sends_alone
    cdef public object settlement
    cdef public object temporary
    cdef public object transactions
    cdef public object user
    cdef public object wildcards

    cpdef object new_id(self)
    cpdef object prewarm(self, Message message)

    @cython.locals(route=CachedRoute)
    cpdef object accept(self, Message message)

    @cython.locals(consumer=Consumer)
    cpdef object accept_acknowledgement(self, consumer_id, message_id, bint is_individual)
    cpdef Consumer consumer(self, consumer_id)
