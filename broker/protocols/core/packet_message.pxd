# What of packet_message.py passes for every message, compiled; see setup.py (COMPILED).

cdef int _PRODUCER_ID
cdef int _SEND_TAIL_SIZE


cpdef int send_tail_size(int version) except -1
