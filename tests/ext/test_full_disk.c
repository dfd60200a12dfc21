/* What a write says on a disk that is full: a tmpfs of a few pages, in a name space of this program. */
#include <errno.h>
#include <sched.h>
#include <stdbool.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"

#define PAGE_BYTES ((uint64_t)getpagesize())
#define PAGES 16

static char bytes[1 << 20];

/* A new file on an empty disk that has room for PAGES pages. */
static int new_file(void) {
    char options[64];
    int dir, fd;

    umount2("disk", MNT_DETACH);
    snprintf(options, sizeof options, "size=%" PRIu64, PAGES * PAGE_BYTES);
    if (mount("tmpfs", "disk", "tmpfs", 0, options) != 0) abort();
    dir = qv_open_dir("disk");
    fd = qv_open(dir, "a", QV_RDWR | QV_CREATE);
    qv_close(dir);
    return fd;
}

static void test_a_write_that_fits_in_part_says_that_there_is_no_room(void) {
    int fd = new_file();

    CHECK(sizeof bytes > PAGES * PAGE_BYTES);
    CHECK_EQ(qv_write(fd, bytes, sizeof bytes, 0, 0), -ENOSPC);
    qv_close(fd);
}

static void test_a_write_without_any_room_says_so(void) {
    int fd = new_file();

    CHECK_EQ(qv_write(fd, bytes, PAGES * PAGE_BYTES, 0, 0), 0);
    CHECK_EQ(qv_write(fd, bytes, 1, PAGES * PAGE_BYTES, 0), -ENOSPC);
    CHECK_EQ(qv_fill(fd, PAGES * PAGE_BYTES, PAGE_BYTES, 0), -ENOSPC);
    CHECK_EQ(qv_file_size(fd), PAGES * PAGE_BYTES);
    CHECK_EQ(qv_write(fd, bytes, PAGES * PAGE_BYTES, 0, 0), 0); /* What is there is written over. */
    qv_close(fd);
}

static void test_room_that_is_kept_is_for_this_file_alone(void) {
    int fd = new_file(), dir = qv_open_dir("disk"), other = qv_open(dir, "b", QV_RDWR | QV_CREATE);

    CHECK_EQ(qv_keep_room(fd, 10 * PAGE_BYTES), 0);
    CHECK_EQ(qv_file_size(fd), 0);
    CHECK_EQ(qv_write(other, bytes, PAGES * PAGE_BYTES, 0, 0), -ENOSPC);
    CHECK_EQ(qv_write(fd, bytes, 10 * PAGE_BYTES, 0, 0), 0);
    CHECK_EQ(qv_keep_room(fd, 11 * PAGE_BYTES), -ENOSPC);
    CHECK_EQ(qv_file_size(fd), 10 * PAGE_BYTES);
    qv_close(other);
    qv_close(dir);
    qv_close(fd);
}

static void test_room_behind_the_end_is_given_back_by_a_truncate(void) {
    int fd = new_file(), dir = qv_open_dir("disk"), other = qv_open(dir, "b", QV_RDWR | QV_CREATE);

    CHECK_EQ(qv_keep_room(fd, PAGES * PAGE_BYTES), 0);
    CHECK_EQ(qv_write(fd, bytes, PAGE_BYTES, 0, 0), 0);
    CHECK_EQ(qv_write(other, bytes, PAGE_BYTES, 0, 0), -ENOSPC);
    CHECK_EQ(qv_truncate(fd, PAGE_BYTES), 0);
    CHECK_EQ(qv_write(other, bytes, (PAGES - 1) * PAGE_BYTES, 0, 0), 0);
    qv_close(other);
    qv_close(dir);
    qv_close(fd);
}

static void test_room_that_cannot_be_is_an_error(void) {
    int fd = new_file();

    CHECK_EQ(qv_keep_room(fd, 0), -EINVAL);
    CHECK_EQ(qv_keep_room(fd, (uint64_t)INT64_MAX + 1), -EINVAL);
    CHECK_EQ(qv_keep_room(9999, 1), -EBADF);
    qv_close(fd);
}

static bool can_mount(void) {
    if (unshare(CLONE_NEWNS) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0) return false;
    if (mkdir("disk", 0700) != 0) return false;
    return mount("tmpfs", "disk", "tmpfs", 0, "size=4096") == 0;
}

int main(void) {
    const check_entry cases[] = {
        CASE(test_a_write_that_fits_in_part_says_that_there_is_no_room),
        CASE(test_a_write_without_any_room_says_so),
        CASE(test_room_that_is_kept_is_for_this_file_alone),
        CASE(test_room_behind_the_end_is_given_back_by_a_truncate),
        CASE(test_room_that_cannot_be_is_an_error),
    };

    if (!can_mount()) {
        printf("a tmpfs cannot be mounted here\n");
        return EXIT_SKIPPED;
    }
    return RUN_CASES(cases);
}
