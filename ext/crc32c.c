/* The idea. The processor's CRC instruction takes 8 bytes a cycle but gives its result three cycles
 * later, so one stream runs at a third of that. The input is therefore cut into three streams of
 * equal length, computed side by side, and joined: with A, B, C the remainders of the three and n
 * words in each,
 *
 *     crc = A * x^(128 n)  +  B * x^(64 n)  +  C      (mod P, over GF(2))
 *
 * Carry-less multiplication gives such a product without its reduction, and the CRC instruction
 * reduces: crc32(0, v) = v * x^32 mod P. In the reflected bit order that CRC-32C uses, the product
 * of two 32-bit numbers in a 64-bit register stands one place too high, hence
 * shift_by[n] = x^(64 n - 33) mod P.
 *
 * On x86-64 a second unit would idle meanwhile, the multiplier: from MIXED_SIZE_MIN bytes on it
 * folds the front of the input, 64 bytes a step, while the three streams take the rest, 72 bytes a
 * step (join_mixed). The remainder V of the front is one more term, V * x^(192 n).
 *
 * Rejected: fixed stream lengths of, say, 8 KiB and 256 bytes, which leave most of a 1 KiB record
 * to the slow tail; here a stream is a share of the input, up to STREAM_WORDS_MAX. AVX encodings,
 * which gain nothing measurable, and 512-bit multiplication, which many machines lack. */
#include "crc32c.h"

#include <string.h>

#define POLYNOMIAL 0x82f63b78u /* reflected */
#define STREAM_WORDS_MAX 256u  /* 6 KiB in three streams; longer inputs go in rounds of this */
#define STREAM_WORDS_MIN 4u    /* below, joining costs more than it saves */
#define MIXED_SIZE_MIN 360u    /* below, three streams are as fast */
#define MIXED_STEPS_MAX 83u    /* a stream of 3 * 83 + 6 words at most */

#define SHIFT_MAX (3 * STREAM_WORDS_MAX)

typedef uint32_t (*update_function)(uint32_t state, const uint8_t *data, size_t size);

static uint32_t table[8][256];
static uint32_t shift_by[SHIFT_MAX + 1];

static inline uint64_t load64(const uint8_t *data) {
    uint64_t word;

    memcpy(&word, data, sizeof word);
    return word;
}

static inline uint32_t load32(const uint8_t *data) {
    uint32_t word;

    memcpy(&word, data, sizeof word);
    return word;
}

static inline uint16_t load16(const uint8_t *data) {
    uint16_t word;

    memcpy(&word, data, sizeof word);
    return word;
}

/* ---- table: eight bytes a step, any processor ---------------------------------------------- */

static uint32_t step_byte(uint32_t state, uint8_t byte) {
    return table[0][(uint8_t)state ^ byte] ^ state >> 8;
}

static uint32_t update_table(uint32_t state, const uint8_t *data, size_t size) {
    for (; size >= 8; size -= 8, data += 8) {
        uint32_t low = state ^ ((uint32_t)data[0] | (uint32_t)data[1] << 8 |
                                (uint32_t)data[2] << 16 | (uint32_t)data[3] << 24);
        state = table[7][low & 255] ^ table[6][low >> 8 & 255] ^ table[5][low >> 16 & 255] ^
                table[4][low >> 24] ^ table[3][data[4]] ^ table[2][data[5]] ^ table[1][data[6]] ^
                table[0][data[7]];
    }
    for (; size > 0; size--) state = step_byte(state, *data++);
    return state;
}

static void fill_tables(void) {
    static const uint8_t eight_zeros[8];

    for (uint32_t i = 0; i < 256; i++) {
        uint32_t state = i;
        for (int bit = 0; bit < 8; bit++) state = state >> 1 ^ (state & 1 ? POLYNOMIAL : 0);
        table[0][i] = state;
    }
    for (uint32_t i = 0; i < 256; i++)
        for (int slice = 1; slice < 8; slice++)
            table[slice][i] = table[slice - 1][i] >> 8 ^ table[0][table[slice - 1][i] & 255];
    shift_by[1] = 1; /* x^31, reflected */
    for (uint32_t n = 1; n < SHIFT_MAX; n++)
        shift_by[n + 1] = update_table(shift_by[n], eight_zeros, 8);
}

/* ---- the processor's instruction ----------------------------------------------------------- */

#if defined(__x86_64__)

#include <immintrin.h>

#define WAY_ONE "sse4.2"
#define WAY_THREE "sse4.2+pclmul"
#define TARGET_ONE __attribute__((target("sse4.2")))
#define TARGET_THREE __attribute__((target("sse4.2,pclmul")))
#define CRC64(state, word) ((uint32_t)_mm_crc32_u64(state, word))
#define CRC32(state, word) _mm_crc32_u32(state, word)
#define CRC16(state, word) _mm_crc32_u16(state, word)
#define CRC8(state, word) _mm_crc32_u8(state, word)
#define HAS_INSTRUCTION 1

TARGET_THREE static inline uint64_t multiply(uint32_t a, uint32_t b) {
    __m128i product = _mm_clmulepi64_si128(_mm_cvtsi32_si128((int)a), _mm_cvtsi32_si128((int)b), 0);

    return (uint64_t)_mm_cvtsi128_si64(product);
}

static int has_one(void) { return __builtin_cpu_supports("sse4.2"); }
static int has_three(void) {
    return __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul");
}

#elif defined(__aarch64__) && defined(__AARCH64EL__)

#include <sys/auxv.h>

#define WAY_ONE "armv8"
#define WAY_THREE "armv8+pmull"
#define TARGET_ONE
#define TARGET_THREE
#define CRC64(state, word) arm_crc64(state, word)
#define CRC32(state, word) arm_crc32(state, word)
#define CRC16(state, word) arm_crc16(state, word)
#define CRC8(state, word) arm_crc8(state, word)
#define HAS_INSTRUCTION 1

/* Instructions by name instead of <arm_acle.h>: compilers differ in what they demand of the build's
 * flags before they show the intrinsics, while the assembler only wants the extension named. */
static inline uint32_t arm_crc64(uint32_t state, uint64_t word) {
    __asm__(".arch_extension crc\n\tcrc32cx %w0, %w1, %x2" : "=r"(state) : "r"(state), "r"(word));
    return state;
}

static inline uint32_t arm_crc32(uint32_t state, uint32_t word) {
    __asm__(".arch_extension crc\n\tcrc32cw %w0, %w1, %w2" : "=r"(state) : "r"(state), "r"(word));
    return state;
}

static inline uint32_t arm_crc16(uint32_t state, uint16_t word) {
    __asm__(".arch_extension crc\n\tcrc32ch %w0, %w1, %w2"
            : "=r"(state)
            : "r"(state), "r"((uint32_t)word));
    return state;
}

static inline uint32_t arm_crc8(uint32_t state, uint8_t word) {
    __asm__(".arch_extension crc\n\tcrc32cb %w0, %w1, %w2"
            : "=r"(state)
            : "r"(state), "r"((uint32_t)word));
    return state;
}

static inline uint64_t multiply(uint32_t a, uint32_t b) {
    uint64_t product;

    __asm__(
        ".arch_extension crypto\n\t"
        "fmov d16, %x1\n\tfmov d17, %x2\n\tpmull v16.1q, v16.1d, v17.1d\n\tfmov %x0, d16"
        : "=r"(product)
        : "r"((uint64_t)a), "r"((uint64_t)b)
        : "v16", "v17");
    return product;
}

/* HWCAP_PMULL and HWCAP_CRC32 of asm/hwcap.h. */
static int has_one(void) { return (getauxval(AT_HWCAP) & 1UL << 7) != 0; }
static int has_three(void) { return has_one() && (getauxval(AT_HWCAP) & 1UL << 4) != 0; }

#endif

#ifdef HAS_INSTRUCTION

TARGET_ONE static inline uint32_t update_tail(uint32_t state, const uint8_t *data, size_t size) {
    if (size & 4) {
        state = CRC32(state, load32(data));
        data += 4;
    }
    if (size & 2) {
        state = CRC16(state, load16(data));
        data += 2;
    }
    if (size & 1) state = CRC8(state, *data);
    return state;
}

TARGET_ONE static uint32_t update_one(uint32_t state, const uint8_t *data, size_t size) {
    for (; size >= 8; size -= 8, data += 8) state = CRC64(state, load64(data));
    return update_tail(state, data, size);
}

/* Three streams of `words` words each, at data. */
TARGET_THREE static inline uint32_t join_streams(uint32_t state, const uint8_t *data,
                                                 size_t words) {
    const uint8_t *first = data, *second = data + 8 * words, *third = data + 16 * words;
    const uint8_t *last = second - 8;
    uint32_t a = state, b = 0, c = 0;

    for (; first < last; first += 8, second += 8, third += 8) {
        a = CRC64(a, load64(first));
        b = CRC64(b, load64(second));
        c = CRC64(c, load64(third));
    }
    a = CRC64(a, load64(first));
    b = CRC64(b, load64(second));
    /* The last word of the third stream takes both products along to be reduced. */
    return CRC64(c,
                 load64(third) ^ multiply(a, shift_by[2 * words]) ^ multiply(b, shift_by[words]));
}

#ifdef __x86_64__

/* acc * x^bits over GF(2), as 128 bits not yet reduced: half by half, each with its own power. */
TARGET_THREE static inline __m128i fold(__m128i acc, __m128i powers) {
    return _mm_xor_si128(_mm_clmulepi64_si128(acc, powers, 0x00),
                         _mm_clmulepi64_si128(acc, powers, 0x11));
}

/* The powers for fold by 64 * words bits. */
TARGET_THREE static inline __m128i powers_of(size_t words) {
    return _mm_set_epi64x(shift_by[words], shift_by[words + 1]);
}

TARGET_THREE static inline __m128i load128(const uint8_t *data) {
    return _mm_loadu_si128((const __m128i *)data);
}

/* Multiplier and CRC unit side by side: 64 * (steps + 1) bytes are folded in four accumulators,
 * while three streams of 3 * steps + extra words behind them go through the CRC instruction.
 * extra >= 1: the last word of the third stream takes the other terms along to be reduced. */
TARGET_THREE static inline uint32_t join_mixed(uint32_t state, const uint8_t *data, size_t steps,
                                               size_t extra) {
    size_t words = 3 * steps + extra;
    const uint8_t *first = data + 64 * (steps + 1);
    size_t stride = 8 * words;
    const __m128i by_512 = powers_of(8), by_256 = powers_of(4), by_128 = powers_of(2);
    __m128i x0 = _mm_xor_si128(load128(data), _mm_cvtsi32_si128((int)state));
    __m128i x1 = load128(data + 16), x2 = load128(data + 32), x3 = load128(data + 48);
    uint32_t v, a = 0, b = 0, c = 0;

    for (; steps > 0; steps--) {
        data += 64;
        x0 = fold(x0, by_512);
        a = CRC64(a, load64(first));
        b = CRC64(b, load64(first + stride));
        c = CRC64(c, load64(first + 2 * stride));
        x1 = fold(x1, by_512);
        x2 = fold(x2, by_512);
        a = CRC64(a, load64(first + 8));
        b = CRC64(b, load64(first + stride + 8));
        c = CRC64(c, load64(first + 2 * stride + 8));
        x3 = fold(x3, by_512);
        x0 = _mm_xor_si128(x0, load128(data));
        x1 = _mm_xor_si128(x1, load128(data + 16));
        a = CRC64(a, load64(first + 16));
        b = CRC64(b, load64(first + stride + 16));
        c = CRC64(c, load64(first + 2 * stride + 16));
        x2 = _mm_xor_si128(x2, load128(data + 32));
        x3 = _mm_xor_si128(x3, load128(data + 48));
        first += 24;
    }
    x1 = _mm_xor_si128(x1, fold(x0, by_128));
    x3 = _mm_xor_si128(x3, fold(x2, by_128));
    x3 = _mm_xor_si128(x3, fold(x1, by_256));
    for (; extra > 1; extra--, first += 8) {
        a = CRC64(a, load64(first));
        b = CRC64(b, load64(first + stride));
        c = CRC64(c, load64(first + 2 * stride));
    }
    v = CRC64(CRC64(0, (uint64_t)_mm_cvtsi128_si64(x3)), (uint64_t)_mm_extract_epi64(x3, 1));
    a = CRC64(a, load64(first));
    b = CRC64(b, load64(first + stride));
    return CRC64(c, load64(first + 2 * stride) ^ multiply(v, shift_by[3 * words]) ^
                        multiply(a, shift_by[2 * words]) ^ multiply(b, shift_by[words]));
}

/* One round of join_mixed over the front of at least MIXED_SIZE_MIN bytes; how many it took. */
TARGET_THREE static inline size_t update_mixed(uint32_t *state, const uint8_t *data, size_t size) {
    size_t steps = (size - 64 - 24) / 136, extra;

    if (steps > MIXED_STEPS_MAX) steps = MIXED_STEPS_MAX;
    extra = (size - 64 - 136 * steps) / 24;
    if (extra > 6) extra = 6;
    *state = join_mixed(*state, data, steps, extra);
    return 64 + 136 * steps + 24 * extra;
}

#endif

TARGET_THREE static uint32_t update_three(uint32_t state, const uint8_t *data, size_t size) {
#ifdef __x86_64__
    while (size >= MIXED_SIZE_MIN) {
        size_t done = update_mixed(&state, data, size);
        data += done;
        size -= done;
    }
#endif
    while (size >= 24 * STREAM_WORDS_MIN) {
        size_t words = size / 24;
        if (words > STREAM_WORDS_MAX) words = STREAM_WORDS_MAX;
        state = join_streams(state, data, words);
        data += 24 * words;
        size -= 24 * words;
    }
    for (; size >= 8; size -= 8, data += 8) state = CRC64(state, load64(data));
    return update_tail(state, data, size);
}

#endif

/* ---- choice -------------------------------------------------------------------------------- */

static update_function update = update_table;
static const char *way = "table";

/* Runs when the object is loaded, before any thread can call. */
__attribute__((constructor)) static void choose(void) {
    fill_tables();
#ifdef HAS_INSTRUCTION
    if (has_three()) {
        update = update_three;
        way = WAY_THREE;
    } else if (has_one()) {
        update = update_one;
        way = WAY_ONE;
    }
#endif
}

uint32_t qv_crc32c(uint32_t crc, const void *data, size_t size) {
    return ~update(~crc, data, size);
}

const char *qv_crc32c_way(void) { return way; }
