# What dispatch.py works with, compiled; see setup.py (COMPILED).

cimport cython

from broker.model.message cimport Message
from broker.queues.consumer cimport Consumer
from broker.queues.consumers cimport Consumers
from broker.queues.contents cimport QueueContents
from broker.queues.reference cimport Reference
from broker.queues.reference_lists cimport PriorityList


cpdef bint dispatch(QueueContents queue, Consumers consumers, groups, index) except -1


@cython.locals(waiting=PriorityList, reference=Reference, message=Message, consumer=Consumer)
cdef bint _dispatch_heads(QueueContents queue, Consumers consumers) except -1
