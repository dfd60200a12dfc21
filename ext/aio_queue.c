#include "aio_queue.h"

#include <assert.h>
#include <errno.h>
#include <linux/aio_abi.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifndef RWF_DSYNC
#define RWF_DSYNC 0x00000002
#endif

#define EVENTS_A_CALL 64u

/* The head of the completion ring, which the kernel maps at the address that the context id is
 * (fs/aio.c, struct aio_ring). libaio and fio read it so; it spares the system call of an empty
 * poll. */
typedef struct aio_ring {
    uint32_t id;
    uint32_t nr;
    uint32_t head;
    uint32_t tail;
    uint32_t magic;
} aio_ring;

#define AIO_RING_MAGIC 0xa10a10a1u

struct qv_aio_queue {
    aio_context_t context;
    qv_slots slots;
    unsigned in_flight;
    int event_fd;
    int announces; /* every write names the event fd, from the first qv_aio_event_fd on */
};

int qv_aio_open(unsigned depth, qv_aio_queue **queue) {
    qv_aio_queue *q;
    int error = -ENOMEM;

    *queue = NULL;
    if (depth == 0 || depth > QV_DEPTH_MAX) return -EINVAL;
    q = calloc(1, sizeof *q);
    if (q == NULL) return -ENOMEM;
    if (qv_slots_open(&q->slots, depth) != 0) goto no_slots;
    q->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (q->event_fd < 0) {
        error = -errno;
        goto no_event_fd;
    }
    if (syscall(SYS_io_setup, depth, &q->context) != 0) {
        error = -errno;
        goto no_context;
    }
    *queue = q;
    return 0;

no_context:
    (void)close(q->event_fd);
no_event_fd:
    qv_slots_close(&q->slots);
no_slots:
    free(q);
    return error;
}

int qv_aio_submit(qv_aio_queue *q, int fd, const void *buffer, size_t size, uint64_t offset,
                  int dsync, uint64_t tag) {
    struct iocb control = {0};
    struct iocb *list[1] = {&control}; /* The kernel copies it before io_submit returns. */
    int64_t index = qv_slots_take(&q->slots, fd, buffer, size, offset, dsync, tag);
    long taken;

    if (index < 0) return (int)index;
    control.aio_data = (uint64_t)index;
    control.aio_lio_opcode = IOCB_CMD_PWRITE;
    control.aio_fildes = (uint32_t)fd;
    control.aio_buf = (uint64_t)(uintptr_t)buffer;
    control.aio_nbytes = q->slots.slot[index].size;
    control.aio_offset = (int64_t)offset;
    control.aio_rw_flags = dsync ? RWF_DSYNC : 0;
    if (q->announces) {
        control.aio_flags = IOCB_FLAG_RESFD;
        control.aio_resfd = (uint32_t)q->event_fd;
    }
    do {
        taken = syscall(SYS_io_submit, q->context, 1L, list);
    } while (taken < 0 && errno == EINTR);
    if (taken != 1) {
        int error = taken < 0 ? errno : EIO;
        qv_slots_put_back(&q->slots, (uint32_t)index);
        return -error;
    }
    q->in_flight++;
    qv_slots_submitted(&q->slots, (uint32_t)index);
    return 0;
}

static int is_ring_empty(const qv_aio_queue *q) {
    const aio_ring *ring = (const aio_ring *)q->context;

    return ring->magic == AIO_RING_MAGIC && __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE) ==
                                                __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE);
}

/* One io_getevents, retried only on EINTR, which it gives only when it took nothing. */
static long get_events(qv_aio_queue *q, unsigned min, unsigned max, struct io_event *events) {
    struct timespec now = {0, 0};
    long count;

    do {
        count =
            syscall(SYS_io_getevents, q->context, (long)min, (long)max, events, min ? NULL : &now);
    } while (count < 0 && errno == EINTR);
    return count < 0 ? -errno : count;
}

int qv_aio_wait(qv_aio_queue *q, unsigned min, qv_completion *out, unsigned max) {
    struct io_event events[EVENTS_A_CALL];
    unsigned total = 0;

    if (max > q->in_flight) max = q->in_flight;
    while (total < max) {
        unsigned room = max - total < EVENTS_A_CALL ? max - total : EVENTS_A_CALL;
        unsigned need = min > total ? min - total : 0;
        long count;

        if (need == 0 && is_ring_empty(q)) break;
        count = get_events(q, need < room ? need : room, room, events);
        if (count < 0) return total > 0 ? (int)total : (int)count;
        for (long i = 0; i < count; i++) {
            assert(events[i].data < q->slots.depth);
            out[total++] = qv_slots_complete(&q->slots, (uint32_t)events[i].data, events[i].res);
            q->in_flight--;
        }
        if (need == 0 && count < (long)room) break;
    }
    return (int)total;
}

unsigned qv_aio_in_flight(const qv_aio_queue *q) { return q->in_flight; }

int qv_aio_event_fd(qv_aio_queue *q) {
    q->announces = 1;
    return q->event_fd;
}

int qv_aio_arm(qv_aio_queue *q, int on) {
    uint64_t counter = 0;

    if (!on) return 0;
    q->announces = 1;
    if (read(q->event_fd, &counter, sizeof counter) < 0 && errno != EAGAIN) return -errno;
    /* A completion between the read and this look bumps twice; none is missed. */
    if (is_ring_empty(q)) return 0;
    counter = 1;
    return write(q->event_fd, &counter, sizeof counter) < 0 && errno != EAGAIN ? -errno : 0;
}

void qv_aio_close(qv_aio_queue *q) {
    qv_completion dropped[EVENTS_A_CALL];

    if (q == NULL) return;
    while (q->in_flight > 0 && qv_aio_wait(q, 1, dropped, EVENTS_A_CALL) > 0) continue;
    (void)syscall(SYS_io_destroy, q->context); /* Waits too, should a wait have failed. */
    (void)close(q->event_fd);
    qv_slots_close(&q->slots);
    free(q);
}
