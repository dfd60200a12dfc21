/* Writes in flight through io_uring, by system call. Needs Linux 5.6.
 *
 * Same functions, threads, lifetimes, order and tap as aio_queue.h, which explains them; below only
 * what differs. Any kind of file is asynchronous here. */
#ifndef QV_URING_QUEUE_H
#define QV_URING_QUEUE_H

#include <stddef.h>
#include <stdint.h>

#include "completion.h"

typedef struct qv_uring_queue qv_uring_queue;

/* -ENOSYS, -EPERM: the kernel has none, or forbids it (seccomp, kernel.io_uring_disabled);
 * -EOPNOTSUPP: older than 5.6; -ENOMEM: also the locked-memory limit, before 5.12; -EINVAL: depth
 * not 1 ... QV_DEPTH_MAX. */
int qv_uring_open(unsigned depth, qv_uring_queue **queue);
int qv_uring_submit(qv_uring_queue *q, int fd, const void *buffer, size_t size, uint64_t offset,
                    int dsync, uint64_t tag);
int qv_uring_wait(qv_uring_queue *q, unsigned min, qv_completion *out, unsigned max);
unsigned qv_uring_in_flight(const qv_uring_queue *q);
/* fd, or -errno where the kernel does not let it be registered. */
int qv_uring_event_fd(qv_uring_queue *q);
int qv_uring_arm(qv_uring_queue *q, int on);
void qv_uring_close(qv_uring_queue *q);

#endif
