/* What a queue gives back for a write, and the table in which both queues keep writes in flight.
 *
 * The table: `depth` slots, a stack of free ones. A slot holds what the tap is told at completion.
 * Same threads and lifetimes as the queue that owns it. */
#ifndef QV_COMPLETION_H
#define QV_COMPLETION_H

#include <stdint.h>

#define QV_DEPTH_MAX 32768u

/* result: bytes written, as the kernel said it (callers check for a short count), or -errno. */
typedef struct qv_completion {
    uint64_t tag;
    int64_t result;
} qv_completion;

typedef struct qv_slot {
    uint64_t tag;
    const void *data;
    uint64_t size; /* as submitted: less than asked for if the tap cut it */
    uint64_t offset;
    int32_t fd;
    int32_t dsync;
} qv_slot;

typedef struct qv_slots {
    qv_slot *slot;
    uint32_t *free;
    uint32_t free_count;
    uint32_t depth;
} qv_slots;

/* 0 or -ENOMEM. */
int qv_slots_open(qv_slots *slots, unsigned depth);
void qv_slots_close(qv_slots *slots);

/* Asks the tap about a write and takes a slot for it: its index, -EAGAIN when none is free, -EINVAL
 * for a range that qv_write would refuse, or the tap's error. */
int64_t qv_slots_take(qv_slots *slots, int fd, const void *data, uint64_t size, uint64_t offset,
                      int dsync, uint64_t tag);
/* The kernel has taken it. */
void qv_slots_submitted(const qv_slots *slots, uint32_t index);
/* The kernel has refused it. */
void qv_slots_put_back(qv_slots *slots, uint32_t index);
/* It came back: what to report, after the tap had its say; frees the slot. */
qv_completion qv_slots_complete(qv_slots *slots, uint32_t index, int64_t result);

#endif
