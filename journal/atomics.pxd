"""Words that threads change without a lock: loads, stores and changes in one order for all.

And what a thread does between two looks at one.
"""

from libc.stdint cimport uint32_t, uint64_t

cdef extern from *:
    """
    #include <stdint.h>
    #define qv_load32(p) __atomic_load_n((p), __ATOMIC_SEQ_CST)
    #define qv_load64(p) __atomic_load_n((p), __ATOMIC_SEQ_CST)
    #define qv_store32(p, v) __atomic_store_n((p), (v), __ATOMIC_SEQ_CST)
    #define qv_store64(p, v) __atomic_store_n((p), (v), __ATOMIC_SEQ_CST)
    #define qv_swap_if(p, e, v) __atomic_compare_exchange_n((p), (e), (v), 0, __ATOMIC_SEQ_CST, \
                                                            __ATOMIC_SEQ_CST)
    #if defined(__x86_64__) || defined(__i386__)
    #define qv_pause() __builtin_ia32_pause()
    #elif defined(__aarch64__)
    #define qv_pause() __asm__ volatile("yield")
    #else
    #define qv_pause() ((void)0)
    #endif
    #define qv_add32(p, v) __atomic_add_fetch((p), (v), __ATOMIC_SEQ_CST)
    """
    uint32_t load32 "qv_load32"(uint32_t *p) noexcept nogil
    uint64_t load64 "qv_load64"(uint64_t *p) noexcept nogil
    void store32 "qv_store32"(uint32_t *p, uint32_t value) noexcept nogil
    void store64 "qv_store64"(uint64_t *p, uint64_t value) noexcept nogil
    bint swap64_if "qv_swap_if"(uint64_t *p, uint64_t *seen, uint64_t value) noexcept nogil
    void pause_spin "qv_pause"() noexcept nogil
    uint32_t add32 "qv_add32"(uint32_t *p, uint32_t value) noexcept nogil
