"""One journal folder, and the back end that its files are written through.

`Folder` is what Python code uses: names, whole reads and writes, syncs, all relative to one open
directory. `BackEnd` is what the flusher thread uses, without the GIL: each kind (NIO, ASYNCIO,
MAPPED, IO_URING) has a module of its own beside this one.

Errors of the C functions are `-errno`; `Folder` turns them into JournalIOError, the flusher hands
them to the waiters. The GIL is released around every call that may touch a disk.
"""

import errno
import os

from libc.string cimport memcpy
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize

from journal.files.guard cimport may_write
from journal.native cimport (
    QV_CREATE, QV_DIRECT, QV_EXCLUSIVE, QV_RDONLY, QV_RDWR, qv_advise, qv_aio_close,
    qv_aio_open, qv_aio_submit, qv_aio_wait, qv_alloc_aligned, qv_block_size,
    qv_close, qv_file_size, qv_fill, qv_free_aligned, qv_keep_room, qv_map, qv_mkdir,
    qv_open, qv_open_dir, qv_read, qv_rename, qv_rename_to,
    qv_set_io_hook, qv_start_sync, qv_store, qv_supports_direct, qv_sync_all, qv_sync_data,
    qv_sync_dir, qv_truncate, qv_unlink, qv_unmap, qv_uring_close, qv_uring_open,
    qv_uring_submit, qv_uring_wait, qv_write)

from journal.errors import JournalFull, JournalIOError


def keep_room(int fd, uint64_t size, str name="a file"):
    """Have the disk keep room for the first `size` bytes of a file, which is as long as before.

    A write there never finds the disk full. False where the file system cannot keep room.

    Raises:
        JournalFull: there is no room; some of it may be kept all the same.
        JournalIOError: the device fails.
    """
    cdef int result
    with nogil:
        result = qv_keep_room(fd, size)
    if result in (-errno.EOPNOTSUPP, -errno.ENOSYS):
        return False
    if result in (-errno.ENOSPC, -errno.EDQUOT):
        raise JournalFull(-result, "no room", name)
    if result < 0:
        raise JournalIOError(-result, "cannot keep room", name)
    return True


# --- ext/, once ------------------------------------------------------------------------------

cdef int64_t io_read(int fd, void *buffer, uint64_t size, uint64_t offset) noexcept nogil:
    return qv_read(fd, buffer, size, offset)


cdef int io_write(int fd, const void *data, uint64_t size, uint64_t offset,
                  bint sync) noexcept nogil:
    return qv_write(fd, data, size, offset, sync)


cdef int io_start_sync(int fd, uint64_t offset, uint64_t size) noexcept nogil:
    return qv_start_sync(fd, offset, size)


cdef int io_close(int fd) noexcept nogil:
    return qv_close(fd)


cdef int io_map(int fd, uint64_t size, bint writable, void **address) noexcept nogil:
    return qv_map(fd, size, writable, address)


cdef int io_unmap(void *address, uint64_t size) noexcept nogil:
    return qv_unmap(address, size)


cdef int io_store(int fd, void *address, const void *data, uint64_t size,
                  uint64_t offset) noexcept nogil:
    return qv_store(fd, address, data, size, offset)


cdef int io_advise(int fd, uint64_t offset, uint64_t size, bint willneed) noexcept nogil:
    return qv_advise(fd, offset, size, willneed)


cdef void *io_alloc(uint64_t size, uint64_t alignment) noexcept nogil:
    return qv_alloc_aligned(size, alignment)


cdef void io_free(void *memory) noexcept nogil:
    qv_free_aligned(memory)


cdef int aio_open(uint32_t depth, qv_aio_queue **queue) noexcept nogil:
    return qv_aio_open(depth, queue)


cdef int aio_submit(qv_aio_queue *queue, int fd, const void *data, uint64_t size,
                    uint64_t offset, bint sync, uint64_t tag) noexcept nogil:
    return qv_aio_submit(queue, fd, data, size, offset, sync, tag)


cdef int aio_wait(qv_aio_queue *queue, uint32_t least, qv_completion *out,
                  uint32_t most) noexcept nogil:
    return qv_aio_wait(queue, least, out, most)


cdef void aio_close(qv_aio_queue *queue) noexcept nogil:
    qv_aio_close(queue)


cdef int uring_open(uint32_t depth, qv_uring_queue **queue) noexcept nogil:
    return qv_uring_open(depth, queue)


cdef int uring_submit(qv_uring_queue *queue, int fd, const void *data, uint64_t size,
                      uint64_t offset, bint sync, uint64_t tag) noexcept nogil:
    return qv_uring_submit(queue, fd, data, size, offset, sync, tag)


cdef int uring_wait(qv_uring_queue *queue, uint32_t least, qv_completion *out,
                    uint32_t most) noexcept nogil:
    return qv_uring_wait(queue, least, out, most)


cdef void uring_close(qv_uring_queue *queue) noexcept nogil:
    qv_uring_close(queue)


cdef void set_io_hook(qv_io_hook hook, void *context) noexcept nogil:
    qv_set_io_hook(hook, context)


# --- the back end ----------------------------------------------------------------------------

cdef enum:
    # Starting costs a system call, 10 us and a request to the device. Pieces of 64 KiB are how
    # qv_fill lays files out in the page cache.
    START_SIZE = 256 * 1024     # bytes
    PIECE = 64 * 1024


cdef class BackEnd:
    """How the flusher thread writes and syncs; this base does it by plain pwrite and fdatasync.

    Attributes:
        name: the journal type.
        alignment: bytes that offset, size and buffer of every write are a multiple of; 1: any.
        queue_depth: writes that submit() takes before one must be awaited; 0: write() only.
        direct: the page cache is passed by.
        starts_early: the page cache is sent to the disk as it fills, in pieces of START_SIZE: for
            files that will be synced when they are left. Else a full file would be a burst that
            everybody waits for, after a time in which the disk had nothing to do.
        guard: asked by put() and put_later(); None: it is always allowed.

    Threads: one at a time calls write, sync, submit and wait.
    """

    def __cinit__(self, str name, uint32_t alignment=1, bint direct=False, uint32_t depth=0):
        self.name = name
        self.queue_depth = depth
        self.alignment = alignment
        self.direct = direct

    def close(self):
        """Give back what the back end holds; no write may be in flight. Idempotent."""

    cdef int attach(self, OpenFile *file) noexcept nogil:
        """Make a file ready to be written; its fd, size and first are set."""
        return 0

    cdef int detach(self, OpenFile *file) noexcept nogil:
        """Undo attach and close the fd: 0 or the first error, the file is gone either way."""
        return qv_close(file.fd)

    cdef int put(self, OpenFile *file, const uint8_t *data, uint64_t size, uint64_t offset,
                 bint sync) noexcept nogil:
        """write(), or the error where the right to write is lost."""
        cdef int result = may_write(self.guard)
        return self.write(file, data, size, offset, sync) if result == 0 else result

    cdef int put_later(self, OpenFile *file, const uint8_t *data, uint64_t size, uint64_t offset,
                       bint sync, uint64_t tag) noexcept nogil:
        """submit(), or the error where the right to write is lost."""
        cdef int result = may_write(self.guard)
        return self.submit(file, data, size, offset, sync, tag) if result == 0 else result

    cdef int write(self, OpenFile *file, const uint8_t *data, uint64_t size, uint64_t offset,
                   bint sync) noexcept nogil:
        """Write all of it, and with `sync` return only when it is on disk."""
        cdef int result = qv_write(file.fd, data, size, offset, False)
        # Write and fdatasync apart cost what RWF_DSYNC costs where the disk has no FUA, and do
        # better with many waiters.
        if result == 0:
            if sync:
                result = qv_sync_data(file.fd)
            else:
                self.start_sync(file, offset + size)
        return result

    cdef void start_sync(self, OpenFile *file, uint64_t end) noexcept nogil:
        """All before `end` was written, nothing of it synced: time to start, perhaps."""
        if self.starts_early and end >= file.started + START_SIZE:
            # A piece that is still being written to would go out twice.
            end = end // PIECE * PIECE
            # A hint: if it fails, so does the sync.
            qv_start_sync(file.fd, file.started, end - file.started)
            file.started = end

    cdef int sync(self, OpenFile *file) noexcept nogil:
        """Everything written to the file before is on disk when this returns 0."""
        return qv_sync_data(file.fd)

    cdef int submit(self, OpenFile *file, const uint8_t *data, uint64_t size, uint64_t offset,
                    bint sync, uint64_t tag) noexcept nogil:
        """Start a write; with `sync` it is on disk once wait() gives its tag."""
        return -errno_ENOSYS

    cdef int wait(self, uint32_t least, qv_completion *out, uint32_t most) noexcept nogil:
        """Take finished writes; waits for `least`."""
        return -errno_ENOSYS


cdef int errno_ENOSYS = errno.ENOSYS
cdef int errno_ENOMEM = errno.ENOMEM


# --- the folder ------------------------------------------------------------------------------

cdef class Folder:
    """One directory, open for as long as this object lives; every name is relative to it.

    Symbolic links and anything but regular files are refused. Every method raises
    JournalIOError, with errno and the file's name, when the system refuses. What changes a file or
    a name also raises it once the guard's right to write is lost.

    Attributes:
        guard: asked before each change; None: it is always allowed.

    Threads: any number at a time.
    """

    def __cinit__(self, path):
        cdef bytes encoded = os.fsencode(path)
        cdef const char *name = encoded
        self.fd = -1
        self.path = path
        with nogil:
            self.fd = qv_open_dir(name)
        if self.fd < 0:
            raise JournalIOError(-self.fd, "cannot open the directory", str(path))

    def close(self):
        """Close the directory. Idempotent."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def __dealloc__(self):
        if self.fd >= 0:
            qv_close(self.fd)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()

    cdef int check_guard(self) except -1:
        """Before each change: see that it is this process's to make."""
        if self.guard is not None:
            self.guard.check()
        return 0

    cdef object fail(self, int64_t result, str what, str name):
        return JournalIOError(<int>-result, what, os.path.join(str(self.path), name))

    def names(self):
        """Names of all entries, sorted."""
        try:
            return sorted(os.listdir(self.fd))
        except OSError as error:
            raise JournalIOError(error.errno or 0, "cannot list", str(self.path)) from error

    def open(self, str name, *, bint write=False, bint create=False, bint exclusive=False,
             bint direct=False):
        """A file descriptor; close it with close_file()."""
        cdef bytes encoded = os.fsencode(name)
        cdef const char *text = encoded
        cdef int flags = QV_RDWR if write or create else QV_RDONLY
        cdef int fd
        if flags != QV_RDONLY:
            self.check_guard()
        if create:
            flags |= QV_CREATE
        if exclusive:
            flags |= QV_EXCLUSIVE
        if direct:
            flags |= QV_DIRECT
        with nogil:
            fd = qv_open(self.fd, text, flags)
        if fd < 0:
            raise self.fail(fd, "cannot open", name)
        return fd

    def subfolder(self, str name, *, bint create=False):
        """The Folder inside this one, made (and its name synced) where it is missing."""
        cdef bytes encoded = os.fsencode(name)
        cdef const char *text = encoded
        cdef int result
        if create:
            self.check_guard()
            with nogil:
                result = qv_mkdir(self.fd, text)
            if result == 0:
                self.sync()
            elif result != -errno.EEXIST:
                raise self.fail(result, "cannot make the directory", name)
        inside = Folder(os.path.join(str(self.path), name))
        inside.guard = self.guard
        return inside

    def close_file(self, int fd, str name="a file"):
        """Close a file descriptor."""
        cdef int result
        with nogil:
            result = qv_close(fd)
        if result < 0:
            raise self.fail(result, "cannot close", name)

    def size(self, int fd, str name="a file"):
        """Bytes in the file."""
        cdef int64_t result = qv_file_size(fd)
        if result < 0:
            raise self.fail(result, "cannot measure", name)
        return result

    def read(self, int fd, uint64_t size, uint64_t offset=0, str name="a file"):
        """Up to `size` bytes from `offset`; fewer only at the end of the file."""
        cdef bytes data = PyBytes_FromStringAndSize(NULL, size)
        cdef char *buffer = PyBytes_AS_STRING(data)
        cdef int64_t count
        with nogil:
            count = qv_read(fd, buffer, size, offset)
        if count < 0:
            raise self.fail(count, "cannot read", name)
        return data if <uint64_t>count == size else data[:count]

    def write(self, int fd, const uint8_t[::1] data, uint64_t offset, str name="a file", *,
              uint32_t alignment=1):
        """Write all of `data`; with an alignment through an aligned copy, for O_DIRECT."""
        cdef uint64_t size = data.shape[0]
        cdef const uint8_t *source = &data[0] if size else NULL
        cdef void *copy = NULL
        cdef int result
        self.check_guard()
        with nogil:
            if alignment > 1:
                copy = qv_alloc_aligned(size, alignment)
                if copy != NULL:
                    memcpy(copy, source, size)
                    result = qv_write(fd, copy, size, offset, False)
                    qv_free_aligned(copy)
                else:
                    result = -errno_ENOMEM
            else:
                result = qv_write(fd, source, size, offset, False)
        if result < 0:
            raise self.fail(result, "cannot write", name)

    def fill(self, int fd, uint64_t offset, uint64_t size, bint direct=False,
             str name="a file"):
        """Write real zeros."""
        cdef int result
        self.check_guard()
        with nogil:
            result = qv_fill(fd, offset, size, direct)
        if result < 0:
            raise self.fail(result, "cannot fill", name)

    def sync_file(self, int fd, str name="a file", *, bint metadata=False):
        """Data on disk when this returns; with `metadata` all metadata too."""
        cdef int result
        with nogil:
            result = qv_sync_all(fd) if metadata else qv_sync_data(fd)
        if result < 0:
            raise self.fail(result, "cannot sync", name)

    def sync(self):
        """Names made, renamed and removed before are on disk when this returns."""
        cdef int result
        with nogil:
            result = qv_sync_dir(self.fd)
        if result < 0:
            raise self.fail(result, "cannot sync the directory", "")

    def rename(self, str source, str target):
        """Rename within the folder; `target` is replaced. Durable after sync()."""
        cdef bytes from_name = os.fsencode(source), to_name = os.fsencode(target)
        cdef const char *from_text = from_name
        cdef const char *to_text = to_name
        cdef int result
        self.check_guard()
        with nogil:
            result = qv_rename(self.fd, from_text, to_text)
        if result < 0:
            raise self.fail(result, f"cannot rename to {target}", source)

    def move(self, str source, Folder target_folder, str target):
        """Rename into another folder of the same file system. Durable after sync() of both."""
        cdef bytes from_name = os.fsencode(source), to_name = os.fsencode(target)
        cdef const char *from_text = from_name
        cdef const char *to_text = to_name
        cdef int result
        self.check_guard()
        with nogil:
            result = qv_rename_to(self.fd, from_text, target_folder.fd, to_text)
        if result < 0:
            raise self.fail(result, f"cannot move to {target_folder.path}", source)

    def unlink(self, str name):
        """Remove a file. Durable after sync()."""
        cdef bytes encoded = os.fsencode(name)
        cdef const char *text = encoded
        cdef int result
        self.check_guard()
        with nogil:
            result = qv_unlink(self.fd, text)
        if result < 0:
            raise self.fail(result, "cannot remove", name)

    def truncate(self, int fd, uint64_t size, str name="a file"):
        """Cut or grow the file to `size` bytes."""
        cdef int result
        self.check_guard()
        with nogil:
            result = qv_truncate(fd, size)
        if result < 0:
            raise self.fail(result, "cannot truncate", name)

    def block_size(self):
        """Smallest alignment in bytes of a direct write here, found out by trying."""
        cdef int result
        with nogil:
            result = qv_block_size(self.fd)
        if result < 0:
            raise self.fail(result, "cannot probe the block size", "")
        return result

    def supports_direct(self):
        """Whether direct writes work here, found out by trying."""
        cdef int result
        with nogil:
            result = qv_supports_direct(self.fd)
        if result < 0:
            raise self.fail(result, "cannot probe direct writes", "")
        return bool(result)
