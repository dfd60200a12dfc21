/* CRC-32C: known values, and every way of this processor against a bit-by-bit one. The source
 * itself is included, so that the ways not chosen here are tested too. */
#include "../../ext/crc32c.c"
#include "check.h"

static uint32_t crc_bit_by_bit(uint32_t crc, const uint8_t *data, size_t size) {
    crc = ~crc;
    for (size_t i = 0; i < size; i++) {
        crc ^= data[i];
        for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
    }
    return ~crc;
}

/* xorshift: the same bytes on every machine. */
static uint64_t random_state = 0x9e3779b97f4a7c15u;

static uint64_t next_random(void) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

static uint8_t bytes[65536 + 64];

static void fill_random(void) {
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (uint8_t)(next_random() >> 32);
}

typedef struct named_way {
    const char *name;
    update_function run;
} named_way;

static size_t all_ways(named_way *ways) {
    size_t count = 0;

    ways[count++] = (named_way){"table", update_table};
#ifdef HAS_INSTRUCTION
    if (has_one()) ways[count++] = (named_way){WAY_ONE, update_one};
    if (has_three()) ways[count++] = (named_way){WAY_THREE, update_three};
#endif
    return count;
}

static void check_all_ways(uint32_t crc, const uint8_t *data, size_t size) {
    uint32_t expected = crc_bit_by_bit(crc, data, size);
    named_way ways[4];
    size_t count = all_ways(ways);

    CHECK_EQ(qv_crc32c(crc, data, size), expected);
    for (size_t i = 0; i < count; i++) {
        uint32_t actual = ~ways[i].run(~crc, data, size);
        if (actual != expected) printf("%s, %zu bytes\n", ways[i].name, size);
        CHECK_EQ(actual, expected);
    }
}

/* The check value of the CRC catalogue, and the examples of RFC 3720, B.4. */
static void test_known_values(void) {
    uint8_t block[32];

    CHECK_EQ(qv_crc32c(0, "123456789", 9), 0xe3069283);
    CHECK_EQ(qv_crc32c(0, "", 0), 0);
    memset(block, 0, sizeof block);
    CHECK_EQ(qv_crc32c(0, block, 32), 0x8a9136aa);
    memset(block, 0xff, sizeof block);
    CHECK_EQ(qv_crc32c(0, block, 32), 0x62a8ab43);
    for (int i = 0; i < 32; i++) block[i] = (uint8_t)i;
    CHECK_EQ(qv_crc32c(0, block, 32), 0x46dd794e);
    for (int i = 0; i < 32; i++) block[i] = (uint8_t)(31 - i);
    CHECK_EQ(qv_crc32c(0, block, 32), 0x113fdb5c);
}

static void test_every_length_at_some_alignment_equals_bit_by_bit(void) {
    fill_random();
    for (size_t size = 0; size <= 4096; size++)
        check_all_ways((uint32_t)next_random(), bytes + next_random() % 64, size);
}

static void test_every_alignment_of_some_lengths_equals_bit_by_bit(void) {
    for (size_t offset = 0; offset < 64; offset++)
        for (int round = 0; round < 8; round++)
            check_all_ways(0, bytes + offset, next_random() % 2048);
}

/* Around the lengths where the number of streams' words, or of rounds, changes. */
static void test_lengths_beside_each_boundary_equal_bit_by_bit(void) {
    const size_t boundaries[] = {96, 360, 6144, 11496, 12288, 18432, 22992, 65536};

    for (size_t i = 0; i < sizeof boundaries / sizeof boundaries[0]; i++)
        for (size_t size = boundaries[i] - 25; size <= boundaries[i] + 25; size++)
            check_all_ways(0, bytes, size);
}

static void test_pieces_chained_equal_the_whole(void) {
    for (int round = 0; round < 500; round++) {
        size_t size = next_random() % 8192, cut = size ? next_random() % size : 0;
        uint32_t whole = qv_crc32c(0, bytes, size);
        CHECK_EQ(qv_crc32c(qv_crc32c(0, bytes, cut), bytes + cut, size - cut), whole);
    }
}

static void test_no_byte_beyond_the_end_is_read(void) {
    for (size_t size = 0; size <= 800; size++) {
        uint8_t *exact = malloc(size + (size == 0)); /* The address sanitizer guards both ends. */
        memcpy(exact, bytes, size);
        CHECK_EQ(qv_crc32c(0, exact, size), crc_bit_by_bit(0, bytes, size));
        free(exact);
    }
}

static void test_the_best_way_is_chosen(void) {
    named_way ways[4];
    size_t count = all_ways(ways);

    CHECK(strcmp(qv_crc32c_way(), ways[count - 1].name) == 0);
}

int main(void) {
    const check_entry cases[] = {
        CASE(test_known_values),
        CASE(test_every_length_at_some_alignment_equals_bit_by_bit),
        CASE(test_every_alignment_of_some_lengths_equals_bit_by_bit),
        CASE(test_lengths_beside_each_boundary_equal_bit_by_bit),
        CASE(test_pieces_chained_equal_the_whole),
        CASE(test_no_byte_beyond_the_end_is_read),
        CASE(test_the_best_way_is_chosen),
    };

    printf("way: %s\n", qv_crc32c_way());
    return RUN_CASES(cases);
}
