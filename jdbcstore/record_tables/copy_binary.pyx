"""Rows as PostgreSQL sends and takes them in binary: COPY, and arrays for an INSERT.

COPY BINARY: https://www.postgresql.org/docs/15/sql-copy.html, "Binary Format". A row is the number
of its fields, then each field's size and bytes, all big-endian.

    head  PGCOPY\\n\\377\\r\\n\\0, flags (4), size of more (4)
    row   11 | 8 id | 2 recordType | 2 compactCount | 8 txId | 2 userRecordType | 4 variableSize
             | n record | 4 txDataSize | n txData | 4 txCheckNoRecords | 8 seq
    tail  -1
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy

from jdbcstore.batch cimport Batch, RowEntry

cdef extern from *:
    """
    #define qv_swap16 __builtin_bswap16
    #define qv_swap32 __builtin_bswap32
    #define qv_swap64 __builtin_bswap64
    """
    uint16_t swap16 "qv_swap16"(uint16_t value) noexcept nogil
    uint32_t swap32 "qv_swap32"(uint32_t value) noexcept nogil
    uint64_t swap64 "qv_swap64"(uint64_t value) noexcept nogil

cdef bytes HEAD = b"PGCOPY\n\xff\r\n\0" + bytes(8)

cdef enum:
    HEAD_SIZE = 19
    TAIL_SIZE = 2
    # The number of fields, eleven sizes, and nine fields of fixed size.
    ROW_SIZE = 2 + 11 * 4 + 8 + 2 + 2 + 8 + 2 + 4 + 4 + 4 + 8
    ARRAY_HEAD_SIZE = 20
    # Oids of pg_type.
    INT8_OID = 20
    INT2_OID = 21
    BYTEA_OID = 17
    # Of a row that a load selects: id, recordType, userRecordType, record, txId, txData, seq.
    SCANNED_FIELDS = 7


cdef inline char *put2(char *to, int16_t value) noexcept nogil:
    cdef uint16_t swapped = swap16(<uint16_t>value)
    memcpy(to, &swapped, 2)
    return to + 2


cdef inline char *put4(char *to, int32_t value) noexcept nogil:
    cdef uint32_t swapped = swap32(<uint32_t>value)
    memcpy(to, &swapped, 4)
    return to + 4


cdef inline char *put8(char *to, int64_t value) noexcept nogil:
    cdef uint64_t swapped = swap64(<uint64_t>value)
    memcpy(to, &swapped, 8)
    return to + 8


cdef inline Py_ssize_t size_of(void *data) noexcept:
    """Of bytes, or of none."""
    return 0 if data is NULL else PyBytes_GET_SIZE(<object>data)


cdef inline char *put_bytes(char *to, void *data) noexcept:
    """Their size, and the bytes."""
    cdef Py_ssize_t size = size_of(data)
    to = put4(to, <int32_t>size)
    if size:
        memcpy(to, PyBytes_AS_STRING(<object>data), size)
    return to + size


cdef char *put_row(char *to, const RowEntry *row) noexcept:
    to = put2(to, 11)
    to = put8(put4(to, 8), row.record_id)
    to = put2(put4(to, 2), row.record_type)
    to = put2(put4(to, 2), 0)
    to = put8(put4(to, 8), row.tx_id)
    to = put2(put4(to, 2), <int8_t>row.user_type)
    to = put4(put4(to, 4), <int32_t>size_of(row.body))
    to = put_bytes(to, row.body)
    to = put4(put4(to, 4), <int32_t>size_of(row.tx_data))
    to = put_bytes(to, row.tx_data)
    to = put4(put4(to, 4), 0)
    return put8(put4(to, 8), row.seq)


def copy_rows(Batch batch not None):
    """The rows of a batch as COPY BINARY takes them."""
    cdef Py_ssize_t place, size = HEAD_SIZE + TAIL_SIZE
    cdef const RowEntry *row
    cdef bytes packed
    cdef char *to
    batch.pack()
    for place in range(batch.row_count):
        row = batch.rows + place
        size += ROW_SIZE + size_of(row.body) + size_of(row.tx_data)
    packed = PyBytes_FromStringAndSize(NULL, size)
    to = PyBytes_AS_STRING(packed)
    memcpy(to, PyBytes_AS_STRING(HEAD), HEAD_SIZE)
    to += HEAD_SIZE
    for place in range(batch.row_count):
        to = put_row(to, batch.rows + place)
    to = put2(to, -1)
    assert to == PyBytes_AS_STRING(packed) + size
    return packed


def row_values(Batch batch not None):
    """The only row of a batch, as nine parameters in binary.

    In the order of the columns, without compactCount and txCheckNoRecords.
    """
    cdef const RowEntry *row
    batch.pack()
    assert batch.row_count == 1
    row = batch.rows
    return [
        number8(row.record_id), number2(row.record_type), number8(row.tx_id),
        number2(<int8_t>row.user_type), number4(<int32_t>size_of(row.body)), <object>row.body,
        number4(<int32_t>size_of(row.tx_data)),
        b"" if row.tx_data is NULL else <object>row.tx_data, number8(row.seq)]


def array_values(Batch batch not None):
    """The rows of a batch as seven arrays.

    Of id, recordType, txId, userRecordType, record, txData and seq.
    """
    cdef Py_ssize_t place, count, bodies = 0, extras = 0
    cdef const RowEntry *row
    cdef bytes ids, kinds, txs, types, body, extra, seqs
    cdef char *to_id
    cdef char *to_kind
    cdef char *to_tx
    cdef char *to_type
    cdef char *to_body
    cdef char *to_extra
    cdef char *to_seq
    batch.pack()
    count = batch.row_count
    for place in range(count):
        bodies += 4 + size_of(batch.rows[place].body)
        extras += 4 + size_of(batch.rows[place].tx_data)
    ids = new_array(INT8_OID, count, 12 * count, &to_id)
    kinds = new_array(INT2_OID, count, 6 * count, &to_kind)
    txs = new_array(INT8_OID, count, 12 * count, &to_tx)
    types = new_array(INT2_OID, count, 6 * count, &to_type)
    body = new_array(BYTEA_OID, count, bodies, &to_body)
    extra = new_array(BYTEA_OID, count, extras, &to_extra)
    seqs = new_array(INT8_OID, count, 12 * count, &to_seq)
    for place in range(count):
        row = batch.rows + place
        to_id = put8(put4(to_id, 8), row.record_id)
        to_kind = put2(put4(to_kind, 2), row.record_type)
        to_tx = put8(put4(to_tx, 8), row.tx_id)
        to_type = put2(put4(to_type, 2), <int8_t>row.user_type)
        to_body = put_bytes(to_body, row.body)
        to_extra = put_bytes(to_extra, row.tx_data)
        to_seq = put8(put4(to_seq, 8), row.seq)
    return [ids, kinds, txs, types, body, extra, seqs]


cdef bytes new_array(int32_t oid, Py_ssize_t count, Py_ssize_t size, char **elements):
    """A one-dimensional array without NULLs, but for the `size` bytes of its elements."""
    cdef bytes packed = PyBytes_FromStringAndSize(NULL, ARRAY_HEAD_SIZE + size)
    cdef char *to = PyBytes_AS_STRING(packed)
    to = put4(put4(put4(to, 1), 0), oid)
    elements[0] = put4(put4(to, <int32_t>count), 1)
    return packed


cdef bytes number2(int16_t value):
    cdef char packed[2]
    put2(packed, value)
    return packed[:2]


cdef bytes number4(int32_t value):
    cdef char packed[4]
    put4(packed, value)
    return packed[:4]


cdef bytes number8(int64_t value):
    cdef char packed[8]
    put8(packed, value)
    return packed[:8]


# --- back from the table ----------------------------------------------------------------------

cdef struct Field:
    const uint8_t *data
    int32_t size                # -1: NULL


cdef int64_t number(const Field *field) except? -1:
    """A whole number of two, four or eight bytes."""
    cdef uint64_t wide
    cdef uint32_t middle
    cdef uint16_t narrow
    if field.size == 8:
        memcpy(&wide, field.data, 8)
        return <int64_t>swap64(wide)
    if field.size == 4:
        memcpy(&middle, field.data, 4)
        return <int32_t>swap32(middle)
    if field.size == 2:
        memcpy(&narrow, field.data, 2)
        return <int16_t>swap16(narrow)
    raise ValueError(f"a number of {field.size} bytes")


cdef bytes blob(const Field *field):
    return <bytes>PyBytes_FromStringAndSize(<char *>field.data, field.size) \
        if field.size > 0 else b""


def scanned_row(const uint8_t[::1] data not None):
    """One row of a load from what COPY BINARY sent for it, as jdbcstore.rows has it.

    The head may stand before it.

    Returns:
        None where a row is missing, as in the tail.

    Raises:
        ValueError: not such a row.
    """
    cdef Field fields[SCANNED_FIELDS]
    cdef Py_ssize_t offset = 0, size = data.shape[0]
    cdef uint16_t count
    cdef uint32_t length
    cdef int index
    if size >= HEAD_SIZE and data[0] == c"P":
        offset = HEAD_SIZE
    if size - offset <= TAIL_SIZE:
        return None
    memcpy(&count, &data[offset], 2)
    if swap16(count) != SCANNED_FIELDS:
        raise ValueError(f"a row of {swap16(count)} fields")
    offset += 2
    for index in range(SCANNED_FIELDS):
        if size - offset < 4:
            raise ValueError("a row ends within a field's size")
        memcpy(&length, &data[offset], 4)
        offset += 4
        fields[index].size = <int32_t>swap32(length)
        fields[index].data = &data[offset] if offset < size else NULL
        if fields[index].size > size - offset:
            raise ValueError("a row ends within a field")
        offset += max(0, fields[index].size)
    return (
        number(&fields[0]), number(&fields[1]), number(&fields[2]) & 0xFF, blob(&fields[3]),
        number(&fields[4]), blob(&fields[5]), number(&fields[6]))
