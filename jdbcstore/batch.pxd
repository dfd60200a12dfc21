"""The typed header of batch.pyx."""

from cpython.object cimport PyObject
from libc.stdint cimport int32_t, int64_t, uint8_t

from journal.id_map cimport IdMap

cdef struct RowEntry:
    int64_t record_id
    int64_t tx_id
    int64_t seq
    PyObject *body              # bytes, owned; NULL: a delete undid the insert
    PyObject *tx_data           # bytes, owned; NULL: empty
    int32_t previous            # place of the row before of the same record, -1: none; see delete()
    uint8_t record_type
    uint8_t user_type
    bint is_again               # an add of an id that was live already

cdef class Batch:
    cdef readonly int64_t number        # the ticket of everything in here
    cdef readonly int64_t operation_count
    cdef readonly int64_t size          # bytes of all bodies that were put here, gone or not
    cdef list ended                     # ends of staged transactions, None: there is none
    cdef RowEntry *rows
    cdef Py_ssize_t row_count, row_room
    cdef Py_ssize_t gone_count          # rows without a body
    cdef int64_t *deletes
    cdef Py_ssize_t delete_count, delete_room
    cdef IdMap places                   # last row of a record; made by the first delete
    cdef bint has_places
    cdef Py_ssize_t placed_count        # rows before this one are in there

    cdef int reserve_row(self) except -1
    cdef int reserve_delete(self) except -1
    cdef void put(self, int64_t record_id, uint8_t record_type, uint8_t user_type, bytes body,
                  int64_t tx_id, bytes tx_data, int64_t seq, bint is_again) noexcept
    cdef void remove(self, int64_t record_id) noexcept
    cdef int place_rows(self) except -1
    cdef int put_end(self, list ends) except -1
    cdef void pack(self) noexcept
