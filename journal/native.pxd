"""Everything of ext/ that Cython code may call: plain C, without the GIL, never raising.

The manual is the C header named above each block: threads, lifetimes, errors. Results are 0, a
count or `-errno`; they become exceptions in the caller's one place for that.

Each object of ext/ is linked into exactly one extension module, since its state (the tap on files)
must exist once; setup.py holds the table. Other modules cimport what they need from that module.
"""

from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t


cdef extern from "ext/file_ops.h" nogil:
    enum qv_call:
        QV_CALL_OPEN
        QV_CALL_CREATE
        QV_CALL_READ
        QV_CALL_WRITE
        QV_CALL_SYNC_DATA
        QV_CALL_SYNC_ALL
        QV_CALL_SYNC_DIR
        QV_CALL_RENAME
        QV_CALL_UNLINK
        QV_CALL_TRUNCATE
        QV_CALL_MAP
        QV_CALL_SYNC_MAP
        QV_CALL_CLOSE
        QV_CALL_MKDIR
        QV_CALL_SUBMIT
        QV_CALL_COMPLETE

    enum qv_open_flag:
        QV_RDONLY
        QV_RDWR
        QV_CREATE
        QV_EXCLUSIVE
        QV_DIRECT

    size_t QV_IO_SIZE_MAX

    ctypedef struct qv_io_event:
        int32_t call
        int32_t fd
        int32_t dirfd
        const char *name
        const char *name2
        const void *data
        uint64_t size
        uint64_t offset
        int32_t dsync
        int32_t done

    ctypedef int64_t (*qv_io_hook)(void *ctx, qv_io_event *event) noexcept nogil

    void qv_set_io_hook(qv_io_hook hook, void *ctx) noexcept
    int64_t qv_ask_io_hook(qv_io_event *event) noexcept

    int qv_open_dir(const char *path) noexcept
    int qv_open_subdir(int dirfd, const char *name) noexcept
    int qv_open(int dirfd, const char *name, int flags) noexcept
    int qv_close(int fd) noexcept

    int64_t qv_file_size(int fd) noexcept
    int64_t qv_read(int fd, void *buffer, size_t size, uint64_t offset) noexcept
    int qv_write(int fd, const void *buffer, size_t size, uint64_t offset, int dsync) noexcept
    int qv_fill(int fd, uint64_t offset, uint64_t size, int direct) noexcept
    int qv_keep_room(int fd, uint64_t size) noexcept
    int qv_start_sync(int fd, uint64_t offset, uint64_t size) noexcept
    int qv_advise(int fd, uint64_t offset, uint64_t size, int willneed) noexcept

    int qv_sync_data(int fd) noexcept
    int qv_sync_all(int fd) noexcept
    int qv_sync_dir(int dirfd) noexcept

    int qv_rename(int dirfd, const char *source, const char *target) noexcept
    int qv_rename_to(int dirfd, const char *source, int dirfd2, const char *target) noexcept
    int qv_unlink(int dirfd, const char *name) noexcept
    int qv_mkdir(int dirfd, const char *name) noexcept
    int qv_truncate(int fd, uint64_t size) noexcept

    int qv_map(int fd, size_t size, int writable, void **address) noexcept
    int qv_unmap(void *address, size_t size) noexcept
    int qv_store(int fd, void *address, const void *data, size_t size, uint64_t offset) noexcept

    int qv_block_size(int dirfd) noexcept
    int qv_supports_direct(int dirfd) noexcept
    int qv_lock(int fd, int exclusive) noexcept
    void *qv_alloc_aligned(size_t size, size_t alignment) noexcept
    void qv_free_aligned(void *memory) noexcept


cdef extern from "ext/completion.h" nogil:
    unsigned int QV_DEPTH_MAX

    ctypedef struct qv_completion:
        uint64_t tag
        int64_t result


cdef extern from "ext/aio_queue.h" nogil:
    ctypedef struct qv_aio_queue:
        pass

    int qv_aio_open(unsigned int depth, qv_aio_queue **queue) noexcept
    int qv_aio_submit(qv_aio_queue *q, int fd, const void *buffer, size_t size, uint64_t offset,
                      int dsync, uint64_t tag) noexcept
    int qv_aio_wait(qv_aio_queue *q, unsigned int min, qv_completion *out,
                    unsigned int max) noexcept
    unsigned int qv_aio_in_flight(const qv_aio_queue *q) noexcept
    int qv_aio_event_fd(qv_aio_queue *q) noexcept
    int qv_aio_arm(qv_aio_queue *q, int on) noexcept
    void qv_aio_close(qv_aio_queue *q) noexcept


cdef extern from "ext/uring_queue.h" nogil:
    ctypedef struct qv_uring_queue:
        pass

    int qv_uring_open(unsigned int depth, qv_uring_queue **queue) noexcept
    int qv_uring_submit(qv_uring_queue *q, int fd, const void *buffer, size_t size,
                        uint64_t offset, int dsync, uint64_t tag) noexcept
    int qv_uring_wait(qv_uring_queue *q, unsigned int min, qv_completion *out,
                      unsigned int max) noexcept
    unsigned int qv_uring_in_flight(const qv_uring_queue *q) noexcept
    int qv_uring_event_fd(qv_uring_queue *q) noexcept
    int qv_uring_arm(qv_uring_queue *q, int on) noexcept
    void qv_uring_close(qv_uring_queue *q) noexcept


cdef extern from "ext/crc32c.h" nogil:
    uint32_t qv_crc32c(uint32_t crc, const void *data, size_t size) noexcept
    const char *qv_crc32c_way() noexcept


cdef extern from "ext/clock.h" nogil:
    uint64_t qv_now_ns() noexcept
    int64_t qv_wall_ms() noexcept
    void qv_sleep_ns(uint64_t ns) noexcept
    int qv_timer_slack(uint64_t ns) noexcept


cdef extern from "ext/park.h" nogil:
    int qv_park(uint32_t *word, uint32_t seen) noexcept
    int qv_park_until(uint32_t *word, uint32_t seen, uint64_t deadline_ns) noexcept
    int qv_unpark(uint32_t *word, int all) noexcept
    int qv_event_fd() noexcept
    void qv_event_bump(int fd) noexcept
    uint64_t qv_event_take(int fd) noexcept
    void qv_event_close(int fd) noexcept
