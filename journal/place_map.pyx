"""A map from the ids of records to their places, in eight bytes an entry.

The record at a place has its id, so the map keeps the lower half of it alone and gives candidates:
callers compare the whole id. Two ids with one lower half are four thousand million apart;
they are found one behind the other.

Open addressing with linear probing. Nothing here raises or locks; -1 is "out of memory".

Memory: 13 to 26 bytes an id.
"""

from journal.id_map cimport (
    FILL_FULL, FILL_PARTS, FIRST_ROOM, NO_MEMORY, prefetch, spread, table_alloc, table_free,
    table_grown, table_remove)


cdef inline uint64_t home(const PlaceMap *map, uint32_t tag) noexcept nogil:
    """Where the search for a tag begins; four neighbours stand side by side."""
    return spread(tag) & map.mask


cdef int place_map_init(PlaceMap *map) noexcept nogil:
    map.count = 0
    map.mask = FIRST_ROOM - 1
    map.entries = <PlaceEntry *>table_alloc(FIRST_ROOM * sizeof(PlaceEntry))
    return NO_MEMORY if map.entries == NULL else 0


cdef void place_map_free(PlaceMap *map) noexcept nogil:
    table_free(map.entries, (map.mask + 1) * sizeof(PlaceEntry))
    map.entries = NULL
    map.count = 0


cdef int grow(PlaceMap *map) noexcept nogil:
    """Twice the room; 0 or NO_MEMORY."""
    cdef uint64_t room = map.mask + 1
    cdef PlaceEntry *grown = table_grown(map.entries, room, 2 * room)
    if grown == NULL:
        return NO_MEMORY
    map.entries = grown
    map.mask = 2 * room - 1
    return 0


cdef void place_map_expect(const PlaceMap *map, int64_t key) noexcept nogil:
    """Have the line for a key on its way; a use of it comes some keys later."""
    prefetch(&map.entries[home(map, <uint32_t>key)])


cdef int64_t place_map_first(const PlaceMap *map, int64_t key,
                             PlaceSearch *search) noexcept nogil:
    """A place that may be the key's, which is the case nearly always; -1 for none."""
    search.tag = <uint32_t>key
    search.slot = home(map, search.tag)
    return candidate(map, search)


cdef int64_t place_map_next(const PlaceMap *map, PlaceSearch *search) noexcept nogil:
    """The next one; -1 for none. The map was not changed since place_map_first()."""
    search.slot = (search.slot + 1) & map.mask
    return candidate(map, search)


cdef inline int64_t candidate(const PlaceMap *map, PlaceSearch *search) noexcept nogil:
    cdef const PlaceEntry *entry = &map.entries[search.slot]
    while entry.value:
        if entry.key == search.tag:
            return <int64_t>entry.value - 1
        search.slot = (search.slot + 1) & map.mask
        entry = &map.entries[search.slot]
    return -1


cdef int place_map_put(PlaceMap *map, int64_t key, uint32_t place) noexcept nogil:
    """Add a key that is not there; 0 or NO_MEMORY."""
    cdef uint64_t slot
    if (map.count + 1) * FILL_PARTS > (map.mask + 1) * FILL_FULL and grow(map) < 0:
        return NO_MEMORY
    slot = home(map, <uint32_t>key)
    while map.entries[slot].value:
        slot = (slot + 1) & map.mask
    map.entries[slot].key = <uint32_t>key
    map.entries[slot].value = place + 1
    map.count += 1
    return 0


cdef void place_map_remove(PlaceMap *map, int64_t key, uint32_t place) noexcept nogil:
    """Remove a key that is there."""
    cdef uint64_t slot = home(map, <uint32_t>key)
    while map.entries[slot].value != place + 1:
        slot = (slot + 1) & map.mask
    table_remove(map.entries, map.mask, slot)
    map.count -= 1
