/* Waiting and waking: a 32-bit word to park a thread on (futex), and an eventfd for event loops.
 *
 * How to use a word: the waiter reads it, finds that it must wait, and parks with the value read;
 * the waker changes the word (an atomic store, release) and then unparks. If the change came first,
 * parking returns at once, so no wake-up is lost. Waits may end without cause: look again, in a
 * loop.
 *
 * The word: 4-byte aligned, read and written atomically, within this process (futexes are private).
 * It must stay mapped while anyone waits on it; unparking a word without waiters is harmless.
 * No allocation; no state. */
#ifndef QV_PARK_H
#define QV_PARK_H

#include <stdint.h>

/* Sleeps while *word == seen: 0 when an unpark ended it, -EAGAIN when the word differed at once,
 * -EINTR on a signal. */
int qv_park(uint32_t *word, uint32_t seen);

/* As qv_park, until qv_now_ns() reaches deadline_ns: then -ETIMEDOUT, else 0. A deadline in the
 * past gives -ETIMEDOUT if *word == seen. */
int qv_park_until(uint32_t *word, uint32_t seen, uint64_t deadline_ns);

/* Wakes one thread parked on word, or all of them; how many. */
int qv_unpark(uint32_t *word, int all);

/* A new eventfd, counter 0, non-blocking, close-on-exec; fd or -errno. Readable while the counter
 * is not 0. Closed with qv_event_close. */
int qv_event_fd(void);
void qv_event_bump(int fd);     /* adds 1; never blocks: a full counter stays as it is, readable */
uint64_t qv_event_take(int fd); /* the counter, and sets it to 0; 0 if nothing happened since */
void qv_event_close(int fd);    /* -1 is allowed */

#endif
