/* Files: open, read, write, sync, map, and the one tap that tests put on all of it.
 *
 * Rules of this file
 *   Result    0, a count, or -errno. errno itself is not part of the contract.
 *   Threads   every function may be called from any thread at any time; nothing here holds a lock
 *             or keeps state, but for the tap (see qv_set_io_hook). Two calls on one fd are as safe
 *             as the system calls below them.
 *   Memory    no allocation, but for qv_alloc_aligned. Buffers belong to the caller and are used
 *             only until the call returns.
 *   Names     one path component below a directory descriptor: a name that is empty, ".", ".." or
 *             holds '/' is refused with -EINVAL, a symbolic link with -ELOOP.
 *   Retries   EINTR is retried where nothing has happened yet (open, read, write, rename, truncate,
 *             lock). A sync is never retried: the kernel marks failed pages clean, so that a second
 *             sync would report a success that is none. A short write is an error and never completed
 *             silently: -ENOSPC or -EDQUOT where the kernel, asked for the rest, says that there is
 *             no room (tmpfs takes what fits), else -EIO, the first sign of a failing device.
 *   Offsets   bytes from the start of the file, at most 2**63 - 1; sizes of one write at most
 *             QV_IO_SIZE_MAX. Beyond either: -EINVAL.
 */
#ifndef QV_FILE_OPS_H
#define QV_FILE_OPS_H

#include <stddef.h>
#include <stdint.h>

/* The kernel moves at most this many bytes a call; more would be a short write. */
#define QV_IO_SIZE_MAX 0x7ffff000u

/* ---- the tap ------------------------------------------------------------------------------- */

enum qv_call {
    QV_CALL_OPEN = 1,  /* dirfd, name; done: fd */
    QV_CALL_CREATE,    /* as OPEN, with QV_CREATE: the name may have existed unless QV_EXCLUSIVE */
    QV_CALL_READ,      /* fd, data, size, offset; done: size = bytes read */
    QV_CALL_WRITE,     /* fd, data, size, offset, dsync; done: size = bytes written. qv_store too */
    QV_CALL_SYNC_DATA, /* fd */
    QV_CALL_SYNC_ALL,  /* fd */
    QV_CALL_SYNC_DIR,  /* dirfd */
    QV_CALL_RENAME,    /* dirfd, name -> fd = directory of the new name, name2 */
    QV_CALL_UNLINK,    /* dirfd, name */
    QV_CALL_TRUNCATE,  /* fd, size = new size */
    QV_CALL_MAP,       /* fd, size, dsync = 1 if writable; done: data = address */
    QV_CALL_SYNC_MAP,  /* fd, data, offset, size, all as the caller gave them, not page-rounded */
    QV_CALL_CLOSE,     /* fd */
    QV_CALL_MKDIR,     /* dirfd, name */
    QV_CALL_SUBMIT,    /* as WRITE, handed to a queue; done: the kernel took it */
    QV_CALL_COMPLETE   /* as WRITE, come back from a queue; size = bytes written, 0 if it failed */
};

/* What the tap is told. Fields that a call does not use are -1 (fd, dirfd), NULL or 0. Pointers are
 * good until the hook returns. */
typedef struct qv_io_event {
    int32_t call; /* enum qv_call */
    int32_t fd;
    int32_t dirfd;
    const char *name;
    const char *name2;
    const void *data;
    uint64_t size;
    uint64_t offset;
    int32_t dsync;
    int32_t done; /* 0: about to happen; 1: happened */
} qv_io_event;

/* Before a call (done = 0) the answer decides:
 *   < 0  the call fails with this -errno and is not made. Two exceptions, as in the kernel: CLOSE
 *        closes all the same, and COMPLETE comes after the fact and only changes what is reported.
 *     0  go on.
 *   > 0  WRITE, SUBMIT, COMPLETE only: so many bytes. WRITE writes these and returns -EIO; SUBMIT
 *        submits these, so that the completion carries a short count; COMPLETE reports so many. A
 *        number not below the size changes nothing; on an O_DIRECT file it must be a multiple of
 *        the block. Other calls take it as 0.
 *
 * After success (done = 1) the answer is ignored. A WRITE that ended short is told with done = 1
 * and the bytes that went out before the caller gets -EIO, so that a recorder knows the disk. */
typedef int64_t (*qv_io_hook)(void *ctx, qv_io_event *event);

/* Sets the one tap of the process; NULL takes it off. For tests: recorder and fault injector.
 * Called on the thread that makes the call, possibly on many at once. Set and remove it only while
 * no other thread is inside a function of this file or of a queue: ctx must outlive any such call.
 * Probes (qv_block_size, qv_supports_direct), qv_open_dir, sizes, locks and advice do not pass
 * through it. */
void qv_set_io_hook(qv_io_hook hook, void *ctx);

/* Asks the tap; 0 when there is none. For the queues. */
int64_t qv_ask_io_hook(qv_io_event *event);

/* ---- open and close ------------------------------------------------------------------------ */

enum qv_open_flag {
    QV_RDONLY = 1,
    QV_RDWR = 2,
    QV_CREATE = 4,    /* make it if it is not there, mode 0666 less the umask; needs QV_RDWR */
    QV_EXCLUSIVE = 8, /* with QV_CREATE: -EEXIST if it is there */
    QV_DIRECT = 16    /* O_DIRECT: buffer, size and offset must be multiples of qv_block_size */
};

/* Opens the directory at path, which may be any path. Its fd is the dirfd of everything below. */
int qv_open_dir(const char *path);
/* Opens the directory name inside dirfd; never follows a link (-ENOTDIR or -ELOOP). */
int qv_open_subdir(int dirfd, const char *name);

/* Opens a regular file; fd or -errno. Always O_NOFOLLOW | O_CLOEXEC, never blocks on a FIFO.
 *   -EINVAL      name or flags are wrong, or it is neither a regular file nor a directory
 *   -EISDIR      a directory
 *   -ELOOP       a symbolic link
 *   -EOPNOTSUPP  the file system refuses O_DIRECT; with QV_CREATE the empty file may exist now
 *   -ENOENT, -EEXIST, -EACCES, -EMFILE ... as open(2) */
int qv_open(int dirfd, const char *name, int flags);

/* Closes; the fd is gone whatever this returns. With unsynced data pending an error is a failed
 * sync. */
int qv_close(int fd);

/* ---- bytes --------------------------------------------------------------------------------- */

/* Bytes in the file. */
int64_t qv_file_size(int fd);

/* Reads size bytes at offset; a count below size only at the end of the file. */
int64_t qv_read(int fd, void *buffer, size_t size, uint64_t offset);

/* Writes all or fails: 0, -ENOSPC, -EDQUOT or -EIO on a short write, else -errno. dsync != 0: returns only when the
 * bytes, and the metadata that finds them, are on stable storage (RWF_DSYNC; -EOPNOTSUPP on kernels
 * without). After an error any part of the range may hold new or old bytes. */
int qv_write(int fd, const void *buffer, size_t size, uint64_t offset, int dsync);

/* Writes real zeros over [offset, offset + size), in writes that end at multiples of a piece, each
 * seen by the tap. Not synced. direct != 0 says that fd is O_DIRECT: offset and size must be
 * multiples of 512 (-EINVAL, nothing written) and of the block. Real zeros, since an unwritten
 * extent turns every later sync into a file-system journal commit.
 *
 * A piece is 1 MiB if direct, else 64 KiB. Through the page cache the size of the write decides the
 * size of the folios (ext4 from Linux 6.16, xfs longer), and these stay: a later write of 1 KiB
 * costs 3.7 us in a folio of 1 MiB, 1.5 us in one of 64 KiB; a store into a map dirties the whole
 * folio, so that its sync writes 1 MiB. Smaller ones make large writes dearer (3.2 ms for 10 MiB in
 * pages of 4 KiB, 1.9 ms in folios of 64 KiB). */
int qv_fill(int fd, uint64_t offset, uint64_t size, int direct);

/* Has the disk keep room for the first size bytes: a write there never finds it full. The file is as
 * long as before, and holes in it read as zeros. 0, -ENOSPC or -EDQUOT where there is none, of which
 * some may be kept all the same; -EOPNOTSUPP where the file system cannot. Not told to the tap. */
int qv_keep_room(int fd, uint64_t size);

/* Starts writing [offset, offset + size) of the page cache to the disk and does not wait for it. A
 * hint: nothing is durable before a sync, and what fails here fails that sync. Not told to the
 * tap. */
int qv_start_sync(int fd, uint64_t offset, uint64_t size);

/* Hints: willneed != 0 read ahead, 0 drop clean cached pages. size 0 = to the end. */
int qv_advise(int fd, uint64_t offset, uint64_t size, int willneed);

/* ---- sync ---------------------------------------------------------------------------------- */

/* Every error, EINTR included, is final: what was written since the last success is unknown. */
int qv_sync_data(int fd);   /* fdatasync: data and the metadata needed to read it */
int qv_sync_all(int fd);    /* fsync: data and all metadata */
int qv_sync_dir(int dirfd); /* fsync of a directory: names created, renamed, removed in it */

/* ---- names --------------------------------------------------------------------------------- */

/* None of these is durable before qv_sync_dir of each directory concerned. */
int qv_rename(int dirfd, const char *from, const char *to); /* replaces `to` if it exists */
int qv_rename_to(int dirfd, const char *from, int dirfd2, const char *to);
int qv_unlink(int dirfd, const char *name); /* -EISDIR or -EPERM for a directory */
int qv_mkdir(int dirfd, const char *name);  /* mode 0777 less the umask; -EEXIST */
int qv_truncate(int fd, uint64_t size);

/* ---- maps ---------------------------------------------------------------------------------- */

/* Maps the first size bytes, shared; *address is page-aligned and survives qv_close(fd). A page
 * beyond the end of the file, or one the disk cannot provide, raises SIGBUS: qv_fill the file
 * first. */
int qv_map(int fd, size_t size, int writable, void **address);
int qv_unmap(void *address, size_t size); /* the size given to qv_map; does not sync */
/* Copies size bytes to offset of the map at address, which is of fd: a write without a system call.
 * To the tap it is a WRITE. Durable after qv_sync_data(fd), as any write. */
int qv_store(int fd, void *address, const void *data, size_t size, uint64_t offset);
/* msync(MS_SYNC) over the pages that hold [offset, offset + size) of the map at address. fd is for
 * the tap only. Errors as for qv_sync_data. */
int qv_sync_map(int fd, void *address, size_t offset, size_t size);

/* ---- the device ---------------------------------------------------------------------------- */

/* The smallest power of two, 512 to 4096 or what the file system states, for which an O_DIRECT
 * write at such an offset and of such a size works in this directory: begins at statx
 * STATX_DIOALIGN where the kernel (6.1) and file system state it, else at 512, and tries on an
 * unnamed file. 512 when O_DIRECT is refused altogether. On a full disk nothing is tried: what is
 * stated, at least 4096. -errno when no file can be made here (-EROFS, -EACCES ...). */
int qv_block_size(int dirfd);
/* 1 if an O_DIRECT write works in this directory, or might if the disk were not full; 0 if it is
 * refused, -errno as above. */
int qv_supports_direct(int dirfd);

/* Locks the whole file without waiting, until every fd of this open() is closed: 0, or -EWOULDBLOCK
 * when another open() holds it, in any process. An exclusive lock needs QV_RDWR (-EBADF). Honoured
 * between us and programs that use fcntl record locks, such as a JVM (Linux 3.15, open file
 * description locks). */
int qv_lock(int fd, int exclusive);

/* size bytes, uninitialised, at a multiple of alignment (a power of two >= sizeof(void *)); NULL
 * when there is no memory or the alignment is wrong. */
void *qv_alloc_aligned(size_t size, size_t alignment);
void qv_free_aligned(void *memory); /* NULL is allowed */

#endif
