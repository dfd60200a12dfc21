"""Where the record of an id stands, found by half of it: the typed header of place_map.pyx."""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from journal.id_map cimport PlaceEntry

cdef struct PlaceMap:
    PlaceEntry *entries
    uint64_t mask
    uint64_t count

# A look-up under way: the places of all ids with one tag, one after the other.
cdef struct PlaceSearch:
    uint64_t slot
    uint32_t tag

cdef int place_map_init(PlaceMap *map) noexcept nogil                  # 0 or NO_MEMORY
cdef void place_map_free(PlaceMap *map) noexcept nogil
cdef void place_map_expect(const PlaceMap *map, int64_t key) noexcept nogil
cdef int64_t place_map_first(const PlaceMap *map, int64_t key,
                             PlaceSearch *search) noexcept nogil        # place or -1
cdef int64_t place_map_next(const PlaceMap *map, PlaceSearch *search) noexcept nogil
cdef int place_map_put(PlaceMap *map, int64_t key, uint32_t place) noexcept nogil
cdef void place_map_remove(PlaceMap *map, int64_t key, uint32_t place) noexcept nogil
