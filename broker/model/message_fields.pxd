# Fields of a message; see message_fields.pyx.

cimport cython


cdef class Parts:
    cdef public object body
    cdef public object large
    cdef public dict properties
    cdef public object timestamp
    cdef public object user_id


# Once a broker has stopped (PostOffice.close), nothing that a message refers to leads to a message.
# So the collector of cycles need not track it: that would cost 16 bytes each, and regular scans.
@cython.no_gc
cdef class MessageFields:
    # As narrow as they can be: a million of these may wait. 96 bytes with what a subclass adds.
    cdef object _address
    cdef object _data
    cdef readonly Parts _parts
    cdef public object owner
    cdef long long _message_id
    cdef long long _expiration
    cdef int _headers_at
    cdef int _properties_at
    cdef public int durable_references
    cdef public int references
    cdef unsigned char _changed
    cdef unsigned char _durable
    cdef unsigned char _is_read_back
    cdef signed char _priority
    cdef signed char _routing
    cdef signed char _type
    cdef public unsigned char has_own_properties
    cdef public unsigned char is_large
