#include "uring_queue.h"

#include <assert.h>
#include <errno.h>
#include <linux/io_uring.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef RWF_DSYNC
#define RWF_DSYNC 0x00000002
#endif

#define DROP_A_CALL 64u

/* Rings are shared with the kernel: an index that the other side moves is loaded with acquire, ours
 * is stored with release. Entries of the submission ring stand in order, so its index array is
 * filled once. */
struct qv_uring_queue {
    int ring_fd;
    int event_fd;
    int registered; /* the kernel knows the event fd */
    unsigned in_flight;
    qv_slots slots;

    void *rings; /* both, in one map (IORING_FEAT_SINGLE_MMAP) */
    size_t rings_size;
    struct io_uring_sqe *entries;
    size_t entries_size;

    uint32_t *submit_head;
    uint32_t *submit_tail;
    uint32_t submit_mask;

    uint32_t *done_head;
    uint32_t *done_tail;
    uint32_t done_mask;
    struct io_uring_cqe *done;
};

static int enter(const qv_uring_queue *q, unsigned submit_count, unsigned wait_count) {
    unsigned flags = wait_count ? IORING_ENTER_GETEVENTS : 0;
    long result = syscall(SYS_io_uring_enter, q->ring_fd, submit_count, wait_count, flags, NULL, 0);

    return result < 0 ? -errno : (int)result;
}

/* FEAT_RW_CUR_POS came with 5.6, as did IORING_OP_WRITE, which has no feature bit of its own. */
static int map_rings(qv_uring_queue *q, const struct io_uring_params *params) {
    const unsigned needed = IORING_FEAT_SINGLE_MMAP | IORING_FEAT_NODROP | IORING_FEAT_RW_CUR_POS;
    size_t submit_size = params->sq_off.array + params->sq_entries * sizeof(uint32_t);
    size_t done_size = params->cq_off.cqes + params->cq_entries * sizeof(struct io_uring_cqe);
    uint32_t *array;
    char *base;

    if ((params->features & needed) != needed) return -EOPNOTSUPP;
    q->rings_size = submit_size > done_size ? submit_size : done_size;
    q->rings = mmap(NULL, q->rings_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
                    q->ring_fd, IORING_OFF_SQ_RING);
    if (q->rings == MAP_FAILED) return -errno;
    q->entries_size = params->sq_entries * sizeof(struct io_uring_sqe);
    q->entries = mmap(NULL, q->entries_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
                      q->ring_fd, IORING_OFF_SQES);
    if (q->entries == MAP_FAILED) return -errno;

    base = q->rings;
    q->submit_head = (uint32_t *)(base + params->sq_off.head);
    q->submit_tail = (uint32_t *)(base + params->sq_off.tail);
    q->submit_mask = *(uint32_t *)(base + params->sq_off.ring_mask);
    q->done_head = (uint32_t *)(base + params->cq_off.head);
    q->done_tail = (uint32_t *)(base + params->cq_off.tail);
    q->done_mask = *(uint32_t *)(base + params->cq_off.ring_mask);
    q->done = (struct io_uring_cqe *)(base + params->cq_off.cqes);
    array = (uint32_t *)(base + params->sq_off.array);
    for (uint32_t i = 0; i < params->sq_entries; i++) array[i] = i;
    return 0;
}

static void release(qv_uring_queue *q) {
    if (q->entries != MAP_FAILED) (void)munmap(q->entries, q->entries_size);
    if (q->rings != MAP_FAILED) (void)munmap(q->rings, q->rings_size);
    if (q->ring_fd >= 0) (void)close(q->ring_fd);
    if (q->event_fd >= 0) (void)close(q->event_fd);
    qv_slots_close(&q->slots);
    free(q);
}

int qv_uring_open(unsigned depth, qv_uring_queue **queue) {
    struct io_uring_params params = {0};
    qv_uring_queue *q;
    int error = 0;

    *queue = NULL;
    if (depth == 0 || depth > QV_DEPTH_MAX) return -EINVAL;
    q = calloc(1, sizeof *q);
    if (q == NULL) return -ENOMEM;
    q->ring_fd = q->event_fd = -1;
    q->rings = MAP_FAILED;
    q->entries = MAP_FAILED;
    if ((error = qv_slots_open(&q->slots, depth)) != 0) goto failed;
    q->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (q->event_fd < 0) {
        error = -errno;
        goto failed;
    }
    q->ring_fd = (int)syscall(SYS_io_uring_setup, depth, &params);
    if (q->ring_fd < 0) {
        error = -errno;
        goto failed;
    }
    if ((error = map_rings(q, &params)) != 0) goto failed;
    *queue = q;
    return 0;

failed:
    release(q);
    return error;
}

/* Hands the one entry at the tail to the kernel; 0 once it has taken it, even if it then answers by
 * a completion. Otherwise the entry is taken back, so that a later submit does not send it. */
static int submit_entry(qv_uring_queue *q, uint32_t tail) {
    int result;

    __atomic_store_n(q->submit_tail, tail + 1, __ATOMIC_RELEASE);
    do {
        result = enter(q, 1, 0);
        if (__atomic_load_n(q->submit_head, __ATOMIC_ACQUIRE) == tail + 1) return 0;
    } while (result == -EINTR);
    __atomic_store_n(q->submit_tail, tail, __ATOMIC_RELEASE);
    return result < 0 ? result : -EIO;
}

int qv_uring_submit(qv_uring_queue *q, int fd, const void *buffer, size_t size, uint64_t offset,
                    int dsync, uint64_t tag) {
    int64_t index = qv_slots_take(&q->slots, fd, buffer, size, offset, dsync, tag);
    uint32_t tail = *q->submit_tail; /* Only this thread moves it. */
    struct io_uring_sqe *entry = &q->entries[tail & q->submit_mask];
    int error;

    if (index < 0) return (int)index;
    memset(entry, 0, sizeof *entry);
    entry->opcode = IORING_OP_WRITE;
    entry->fd = fd;
    entry->off = offset;
    entry->addr = (uint64_t)(uintptr_t)buffer;
    entry->len = (uint32_t)q->slots.slot[index].size;
    entry->rw_flags = dsync ? RWF_DSYNC : 0;
    entry->user_data = (uint64_t)index;
    error = submit_entry(q, tail);
    if (error < 0) {
        qv_slots_put_back(&q->slots, (uint32_t)index);
        return error;
    }
    q->in_flight++;
    qv_slots_submitted(&q->slots, (uint32_t)index);
    return 0;
}

/* Takes what lies in the ring, up to max. */
static unsigned take(qv_uring_queue *q, qv_completion *out, unsigned max) {
    uint32_t head = *q->done_head; /* Only this thread moves it. */
    uint32_t ready = __atomic_load_n(q->done_tail, __ATOMIC_ACQUIRE) - head;
    unsigned count = ready < max ? ready : max;

    for (unsigned i = 0; i < count; i++) {
        const struct io_uring_cqe *cqe = &q->done[(head + i) & q->done_mask];
        assert(cqe->user_data < q->slots.depth);
        out[i] = qv_slots_complete(&q->slots, (uint32_t)cqe->user_data, cqe->res);
    }
    __atomic_store_n(q->done_head, head + count, __ATOMIC_RELEASE);
    q->in_flight -= count;
    return count;
}

int qv_uring_wait(qv_uring_queue *q, unsigned min, qv_completion *out, unsigned max) {
    unsigned total;

    if (max > q->in_flight) max = q->in_flight;
    if (min > max) min = max;
    total = take(q, out, max);
    while (total < min) {
        int result = enter(q, 0, min - total);
        if (result < 0 && result != -EINTR) return total > 0 ? (int)total : result;
        total += take(q, out + total, max - total);
    }
    return (int)total;
}

unsigned qv_uring_in_flight(const qv_uring_queue *q) { return q->in_flight; }

int qv_uring_event_fd(qv_uring_queue *q) {
    if (q->registered) return q->event_fd;
    if (syscall(SYS_io_uring_register, q->ring_fd, IORING_REGISTER_EVENTFD, &q->event_fd, 1) != 0)
        return -errno;
    q->registered = 1;
    return q->event_fd;
}

/* IORING_CQ_EVENTFD_DISABLED could silence the fd while disarmed. Not used: nothing promises that
 * the kernel orders its store of the tail and its look at that flag, so a wake-up might be lost, and
 * a bump without a listener costs next to nothing. */
int qv_uring_arm(qv_uring_queue *q, int on) {
    uint64_t counter = 0;
    int fd = qv_uring_event_fd(q);

    if (fd < 0) return fd;
    if (!on) return 0;
    if (read(fd, &counter, sizeof counter) < 0 && errno != EAGAIN) return -errno;
    /* A completion between the read and this look bumps twice; none is missed. */
    if (__atomic_load_n(q->done_tail, __ATOMIC_ACQUIRE) == *q->done_head) return 0;
    counter = 1;
    return write(fd, &counter, sizeof counter) < 0 && errno != EAGAIN ? -errno : 0;
}

void qv_uring_close(qv_uring_queue *q) {
    qv_completion dropped[DROP_A_CALL];

    if (q == NULL) return;
    while (q->in_flight > 0 && qv_uring_wait(q, 1, dropped, DROP_A_CALL) > 0) continue;
    release(q);
}
