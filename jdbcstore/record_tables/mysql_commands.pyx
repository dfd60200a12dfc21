"""Commands of MySQL's protocol, packed to be sent together; rows as parameters of an INSERT.

https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_com_stmt_execute.html; all numbers
are little-endian. A row is id (8), recordType (2), userRecordType (2), variableSize (4), record
behind its size, seq (8).
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.mem cimport PyMem_Free, PyMem_Realloc
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint32_t
from libc.string cimport memcpy, memset

from jdbcstore.batch cimport Batch, RowEntry

cdef enum:
    PARAMETERS_PER_ROW = 6
    COM_STMT_EXECUTE = 0x17
    HEAD_SIZE = 10              # the command, the statement, flags (1), iterations (4)
    FIXED_SIZE = 24             # of a row, without the record and its size
    PACKET_HEAD_SIZE = 4
    CAPACITY_FIRST = 4096
    KEPT_MAX = 32 * 1024 * 1024  # twice what a batch of the writer is, bytes

# Of a row's parameters: 64 bits, 16, 16, 32, bytes, 64; the second byte says "signed".
cdef bytes ROW_TYPES = b"\x08\0\x02\0\x02\0\x03\0\xfc\0\x08\0"


cdef inline bint is_plain(const RowEntry *row) noexcept:
    """Whether a row is of no transaction: its columns of that are constants of the statement."""
    return row.tx_id == 0 and row.tx_data is NULL


def plain_rows(Batch batch not None, Py_ssize_t start, Py_ssize_t count_max, Py_ssize_t room):
    """How many rows of no transaction stand from place `start` on.

    Args:
        batch: the others in it are left out.
        start: a place that add_rows() returned, or 0.
        count_max: no more are counted.
        room: no more bytes of bodies are counted, but for the first row.
    """
    cdef Py_ssize_t place, count = 0
    batch.pack()
    for place in range(start, batch.row_count):
        if is_plain(batch.rows + place):
            room -= PyBytes_GET_SIZE(<object>batch.rows[place].body)
            if count == count_max or (count and room < 0):
                break
            count += 1
    return count


cdef class Commands:
    """Commands as packets, one behind the other, in memory that is used again.

    New memory for every batch would cost as much as packing the rows: the kernel clears it, page
    by page.

    Args:
        commands: the first ones.

    Attributes:
        longest: bytes of the longest command. A command of PACKET_MAX bytes (mysql.py) or more
            would have to be split into packets, which is not done here.
    """

    def __init__(self, commands=()):
        for command in commands:
            self.add(command)

    def __cinit__(self, commands=()):
        self.places = []

    def __dealloc__(self):
        PyMem_Free(self.data)

    def __len__(self):
        return len(self.places)

    def __getitem__(self, Py_ssize_t index):
        cdef Py_ssize_t count = len(self.places)
        cdef size_t start, end
        if not 0 <= index < count:
            raise IndexError(index)
        start = <size_t>self.places[index] + PACKET_HEAD_SIZE
        end = self.size if index + 1 == count else <size_t>self.places[index + 1]
        return self.data[start:end]

    def clear(self):
        """Begin anew. What a very large batch took is given back."""
        if self.capacity > KEPT_MAX:
            PyMem_Free(self.data)
            self.data = NULL
            self.capacity = 0
        self.size = 0
        self.longest = 0
        self.places.clear()

    def add(self, bytes command not None):
        """Put one command behind the others."""
        cdef Py_ssize_t size = PyBytes_GET_SIZE(command)
        memcpy(self.begin(size), PyBytes_AS_STRING(command), size)

    def add_rows(self, Batch batch not None, Py_ssize_t start, Py_ssize_t count,
                 uint32_t statement):
        """Add the command that runs a prepared INSERT with `count` rows; the place behind them."""
        cdef Py_ssize_t place = start, left = count, size
        cdef Py_ssize_t null_size = (PARAMETERS_PER_ROW * count + 7) // 8
        cdef uint32_t iterations = 1
        cdef const RowEntry *row
        cdef char *to
        size = HEAD_SIZE + null_size + 1 + len(ROW_TYPES) * count
        while left:
            if is_plain(batch.rows + place):
                size += FIXED_SIZE + sized_size(PyBytes_GET_SIZE(<object>batch.rows[place].body))
                left -= 1
            place += 1
        to = self.begin(size)
        to[0] = COM_STMT_EXECUTE
        to = put(to + 1, &statement, 4)
        to[0] = 0                               # No cursor.
        to = put(to + 1, &iterations, 4)
        memset(to, 0, null_size)                # No NULLs.
        to += null_size
        to[0] = 1                               # Types follow.
        to += 1
        for _ in range(count):
            to = put(to, PyBytes_AS_STRING(ROW_TYPES), PARAMETERS_PER_ROW * 2)
        for place in range(start, place):
            row = batch.rows + place
            if is_plain(row):
                to = put_row(to, row)
        assert to == self.data + self.size
        return place + 1

    def packets(self):
        """All of them as they are sent."""
        return self.data[:self.size]

    cdef char *begin(self, size_t size) except NULL:
        """Write a packet's head; where its `size` bytes go."""
        cdef size_t needed = self.size + PACKET_HEAD_SIZE + size, capacity
        cdef char *data
        cdef char *to
        if needed > self.capacity:
            capacity = max(needed, 2 * self.capacity, <size_t>CAPACITY_FIRST)
            data = <char *>PyMem_Realloc(self.data, capacity)
            if data == NULL:
                raise MemoryError
            self.data = data
            self.capacity = capacity
        self.places.append(self.size)
        self.longest = max(self.longest, <Py_ssize_t>size)
        to = self.data + self.size
        # Its size, and its number among those of one command. This machine is little-endian.
        memcpy(to, &size, 3)
        to[3] = 0
        self.size = needed
        return to + PACKET_HEAD_SIZE


cdef inline char *put(char *to, const void *data, size_t size) noexcept nogil:
    memcpy(to, data, size)
    return to + size


cdef inline Py_ssize_t sized_size(Py_ssize_t size) noexcept nogil:
    """Of bytes with their size before them ("length-encoded integer")."""
    if size < 251:
        return size + 1
    if size < 1 << 16:
        return size + 3
    return size + (4 if size < 1 << 24 else 9)


cdef char *put_row(char *to, const RowEntry *row) noexcept:
    cdef int16_t record_type = row.record_type, user_type = <int8_t>row.user_type
    cdef int64_t length = PyBytes_GET_SIZE(<object>row.body)
    cdef int32_t size = <int32_t>length
    to = put(to, &row.record_id, 8)
    to = put(to, &record_type, 2)
    to = put(to, &user_type, 2)
    to = put(to, &size, 4)
    # Numbers of this machine are little-endian: setup.py builds for no other.
    if length < 251:
        to = put(to, &length, 1)
    elif length < 1 << 16:
        to[0] = <char>0xfc
        to = put(to + 1, &length, 2)
    elif length < 1 << 24:
        to[0] = <char>0xfd
        to = put(to + 1, &length, 3)
    else:
        to[0] = <char>0xfe
        to = put(to + 1, &length, 8)
    to = put(to, PyBytes_AS_STRING(<object>row.body), length)
    return put(to, &row.seq, 8)
