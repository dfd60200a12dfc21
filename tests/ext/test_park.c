/* Parking: no wake-up is lost, deadlines hold, the event fd counts. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>

#include "check.h"
#include "clock.h"
#include "park.h"

#define ROUNDS 20000u
#define WAITERS 8

static _Atomic uint32_t ping, pong, gate;
static _Atomic int passed;

static uint32_t *word(_Atomic uint32_t *atomic) { return (uint32_t *)atomic; }

static void await_value(_Atomic uint32_t *atomic, uint32_t wanted) {
    uint32_t seen;

    while ((seen = atomic_load(atomic)) != wanted) qv_park(word(atomic), seen);
}

static void *answer_pings(void *unused) {
    for (uint32_t round = 1; round <= ROUNDS; round++) {
        await_value(&ping, round);
        atomic_store(&pong, round);
        qv_unpark(word(&pong), 0);
    }
    return unused;
}

/* A lost wake-up would hang here; the runner's time limit ends it. */
static void test_two_threads_hand_over_without_losing_a_wake_up(void) {
    pthread_t thread;

    pthread_create(&thread, NULL, answer_pings, NULL);
    for (uint32_t round = 1; round <= ROUNDS; round++) {
        atomic_store(&ping, round);
        qv_unpark(word(&ping), 0);
        await_value(&pong, round);
    }
    pthread_join(thread, NULL);
    CHECK_EQ(atomic_load(&pong), ROUNDS);
}

static void *pass_gate(void *unused) {
    await_value(&gate, 1);
    atomic_fetch_add(&passed, 1);
    return unused;
}

static void test_unpark_all_frees_every_waiter(void) {
    pthread_t threads[WAITERS];

    for (int i = 0; i < WAITERS; i++) pthread_create(&threads[i], NULL, pass_gate, NULL);
    qv_sleep_ns(5000000); /* So that some are parked; the outcome does not depend on it. */
    atomic_store(&gate, 1);
    qv_unpark(word(&gate), 1);
    for (int i = 0; i < WAITERS; i++) pthread_join(threads[i], NULL);
    CHECK_EQ(atomic_load(&passed), WAITERS);
}

static void test_a_word_that_changed_already_does_not_park(void) {
    uint32_t value = 5;

    qv_park(&value, 4);
    CHECK_EQ(qv_park_until(&value, 4, UINT64_MAX), 0);
}

static void test_a_deadline_ends_the_wait_and_not_before(void) {
    uint32_t value = 5;
    uint64_t deadline = qv_now_ns() + 3000000;
    int result;

    do {
        result = qv_park_until(&value, 5, deadline);
    } while (result == 0); /* A wake-up without cause. */

    CHECK_EQ(result, -ETIMEDOUT);
    CHECK(qv_now_ns() >= deadline);
    CHECK_EQ(qv_park_until(&value, 5, 0), -ETIMEDOUT);
    CHECK_EQ(qv_park_until(&value, 5, 1), -ETIMEDOUT);
}

static void *open_gate_late(void *unused) {
    qv_sleep_ns(2000000);
    atomic_store(&gate, 2);
    qv_unpark(word(&gate), 0);
    return unused;
}

static void test_an_unpark_ends_a_wait_with_deadline(void) {
    uint64_t deadline = qv_now_ns() + UINT64_C(60000000000);
    pthread_t thread;
    uint32_t seen;
    int result = 0;

    atomic_store(&gate, 0);
    pthread_create(&thread, NULL, open_gate_late, NULL);
    while ((seen = atomic_load(&gate)) != 2 && result == 0)
        result = qv_park_until(word(&gate), seen, deadline);
    pthread_join(thread, NULL);
    CHECK_EQ(result, 0);
}

static void test_unpark_without_a_waiter_is_harmless(void) {
    uint32_t value = 0;

    qv_unpark(&value, 0);
    qv_unpark(&value, 1);
}

static void test_the_event_fd_counts_and_is_emptied_by_take(void) {
    int fd = qv_event_fd();
    struct pollfd wanted = {.fd = fd, .events = POLLIN};

    CHECK(fd >= 0);
    CHECK(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    CHECK_EQ(qv_event_take(fd), 0); /* Does not block. */
    CHECK_EQ(poll(&wanted, 1, 0), 0);
    qv_event_bump(fd);
    qv_event_bump(fd);
    CHECK_EQ(poll(&wanted, 1, 0), 1);
    CHECK_EQ(qv_event_take(fd), 2);
    CHECK_EQ(qv_event_take(fd), 0);
    qv_event_close(fd);
    qv_event_close(-1);
    CHECK_EQ(fcntl(fd, F_GETFD), -1);
}

int main(void) {
    const check_entry cases[] = {
        CASE(test_two_threads_hand_over_without_losing_a_wake_up),
        CASE(test_unpark_all_frees_every_waiter),
        CASE(test_a_word_that_changed_already_does_not_park),
        CASE(test_a_deadline_ends_the_wait_and_not_before),
        CASE(test_an_unpark_ends_a_wait_with_deadline),
        CASE(test_unpark_without_a_waiter_is_harmless),
        CASE(test_the_event_fd_counts_and_is_emptied_by_take),
    };

    return RUN_CASES(cases);
}
