/* Each file operation on a real file system. The tap has its own program, test_file_tap.c. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "file_ops.h"

#define MIB (1u << 20)

static int new_file(int dir, const char *name) {
    int fd = qv_open(dir, name, QV_RDWR | QV_CREATE | QV_EXCLUSIVE);

    CHECK(fd >= 0);
    return fd;
}

static int exists(int dir, const char *name) {
    struct stat status;

    return fstatat(dir, name, &status, AT_SYMLINK_NOFOLLOW) == 0;
}

/* ---- open ---------------------------------------------------------------------------------- */

static void test_open_makes_a_file_only_when_asked(void) {
    int dir = fresh_dir(), fd;

    CHECK_EQ(qv_open(dir, "a", QV_RDWR), -ENOENT);
    CHECK_EQ(qv_open(dir, "a", QV_RDONLY), -ENOENT);
    fd = qv_open(dir, "a", QV_RDWR | QV_CREATE);
    CHECK(fd >= 0);
    CHECK_EQ(qv_close(fd), 0);
    fd = qv_open(dir, "a", QV_RDWR | QV_CREATE);
    CHECK(fd >= 0);
    CHECK_EQ(qv_open(dir, "a", QV_RDWR | QV_CREATE | QV_EXCLUSIVE), -EEXIST);
    qv_close(fd);
    qv_close(dir);
}

static void test_open_leaves_a_blocking_descriptor_that_exec_closes(void) {
    int dir = fresh_dir(), fd = new_file(dir, "a");

    CHECK(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    CHECK(fcntl(dir, F_GETFD) & FD_CLOEXEC);
    CHECK(!(fcntl(fd, F_GETFL) & O_NONBLOCK));
    CHECK_EQ(fcntl(fd, F_GETFL) & O_ACCMODE, O_RDWR);
    qv_close(fd);
    qv_close(dir);
}

static void test_contradictory_flags_are_refused(void) {
    const int wrong[] = {
        0,        QV_CREATE, QV_RDONLY | QV_RDWR, QV_RDONLY | QV_CREATE, QV_RDWR | QV_EXCLUSIVE,
        QV_DIRECT};
    int dir = fresh_dir();

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        CHECK_EQ(qv_open(dir, "a", wrong[i]), -EINVAL);
    CHECK(!exists(dir, "a"));
    qv_close(dir);
}

static void test_names_that_leave_the_directory_are_refused(void) {
    const char *wrong[] = {"", ".", "..", "/etc/hostname", "a/b", "../a", NULL};
    int dir = fresh_dir();

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        CHECK_EQ(qv_open(dir, wrong[i], QV_RDONLY), -EINVAL);
        CHECK_EQ(qv_open_subdir(dir, wrong[i]), -EINVAL);
        CHECK_EQ(qv_unlink(dir, wrong[i]), -EINVAL);
        CHECK_EQ(qv_mkdir(dir, wrong[i]), -EINVAL);
        CHECK_EQ(qv_rename(dir, "a", wrong[i]), -EINVAL);
        CHECK_EQ(qv_rename(dir, wrong[i], "a"), -EINVAL);
    }
    qv_close(dir);
}

static void test_links_are_not_followed(void) {
    int dir = fresh_dir(), fd = new_file(dir, "target");

    CHECK_EQ(symlinkat("target", dir, "link"), 0);
    CHECK_EQ(symlinkat("nowhere", dir, "dangling"), 0);
    CHECK_EQ(symlinkat(".", dir, "dirlink"), 0);
    CHECK_EQ(qv_open(dir, "link", QV_RDONLY), -ELOOP);
    CHECK_EQ(qv_open(dir, "link", QV_RDWR | QV_CREATE), -ELOOP);
    CHECK_EQ(qv_open(dir, "dangling", QV_RDWR | QV_CREATE), -ELOOP);
    CHECK(!exists(dir, "nowhere"));
    CHECK(qv_open_subdir(dir, "dirlink") < 0);
    qv_close(fd);
    qv_close(dir);
}

static void test_what_is_no_regular_file_is_refused_without_blocking(void) {
    int dir = fresh_dir();

    CHECK_EQ(mkfifoat(dir, "fifo", 0600), 0);
    CHECK_EQ(mknodat(dir, "socket", S_IFSOCK | 0600, 0), 0);
    CHECK_EQ(mkdirat(dir, "dir", 0700), 0);
    CHECK_EQ(qv_open(dir, "fifo", QV_RDONLY), -EINVAL);
    CHECK_EQ(qv_open(dir, "fifo", QV_RDWR), -EINVAL);
    CHECK_EQ(qv_open(dir, "socket", QV_RDONLY), -EINVAL);
    CHECK_EQ(qv_open(dir, "dir", QV_RDONLY), -EISDIR);
    CHECK_EQ(qv_open(dir, "dir", QV_RDWR), -EISDIR);
    qv_close(dir);
}

static void test_open_dir_takes_directories_only(void) {
    int dir = fresh_dir(), fd = new_file(dir, "a"), inner;

    CHECK_EQ(qv_open_dir("no/such/place"), -ENOENT);
    CHECK_EQ(qv_open_subdir(dir, "a"), -ENOTDIR);
    CHECK_EQ(qv_mkdir(dir, "inner"), 0);
    CHECK_EQ(qv_mkdir(dir, "inner"), -EEXIST);
    inner = qv_open_subdir(dir, "inner");
    CHECK(inner >= 0);
    qv_close(inner);
    qv_close(fd);
    qv_close(dir);
}

static void test_closing_a_closed_descriptor_is_an_error(void) {
    int dir = fresh_dir();

    CHECK_EQ(qv_close(dir), 0);
    CHECK_EQ(qv_close(dir), -EBADF);
}

/* ---- bytes --------------------------------------------------------------------------------- */

static void test_bytes_written_are_read_back(void) {
    int dir = fresh_dir(), fd = new_file(dir, "a");
    char got[16] = {0};

    CHECK_EQ(qv_write(fd, "hello", 5, 3, 0), 0);
    CHECK_EQ(qv_write(fd, "durable", 7, 8, 1), 0);
    CHECK_EQ(qv_write(fd, "", 0, 0, 0), 0);
    CHECK_EQ(qv_file_size(fd), 15);
    CHECK_EQ(qv_read(fd, got, 15, 0), 15);
    CHECK(memcmp(got, "\0\0\0hellodurable", 15) == 0);
    qv_close(fd);
    qv_close(dir);
}

static void test_a_read_is_short_only_at_the_end(void) {
    int dir = fresh_dir(), fd = new_file(dir, "a");
    char got[16];

    CHECK_EQ(qv_write(fd, "0123456789", 10, 0, 0), 0);
    CHECK_EQ(qv_read(fd, got, 16, 0), 10);
    CHECK_EQ(qv_read(fd, got, 16, 7), 3);
    CHECK_EQ(qv_read(fd, got, 16, 10), 0);
    CHECK_EQ(qv_read(fd, got, 16, 100000), 0);
    CHECK_EQ(qv_read(fd, got, 0, 0), 0);
    qv_close(fd);
    qv_close(dir);
}

static void test_ranges_beyond_a_file_are_refused(void) {
    const uint64_t beyond = UINT64_C(1) << 63;
    int dir = fresh_dir(), fd = new_file(dir, "a");
    char byte = 0;

    CHECK_EQ(qv_read(fd, &byte, 1, beyond), -EINVAL);
    CHECK_EQ(qv_read(fd, &byte, 2, beyond - 2), -EINVAL);
    CHECK_EQ(qv_write(fd, &byte, 1, beyond, 0), -EINVAL);
    CHECK_EQ(qv_write(fd, &byte, (size_t)QV_IO_SIZE_MAX + 1, 0, 0), -EINVAL);
    CHECK_EQ(qv_fill(fd, beyond, 1, 0), -EINVAL);
    CHECK_EQ(qv_truncate(fd, beyond), -EINVAL);
    CHECK_EQ(qv_file_size(fd), 0);
    qv_close(fd);
    qv_close(dir);
}

static void test_a_write_the_descriptor_does_not_allow_is_an_error(void) {
    int dir = fresh_dir(), fd = new_file(dir, "a"), reader = qv_open(dir, "a", QV_RDONLY);

    CHECK_EQ(qv_write(reader, "x", 1, 0, 0), -EBADF);
    CHECK_EQ(qv_write(reader, "x", 1, 0, 1), -EBADF);
    CHECK_EQ(qv_read(9999, &fd, 1, 0), -EBADF);
    CHECK_EQ(qv_file_size(9999), -EBADF);
    qv_close(reader);
    qv_close(fd);
    qv_close(dir);
}

/* The kernel writes up to the limit and reports a short count: what a full disk looks like. */
static void test_a_write_cut_short_is_an_error_and_not_completed(void) {
    int dir = fresh_dir(), fd = new_file(dir, "a");
    static char data[8192];
    struct rlimit before, limit;

    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before);
    limit = before;
    limit.rlim_cur = 4096;
    setrlimit(RLIMIT_FSIZE, &limit);
    CHECK_EQ(qv_write(fd, data, 8192, 0, 0), -EIO);
    CHECK_EQ(qv_file_size(fd), 4096);
    CHECK_EQ(qv_write(fd, data, 1, 4096, 0), -EFBIG);
    CHECK_EQ(qv_fill(fd, 0, 8192, 0), -EIO);
    CHECK_EQ(qv_truncate(fd, 5000), -EFBIG);
    setrlimit(RLIMIT_FSIZE, &before);
    qv_close(fd);
    qv_close(dir);
}

static void test_fill_zeroes_its_range_and_nothing_else(void) {
    const uint64_t from = 100, size = 3 * MIB + 77;
    int dir = fresh_dir(), fd = new_file(dir, "a");
    uint8_t *got = malloc(4 * MIB);
    struct stat status;
    uint64_t wrong = 0;

    memset(got, 0xee, 4 * MIB);
    CHECK_EQ(qv_write(fd, got, 4 * MIB, 0, 0), 0);
    CHECK_EQ(qv_fill(fd, from, size, 0), 0);
    CHECK_EQ(qv_fill(fd, 50, 0, 0), 0);
    CHECK_EQ(qv_read(fd, got, 4 * MIB, 0), 4 * MIB);
    for (uint64_t i = 0; i < 4 * MIB; i++)
        wrong += got[i] != (i >= from && i < from + size ? 0 : 0xee);
    CHECK_EQ(wrong, 0);
    CHECK_EQ(qv_fill(fd, 4 * MIB, MIB, 0), 0);
    CHECK_EQ(qv_sync_all(fd), 0);
    CHECK_EQ(fstat(fd, &status), 0);
    CHECK(status.st_blocks * 512 >= 5 * MIB); /* Written, not a hole. */
    free(got);
    qv_close(fd);
    qv_close(dir);
}

static void test_advice_is_taken(void) {
    int dir = fresh_dir(), fd = new_file(dir, "a");

    CHECK_EQ(qv_advise(fd, 0, 4096, 1), 0);
    CHECK_EQ(qv_advise(fd, 0, 0, 0), 0);
    CHECK_EQ(qv_advise(9999, 0, 0, 0), -EBADF);
    qv_close(fd);
    qv_close(dir);
}

/* ---- sync and names ------------------------------------------------------------------------ */

static void test_syncs_succeed_on_good_descriptors_and_fail_on_bad_ones(void) {
    int dir = fresh_dir(), fd = new_file(dir, "a");

    CHECK_EQ(qv_write(fd, "x", 1, 0, 0), 0);
    CHECK_EQ(qv_sync_data(fd), 0);
    CHECK_EQ(qv_sync_all(fd), 0);
    CHECK_EQ(qv_sync_dir(dir), 0);
    CHECK_EQ(qv_sync_data(9999), -EBADF);
    CHECK_EQ(qv_sync_all(9999), -EBADF);
    CHECK_EQ(qv_sync_dir(9999), -EBADF);
    qv_close(fd);
    qv_close(dir);
}

static void test_rename_moves_and_replaces(void) {
    int dir = fresh_dir(), fd = new_file(dir, "a"), other, inner;

    CHECK_EQ(qv_write(fd, "a", 1, 0, 0), 0);
    other = new_file(dir, "b");
    CHECK_EQ(qv_rename(dir, "a", "b"), 0);
    CHECK(!exists(dir, "a"));
    qv_close(other);
    other = qv_open(dir, "b", QV_RDONLY);
    CHECK_EQ(qv_file_size(other), 1);
    CHECK_EQ(qv_rename(dir, "a", "c"), -ENOENT);
    CHECK_EQ(qv_mkdir(dir, "attic"), 0);
    inner = qv_open_subdir(dir, "attic");
    CHECK_EQ(qv_rename_to(dir, "b", inner, "c"), 0);
    CHECK(!exists(dir, "b"));
    CHECK(exists(inner, "c"));
    qv_close(inner);
    qv_close(other);
    qv_close(fd);
    qv_close(dir);
}

static void test_unlink_removes_files_only(void) {
    int dir = fresh_dir(), fd = new_file(dir, "a");

    CHECK_EQ(qv_unlink(dir, "a"), 0);
    CHECK(!exists(dir, "a"));
    CHECK_EQ(qv_unlink(dir, "a"), -ENOENT);
    CHECK_EQ(qv_mkdir(dir, "inner"), 0);
    CHECK(qv_unlink(dir, "inner") < 0);
    CHECK(exists(dir, "inner"));
    qv_close(fd);
    qv_close(dir);
}

static void test_truncate_cuts_and_grows(void) {
    int dir = fresh_dir(), fd = new_file(dir, "a");
    char got[8];

    CHECK_EQ(qv_write(fd, "01234567", 8, 0, 0), 0);
    CHECK_EQ(qv_truncate(fd, 3), 0);
    CHECK_EQ(qv_file_size(fd), 3);
    CHECK_EQ(qv_truncate(fd, 8), 0);
    CHECK_EQ(qv_read(fd, got, 8, 0), 8);
    CHECK(memcmp(got, "012\0\0\0\0\0", 8) == 0);
    qv_close(fd);
    qv_close(dir);
}

/* ---- maps ---------------------------------------------------------------------------------- */

static void test_what_a_map_changes_is_in_the_file_after_sync(void) {
    int dir = fresh_dir(), fd = new_file(dir, "a");
    void *address;
    char got[4];

    CHECK_EQ(qv_fill(fd, 0, 3 * 4096, 0), 0);
    CHECK_EQ(qv_map(fd, 3 * 4096, 1, &address), 0);
    memcpy((char *)address + 5000, "map!", 4);
    CHECK_EQ(qv_sync_map(fd, address, 5000, 4), 0);
    CHECK_EQ(qv_sync_map(fd, address, 4095, 4097), 0);
    CHECK_EQ(qv_sync_map(fd, address, 0, 0), 0);
    CHECK_EQ(qv_read(fd, got, 4, 5000), 4);
    CHECK(memcmp(got, "map!", 4) == 0);
    CHECK_EQ(qv_close(fd), 0);
    CHECK(memcmp((char *)address + 5000, "map!", 4) == 0); /* It survives the descriptor. */
    CHECK_EQ(qv_unmap(address, 3 * 4096), 0);
    qv_close(dir);
}

static void test_stores_writes_and_reads_see_the_same_bytes(void) {
    int dir = fresh_dir(), fd = new_file(dir, "a");
    void *address;
    char got[8];

    CHECK_EQ(qv_fill(fd, 0, 3 * 4096, 0), 0);
    CHECK_EQ(qv_map(fd, 3 * 4096, 1, &address), 0);
    CHECK_EQ(qv_store(fd, address, "by store", 8, 4092), 0);
    CHECK_EQ(qv_read(fd, got, 8, 4092), 8);
    CHECK(memcmp(got, "by store", 8) == 0);
    CHECK_EQ(qv_write(fd, "by write", 8, 4092, 0), 0);
    CHECK(memcmp((char *)address + 4092, "by write", 8) == 0);
    CHECK_EQ(qv_start_sync(fd, 0, 3 * 4096), 0);
    CHECK_EQ(qv_sync_data(fd), 0);
    CHECK_EQ(qv_store(fd, address, "after it", 8, 4092), 0);
    CHECK_EQ(qv_sync_data(fd), 0);
    CHECK_EQ(qv_read(fd, got, 8, 4092), 8);
    CHECK(memcmp(got, "after it", 8) == 0);
    CHECK_EQ(qv_unmap(address, 3 * 4096), 0);
    qv_close(fd);
    qv_close(dir);
}

static void test_starting_a_sync_of_what_cannot_be_synced_is_an_error(void) {
    int dir = fresh_dir(), fd = new_file(dir, "a");

    CHECK_EQ(qv_start_sync(fd, (uint64_t)INT64_MAX + 1, 1), -EINVAL);
    CHECK_EQ(qv_start_sync(9999, 0, 1), -EBADF);
    CHECK_EQ(qv_start_sync(fd, 0, 4096), 0); /* Beyond the end there is nothing to do. */
    qv_close(fd);
    qv_close(dir);
}

static void test_impossible_maps_are_refused(void) {
    int dir = fresh_dir(), fd = new_file(dir, "a"), reader = qv_open(dir, "a", QV_RDONLY);
    void *address = &address;

    CHECK_EQ(qv_map(fd, 0, 0, &address), -EINVAL);
    CHECK(address == NULL);
    CHECK_EQ(qv_map(reader, 4096, 1, &address), -EACCES);
    CHECK_EQ(qv_map(9999, 4096, 0, &address), -EBADF);
    CHECK_EQ(qv_unmap((void *)1, 4096), -EINVAL);
    qv_close(reader);
    qv_close(fd);
    qv_close(dir);
}

static void test_syncing_what_is_not_mapped_is_an_error(void) {
    int dir = fresh_dir(), fd = new_file(dir, "a");
    void *address;

    CHECK_EQ(qv_fill(fd, 0, 4096, 0), 0);
    CHECK_EQ(qv_map(fd, 4096, 1, &address), 0);
    CHECK_EQ(qv_unmap(address, 4096), 0);
    CHECK_EQ(qv_sync_map(fd, address, 0, 4096), -ENOMEM);
    qv_close(fd);
    qv_close(dir);
}

/* ---- the device ---------------------------------------------------------------------------- */

static void test_direct_writes_work_at_the_block_size_found(void) {
    int dir = fresh_dir(), block = qv_block_size(dir), direct = qv_supports_direct(dir), fd;
    uint8_t *data = qv_alloc_aligned(65536, 4096), *got = qv_alloc_aligned(65536, 4096);

    CHECK(block >= 512 && (block & (block - 1)) == 0);
    CHECK(direct == 0 || direct == 1);
    fd = qv_open(dir, "a", QV_RDWR | QV_CREATE | QV_DIRECT);
    if (direct == 1) {
        memset(data, 7, 65536);
        CHECK(fd >= 0);
        CHECK(fcntl(fd, F_GETFL) & O_DIRECT);
        CHECK_EQ(qv_fill(fd, 0, 2 * MIB, 1), 0);
        CHECK_EQ(qv_write(fd, data, (size_t)block, (uint64_t)block, 0), 0);
        CHECK_EQ(qv_write(fd, data, (size_t)block, 2 * (uint64_t)block, 1), 0);
        CHECK_EQ(qv_read(fd, got, (size_t)block * 3, 0), block * 3);
        CHECK_EQ(got[block - 1], 0);
        CHECK(memcmp(got + block, data, 2 * (size_t)block) == 0);
        /* An end of file inside a block is no error for a reader. */
        CHECK_EQ(qv_truncate(fd, (uint64_t)block + 100), 0);
        CHECK_EQ(qv_read(fd, got, (size_t)block * 3, 0), block + 100);
    }
    CHECK_EQ(qv_fill(fd, 0, 100, 1), -EINVAL);
    CHECK_EQ(qv_fill(fd, 100, 512, 1), -EINVAL);
    if (fd >= 0) qv_close(fd);
    qv_free_aligned(data);
    qv_free_aligned(got);
    qv_close(dir);
}

static void test_probes_leave_nothing_behind(void) {
    int dir = fresh_dir(), count = 0;
    DIR *listing;

    CHECK(qv_block_size(dir) > 0);
    CHECK(qv_supports_direct(dir) >= 0);
    listing = fdopendir(dup(dir));
    while (readdir(listing) != NULL) count++;
    CHECK_EQ(count, 2); /* "." and ".." */
    closedir(listing);
    qv_close(dir);
}

static void test_probes_say_why_no_file_can_be_made(void) {
    int dir = qv_open_dir("/proc/self");

    CHECK(qv_block_size(dir) < 0);
    CHECK(qv_supports_direct(dir) < 0);
    CHECK_EQ(qv_block_size(9999), -EBADF);
    CHECK_EQ(qv_supports_direct(9999), -EBADF);
    qv_close(dir);
}

static void test_one_holder_excludes_all_others(void) {
    int dir = fresh_dir(), first = new_file(dir, "lock"), second = qv_open(dir, "lock", QV_RDWR),
        third;

    CHECK_EQ(qv_lock(first, 1), 0);
    CHECK_EQ(qv_lock(first, 1), 0); /* The holder may ask again. */
    CHECK_EQ(qv_lock(second, 1), -EWOULDBLOCK);
    CHECK_EQ(qv_lock(second, 0), -EWOULDBLOCK);
    third = qv_open(dir, "lock", QV_RDWR);
    qv_close(third); /* Closing another descriptor of the file must not release it. */
    CHECK_EQ(qv_lock(second, 1), -EWOULDBLOCK);
    qv_close(first);
    CHECK_EQ(qv_lock(second, 1), 0);
    qv_close(second);
    qv_close(dir);
}

static void test_shared_holders_exclude_only_an_exclusive_one(void) {
    int dir = fresh_dir(), first = new_file(dir, "lock"), second = qv_open(dir, "lock", QV_RDWR);

    CHECK_EQ(qv_lock(first, 0), 0);
    CHECK_EQ(qv_lock(second, 0), 0);
    CHECK_EQ(qv_lock(second, 1), -EWOULDBLOCK);
    qv_close(first);
    CHECK_EQ(qv_lock(second, 1), 0);
    qv_close(second);
    qv_close(dir);
}

/* A record lock of another process, as a JVM takes it: ours and theirs exclude each other. */
static void test_a_record_lock_of_another_process_excludes(void) {
    int dir = fresh_dir(), fd = new_file(dir, "lock"), status, ready[2], go[2];
    char byte = 0;
    pid_t child;

    CHECK_EQ(pipe(ready) | pipe(go), 0);
    child = fork();
    if (child == 0) {
        struct flock one_byte = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 1, .l_len = 1};
        int theirs = openat(dir, "lock", O_RDWR);
        int failed = fcntl(theirs, F_SETLK, &one_byte);
        if (write(ready[1], &byte, 1) != 1 || read(go[0], &byte, 1) != 1) _exit(2);
        close(theirs);
        if (failed) _exit(3);
        if (write(ready[1], &byte, 1) != 1 || read(go[0], &byte, 1) != 1) _exit(2);
        theirs = openat(dir, "lock", O_RDWR);
        _exit(fcntl(theirs, F_SETLK, &one_byte) == 0 ? 4 : 0);
    }
    CHECK_EQ(read(ready[0], &byte, 1), 1);
    CHECK_EQ(qv_lock(fd, 1), -EWOULDBLOCK);
    CHECK_EQ(write(go[1], &byte, 1), 1);
    CHECK_EQ(read(ready[0], &byte, 1), 1);
    CHECK_EQ(qv_lock(fd, 1), 0);
    CHECK_EQ(write(go[1], &byte, 1), 1);
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK(WIFEXITED(status));
    CHECK_EQ(WEXITSTATUS(status), 0);
    qv_close(fd);
    qv_close(dir);
}

static void test_an_exclusive_lock_needs_a_writable_descriptor(void) {
    int dir = fresh_dir(), fd = new_file(dir, "lock"), reader = qv_open(dir, "lock", QV_RDONLY);

    CHECK_EQ(qv_lock(reader, 1), -EBADF);
    CHECK_EQ(qv_lock(reader, 0), 0);
    qv_close(reader);
    qv_close(fd);
    qv_close(dir);
}

static void test_aligned_memory_is_aligned(void) {
    for (size_t alignment = sizeof(void *); alignment <= 65536; alignment *= 2) {
        void *memory = qv_alloc_aligned(3 * alignment, alignment);
        CHECK(memory != NULL);
        CHECK_EQ((uintptr_t)memory % alignment, 0);
        qv_free_aligned(memory);
    }
    CHECK(qv_alloc_aligned(100, 3) == NULL);
    CHECK(qv_alloc_aligned(100, 0) == NULL);
    qv_free_aligned(NULL);
}

int main(void) {
    const check_entry cases[] = {
        CASE(test_open_makes_a_file_only_when_asked),
        CASE(test_open_leaves_a_blocking_descriptor_that_exec_closes),
        CASE(test_contradictory_flags_are_refused),
        CASE(test_names_that_leave_the_directory_are_refused),
        CASE(test_links_are_not_followed),
        CASE(test_what_is_no_regular_file_is_refused_without_blocking),
        CASE(test_open_dir_takes_directories_only),
        CASE(test_closing_a_closed_descriptor_is_an_error),
        CASE(test_bytes_written_are_read_back),
        CASE(test_a_read_is_short_only_at_the_end),
        CASE(test_ranges_beyond_a_file_are_refused),
        CASE(test_a_write_the_descriptor_does_not_allow_is_an_error),
        CASE(test_a_write_cut_short_is_an_error_and_not_completed),
        CASE(test_fill_zeroes_its_range_and_nothing_else),
        CASE(test_advice_is_taken),
        CASE(test_syncs_succeed_on_good_descriptors_and_fail_on_bad_ones),
        CASE(test_rename_moves_and_replaces),
        CASE(test_unlink_removes_files_only),
        CASE(test_truncate_cuts_and_grows),
        CASE(test_what_a_map_changes_is_in_the_file_after_sync),
        CASE(test_stores_writes_and_reads_see_the_same_bytes),
        CASE(test_starting_a_sync_of_what_cannot_be_synced_is_an_error),
        CASE(test_impossible_maps_are_refused),
        CASE(test_syncing_what_is_not_mapped_is_an_error),
        CASE(test_direct_writes_work_at_the_block_size_found),
        CASE(test_probes_leave_nothing_behind),
        CASE(test_probes_say_why_no_file_can_be_made),
        CASE(test_one_holder_excludes_all_others),
        CASE(test_shared_holders_exclude_only_an_exclusive_one),
        CASE(test_a_record_lock_of_another_process_excludes),
        CASE(test_an_exclusive_lock_needs_a_writable_descriptor),
        CASE(test_aligned_memory_is_aligned),
    };

    return RUN_CASES(cases);
}
