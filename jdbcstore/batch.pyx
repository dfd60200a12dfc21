"""One transaction of the database: what is left to do of the operations that were put into it.

Deletes are done before inserts. The result is the same as if the operations were done one by one.
An add and its delete in one batch cancel out. A delete and a new add of the same id are both
written. A delete removes the updates before it from the batch.

The end of a staged transaction (its rows begin to count, or go) stands in a batch with other ends
only. Then a look for one row tells whether the whole batch is in the database (reconnecting.py).

Rows are structs with a reference to the body: no object is made for a row, and the ways into a
database (record_tables/) pack them from here. None of this allocates what the collector of garbage
counts, so no Python code runs inside, and the GIL is lock enough while a batch fills.
"""

from dataclasses import dataclass

cimport cython
from cpython.bytes cimport PyBytes_GET_SIZE
from cpython.mem cimport PyMem_Free, PyMem_Realloc
from cpython.ref cimport Py_INCREF, Py_XDECREF

from journal.id_map cimport (
    id_map_free, id_map_get, id_map_init, id_map_pop, id_map_put, id_map_reserve)

cdef enum:
    ADD_RECORD = 11             # jdbcstore.rows
    UPDATE_RECORD = 12
    ROOM_FIRST = 16


@dataclass(frozen=True, slots=True)
class StagedEnd:
    """The end of a transaction whose rows are in the table.

    Attributes:
        tx_id: its rows carry this.
        is_commit: its adds and updates count from now on; otherwise all of its rows go.
        deleted_ids: what the transaction deletes, when it commits.
        seq_offset: added to the seq of its rows, so that they stand behind all older ones.
    """

    tx_id: int
    is_commit: bool
    deleted_ids: object = ()
    seq_offset: int = 0


@cython.no_gc
cdef class Batch:
    """Operations in the order in which they were accepted, as their net effect.

    Attributes:
        number: the ticket of everything in here.
        operation_count: how many operations were put here.
        size: bytes of all bodies that were put here, gone or not.
    """

    def __cinit__(self, int64_t number=0):
        self.number = number

    def __dealloc__(self):
        cdef Py_ssize_t place
        for place in range(self.row_count):
            Py_XDECREF(self.rows[place].body)
            Py_XDECREF(self.rows[place].tx_data)
        PyMem_Free(self.rows)
        PyMem_Free(self.deletes)
        if self.has_places:
            id_map_free(&self.places)

    def insert(self, row, *, bint is_again=False):
        """A row of a record that counts: an add, or an update.

        Args:
            row: its seq is higher than that of any row before it.
            is_again: an add of an id that is live already; transactions do not check for that.
        """
        record_id, record_type, user_type, body, tx_id, tx_data, seq = row
        self.reserve_row()
        self.put(record_id, record_type, user_type, body, tx_id, tx_data, seq, is_again)

    def stage(self, row):
        """A row of a transaction that has not ended: no delete of a record touches it."""
        self.insert(row)

    def delete(self, int64_t record_id):
        """The record and all its updates go; rows of transactions that have not ended stay."""
        self.reserve_delete()
        self.remove(record_id)

    def end(self, end):
        """A staged transaction ends."""
        self.put_end([end])

    def live_rows(self):
        """The rows to insert, in seq order, as jdbcstore.rows has them."""
        cdef Py_ssize_t place
        cdef RowEntry *row
        cdef list rows = []
        self.pack()
        for place in range(self.row_count):
            row = self.rows + place
            rows.append((
                row.record_id, row.record_type, row.user_type, <object>row.body, row.tx_id,
                b"" if row.tx_data is NULL else <object>row.tx_data, row.seq))
        return rows

    def values(self, Py_ssize_t start, Py_ssize_t count):
        """Parameters of an INSERT, for the rows to insert from place `start` on, all in one list.

        In the order of the columns, without compactCount and txCheckNoRecords: nine a row.
        """
        cdef Py_ssize_t place
        cdef RowEntry *row
        cdef list found = []
        self.pack()
        for place in range(start, start + count):
            row = self.rows + place
            body = <object>row.body
            tx_data = b"" if row.tx_data is NULL else <object>row.tx_data
            found.append(row.record_id)
            found.append(row.record_type)
            found.append(row.tx_id)
            found.append(<signed char>row.user_type)
            found.append(len(body))
            found.append(body)
            found.append(len(tx_data))
            found.append(tx_data)
            found.append(row.seq)
        return found

    @property
    def ends(self):
        """Ends of staged transactions; then there is nothing else."""
        return self.ended or ()

    @property
    def deleted_ids(self):
        """What to delete before the rows are inserted."""
        cdef Py_ssize_t place
        cdef set found = set()
        for place in range(self.delete_count):
            found.add(self.deletes[place])
        return found

    @property
    def insert_count(self):
        """How many rows there are to insert."""
        return self.row_count - self.gone_count

    @property
    def first_seq(self):
        """The seq of the first row to insert, None without one."""
        self.pack()
        return self.rows[0].seq if self.row_count else None

    @property
    def last_seq(self):
        """The seq of the last row to insert, None without one."""
        self.pack()
        return self.rows[self.row_count - 1].seq if self.row_count else None

    @property
    def is_void(self):
        """Whether all that was put here has undone itself."""
        return self.row_count == self.gone_count and not self.delete_count \
            and self.ended is None

    @property
    def has_other(self):
        """Whether anything but ends of staged transactions was put here."""
        return self.operation_count > (0 if self.ended is None else len(self.ended))

    def __bool__(self):
        """Whether there is anything that somebody waits for."""
        return self.operation_count > 0

    # What fills it. First the room, then what cannot fail.

    cdef int reserve_row(self) except -1:
        """Room for one more row."""
        cdef Py_ssize_t room
        cdef void *grown
        if self.row_count == self.row_room:
            room = 2 * self.row_room or ROOM_FIRST
            grown = PyMem_Realloc(self.rows, room * sizeof(RowEntry))
            if grown is NULL:
                raise MemoryError
            self.rows = <RowEntry *>grown
            self.row_room = room
        return 0

    cdef int reserve_delete(self) except -1:
        """Room for one more delete, and all rows are found by their ids."""
        cdef Py_ssize_t room
        cdef void *grown
        if self.delete_count == self.delete_room:
            room = 2 * self.delete_room or ROOM_FIRST
            grown = PyMem_Realloc(self.deletes, room * sizeof(int64_t))
            if grown is NULL:
                raise MemoryError
            self.deletes = <int64_t *>grown
            self.delete_room = room
        return self.place_rows()

    cdef int place_rows(self) except -1:
        """Let every row be found by its id: what most batches never need."""
        cdef RowEntry *row
        if self.placed_count == self.row_count:
            return 0
        if not self.has_places:
            if id_map_init(&self.places) < 0:
                raise MemoryError
            self.has_places = True
        if id_map_reserve(&self.places, self.row_count) < 0:
            raise MemoryError
        while self.placed_count < self.row_count:
            row = self.rows + self.placed_count
            row.previous = -1
            if row.body is not NULL and row.record_type <= UPDATE_RECORD:
                row.previous = <int32_t>id_map_get(&self.places, row.record_id)
                if id_map_put(&self.places, row.record_id, <int32_t>self.placed_count) < 0:
                    raise MemoryError
            self.placed_count += 1
        return 0

    cdef void put(self, int64_t record_id, uint8_t record_type, uint8_t user_type, bytes body,
                  int64_t tx_id, bytes tx_data, int64_t seq, bint is_again) noexcept:
        """One more row; there is room for it."""
        cdef RowEntry *row = self.rows + self.row_count
        row.record_id = record_id
        row.tx_id = tx_id
        row.seq = seq
        row.record_type = record_type
        row.user_type = user_type
        row.is_again = is_again
        Py_INCREF(body)
        row.body = <PyObject *>body
        row.tx_data = NULL
        if tx_data:
            Py_INCREF(tx_data)
            row.tx_data = <PyObject *>tx_data
            self.size += PyBytes_GET_SIZE(tx_data)
        self.row_count += 1
        self.operation_count += 1
        self.size += PyBytes_GET_SIZE(body)

    cdef void remove(self, int64_t record_id) noexcept:
        """One delete more; there is room for it, and all rows are placed."""
        cdef int64_t place = -1
        cdef RowEntry *row = NULL
        self.operation_count += 1
        if self.has_places:
            place = id_map_pop(&self.places, record_id)
        while place >= 0:
            row = self.rows + place
            Py_XDECREF(row.body)
            row.body = NULL
            self.gone_count += 1
            place = row.previous
        # What begins with its add here was not in the table before, or is among `deletes` already.
        if row is NULL or row.record_type != ADD_RECORD or row.is_again:
            self.deletes[self.delete_count] = record_id
            self.delete_count += 1

    cdef int put_end(self, list ends) except -1:
        """The end of a staged transaction, in a list that was made before."""
        assert not self.row_count
        assert not self.delete_count
        if self.ended is None:
            self.ended = ends
        else:
            self.ended.extend(ends)
        self.operation_count += 1
        return 0

    cdef void pack(self) noexcept:
        """Close the gaps that undone inserts left."""
        cdef Py_ssize_t place, kept = 0
        if not self.gone_count:
            return
        for place in range(self.row_count):
            if self.rows[place].body is not NULL:
                self.rows[kept] = self.rows[place]
                kept += 1
            else:
                Py_XDECREF(self.rows[place].tx_data)
        self.row_count = kept
        self.gone_count = 0
        self.placed_count = 0
        if self.has_places:
            id_map_free(&self.places)
            self.has_places = False
