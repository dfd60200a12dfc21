# Fields of session_channel.py's class, compiled; see setup.py (COMPILED).

cimport cython

cimport broker.model.message_bytes as walk
cimport broker.protocols.core.packed as packed
cimport broker.protocols.core.packet_message as messages
from broker.queues.consumer cimport Consumer
from broker.model.message cimport Message
from broker.sessions.producer cimport Producer
from broker.protocols.core.answers cimport Answers
from broker.protocols.core.channel cimport Channel
from broker.protocols.core.upload_requests cimport UploadRequests
from broker.sessions.session cimport Session

cdef int _SEND_TYPE
cdef int _ACKNOWLEDGE_TYPE
cdef int _INDIVIDUAL_TYPE
cdef int _RECEIVE_TYPE
cdef int _ACKNOWLEDGE_SIZE
cdef int _HEADER_SIZE
cdef int _BODY_AT
cdef int _EMBEDDED_FIRST
cdef int _EMBEDDED
cdef int _NAMED_TAIL_SIZE


cdef class SessionChannel:
    cdef object __weakref__
    cdef Answers _answers
    cdef object _chunk_size
    cdef object _has_metadata
    cdef object _on_answered
    cdef object _on_unanswered
    cdef bint _is_ended
    cdef object _new_producer
    cdef dict _producers
    cdef Producer _uncounted
    cdef UploadRequests _uploads
    cdef public Channel channel
    cdef public object on_close
    cdef public Session session

    cpdef object receive(self, int kind, bytes chunk, Py_ssize_t start, Py_ssize_t end)

    @cython.locals(
        channel=Channel,
        session=Session,
        tail_size=int,
        at=Py_ssize_t,
        wants_answer=bint,
        correlation_id="long long",
        message=Message,
        producer=Producer,
        size=Py_ssize_t,
    )
    cdef object _receive_send(self, bytes chunk, Py_ssize_t start, Py_ssize_t end)

    @cython.locals(session=Session, size=Py_ssize_t, wants_answer=bint)
    cdef object _receive_acknowledge(
        self, bytes chunk, Py_ssize_t start, Py_ssize_t end, bint is_individual
    )
    cdef Producer _producer_of(self, address)

    @cython.locals(channel=Channel, data=bytes, frame=bytes)
    cpdef object deliver(self, Consumer consumer, Message message, int delivery_count)
