"""A map from a 64-bit id to a 32-bit number, with open addressing and linear probing.

Memory: 26 to 51 bytes an id. What knows the ids by itself takes journal/place_map.pyx, with half.
"""


cdef inline uint64_t id_home(const IdMap *map, uint64_t key) noexcept nogil:
    return spread(key) & map.mask


cdef int id_map_init(IdMap *map) noexcept nogil:
    map.count = 0
    map.mask = FIRST_ROOM - 1
    map.entries = <IdEntry *>table_alloc(FIRST_ROOM * sizeof(IdEntry))
    return NO_MEMORY if map.entries == NULL else 0


cdef void id_map_free(IdMap *map) noexcept nogil:
    table_free(map.entries, (map.mask + 1) * sizeof(IdEntry))
    map.entries = NULL
    map.count = 0


cdef int id_map_reserve(IdMap *map, uint64_t count) noexcept nogil:
    """Make room for `count` ids in all without another move; 0 or NO_MEMORY."""
    cdef uint64_t room = map.mask + 1
    cdef IdEntry *grown
    while count * FILL_PARTS > room * FILL_FULL:
        room *= 2
    if room == map.mask + 1:
        return 0
    grown = table_grown(map.entries, map.mask + 1, room)
    if grown == NULL:
        return NO_MEMORY
    map.entries = grown
    map.mask = room - 1
    return 0


cdef void id_map_expect(const IdMap *map, int64_t key) noexcept nogil:
    """Have the line for a key on its way; a use of it comes some keys later."""
    prefetch(&map.entries[id_home(map, <uint64_t>key)])


cdef int64_t id_map_get(const IdMap *map, int64_t key) noexcept nogil:
    cdef uint64_t place = id_home(map, <uint64_t>key)
    while map.entries[place].value:
        if map.entries[place].key == <uint64_t>key:
            return <int64_t>map.entries[place].value - 1
        place = (place + 1) & map.mask
    return -1


cdef int id_map_put(IdMap *map, int64_t key, uint32_t value) noexcept nogil:
    cdef uint64_t place
    if (map.count + 1) * FILL_PARTS > (map.mask + 1) * FILL_FULL \
            and id_map_reserve(map, map.count + 1) < 0:
        return NO_MEMORY
    place = id_home(map, <uint64_t>key)
    while map.entries[place].value:
        if map.entries[place].key == <uint64_t>key:
            map.entries[place].value = value + 1
            return 0
        place = (place + 1) & map.mask
    map.entries[place].key = <uint64_t>key
    map.entries[place].value = value + 1
    map.count += 1
    return 0


cdef int64_t id_map_pop(IdMap *map, int64_t key) noexcept nogil:
    """Remove `key`; its value or -1."""
    cdef uint64_t place = id_home(map, <uint64_t>key)
    cdef int64_t value
    while True:
        if map.entries[place].value == 0:
            return -1
        if map.entries[place].key == <uint64_t>key:
            break
        place = (place + 1) & map.mask
    value = <int64_t>map.entries[place].value - 1
    table_remove(map.entries, map.mask, place)
    map.count -= 1
    return value
