"""A map from a 64-bit id to a 32-bit number, and what all maps of ids share: the typed header.

Nothing here raises or locks.
"""

from libc.stdint cimport int64_t, uint32_t, uint64_t

cdef extern from *:
    """
    #include <stdlib.h>
    #include <sys/mman.h>
    #define QV_HUGE ((size_t)2 << 20)
    /* Zeroed memory; from 2 MiB on in huge pages where there are some: a map that is read at
     * random misses the translation cache with every look. */
    static inline void *qv_table_alloc(size_t size) {
        void *memory;
        if (size < QV_HUGE) return calloc(1, size);
        memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED) return NULL;
        (void)madvise(memory, size, MADV_HUGEPAGE); /* A wish: without it the pages are small. */
        return memory;
    }
    static inline void qv_table_free(void *memory, size_t size) {
        if (memory && size >= QV_HUGE) (void)munmap(memory, size);
        else free(memory);
    }
    """
    void prefetch "__builtin_prefetch"(const void *memory) noexcept nogil
    void *table_alloc "qv_table_alloc"(size_t size) noexcept nogil
    void table_free "qv_table_free"(void *memory, size_t size) noexcept nogil

cdef enum:
    NO_MEMORY = -1
    FIRST_ROOM = 64
    # A map is at most five eighths full: neighbours that share lines make longer runs.
    FILL_FULL = 5
    FILL_PARTS = 8


cdef inline uint64_t spread(uint64_t key) noexcept nogil:
    """Where the search for a key begins, before it is cut to the room there is.

    Ids come in runs: four neighbours stand side by side, in one cache line, and the fours are
    spread by the finaliser of SplitMix64.
    """
    cdef uint64_t line = key >> 2
    line ^= line >> 30
    line *= <uint64_t>0xBF58476D1CE4E5B9
    line ^= line >> 27
    line *= <uint64_t>0x94D049BB133111EB
    line ^= line >> 31
    return (line << 2) | (key & 3)


cdef struct IdEntry:
    uint64_t key
    uint32_t value              # place + 1; 0 = empty

# Of a place_map.
cdef struct PlaceEntry:
    uint32_t key                # the lower half of the id
    uint32_t value              # place + 1; 0 = empty

ctypedef fused Entry:
    IdEntry
    PlaceEntry


cdef inline Entry *table_grown(Entry *entries, uint64_t room, uint64_t new_room) noexcept nogil:
    """The entries in a new table, the old one freed; NULL if it cannot be allocated."""
    cdef Entry *grown = <Entry *>table_alloc(new_room * sizeof(Entry))
    cdef uint64_t mask = new_room - 1, old, slot
    if grown == NULL:
        return NULL
    for old in range(room):
        if entries[old].value:
            slot = spread(entries[old].key) & mask
            while grown[slot].value:
                slot = (slot + 1) & mask
            grown[slot] = entries[old]
    table_free(entries, room * sizeof(Entry))
    return grown


cdef inline void table_remove(Entry *entries, uint64_t mask, uint64_t hole) noexcept nogil:
    """Empty a slot. The run behind it moves up, so no tombstone is left."""
    cdef uint64_t slot = hole
    while True:
        slot = (slot + 1) & mask
        if entries[slot].value == 0:
            break
        if ((slot - (spread(entries[slot].key) & mask)) & mask) >= ((slot - hole) & mask):
            entries[hole] = entries[slot]
            hole = slot
    entries[hole].value = 0


cdef struct IdMap:
    IdEntry *entries
    uint64_t mask
    uint64_t count

cdef int id_map_init(IdMap *map) noexcept nogil
cdef void id_map_free(IdMap *map) noexcept nogil
cdef int id_map_reserve(IdMap *map, uint64_t count) noexcept nogil
cdef void id_map_expect(const IdMap *map, int64_t key) noexcept nogil
cdef int64_t id_map_get(const IdMap *map, int64_t key) noexcept nogil          # value or -1
cdef int id_map_put(IdMap *map, int64_t key, uint32_t value) noexcept nogil    # 0 or NO_MEMORY
cdef int64_t id_map_pop(IdMap *map, int64_t key) noexcept nogil                # value or -1
