# Fields of null_storage.py's classes, compiled; see setup.py (COMPILED).

from broker.storage.manager cimport StorageManager


cdef class NullStorage(StorageManager):
    pass
