/* The tap on file operations: it is told every call before and after, can fail it, can shorten a
 * write. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"
#include "file_ops.h"
#include "tap.h"

#define MIB ((uint64_t)1 << 20)

/* A scene: a folder with file "a" of one page, open and mapped. */
static int dir, inner, fd;
static void *page;
static char buffer[4096];

static void set_scene(void) {
    dir = fresh_dir();
    CHECK_EQ(qv_mkdir(dir, "inner"), 0);
    inner = qv_open_subdir(dir, "inner");
    fd = qv_open(dir, "a", QV_RDWR | QV_CREATE);
    CHECK_EQ(qv_fill(fd, 0, 4096, 0), 0);
    CHECK_EQ(qv_map(fd, 4096, 1, &page), 0);
}

static void clear_scene(void) {
    tap_off();
    qv_unmap(page, 4096);
    qv_close(fd);
    qv_close(inner);
    qv_close(dir);
}

static int64_t do_open(void) { return qv_open(dir, "a", QV_RDONLY); }
static int64_t do_create(void) { return qv_open(dir, "new", QV_RDWR | QV_CREATE); }
static int64_t do_read(void) { return qv_read(fd, buffer, 100, 50); }
static int64_t do_write(void) { return qv_write(fd, buffer, 200, 60, 1); }
static int64_t do_store(void) { return qv_store(fd, page, buffer, 200, 60); }
static int64_t do_sync_data(void) { return qv_sync_data(fd); }
static int64_t do_sync_all(void) { return qv_sync_all(fd); }
static int64_t do_sync_dir(void) { return qv_sync_dir(dir); }
static int64_t do_rename(void) { return qv_rename_to(dir, "a", inner, "b"); }
static int64_t do_unlink(void) { return qv_unlink(dir, "a"); }
static int64_t do_truncate(void) { return qv_truncate(fd, 5000); }
static int64_t do_sync_map(void) { return qv_sync_map(fd, page, 30, 40); }
static int64_t do_mkdir(void) { return qv_mkdir(dir, "made"); }

static int64_t do_map(void) {
    void *address;
    int result = qv_map(fd, 4096, 0, &address);

    if (result == 0) qv_unmap(address, 4096);
    return result;
}

static int64_t do_close(void) {
    int result = qv_close(fd);

    CHECK_EQ(fcntl(fd, F_GETFD), -1); /* Closed, whatever it said. */
    fd = qv_open(dir, "a", QV_RDWR);
    return result;
}

typedef struct tapped_call {
    int call;
    int64_t (*run)(void);
} tapped_call;

static const tapped_call calls[] = {
    {QV_CALL_OPEN, do_open},
    {QV_CALL_CREATE, do_create},
    {QV_CALL_READ, do_read},
    {QV_CALL_WRITE, do_write},
    {QV_CALL_WRITE, do_store},
    {QV_CALL_SYNC_DATA, do_sync_data},
    {QV_CALL_SYNC_ALL, do_sync_all},
    {QV_CALL_SYNC_DIR, do_sync_dir},
    {QV_CALL_RENAME, do_rename},
    {QV_CALL_UNLINK, do_unlink},
    {QV_CALL_TRUNCATE, do_truncate},
    {QV_CALL_MAP, do_map},
    {QV_CALL_SYNC_MAP, do_sync_map},
    {QV_CALL_CLOSE, do_close},
    {QV_CALL_MKDIR, do_mkdir},
};

#define CALL_COUNT (sizeof calls / sizeof calls[0])

static int find(const tap *t, int call, int done) {
    for (int i = 0; i < t->count; i++)
        if (t->events[i].call == call && t->events[i].done == done) return i;
    return -1;
}

static void test_every_call_is_told_before_and_after(void) {
    for (size_t i = 0; i < CALL_COUNT; i++) {
        tap t;
        set_scene();
        tap_on(&t, 0, 0, 0);
        CHECK(calls[i].run() >= 0);
        CHECK_EQ(find(&t, calls[i].call, 0), 0);
        CHECK_EQ(find(&t, calls[i].call, 1), 1);
        clear_scene();
    }
}

static void test_every_call_can_be_failed_and_is_then_not_told_as_done(void) {
    for (size_t i = 0; i < CALL_COUNT; i++) {
        tap t;
        set_scene();
        tap_on(&t, calls[i].call, 0, -EDQUOT);
        CHECK_EQ(calls[i].run(), -EDQUOT);
        CHECK_EQ(find(&t, calls[i].call, 0), 0);
        CHECK_EQ(find(&t, calls[i].call, 1), -1);
        clear_scene();
    }
}

static void test_a_failed_call_is_not_made(void) {
    struct stat status;
    tap t;

    set_scene();
    memset(buffer, 1, sizeof buffer);
    for (size_t i = 0; i < CALL_COUNT; i++) {
        tap_on(&t, calls[i].call, 0, -EIO);
        CHECK_EQ(calls[i].run(), -EIO);
    }
    tap_off();
    CHECK_EQ(fstatat(dir, "a", &status, 0), 0);
    CHECK_EQ(status.st_size, 4096);
    CHECK(fstatat(dir, "new", &status, 0) != 0);
    CHECK(fstatat(dir, "made", &status, 0) != 0);
    CHECK(fstatat(inner, "b", &status, 0) != 0);
    CHECK_EQ(qv_read(fd, buffer, 4096, 0), 4096);
    for (size_t i = 0; i < sizeof buffer; i++) CHECK_EQ(buffer[i], 0);
    clear_scene();
}

static void test_a_call_that_fails_by_itself_is_not_told_as_done(void) {
    tap t;

    set_scene();
    tap_on(&t, 0, 0, 0);
    CHECK_EQ(qv_open(dir, "none", QV_RDONLY), -ENOENT);
    CHECK_EQ(qv_unlink(dir, "none"), -ENOENT);
    CHECK_EQ(qv_sync_data(9999), -EBADF);
    CHECK_EQ(qv_write(9999, "x", 1, 0, 0), -EBADF);
    CHECK_EQ(t.count, 4);
    for (int i = 0; i < t.count; i++) CHECK_EQ(t.events[i].done, 0);
    clear_scene();
}

static void test_answers_count_only_for_the_chosen_call(void) {
    tap t;

    set_scene();
    tap_on(&t, QV_CALL_SYNC_DATA, 1, -EIO);
    CHECK_EQ(qv_write(fd, "x", 1, 0, 0), 0);
    CHECK_EQ(qv_sync_data(fd), 0);
    CHECK_EQ(qv_sync_data(fd), -EIO);
    CHECK_EQ(qv_sync_all(fd), 0);
    clear_scene();
}

static void test_a_write_can_be_shortened_and_says_how_far_it_came(void) {
    tap t;

    set_scene();
    memset(buffer, 9, sizeof buffer);
    tap_on(&t, QV_CALL_WRITE, 0, 512);
    CHECK_EQ(qv_write(fd, buffer, 1024, 0, 0), -EIO);
    CHECK_EQ(t.events[0].size, 1024);
    CHECK_EQ(t.events[1].done, 1);
    CHECK_EQ(t.events[1].size, 512);
    tap_on(&t, QV_CALL_WRITE, 0, 1024); /* Not short. */
    CHECK_EQ(qv_write(fd, buffer, 1024, 2048, 0), 0);
    tap_on(&t, QV_CALL_WRITE, 0, 10);
    CHECK_EQ(qv_store(fd, page, buffer, 20, 3500), -EIO);
    CHECK_EQ(t.events[1].size, 10);
    tap_off();
    CHECK_EQ(qv_read(fd, buffer, 4096, 0), 4096);
    CHECK_EQ(buffer[511], 9);
    CHECK_EQ(buffer[512], 0);
    CHECK_EQ(buffer[3071], 9);
    CHECK_EQ(buffer[3509], 9);
    CHECK_EQ(buffer[3510], 0);
    clear_scene();
}

static void test_other_calls_ignore_a_positive_answer(void) {
    for (size_t i = 0; i < CALL_COUNT; i++) {
        tap t;
        if (calls[i].call == QV_CALL_WRITE) continue;
        set_scene();
        tap_on(&t, calls[i].call, 0, 1);
        CHECK(calls[i].run() >= 0);
        CHECK_EQ(find(&t, calls[i].call, 1), 1);
        clear_scene();
    }
}

static void test_events_carry_what_was_asked(void) {
    tap t;
    int opened;

    set_scene();
    tap_on(&t, 0, 0, 0);
    opened = qv_open(dir, "a", QV_RDONLY);
    CHECK_EQ(t.events[0].dirfd, dir);
    CHECK_EQ(t.events[0].fd, -1);
    CHECK(strcmp(t.name[0], "a") == 0);
    CHECK_EQ(t.events[1].fd, opened);

    tap_on(&t, 0, 0, 0);
    CHECK_EQ(qv_close(opened), 0);
    CHECK_EQ(t.events[0].fd, opened);
    CHECK_EQ(t.events[0].dirfd, -1);

    tap_on(&t, 0, 0, 0);
    CHECK_EQ(qv_read(fd, buffer, 4096, 4000), 96);
    CHECK_EQ(t.events[0].size, 4096);
    CHECK_EQ(t.events[1].size, 96);
    CHECK_EQ(t.events[1].offset, 4000);

    tap_on(&t, 0, 0, 0);
    CHECK_EQ(do_write(), 0);
    CHECK_EQ(t.events[0].fd, fd);
    CHECK(t.events[0].data == buffer);
    CHECK_EQ(t.events[0].size, 200);
    CHECK_EQ(t.events[0].offset, 60);
    CHECK_EQ(t.events[0].dsync, 1);

    tap_on(&t, 0, 0, 0);
    CHECK_EQ(do_store(), 0);
    CHECK_EQ(t.events[0].fd, fd);
    CHECK(t.events[0].data == buffer);
    CHECK_EQ(t.events[0].size, 200);
    CHECK_EQ(t.events[0].offset, 60);
    CHECK_EQ(t.events[0].dsync, 0);

    tap_on(&t, 0, 0, 0);
    CHECK_EQ(do_sync_map(), 0);
    CHECK_EQ(t.events[0].fd, fd);
    CHECK(t.events[0].data == (char *)page + 30);
    CHECK_EQ(t.events[0].offset, 30);
    CHECK_EQ(t.events[0].size, 40);

    tap_on(&t, 0, 0, 0);
    CHECK_EQ(do_sync_dir(), 0);
    CHECK_EQ(t.events[0].dirfd, dir);
    CHECK_EQ(t.events[0].fd, -1);

    tap_on(&t, 0, 0, 0);
    CHECK_EQ(do_truncate(), 0);
    CHECK_EQ(t.events[0].size, 5000);

    tap_on(&t, 0, 0, 0);
    CHECK_EQ(do_rename(), 0);
    CHECK_EQ(t.events[0].dirfd, dir);
    CHECK_EQ(t.events[0].fd, inner);
    CHECK(strcmp(t.name[0], "a") == 0);
    CHECK(strcmp(t.name2[0], "b") == 0);
    clear_scene();
}

static void test_fill_is_told_write_by_write_up_to_each_piece(void) {
    const uint64_t piece = 64 << 10;
    tap t;

    set_scene();
    tap_on(&t, 0, 0, 0);
    CHECK_EQ(qv_fill(fd, 4096, 2 * piece, 0), 0);
    CHECK_EQ(t.count, 6);
    CHECK_EQ(t.events[0].size, piece - 4096);
    CHECK_EQ(t.events[2].offset, piece);
    CHECK_EQ(t.events[2].size, piece);
    CHECK_EQ(t.events[4].offset, 2 * piece);
    CHECK_EQ(t.events[4].size, 4096);

    tap_on(&t, 0, 0, 0);
    CHECK_EQ(qv_fill(fd, 4096, 2 * MIB, 1), 0);
    CHECK_EQ(t.count, 6);
    CHECK_EQ(t.events[0].size, MIB - 4096);
    CHECK_EQ(t.events[2].offset, MIB);
    CHECK_EQ(t.events[2].size, MIB);
    CHECK_EQ(t.events[4].offset, 2 * MIB);
    CHECK_EQ(t.events[4].size, 4096);
    for (int i = 0; i < t.count; i++) CHECK_EQ(t.events[i].call, QV_CALL_WRITE);

    tap_on(&t, QV_CALL_WRITE, 1, -ENOSPC);
    CHECK_EQ(qv_fill(fd, 0, 3 * MIB, 0), -ENOSPC);
    CHECK_EQ(t.count, 3); /* It stops at the first error. */
    clear_scene();
}

static void test_refused_arguments_and_probes_are_not_told(void) {
    tap t;

    set_scene();
    tap_on(&t, 0, 0, 0);
    CHECK_EQ(qv_open(dir, "../a", QV_RDONLY), -EINVAL);
    CHECK(qv_block_size(dir) > 0);
    CHECK(qv_supports_direct(dir) >= 0);
    CHECK(qv_file_size(fd) > 0);
    CHECK_EQ(qv_lock(fd, 1), 0);
    CHECK_EQ(t.count, 0);
    clear_scene();
}

int main(void) {
    const check_entry cases[] = {
        CASE(test_every_call_is_told_before_and_after),
        CASE(test_every_call_can_be_failed_and_is_then_not_told_as_done),
        CASE(test_a_failed_call_is_not_made),
        CASE(test_a_call_that_fails_by_itself_is_not_told_as_done),
        CASE(test_answers_count_only_for_the_chosen_call),
        CASE(test_a_write_can_be_shortened_and_says_how_far_it_came),
        CASE(test_other_calls_ignore_a_positive_answer),
        CASE(test_events_carry_what_was_asked),
        CASE(test_fill_is_told_write_by_write_up_to_each_piece),
        CASE(test_refused_arguments_and_probes_are_not_told),
    };

    return RUN_CASES(cases);
}
