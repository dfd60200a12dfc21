# Fields of amqp_message.py's class, compiled; see setup.py (COMPILED).

cimport cython

cimport broker.model.message_bytes as walk
from broker.model.message cimport Message
from broker.records.amqp_outline cimport Outline, outline_of
from broker.records.noted_properties cimport NotedProperties

cdef int _PERSISTER


cdef class AmqpMessage(NotedProperties):
    cdef public bytes encoded
    cdef public object message_format
    cdef public bint has_delivery_annotations
    cdef public bint is_as_sent

    cpdef object _look_like(self, Outline outline, address, now_ms, routing_type)

    @cython.locals(core=Message, data=bytes)
    cdef bytes _read_back(self, aside)
    cpdef object _keep(self, bytes encoded, message_format, bint has_delivery_annotations)
    cpdef bytes to_deliver(self, int delivery_count)
    cdef object _rewrite(self)

    @cython.locals(units=bytes)
    cpdef bytes record(self)
