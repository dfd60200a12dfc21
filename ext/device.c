#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "file_ops.h"

#ifndef O_TMPFILE
#define O_TMPFILE (020000000 | O_DIRECTORY)
#endif

#define SAFE_ALIGNMENT 4096

/* Zeros for the probes. Not const: that would put a MiB into the object file. */
static _Alignas(4096) uint8_t zeros[(size_t)1 << 20];

/* An empty file without a name in dirfd; the probes of a killed process leave nothing behind, but
 * for the moment between open and unlink on file systems without O_TMPFILE. */
static int open_unnamed(int dirfd, int os_flags) {
    static _Atomic unsigned serial;
    char name[64];
    int fd = openat(dirfd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC | os_flags, 0600);

    if (fd >= 0) return fd;
    if (errno != EOPNOTSUPP && errno != EISDIR && errno != ENOENT && errno != EINVAL) return -errno;
    snprintf(name, sizeof name, ".probe-%ld-%u.tmp", (long)getpid(), atomic_fetch_add(&serial, 1));
    fd = openat(dirfd, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC | os_flags, 0600);
    if (fd < 0) {
        int error = errno;
        if (error == EINVAL)
            (void)unlinkat(dirfd, name, 0); /* Older kernels create, then refuse. */
        return -error;
    }
    if (unlinkat(dirfd, name, 0) != 0) {
        int error = errno;
        (void)close(fd);
        return -error;
    }
    return fd;
}

/* 1 if a direct write of size at offset size works, 0 if it is refused as misaligned. A write that
 * is refused for lack of room is not refused as direct; but some file systems look for room before
 * they look at the alignment, so that its size says nothing: -ENOSPC. */
static int try_direct(int fd, size_t size) {
    ssize_t written;

    do {
        written = pwrite(fd, zeros, size, (off_t)size);
    } while (written < 0 && errno == EINTR);
    if (written == (ssize_t)size) return 1;
    if (written >= 0 || errno == EDQUOT) return -ENOSPC;
    return errno == EINVAL || errno == EOPNOTSUPP ? 0 : -errno;
}

/* statx stx_dio_offset_align, or 0 where it is not stated. By hand, since struct statx has no such
 * field before the 6.1 headers: linux/stat.h, stx_mask at byte 0, stx_dio_offset_align at 0x9c of
 * 256. */
static unsigned stated_alignment(int fd) {
    const uint32_t wanted = 0x2000; /* STATX_DIOALIGN */
    uint32_t answer[64] = {0};

    if (syscall(SYS_statx, fd, "", AT_EMPTY_PATH, wanted, answer) != 0) return 0;
    return answer[0] & wanted ? answer[0x9c / 4] : 0;
}

/* The alignment where no write can be tried, since the disk is full: what is stated, else what every
 * device of today takes. */
static int untried_alignment(unsigned stated) {
    return stated > SAFE_ALIGNMENT ? (int)stated : SAFE_ALIGNMENT;
}

/* The same where not even a file without a name can be made: the directory itself is asked. Where
 * nothing is stated of it, direct writes pass for possible; the open of the first file tells. */
static int probe_full(int dirfd) { return untried_alignment(stated_alignment(dirfd)); }

/* Alignment found, 0 if direct writes are refused, -errno. */
static int probe_direct(int dirfd) {
    int fd = open_unnamed(dirfd, O_DIRECT);
    int result = 0;
    unsigned size;

    if (fd == -ENOSPC || fd == -EDQUOT) return probe_full(dirfd);
    if (fd == -EINVAL || fd == -EOPNOTSUPP) {
        fd = open_unnamed(dirfd, 0); /* Tell "no O_DIRECT" from "no file". */
        if (fd < 0) return fd;
        (void)close(fd);
        return 0;
    }
    if (fd < 0) return fd;
    size = stated_alignment(fd);
    if (size < 512 || (size & (size - 1)) != 0) size = 512;
    for (; size <= sizeof zeros; size *= 2) {
        int works = try_direct(fd, size);
        if (works != 0) {
            result = works < 0 ? works : (int)size;
            if (works == -ENOSPC) result = untried_alignment(size);
            break;
        }
        if (size >= 65536) break; /* No device asks for more: refused, whatever the alignment. */
    }
    (void)close(fd);
    return result;
}

int qv_block_size(int dirfd) {
    int size = probe_direct(dirfd);

    return size == 0 ? 512 : size;
}

int qv_supports_direct(int dirfd) {
    int size = probe_direct(dirfd);

    return size < 0 ? size : size > 0;
}
