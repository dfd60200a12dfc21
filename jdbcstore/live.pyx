"""The ids of live records, in memory: what an append may add, update or delete.

A Python set of ten million ints takes 900 MB; the file journal's id map takes 26 to 51 bytes an
id. The rows themselves stay in the database.

Threads: every call holds the GIL from beginning to end, and runs no Python code in between.
"""

from libc.stdint cimport uint64_t

from journal.id_map cimport id_map_free, id_map_get, id_map_init, id_map_pop, id_map_put


cdef class LiveIds:
    """A set of 64-bit ids.

    Attributes:
        max_id: the highest id that was ever put here, -1 when none was above it.
    """

    def __cinit__(self):
        self.max_id = -1
        if id_map_init(&self.map) < 0:
            raise MemoryError

    def __dealloc__(self):
        id_map_free(&self.map)

    def __len__(self):
        """How many there are."""
        return self.map.count

    def __contains__(self, int64_t record_id):
        """Whether the id is live."""
        return id_map_get(&self.map, record_id) >= 0

    cpdef bint put(self, int64_t record_id) except -1:
        """The id is live from now on; whether it was not before.

        Raises:
            OverflowError: not a 64-bit number.
            MemoryError: nothing has changed.
        """
        cdef uint64_t before = self.map.count
        if id_map_put(&self.map, record_id, 0) < 0:
            raise MemoryError
        if record_id > self.max_id:
            self.max_id = record_id
        return self.map.count != before

    cpdef bint take(self, int64_t record_id) noexcept:
        """The id is not live any more; whether it was."""
        return id_map_pop(&self.map, record_id) >= 0

    cdef bint has(self, int64_t record_id) noexcept:
        return id_map_get(&self.map, record_id) >= 0
