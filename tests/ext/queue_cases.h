/* The cases that both queues pass. The including file defines QUEUE(name), the function of that
 * name, and `queue`, the type. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include "check.h"
#include "tap.h"

#define BLOCK 4096u
#define WRITES 64u

static int can_direct;
static uint8_t *blocks; /* WRITES blocks, block i filled with i + 1 */

/* A file of WRITES zero blocks, O_DIRECT where that works, so that kernel AIO is asynchronous. */
static int open_file(int dir) {
    int fd =
        qv_open(dir, "data", QV_RDWR | QV_CREATE | QV_EXCLUSIVE | (can_direct ? QV_DIRECT : 0));

    CHECK(fd >= 0);
    CHECK_EQ(qv_fill(fd, 0, WRITES * BLOCK, can_direct), 0);
    return fd;
}

static queue *open_queue(unsigned depth) {
    queue *q = NULL;

    CHECK_EQ(QUEUE(open)(depth, &q), 0);
    return q;
}

static int submit_block(queue *q, int fd, unsigned i, int dsync) {
    return QUEUE(submit)(q, fd, blocks + i * BLOCK, BLOCK, (uint64_t)i * BLOCK, dsync, 1000 + i);
}

static int count_written(int dir) {
    static uint8_t got[BLOCK];
    int fd = qv_open(dir, "data", QV_RDONLY), count = 0;

    for (unsigned i = 0; i < WRITES; i++) {
        CHECK_EQ(qv_read(fd, got, BLOCK, (uint64_t)i * BLOCK), BLOCK);
        count += memcmp(got, blocks + i * BLOCK, BLOCK) == 0;
    }
    qv_close(fd);
    return count;
}

static int is_readable(int fd, int timeout_ms) {
    struct pollfd wanted = {.fd = fd, .events = POLLIN};

    return poll(&wanted, 1, timeout_ms) == 1;
}

static uint64_t take_count(int fd) {
    uint64_t count = 0;

    return read(fd, &count, sizeof count) == sizeof count ? count : 0;
}

/* Whether arming leaves an empty counter, nothing being in flight. The kernel bumps it after it has
 * shown the completion, so the last bump may follow the first arming. */
static int becomes_quiet(queue *q, int event_fd) {
    for (int tries = 0; tries < 1000; tries++) {
        CHECK_EQ(QUEUE(arm)(q, 1), 0);
        if (!is_readable(event_fd, 1)) return 1;
    }
    return 0;
}

static void check_many_in_flight(int dsync) {
    int dir = fresh_dir(), fd = open_file(dir);
    queue *q = open_queue(WRITES);
    int seen[WRITES] = {0};
    unsigned total = 0;
    qv_completion out[WRITES];

    for (unsigned i = 0; i < WRITES; i++) CHECK_EQ(submit_block(q, fd, i, dsync), 0);
    CHECK_EQ(QUEUE(in_flight)(q), WRITES);
    while (total < WRITES) {
        int count = QUEUE(wait)(q, 1, out, 7);
        CHECK(count >= 1 && count <= 7);
        if (count < 1) break;
        for (int i = 0; i < count; i++) {
            CHECK_EQ(out[i].result, BLOCK);
            CHECK(out[i].tag >= 1000 && out[i].tag < 1000 + WRITES);
            seen[(out[i].tag - 1000) % WRITES]++;
        }
        total += (unsigned)count;
    }

    for (unsigned i = 0; i < WRITES; i++) CHECK_EQ(seen[i], 1);
    CHECK_EQ(QUEUE(in_flight)(q), 0);
    CHECK_EQ(count_written(dir), WRITES);
    QUEUE(close)(q);
    qv_close(fd);
    qv_close(dir);
}

static void test_many_writes_come_back_once_each_by_tag(void) { check_many_in_flight(0); }

static void test_durable_writes_come_back_once_each_by_tag(void) { check_many_in_flight(1); }

static void test_wait_for_all_fills_the_whole_array(void) {
    int dir = fresh_dir(), fd = open_file(dir);
    queue *q = open_queue(WRITES);
    static qv_completion out[2 * WRITES];

    for (unsigned i = 0; i < WRITES; i++) CHECK_EQ(submit_block(q, fd, i, 0), 0);

    /* More than are in flight: must not wait for ever. */
    CHECK_EQ(QUEUE(wait)(q, 2 * WRITES, out, 2 * WRITES), WRITES);

    CHECK_EQ(QUEUE(wait)(q, 1, out, 1), 0);
    CHECK_EQ(QUEUE(wait)(q, 0, out, 1), 0);
    QUEUE(close)(q);
    qv_close(fd);
    qv_close(dir);
}

static void test_one_more_than_depth_is_refused_until_one_is_taken(void) {
    int dir = fresh_dir(), fd = open_file(dir);
    queue *q = open_queue(3);
    qv_completion out[3];

    for (unsigned i = 0; i < 3; i++) CHECK_EQ(submit_block(q, fd, i, 0), 0);

    CHECK_EQ(submit_block(q, fd, 3, 0), -EAGAIN);
    CHECK_EQ(QUEUE(wait)(q, 1, out, 1), 1);
    CHECK_EQ(submit_block(q, fd, 3, 0), 0);
    CHECK_EQ(QUEUE(wait)(q, 3, out, 3), 3);
    QUEUE(close)(q);
    qv_close(fd);
    qv_close(dir);
}

/* Many times round both rings, so that their indexes wrap. */
static void test_slots_are_reused(void) {
    int dir = fresh_dir(), fd = open_file(dir);
    queue *q = open_queue(2);
    qv_completion out[2];

    for (unsigned round = 0; round < 300; round++) {
        CHECK_EQ(submit_block(q, fd, round % WRITES, 0), 0);
        CHECK_EQ(submit_block(q, fd, (round + 1) % WRITES, 0), 0);
        CHECK_EQ(QUEUE(wait)(q, 2, out, 2), 2);
        CHECK_EQ(out[0].tag + out[1].tag, 2000 + round % WRITES + (round + 1) % WRITES);
    }
    QUEUE(close)(q);
    qv_close(fd);
    qv_close(dir);
}

static void test_wrong_depths_are_refused(void) {
    queue *q = (queue *)&q;

    CHECK_EQ(QUEUE(open)(0, &q), -EINVAL);
    CHECK(q == NULL);
    CHECK_EQ(QUEUE(open)(QV_DEPTH_MAX + 1, &q), -EINVAL);
    QUEUE(close)(NULL);
}

static void test_ranges_beyond_a_file_are_refused(void) {
    int dir = fresh_dir(), fd = open_file(dir);
    queue *q = open_queue(1);

    CHECK_EQ(QUEUE(submit)(q, fd, blocks, BLOCK, UINT64_C(1) << 63, 0, 1), -EINVAL);
    CHECK_EQ(QUEUE(submit)(q, fd, blocks, (size_t)QV_IO_SIZE_MAX + 1, 0, 0, 1), -EINVAL);
    CHECK_EQ(QUEUE(in_flight)(q), 0);
    QUEUE(close)(q);
    qv_close(fd);
    qv_close(dir);
}

/* The error of one write, whichever way it is told. */
static int64_t error_of_write(queue *q, int fd, uint64_t offset) {
    qv_completion out = {0};
    int error = QUEUE(submit)(q, fd, blocks, BLOCK, offset, 0, 5);

    if (error < 0) return error;
    CHECK_EQ(QUEUE(wait)(q, 1, &out, 1), 1);
    CHECK_EQ(out.tag, 5);
    return out.result;
}

static void test_a_write_to_a_closed_or_read_only_file_gives_its_error(void) {
    int dir = fresh_dir(), fd = open_file(dir), reader = qv_open(dir, "data", QV_RDONLY);
    queue *q = open_queue(4);

    CHECK_EQ(error_of_write(q, reader, 0), -EBADF);
    CHECK_EQ(error_of_write(q, 9999, 0), -EBADF);
    CHECK_EQ(error_of_write(q, fd, 0), BLOCK); /* The queue works on. */
    QUEUE(close)(q);
    qv_close(reader);
    qv_close(fd);
    qv_close(dir);
}

static void test_a_write_beyond_the_file_size_limit_gives_its_error(void) {
    int dir = fresh_dir(), fd = open_file(dir);
    queue *q = open_queue(4);
    struct rlimit before, limit;

    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before);
    limit = before;
    limit.rlim_cur = WRITES * BLOCK;
    setrlimit(RLIMIT_FSIZE, &limit);
    CHECK_EQ(error_of_write(q, fd, WRITES * BLOCK), -EFBIG);
    setrlimit(RLIMIT_FSIZE, &before);
    QUEUE(close)(q);
    qv_close(fd);
    qv_close(dir);
}

/* -EINVAL on a disk; tmpfs takes O_DIRECT and does not mind. */
static void test_a_misaligned_direct_write_is_answered_as_qv_write_answers(void) {
    int dir = fresh_dir(), fd = open_file(dir);
    queue *q = open_queue(4);
    int answer = qv_write(fd, blocks, BLOCK, 1, 0);

    CHECK_EQ(error_of_write(q, fd, 1), answer < 0 ? answer : (int)BLOCK);
    QUEUE(close)(q);
    qv_close(fd);
    qv_close(dir);
}

static void test_the_tap_sees_submit_and_completion(void) {
    int dir = fresh_dir(), fd = open_file(dir);
    queue *q = open_queue(4);
    qv_completion out;
    tap t;

    tap_on(&t, 0, 0, 0);
    CHECK_EQ(submit_block(q, fd, 3, 1), 0);
    CHECK_EQ(QUEUE(wait)(q, 1, &out, 1), 1);
    tap_off();

    CHECK_EQ(t.count, 4);
    for (int i = 0; i < 4; i++) {
        CHECK_EQ(t.events[i].call, i < 2 ? QV_CALL_SUBMIT : QV_CALL_COMPLETE);
        CHECK_EQ(t.events[i].done, i % 2);
        CHECK_EQ(t.events[i].fd, fd);
        CHECK_EQ(t.events[i].dirfd, -1);
        CHECK(t.events[i].data == blocks + 3 * BLOCK);
        CHECK_EQ(t.events[i].size, BLOCK);
        CHECK_EQ(t.events[i].offset, 3 * BLOCK);
        CHECK_EQ(t.events[i].dsync, 1);
    }
    QUEUE(close)(q);
    qv_close(fd);
    qv_close(dir);
}

static void test_the_tap_can_fail_a_submit(void) {
    int dir = fresh_dir(), fd = open_file(dir);
    queue *q = open_queue(1);
    tap t;

    tap_on(&t, QV_CALL_SUBMIT, 0, -ENOSPC);
    CHECK_EQ(submit_block(q, fd, 0, 0), -ENOSPC);
    CHECK_EQ(t.count, 1);
    tap_off();

    CHECK_EQ(QUEUE(in_flight)(q), 0);
    CHECK_EQ(count_written(dir), 0);
    CHECK_EQ(submit_block(q, fd, 0, 0), 0); /* No slot was lost. */
    QUEUE(close)(q);
    qv_close(fd);
    qv_close(dir);
}

static void test_the_tap_can_shorten_a_submit(void) {
    int dir = fresh_dir(), fd = open_file(dir);
    queue *q = open_queue(1);
    static uint8_t got[BLOCK];
    qv_completion out;
    tap t;

    tap_on(&t, QV_CALL_SUBMIT, 0, 512);
    CHECK_EQ(submit_block(q, fd, 0, 0), 0);
    CHECK_EQ(QUEUE(wait)(q, 1, &out, 1), 1);
    tap_off();

    CHECK_EQ(out.result, 512);
    CHECK_EQ(t.events[1].size, 512);
    qv_close(fd);
    fd = qv_open(dir, "data", QV_RDONLY);
    CHECK_EQ(qv_read(fd, got, BLOCK, 0), BLOCK);
    CHECK_EQ(got[511], 1);
    CHECK_EQ(got[512], 0);
    QUEUE(close)(q);
    qv_close(fd);
    qv_close(dir);
}

static void test_the_tap_can_change_what_a_completion_says(void) {
    int dir = fresh_dir(), fd = open_file(dir);
    queue *q = open_queue(1);
    qv_completion out;
    tap t;

    tap_on(&t, QV_CALL_COMPLETE, 0, -EIO);
    CHECK_EQ(submit_block(q, fd, 0, 0), 0);
    CHECK_EQ(QUEUE(wait)(q, 1, &out, 1), 1);
    CHECK_EQ(out.result, -EIO);
    CHECK_EQ(t.count, 3); /* A failure is not told as done. */

    tap_on(&t, QV_CALL_COMPLETE, 0, 100);
    CHECK_EQ(submit_block(q, fd, 0, 0), 0);
    CHECK_EQ(QUEUE(wait)(q, 1, &out, 1), 1);
    CHECK_EQ(out.result, 100);
    tap_off();
    QUEUE(close)(q);
    qv_close(fd);
    qv_close(dir);
}

static void test_an_armed_event_fd_announces_completions(void) {
    int dir = fresh_dir(), fd = open_file(dir);
    queue *q = open_queue(4);
    int event_fd = QUEUE(event_fd)(q);
    qv_completion out[2];

    CHECK(event_fd >= 0);
    CHECK_EQ(QUEUE(arm)(q, 1), 0);
    CHECK(!is_readable(event_fd, 0));
    CHECK_EQ(submit_block(q, fd, 0, 0), 0);
    CHECK_EQ(submit_block(q, fd, 1, 1), 0);
    CHECK(is_readable(event_fd, 5000));
    CHECK_EQ(QUEUE(wait)(q, 2, out, 2), 2);
    CHECK(take_count(event_fd) >= 1);
    CHECK_EQ(QUEUE(event_fd)(q), event_fd);
    QUEUE(close)(q);
    qv_close(fd);
    qv_close(dir);
}

static void test_arming_announces_what_came_before(void) {
    int dir = fresh_dir(), fd = open_file(dir);
    queue *q = open_queue(4);
    int event_fd = QUEUE(event_fd)(q);
    qv_completion out[2];

    CHECK_EQ(QUEUE(arm)(q, 0), 0);
    CHECK_EQ(submit_block(q, fd, 0, 0), 0);
    CHECK_EQ(submit_block(q, fd, 1, 0), 0);
    CHECK_EQ(QUEUE(wait)(q, 1, out, 1), 1);
    take_count(event_fd);
    CHECK_EQ(QUEUE(arm)(q, 1), 0); /* One is on its way or waiting. */
    CHECK(is_readable(event_fd, 5000));
    CHECK_EQ(QUEUE(wait)(q, 1, out, 1), 1);

    CHECK(becomes_quiet(q, event_fd));
    QUEUE(close)(q);
    qv_close(fd);
    qv_close(dir);
}

static void test_arming_again_forgets_what_was_counted_while_disarmed(void) {
    int dir = fresh_dir(), fd = open_file(dir);
    queue *q = open_queue(4);
    int event_fd = QUEUE(event_fd)(q);
    qv_completion out;

    CHECK_EQ(QUEUE(arm)(q, 0), 0);
    CHECK_EQ(submit_block(q, fd, 0, 0), 0);
    CHECK_EQ(QUEUE(wait)(q, 1, &out, 1), 1);
    CHECK(becomes_quiet(q, event_fd));
    QUEUE(close)(q);
    qv_close(fd);
    qv_close(dir);
}

static void test_close_waits_for_what_is_in_flight(void) {
    int dir = fresh_dir(), fd = open_file(dir);
    queue *q = open_queue(WRITES);
    int completed = 0;
    tap t;

    for (unsigned i = 0; i < WRITES; i++) CHECK_EQ(submit_block(q, fd, i, 1), 0);
    tap_on(&t, 0, 0, 0);
    QUEUE(close)(q);
    tap_off();

    for (int i = 0; i < t.count; i++)
        completed += t.events[i].call == QV_CALL_COMPLETE && t.events[i].done;
    CHECK_EQ(completed, WRITES);
    CHECK_EQ(count_written(dir), WRITES);
    qv_close(fd);
    qv_close(dir);
}

static void on_alarm(int number) { (void)number; }

static void test_signals_do_not_end_a_wait(void) {
    int dir = fresh_dir(), fd = open_file(dir);
    queue *q = open_queue(WRITES);
    struct sigaction action = {.sa_handler = on_alarm}; /* No SA_RESTART: EINTR is wanted. */
    struct itimerval often = {{0, 200}, {0, 200}}, never = {{0, 0}, {0, 0}};
    static qv_completion out[WRITES];

    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    for (int round = 0; round < 20; round++) {
        for (unsigned i = 0; i < WRITES; i++) CHECK_EQ(submit_block(q, fd, i, 1), 0);
        CHECK_EQ(QUEUE(wait)(q, WRITES, out, WRITES), WRITES);
    }
    setitimer(ITIMER_REAL, &never, NULL);
    QUEUE(close)(q);
    qv_close(fd);
    qv_close(dir);
}

int main(void) {
    const check_entry cases[] = {
        CASE(test_many_writes_come_back_once_each_by_tag),
        CASE(test_durable_writes_come_back_once_each_by_tag),
        CASE(test_wait_for_all_fills_the_whole_array),
        CASE(test_one_more_than_depth_is_refused_until_one_is_taken),
        CASE(test_slots_are_reused),
        CASE(test_wrong_depths_are_refused),
        CASE(test_ranges_beyond_a_file_are_refused),
        CASE(test_a_write_to_a_closed_or_read_only_file_gives_its_error),
        CASE(test_a_write_beyond_the_file_size_limit_gives_its_error),
        CASE(test_a_misaligned_direct_write_is_answered_as_qv_write_answers),
        CASE(test_the_tap_sees_submit_and_completion),
        CASE(test_the_tap_can_fail_a_submit),
        CASE(test_the_tap_can_shorten_a_submit),
        CASE(test_the_tap_can_change_what_a_completion_says),
        CASE(test_an_armed_event_fd_announces_completions),
        CASE(test_arming_announces_what_came_before),
        CASE(test_arming_again_forgets_what_was_counted_while_disarmed),
        CASE(test_close_waits_for_what_is_in_flight),
        CASE(test_signals_do_not_end_a_wait),
    };
    int dir = fresh_dir(), result;
    queue *probe = NULL;
    int error = QUEUE(open)(1, &probe);

    if (error == -ENOSYS || error == -EPERM || error == -EOPNOTSUPP) {
        printf("%s\n", strerror(-error));
        return EXIT_SKIPPED;
    }
    QUEUE(close)(probe);
    can_direct = qv_supports_direct(dir) == 1;
    qv_close(dir);
    blocks = qv_alloc_aligned(WRITES * BLOCK, 4096);
    for (unsigned i = 0; i < WRITES; i++) memset(blocks + i * BLOCK, (int)i + 1, BLOCK);
    result = RUN_CASES(cases);
    qv_free_aligned(blocks);
    return result;
}
