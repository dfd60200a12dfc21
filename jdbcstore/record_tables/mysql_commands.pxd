"""For exchange(), which sends them."""

from jdbcstore.batch cimport Batch

cdef class Commands:
    cdef char *data
    cdef size_t size, capacity
    cdef list places                    # where the packets begin
    cdef readonly Py_ssize_t longest

    cdef char *begin(self, size_t size) except NULL
