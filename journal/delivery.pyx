"""Live records and open transactions handed out, with the bodies that their files hold.

A body is read again, from where its record's locator says (bodies.pyx); no file is kept as a whole.

Every function takes what a finished load left: a Replay, and the LoadedFile of each file number.
They raise JournalIOError where a file cannot be read again, or has changed since it was loaded.
"""

import array

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libc.string cimport memcpy

from journal.errors import OptionError
from journal.loaded import (
    DeletedRecord, FailedTransaction, PreparedTransaction, RecordColumns)

from journal.bodies cimport BodyReader
from journal.format cimport DELETE_RECORD_TX, UPDATE_RECORD, UPDATE_RECORD_TX
from journal.id_map cimport id_map_get
from journal.replay cimport Holder, Locator, Replay

__all__ = [
    "LiveCursor", "LiveRecord", "deliver_columns", "deliver_records", "live_records",
    "open_transactions",
]

CHECKSUM_WORDS = ("none", "ok", "bad")
BATCH_BYTES = 8 << 20           # bodies in one batch, unless a single one is larger
COLUMN_BYTES = 1 << 20          # the same of columns: a block that stays in the cache


@cython.freelist(1024)
@cython.no_gc       # Holds no containers, so that it can never be part of a cycle.
cdef class LiveRecord:
    """An add or update that counts.

    Attributes:
        record_id, user_type (0 … 255), compact_count: as written.
        is_update: of an earlier add.
        body: bytes.
        file, offset: where its type byte stands.
        checksum: "ok", or "none" where the record has no leader.
    """

    @property
    def kind(self):
        """Which: add, or update."""
        return "update" if self.is_update else "add"

    def __repr__(self):
        return (f"<{self.kind} {self.record_id} user_type={self.user_type} {len(self.body)} bytes"
                f" at {self.file}:{self.offset}>")


def deliver_records(Replay replay not None, loaded, on_batch, batch_records):
    """Hand out the live records in batches of LiveRecord: Loader.deliver."""
    cdef size_t i, size = 0, limit = batch_records
    cdef Locator *locator
    cdef int32_t current = -1
    cdef str name = None
    cdef list batch = []
    cdef BodyReader bodies
    with BodyReader(loaded) as bodies:
        for i in range(replay.live.count):
            locator = &replay.live.first[i]
            if locator.file != current:
                current = locator.file
                name = loaded[current].name
            batch.append(live_record(name, locator, read_body(bodies, locator)))
            size += locator.body_size
            if <size_t>len(batch) >= limit or size >= <size_t>BATCH_BYTES:
                on_batch(batch)
                batch = []
                size = 0
    if batch:
        on_batch(batch)
    return replay.live.count


def deliver_columns(Replay replay not None, loaded, on_batch, batch_records):
    """Hand out the live records as columns: Loader.deliver_columns."""
    cdef size_t first = 0, last, i, size
    cdef Locator *locator
    cdef int64_t[::1] ids
    cdef uint8_t[::1] user_types, updates
    cdef int32_t[::1] offsets
    cdef bytes block
    cdef char *out
    cdef BodyReader bodies
    with BodyReader(loaded) as bodies:
        while first < replay.live.count:
            last, size = first, 0
            while last < replay.live.count and last - first < <size_t>batch_records and (
                    size == 0
                    or size + replay.live.first[last].body_size <= <size_t>COLUMN_BYTES):
                size += replay.live.first[last].body_size
                last += 1
            columns = RecordColumns(
                array.array("q", bytes(8 * (last - first))), bytearray(last - first),
                bytearray(last - first), array.array("i", bytes(4 * (last - first + 1))),
                PyBytes_FromStringAndSize(NULL, size))
            ids, user_types, updates, offsets, block = (
                columns.record_ids, columns.user_types, columns.updates, columns.offsets,
                columns.bodies)
            out = PyBytes_AS_STRING(block)      # No other object refers to these bytes yet.
            size = 0
            for i in range(first, last):
                locator = &replay.live.first[i]
                ids[i - first] = locator.record_id
                user_types[i - first] = locator.user_type
                updates[i - first] = is_update(locator)
                memcpy(out + size,
                       bodies.get(locator.file, locator.body_offset, locator.body_size),
                       locator.body_size)
                size += locator.body_size
                offsets[i - first + 1] = <int32_t>size
            ids, user_types, updates, offsets = None, None, None, None
            on_batch(columns)
            first = last
    return replay.live.count


def live_records(Replay replay not None, loaded):
    """Give the live records one by one: Loader.records."""
    cdef size_t i
    cdef BodyReader bodies
    with BodyReader(loaded) as bodies:
        for i in range(replay.live.count):
            yield live_record(loaded[replay.live.first[i].file].name, &replay.live.first[i],
                              read_body(bodies, &replay.live.first[i]))


cdef class LiveCursor:
    """Goes over the live records of some user types, in log order; of others nothing is read.

    For compiled callers: next() moves on, then `locator` and `body` are the record's, until the
    next call. Made by Loader.cursor(). Threads: one at a time.
    """

    def __init__(self, Replay replay not None, loaded, user_types):
        cdef int user_type
        self.replay = replay
        self.loaded = loaded
        self.bodies = BodyReader(loaded)
        for user_type in user_types:
            if not 0 <= user_type < 256:
                raise OptionError(f"user type {user_type}: must be 0 to 255")
            self.is_wanted[user_type] = True

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()

    def close(self):
        """Close the file that was read last."""
        self.bodies.close()

    cdef bint next(self) except -1:
        """Go to the next record; False: there is none.

        Raises:
            JournalIOError: its file cannot be read again, or has changed since it was loaded.
        """
        cdef const Locator *locator
        while self.place < self.replay.live.count:
            locator = &self.replay.live.first[self.place]
            self.place += 1
            if not self.is_wanted[locator.user_type]:
                continue
            self.body = self.bodies.get(locator.file, locator.body_offset, locator.body_size)
            self.locator = locator
            return True
        return False

    cdef object file(self):
        """The LoadedFile in which the record stands."""
        return self.loaded[self.locator.file]

    cdef str file_name(self):
        """Of the file in which the record stands."""
        return self.loaded[self.locator.file].name

    cdef LiveRecord record(self):
        """The record as an object, for callers that need one."""
        return live_record(
            self.file_name(), self.locator,
            PyBytes_FromStringAndSize(<const char *>self.body, self.locator.body_size))


def open_transactions(Replay replay not None, loaded):
    """Prepared and failed transactions, with the bodies of their records.

    Returns:
        Lists of PreparedTransaction and of FailedTransaction, in the order they began.

    Raises:
        JournalIOError: a file cannot be read again, or has changed since it was loaded.
    """
    cdef uint32_t i
    cdef size_t j
    cdef Holder *holder
    cdef Locator *locator
    prepared = []
    failed = []
    order = sorted((replay.holders[i].sequence, i) for i in range(replay.holder_count)
                   if replay.holders[i].is_used)
    with BodyReader(loaded) as bodies:
        for _, i in order:
            holder = &replay.holders[i]
            records = []
            deletes = []
            for j in range(holder.operations.count):
                locator = &holder.operations.first[j]
                body = read_body(bodies, locator)
                if locator.type == DELETE_RECORD_TX:
                    deletes.append(DeletedRecord(locator.record_id, body))
                else:
                    records.append(live_record(loaded[locator.file].name, locator, body))
            if holder.is_prepared and not holder.is_invalid \
                    and id_map_get(&replay.tainted, holder.tx_id) < 0:
                prepared.append(PreparedTransaction(
                    holder.tx_id, read_body(bodies, &holder.extra), tuple(records),
                    tuple(deletes)))
            else:
                failed.append(FailedTransaction(
                    holder.tx_id, tuple(records), tuple(deletes)))
    return prepared, failed


# --- leaves -------------------------------------------------------------------------------------

cdef inline bint is_update(const Locator *locator) noexcept nogil:
    return locator.type == UPDATE_RECORD or locator.type == UPDATE_RECORD_TX


cdef LiveRecord live_record(str name, const Locator *locator, object body):
    cdef LiveRecord record = LiveRecord.__new__(LiveRecord)
    record.record_id = locator.record_id
    record.user_type = locator.user_type
    record.is_update = is_update(locator)
    record.compact_count = locator.compact_count
    record.body = body
    record.file = name
    record.offset = locator.body_offset - locator.head_size
    record.checksum = CHECKSUM_WORDS[locator.checksum]
    return record


cdef bytes read_body(BodyReader bodies, const Locator *locator):
    return PyBytes_FromStringAndSize(
        <const char *>bodies.get(locator.file, locator.body_offset, locator.body_size),
        locator.body_size)
