# Fields of joint_records.py's class, compiled; see setup.py (COMPILED).

cimport cython

from broker.queues.reference cimport Reference
from broker.storage.manager cimport StorageManager


@cython.final
cdef class _JointRecords:
    cdef public list acknowledged
    cdef public object paged
    cdef public object tx_id


@cython.locals(reference=Reference, records=_JointRecords)
cpdef object record_together(StorageManager storage, list references)
