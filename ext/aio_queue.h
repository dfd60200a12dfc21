/* Writes in flight through the kernel's native AIO (io_setup, io_submit, io_getevents by system
 * call). uring_queue.h has the same functions with the same meaning.
 *
 * The kernel is asynchronous here only for O_DIRECT files; for others qv_aio_submit does the write
 * before it returns.
 *
 *   Threads    a queue is used by one thread at a time, but for its event fd, on which any thread
 *              may wait.
 *   Lifetimes  buffer and fd of a write belong to the queue from submit until its completion is
 *              returned by qv_aio_wait, or qv_aio_close has returned: do not change, free or close
 *              them before. All memory is allocated in qv_aio_open.
 *   Order      completions come in the order in which the device ends the writes; writes in flight
 *              are not ordered among each other, and may not overlap.
 *   Tap        submit asks it as QV_CALL_SUBMIT, each completion as QV_CALL_COMPLETE (file_ops.h).
 */
#ifndef QV_AIO_QUEUE_H
#define QV_AIO_QUEUE_H

#include <stddef.h>
#include <stdint.h>

#include "completion.h"

typedef struct qv_aio_queue qv_aio_queue;

/* A queue for up to depth writes in flight, 1 ... QV_DEPTH_MAX (else -EINVAL). -EAGAIN: the
 * system's limit fs.aio-max-nr is reached; -ENOSYS, -EPERM: not offered here; -ENOMEM, -EMFILE.
 * *queue is NULL on error. */
int qv_aio_open(unsigned depth, qv_aio_queue **queue);

/* Starts one write. dsync != 0: its completion means that it is on stable storage (RWF_DSYNC). tag
 * comes back with the completion. -EAGAIN: depth writes are in flight, wait for one; otherwise
 * -errno and nothing was started. Size and offset as for qv_write. */
int qv_aio_submit(qv_aio_queue *q, int fd, const void *buffer, size_t size, uint64_t offset,
                  int dsync, uint64_t tag);

/* Takes completions into out: at least min, waiting for them, at most max; 0 polls. min is cut to
 * max and to what is in flight, so that it cannot wait for ever. The count, or -errno; signals do
 * not end it. */
int qv_aio_wait(qv_aio_queue *q, unsigned min, qv_completion *out, unsigned max);

/* Writes submitted and not yet returned by wait. */
unsigned qv_aio_in_flight(const qv_aio_queue *q);

/* An eventfd (non-blocking, owned by the queue) whose counter grows with completions while armed.
 * Call it once, before the first submit: writes already in flight are not announced. */
int qv_aio_event_fd(qv_aio_queue *q);

/* on != 0: the caller listens. The counter is emptied, and bumped if completions lie waiting; each
 * one from here on bumps it, so that no wake-up is lost. One may come late, for a completion that
 * was taken already: expect wake-ups with nothing to take. on = 0: no listener; the counter
 * means nothing until armed again. 0 or -errno. */
int qv_aio_arm(qv_aio_queue *q, int on);

/* Waits for what is in flight, drops its completions, frees everything. NULL is allowed. */
void qv_aio_close(qv_aio_queue *q);

#endif
