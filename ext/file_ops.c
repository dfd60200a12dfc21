#include "file_ops.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#ifndef RWF_DSYNC
#define RWF_DSYNC 0x00000002
#endif

_Static_assert(sizeof(off_t) == 8, "offsets are 64 bits wide");

#define FILL_CHUNK ((uint64_t)1 << 20)
#define FILL_CHUNK_CACHED ((uint64_t)64 << 10)

/* Zeros for qv_fill. Not const: that would put a MiB into the object file. */
static _Alignas(4096) uint8_t zeros[FILL_CHUNK];

/* ---- the tap ------------------------------------------------------------------------------- */

static _Atomic(qv_io_hook) hook_function;
static void *_Atomic hook_context;

void qv_set_io_hook(qv_io_hook hook, void *ctx) {
    atomic_store(&hook_function, NULL);
    atomic_store(&hook_context, ctx);
    atomic_store_explicit(&hook_function, hook, memory_order_release);
}

int64_t qv_ask_io_hook(qv_io_event *event) {
    qv_io_hook hook = atomic_load_explicit(&hook_function, memory_order_acquire);

    if (__builtin_expect(hook == NULL, 1)) return 0;
    return hook(atomic_load_explicit(&hook_context, memory_order_relaxed), event);
}

static int ask(qv_io_event *event) {
    int64_t answer = qv_ask_io_hook(event);

    return answer < 0 ? (int)answer : 0;
}

static void tell(qv_io_event *event) {
    event->done = 1;
    (void)qv_ask_io_hook(event);
}

/* Ends a call that is told only when it succeeded. */
static int finish(qv_io_event *event, int failed) {
    if (failed) return -errno;
    tell(event);
    return 0;
}

/* ---- open and close ------------------------------------------------------------------------ */

static int is_plain_name(const char *name) {
    if (name == NULL || name[0] == '\0' || strchr(name, '/') != NULL) return 0;
    return strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

int qv_open_dir(const char *path) {
    int fd;

    do {
        fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    } while (fd < 0 && errno == EINTR);
    return fd < 0 ? -errno : fd;
}

int qv_open_subdir(int dirfd, const char *name) {
    int fd;

    if (!is_plain_name(name)) return -EINVAL;
    do {
        fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    } while (fd < 0 && errno == EINTR);
    return fd < 0 ? -errno : fd;
}

/* O_NONBLOCK keeps the open of a FIFO from blocking. It must not stay: io_uring answers -EAGAIN to
 * a write on such a file instead of waiting. */
static int accept_regular(int fd) {
    struct stat status;
    int flags;

    if (fstat(fd, &status) != 0) return -errno;
    if (S_ISDIR(status.st_mode)) return -EISDIR;
    if (!S_ISREG(status.st_mode)) return -EINVAL;
    flags = fcntl(fd, F_GETFL);
    if (flags < 0 || fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) != 0) return -errno;
    return 0;
}

static int open_error(int error, int flags) {
    if (error == ENXIO) return -EINVAL; /* a socket */
    if (error == EINVAL && (flags & QV_DIRECT)) return -EOPNOTSUPP;
    return -error;
}

int qv_open(int dirfd, const char *name, int flags) {
    int mode = flags & (QV_RDONLY | QV_RDWR);
    int os_flags = O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
    qv_io_event event = {.call = flags & QV_CREATE ? QV_CALL_CREATE : QV_CALL_OPEN,
                         .fd = -1,
                         .dirfd = dirfd,
                         .name = name};
    int fd, error;

    if (!is_plain_name(name) || (mode != QV_RDONLY && mode != QV_RDWR)) return -EINVAL;
    if ((flags & QV_CREATE) && mode != QV_RDWR) return -EINVAL;
    if ((flags & QV_EXCLUSIVE) && !(flags & QV_CREATE)) return -EINVAL;
    if ((error = ask(&event)) < 0) return error;

    os_flags |= mode == QV_RDWR ? O_RDWR : O_RDONLY;
    if (flags & QV_CREATE) os_flags |= O_CREAT;
    if (flags & QV_EXCLUSIVE) os_flags |= O_EXCL;
    if (flags & QV_DIRECT) os_flags |= O_DIRECT;
    do {
        fd = openat(dirfd, name, os_flags, 0666);
    } while (fd < 0 && errno == EINTR);
    if (fd < 0) return open_error(errno, flags);
    if ((error = accept_regular(fd)) < 0) {
        (void)close(fd); /* Nothing was written through it. */
        return error;
    }
    event.fd = fd;
    tell(&event);
    return fd;
}

int qv_close(int fd) {
    qv_io_event event = {.call = QV_CALL_CLOSE, .fd = fd, .dirfd = -1};
    int refused = ask(&event);
    int failed = close(fd); /* Linux frees the fd even on EINTR: a retry could close another's. */

    if (failed) return -errno;
    if (refused < 0) return refused;
    tell(&event);
    return 0;
}

/* ---- bytes --------------------------------------------------------------------------------- */

static int is_range(size_t size, uint64_t offset) {
    return offset <= (uint64_t)INT64_MAX && (uint64_t)size <= (uint64_t)INT64_MAX - offset;
}

int64_t qv_file_size(int fd) {
    struct stat status;

    return fstat(fd, &status) != 0 ? -(int64_t)errno : (int64_t)status.st_size;
}

int64_t qv_read(int fd, void *buffer, size_t size, uint64_t offset) {
    qv_io_event event = {.call = QV_CALL_READ,
                         .fd = fd,
                         .dirfd = -1,
                         .data = buffer,
                         .size = size,
                         .offset = offset};
    size_t count = 0;
    int error;

    if (!is_range(size, offset)) return -EINVAL;
    if ((error = ask(&event)) < 0) return error;
    while (count < size) {
        ssize_t got = pread(fd, (char *)buffer + count, size - count, (off_t)(offset + count));
        if (got > 0) {
            count += (size_t)got;
        } else if (got == 0) {
            break;
        } else if (errno != EINTR) {
            int read_error = errno;
            /* O_DIRECT refuses to go on from an unaligned end of file; that is not an error. */
            if (read_error == EINVAL && count > 0 && qv_file_size(fd) == (int64_t)(offset + count))
                break;
            return -read_error;
        }
    }
    event.size = count;
    tell(&event);
    return (int64_t)count;
}

static ssize_t write_once(int fd, const void *buffer, size_t size, uint64_t offset, int dsync) {
    struct iovec piece = {.iov_base = (void *)(uintptr_t)buffer, .iov_len = size};

    if (!dsync) return pwrite(fd, buffer, size, (off_t)offset);
    return pwritev2(fd, &piece, 1, (off_t)offset, RWF_DSYNC);
}

/* Why a write ended short: the kernel says so when it is asked for the rest. A full tmpfs and some
 * network file systems take what fits and report no error before the next call. */
static int short_write_error(int fd, const void *buffer, size_t size, uint64_t offset,
                             size_t written) {
    ssize_t more;

    do {
        more = pwrite(fd, (const char *)buffer + written, size - written,
                      (off_t)(offset + written));
    } while (more < 0 && errno == EINTR);
    return more < 0 && (errno == ENOSPC || errno == EDQUOT) ? -errno : -EIO;
}

int qv_write(int fd, const void *buffer, size_t size, uint64_t offset, int dsync) {
    qv_io_event event = {.call = QV_CALL_WRITE,
                         .fd = fd,
                         .dirfd = -1,
                         .data = buffer,
                         .size = size,
                         .offset = offset,
                         .dsync = dsync != 0};
    size_t allowed = size;
    ssize_t written;
    int64_t answer;

    if (size > QV_IO_SIZE_MAX || !is_range(size, offset)) return -EINVAL;
    answer = qv_ask_io_hook(&event);
    if (answer < 0) return (int)answer;
    if (answer > 0 && (uint64_t)answer < size) allowed = (size_t)answer;

    do {
        written = write_once(fd, buffer, allowed, offset, dsync);
    } while (written < 0 && errno == EINTR);
    if (written < 0) return -errno;
    event.size = (uint64_t)written;
    tell(&event);
    if ((size_t)written == size) return 0;
    return allowed < size ? -EIO : short_write_error(fd, buffer, size, offset, (size_t)written);
}

int qv_fill(int fd, uint64_t offset, uint64_t size, int direct) {
    uint64_t end = offset + size;
    uint64_t chunk = direct ? FILL_CHUNK : FILL_CHUNK_CACHED;

    if (!is_range(size, offset)) return -EINVAL;
    if (direct && ((offset | size) & 511) != 0) return -EINVAL;
    while (offset < end) {
        uint64_t boundary = (offset / chunk + 1) * chunk;
        uint64_t next = boundary < end ? boundary : end;
        int error = qv_write(fd, zeros, (size_t)(next - offset), offset, 0);
        if (error < 0) return error;
        offset = next;
    }
    return 0;
}

int qv_keep_room(int fd, uint64_t size) {
    int result;

    if (size == 0 || !is_range(size, 0)) return -EINVAL;
    do {
        result = fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, (off_t)size);
    } while (result != 0 && errno == EINTR);
    return result == 0 ? 0 : -errno;
}

int qv_start_sync(int fd, uint64_t offset, uint64_t size) {
    if (!is_range(size, offset)) return -EINVAL;
    if (sync_file_range(fd, (off_t)offset, (off_t)size, SYNC_FILE_RANGE_WRITE) != 0) return -errno;
    return 0;
}

int qv_advise(int fd, uint64_t offset, uint64_t size, int willneed) {
    if (!is_range(size, offset)) return -EINVAL;
    return -posix_fadvise(fd, (off_t)offset, (off_t)size,
                          willneed ? POSIX_FADV_WILLNEED : POSIX_FADV_DONTNEED);
}

/* ---- sync ---------------------------------------------------------------------------------- */

int qv_sync_data(int fd) {
    qv_io_event event = {.call = QV_CALL_SYNC_DATA, .fd = fd, .dirfd = -1};
    int error = ask(&event);

    return error < 0 ? error : finish(&event, fdatasync(fd));
}

int qv_sync_all(int fd) {
    qv_io_event event = {.call = QV_CALL_SYNC_ALL, .fd = fd, .dirfd = -1};
    int error = ask(&event);

    return error < 0 ? error : finish(&event, fsync(fd));
}

int qv_sync_dir(int dirfd) {
    qv_io_event event = {.call = QV_CALL_SYNC_DIR, .fd = -1, .dirfd = dirfd};
    int error = ask(&event);

    return error < 0 ? error : finish(&event, fsync(dirfd));
}

/* ---- names --------------------------------------------------------------------------------- */

int qv_rename(int dirfd, const char *from, const char *to) {
    return qv_rename_to(dirfd, from, dirfd, to);
}

int qv_rename_to(int dirfd, const char *from, int dirfd2, const char *to) {
    qv_io_event event = {
        .call = QV_CALL_RENAME, .fd = dirfd2, .dirfd = dirfd, .name = from, .name2 = to};
    int failed, error;

    if (!is_plain_name(from) || !is_plain_name(to)) return -EINVAL;
    if ((error = ask(&event)) < 0) return error;
    do {
        failed = renameat(dirfd, from, dirfd2, to);
    } while (failed && errno == EINTR);
    return finish(&event, failed);
}

int qv_unlink(int dirfd, const char *name) {
    qv_io_event event = {.call = QV_CALL_UNLINK, .fd = -1, .dirfd = dirfd, .name = name};
    int error;

    if (!is_plain_name(name)) return -EINVAL;
    if ((error = ask(&event)) < 0) return error;
    return finish(&event, unlinkat(dirfd, name, 0));
}

int qv_mkdir(int dirfd, const char *name) {
    qv_io_event event = {.call = QV_CALL_MKDIR, .fd = -1, .dirfd = dirfd, .name = name};
    int error;

    if (!is_plain_name(name)) return -EINVAL;
    if ((error = ask(&event)) < 0) return error;
    return finish(&event, mkdirat(dirfd, name, 0777));
}

int qv_truncate(int fd, uint64_t size) {
    qv_io_event event = {.call = QV_CALL_TRUNCATE, .fd = fd, .dirfd = -1, .size = size};
    int failed, error;

    if (!is_range(0, size)) return -EINVAL;
    if ((error = ask(&event)) < 0) return error;
    do {
        failed = ftruncate(fd, (off_t)size);
    } while (failed && errno == EINTR);
    return finish(&event, failed);
}

/* ---- maps ---------------------------------------------------------------------------------- */

int qv_map(int fd, size_t size, int writable, void **address) {
    qv_io_event event = {
        .call = QV_CALL_MAP, .fd = fd, .dirfd = -1, .size = size, .dsync = writable != 0};
    void *mapped;
    int error;

    *address = NULL;
    if ((error = ask(&event)) < 0) return error;
    mapped = mmap(NULL, size, PROT_READ | (writable ? PROT_WRITE : 0), MAP_SHARED, fd, 0);
    if (mapped == MAP_FAILED) return -errno;
    *address = mapped;
    event.data = mapped;
    tell(&event);
    return 0;
}

int qv_unmap(void *address, size_t size) { return munmap(address, size) != 0 ? -errno : 0; }

int qv_store(int fd, void *address, const void *data, size_t size, uint64_t offset) {
    qv_io_event event = {
        .call = QV_CALL_WRITE, .fd = fd, .dirfd = -1, .data = data, .size = size, .offset = offset};
    size_t allowed = size;
    int64_t answer;

    if (!is_range(size, offset)) return -EINVAL;
    answer = qv_ask_io_hook(&event);
    if (answer < 0) return (int)answer;
    if (answer > 0 && (uint64_t)answer < size) allowed = (size_t)answer;
    memcpy((char *)address + offset, data, allowed);
    event.size = allowed;
    tell(&event);
    return allowed == size ? 0 : -EIO;
}

int qv_sync_map(int fd, void *address, size_t offset, size_t size) {
    char *first_byte = (char *)address + offset;
    size_t before = (uintptr_t)first_byte & ((size_t)sysconf(_SC_PAGESIZE) - 1);
    qv_io_event event = {.call = QV_CALL_SYNC_MAP,
                         .fd = fd,
                         .dirfd = -1,
                         .data = first_byte,
                         .size = size,
                         .offset = offset};
    int error = ask(&event);

    if (error < 0) return error;
    return finish(&event, msync(first_byte - before, size + before, MS_SYNC));
}

/* ---- locks and memory ----------------------------------------------------------------------- */

/* An open-file-description lock: held by the open() as flock is, not lost when another fd of the
 * file is closed, and, unlike flock, seen by holders of classic record locks, which is what a JVM
 * takes. */
int qv_lock(int fd, int exclusive) {
    struct flock whole_file = {.l_type = exclusive ? F_WRLCK : F_RDLCK, .l_whence = SEEK_SET};
    int failed;

    do {
        failed = fcntl(fd, F_OFD_SETLK, &whole_file);
    } while (failed && errno == EINTR);
    if (!failed) return 0;
    return errno == EACCES ? -EWOULDBLOCK : -errno;
}

void *qv_alloc_aligned(size_t size, size_t alignment) {
    void *memory = NULL;

    if (alignment < sizeof(void *) || (alignment & (alignment - 1)) != 0) return NULL;
    return posix_memalign(&memory, alignment, size) == 0 ? memory : NULL;
}

void qv_free_aligned(void *memory) { free(memory); }
