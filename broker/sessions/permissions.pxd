# Fields of permissions.py's class, compiled; see setup.py (COMPILED).


cdef class Permissions:
    cdef object _notifications
    cdef object _security
    cdef object _user

    cpdef object check(self, permission, address, queue)
