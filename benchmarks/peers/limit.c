/* The limit: the least that a log with group commit can do, in C, on this disk.
 *
 * Producers copy records into the open batch under one mutex. One writer thread seals the batch the
 * moment it may write, writes it into a file that was filled with zeros before, makes it durable and
 * wakes all of the batch's producers by one futex. There is no index, no checksum, no record type:
 * what a journal adds to this is what a ratio against it shows. It calls the disk through ext/, as
 * the journal does.
 *
 *   limit -m MODE [-p producers] [-r record bytes] [-w window] [-s seconds] [-q writes in flight]
 *         [-b batch KiB] [-F file MiB] [-N files] [-A alignment] [-j us] [-d directory]
 *
 *   MODE    IO-SYNC; IO: buf (page cache), dio (O_DIRECT), aio (kernel AIO, O_DIRECT), uring
 *           (io_uring, O_DIRECT), mmap; SYNC: none, fds (fdatasync), dsync (RWF_DSYNC), msync.
 *   window  1: a producer waits for each record; more: it waits for the record that many before.
 *   -j us   join: when the last batch was shared, leave the next one open for so long.
 *
 * Prints one line of JSON; latencies are from before the copy to after the wake-up (window 1), else
 * to the batch's completion.
 *
 * Threads: the mutex guards everything in `limit` but the batches' `durable` words. At most one
 * thread, the writer, touches a queue or a file. */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "aio_queue.h"
#include "clock.h"
#include "file_ops.h"
#include "park.h"
#include "uring_queue.h"

enum io { IO_BUF, IO_DIO, IO_AIO, IO_URING, IO_MMAP };
enum sync { SYNC_NONE, SYNC_FDS, SYNC_DSYNC, SYNC_MSYNC };

static const char *const IO_NAMES[] = {"buf", "dio", "aio", "uring", "mmap", NULL};
static const char *const SYNC_NAMES[] = {"none", "fds", "dsync", "msync", NULL};

#define RECORD_HEADER 16
#define BUCKETS (64 * 32)
#define PAGE 4096

/* --- latencies: 32 buckets to each power of two, so within 3 % --- */

typedef struct histogram {
    uint64_t count;
    uint64_t bucket[BUCKETS];
} histogram;

static void histogram_add(histogram *h, uint64_t value) {
    unsigned index = (unsigned)value;
    if (value >= 32) {
        unsigned exponent = 63 - (unsigned)__builtin_clzll(value);
        index = (exponent - 4) * 32 + (unsigned)((value >> (exponent - 5)) & 31);
    }
    h->bucket[index]++;
    h->count++;
}

static void histogram_merge(histogram *into, const histogram *from) {
    into->count += from->count;
    for (int i = 0; i < BUCKETS; i++) into->bucket[i] += from->bucket[i];
}

static double histogram_percentile_us(const histogram *h, double fraction) {
    uint64_t wanted = (uint64_t)((double)h->count * fraction), seen = 0;
    for (unsigned i = 0; i < BUCKETS; i++) {
        seen += h->bucket[i];
        if (seen > wanted) {
            unsigned exponent = i / 32 + 4;
            uint64_t low = i < 32 ? i : (32ull + (i & 31)) << (exponent - 5);
            return (double)low / 1e3;
        }
    }
    return 0;
}

/* --- the log --- */

typedef struct batch {
    char *data;
    size_t used;
    uint32_t records;
    uint64_t *begun_ns; /* one a record, when latencies are taken at completion */
    uint32_t durable;   /* futex: number of batches of this slot that are durable */
    uint32_t sleepers;  /* someone may wait on it */
    int written;        /* its write has ended */
    int file;
    uint64_t offset;
    size_t write_size;
} batch;

static struct {
    enum io io;
    enum sync sync;
    unsigned in_flight_max, files, join_us;
    size_t batch_size, file_size, alignment, record_size;
    unsigned window;
    const char *directory;

    int *fd;
    char **map;
    qv_aio_queue *aio;
    qv_uring_queue *uring;
    int queue_event, work_event; /* only with more than one write in flight */

    pthread_mutex_t mutex;
    pthread_cond_t work, room;
    batch *slots;
    unsigned slot_count;
    uint64_t open, done; /* numbers of batches: the one that takes records; the first not durable */
    unsigned in_flight, room_waiters;
    int writer_waits, stopping;

    unsigned file;
    uint64_t file_offset, batches, records, bytes_written;
    histogram latencies;
    volatile int stop_producers;
} limit;

static void check(int64_t result, const char *what) {
    if (result < 0) {
        fprintf(stderr, "limit: %s: %s\n", what, strerror((int)-result));
        exit(1);
    }
}

static int is_direct(void) {
    return limit.io == IO_DIO || limit.io == IO_AIO || limit.io == IO_URING;
}

static int is_queued(void) { return limit.io == IO_AIO || limit.io == IO_URING; }

static batch *slot(uint64_t number) { return &limit.slots[number % limit.slot_count]; }

/* How often `durable` must have been bumped for batch `number` to be durable. */
static uint32_t generation(uint64_t number) { return (uint32_t)(number / limit.slot_count + 1); }

static void open_files(void) {
    int directory = qv_open_dir(limit.directory);
    check(directory, limit.directory);
    limit.fd = calloc(limit.files, sizeof *limit.fd);
    limit.map = calloc(limit.files, sizeof *limit.map);
    for (unsigned i = 0; i < limit.files; i++) {
        char name[32];
        snprintf(name, sizeof name, "limit-%u.dat", i);
        int fd = qv_open(directory, name, QV_RDWR | QV_CREATE | QV_EXCLUSIVE);
        check(fd, name);
        check(qv_fill(fd, 0, limit.file_size, 0), "fill");
        check(qv_sync_all(fd), "sync");
        if (is_direct()) {
            qv_close(fd);
            fd = qv_open(directory, name, QV_RDWR | QV_DIRECT);
            check(fd, name);
        }
        if (limit.io == IO_MMAP)
            check(qv_map(fd, limit.file_size, 1, (void **)&limit.map[i]), "map");
        limit.fd[i] = fd;
        check(qv_unlink(directory, name), "unlink");
    }
    check(qv_sync_dir(directory), "sync directory");
    qv_close(directory);
}

/* --- completion; all with the mutex held --- */

static void wake_writer(void) {
    if (!limit.writer_waits) return;
    limit.writer_waits = 0;
    pthread_cond_signal(&limit.work);
    if (limit.work_event >= 0) qv_event_bump(limit.work_event);
}

static void finish(batch *ended) {
    ended->written = 1;
    limit.in_flight--;
    uint64_t now = limit.window > 1 ? qv_now_ns() : 0, before = limit.done;
    for (batch *b = slot(limit.done); limit.done < limit.open && b->written; b = slot(limit.done)) {
        if (limit.window > 1)
            for (uint32_t i = 0; i < b->records; i++)
                histogram_add(&limit.latencies, now - b->begun_ns[i]);
        limit.records += b->records;
        limit.batches++;
        b->written = 0;
        b->used = 0;
        b->records = 0;
        limit.done++;
        __atomic_add_fetch(&b->durable, 1, __ATOMIC_SEQ_CST);
        if (__atomic_exchange_n(&b->sleepers, 0, __ATOMIC_SEQ_CST)) qv_unpark(&b->durable, 1);
    }
    if (limit.done != before && limit.room_waiters) pthread_cond_broadcast(&limit.room);
}

/* --- the writer --- */

static void seal(batch *b) {
    b->write_size = b->used;
    if (is_direct()) {
        b->write_size = (b->used + limit.alignment - 1) / limit.alignment * limit.alignment;
        memset(b->data + b->used, 0, b->write_size - b->used);
    }
    if (limit.file_offset + b->write_size > limit.file_size) {
        limit.file_offset = 0;
        limit.file = (limit.file + 1) % limit.files;
    }
    b->file = (int)limit.file;
    b->offset = limit.file_offset;
    limit.file_offset += b->write_size;
    limit.bytes_written += b->write_size;
    limit.open++;
    limit.in_flight++;
    if (limit.room_waiters) pthread_cond_broadcast(&limit.room);
}

static void write_and_wait(batch *b) {
    int fd = limit.fd[b->file];
    /* The faster of the two ways to sync a mapped file is to write it: docs/decisions/0009. */
    if (limit.io == IO_MMAP && limit.sync != SYNC_FDS) {
        memcpy(limit.map[b->file] + b->offset, b->data, b->write_size);
        if (limit.sync != SYNC_NONE)
            check(qv_sync_map(fd, limit.map[b->file], b->offset, b->write_size), "msync");
        return;
    }
    check(qv_write(fd, b->data, b->write_size, b->offset, limit.sync == SYNC_DSYNC), "write");
    if (limit.sync == SYNC_FDS) check(qv_sync_data(fd), "sync");
}

static void submit(batch *b) {
    int fd = limit.fd[b->file], dsync = limit.sync == SYNC_DSYNC;
    uint64_t tag = (uint64_t)(b - limit.slots);
    check(limit.io == IO_AIO
              ? qv_aio_submit(limit.aio, fd, b->data, b->write_size, b->offset, dsync, tag)
              : qv_uring_submit(limit.uring, fd, b->data, b->write_size, b->offset, dsync, tag),
          "submit");
}

/* Takes completions, waiting for `least`, and finishes their batches. */
static void reap(unsigned least) {
    qv_completion ended[16];
    int count = limit.io == IO_AIO ? qv_aio_wait(limit.aio, least, ended, 16)
                                   : qv_uring_wait(limit.uring, least, ended, 16);
    check(count, "completion");
    for (int i = 0; i < count; i++) {
        check(ended[i].result, "write");
        batch *b = &limit.slots[ended[i].tag];
        if ((size_t)ended[i].result != b->write_size) check(-EIO, "short write");
        if (limit.sync == SYNC_FDS) check(qv_sync_data(limit.fd[b->file]), "sync");
    }
    pthread_mutex_lock(&limit.mutex);
    for (int i = 0; i < count; i++) finish(&limit.slots[ended[i].tag]);
    pthread_mutex_unlock(&limit.mutex);
}

/* Waits, mutex held, for a record to write or, with writes in flight, for the end of one. */
static void wait_for_work(void) {
    limit.writer_waits = 1;
    if (limit.in_flight == 0) {
        pthread_cond_wait(&limit.work, &limit.mutex);
        limit.writer_waits = 0;
        return;
    }
    pthread_mutex_unlock(&limit.mutex);
    struct pollfd ready[] = {{limit.queue_event, POLLIN, 0}, {limit.work_event, POLLIN, 0}};
    poll(ready, 2, -1);
    if (ready[1].revents) qv_event_take(limit.work_event);
    if (ready[0].revents) {
        qv_event_take(limit.queue_event);
        reap(0);
    }
    pthread_mutex_lock(&limit.mutex);
    limit.writer_waits = 0;
}

static int may_seal(void) {
    return slot(limit.open)->used > 0 && limit.in_flight < limit.in_flight_max &&
           limit.open + 1 < limit.done + limit.slot_count;
}

static void *writer(void *unused) {
    uint32_t last_records = 0;
    qv_timer_slack(1000);
    pthread_mutex_lock(&limit.mutex);
    for (;;) {
        while (!may_seal() && !(limit.stopping && limit.in_flight == 0)) wait_for_work();
        batch *b = slot(limit.open);
        if (b->used == 0) break;
        if (limit.join_us && last_records > 1 && b->used < limit.batch_size / 2) {
            pthread_mutex_unlock(&limit.mutex);
            qv_sleep_ns(limit.join_us * 1000ull);
            pthread_mutex_lock(&limit.mutex);
        }
        last_records = b->records;
        seal(b);
        pthread_mutex_unlock(&limit.mutex);
        if (!is_queued()) {
            write_and_wait(b);
            pthread_mutex_lock(&limit.mutex);
            finish(b);
        } else {
            submit(b);
            if (limit.in_flight_max == 1) reap(1);
            pthread_mutex_lock(&limit.mutex);
        }
    }
    pthread_mutex_unlock(&limit.mutex);
    return unused;
}

/* --- the producers --- */

static uint64_t append(const char *record, uint64_t now_ns) {
    size_t need = (RECORD_HEADER + limit.record_size + 7) & ~(size_t)7;
    pthread_mutex_lock(&limit.mutex);
    batch *b = slot(limit.open);
    while (limit.open >= limit.done + limit.slot_count || b->used + need > limit.batch_size) {
        wake_writer();
        limit.room_waiters++;
        pthread_cond_wait(&limit.room, &limit.mutex);
        limit.room_waiters--;
        b = slot(limit.open);
    }
    uint64_t header[2] = {limit.record_size, limit.open};
    memcpy(b->data + b->used, header, RECORD_HEADER);
    memcpy(b->data + b->used + RECORD_HEADER, record, limit.record_size);
    b->used += need;
    if (limit.window > 1) b->begun_ns[b->records] = now_ns;
    b->records++;
    uint64_t number = limit.open;
    if (limit.in_flight < limit.in_flight_max) wake_writer();
    pthread_mutex_unlock(&limit.mutex);
    return number;
}

static void wait_durable(uint64_t number) {
    batch *b = slot(number);
    uint32_t wanted = generation(number);
    for (;;) {
        uint32_t seen = __atomic_load_n(&b->durable, __ATOMIC_SEQ_CST);
        if ((int32_t)(seen - wanted) >= 0) return;
        __atomic_store_n(&b->sleepers, 1, __ATOMIC_SEQ_CST);
        if (__atomic_load_n(&b->durable, __ATOMIC_SEQ_CST) == seen) qv_park(&b->durable, seen);
    }
}

typedef struct producer {
    pthread_t thread;
    histogram latencies;
    uint64_t records;
} producer;

static void *produce(void *argument) {
    producer *self = argument;
    char *record = malloc(limit.record_size + 1);
    uint64_t *ring = calloc(limit.window, sizeof *ring), head = 0, tail = 0;
    memset(record, 'x', limit.record_size);
    while (!limit.stop_producers) {
        uint64_t begun = qv_now_ns();
        uint64_t number = append(record, begun);
        self->records++;
        if (limit.window == 1) {
            wait_durable(number);
            histogram_add(&self->latencies, qv_now_ns() - begun);
        } else {
            ring[head++ % limit.window] = number;
            if (head - tail == limit.window) wait_durable(ring[tail++ % limit.window]);
        }
    }
    while (tail < head) wait_durable(ring[tail++ % limit.window]);
    free(ring);
    free(record);
    return NULL;
}

/* --- one run --- */

static void start(pthread_t *thread) {
    limit.slot_count = limit.in_flight_max + 2;
    limit.slots = calloc(limit.slot_count, sizeof *limit.slots);
    for (unsigned i = 0; i < limit.slot_count; i++) {
        limit.slots[i].data = qv_alloc_aligned(limit.batch_size + PAGE, PAGE);
        limit.slots[i].begun_ns = calloc(limit.batch_size / RECORD_HEADER, sizeof(uint64_t));
        if (limit.slots[i].data == NULL || limit.slots[i].begun_ns == NULL)
            check(-ENOMEM, "batches");
        memset(limit.slots[i].data, 0, limit.batch_size + PAGE);
    }
    open_files();
    limit.queue_event = limit.work_event = -1;
    if (limit.io == IO_AIO) check(qv_aio_open(limit.in_flight_max, &limit.aio), "kernel AIO");
    if (limit.io == IO_URING) check(qv_uring_open(limit.in_flight_max, &limit.uring), "io_uring");
    if (is_queued() && limit.in_flight_max > 1) {
        limit.work_event = qv_event_fd();
        limit.queue_event =
            limit.io == IO_AIO ? qv_aio_event_fd(limit.aio) : qv_uring_event_fd(limit.uring);
        check(limit.queue_event, "event fd");
        check(limit.io == IO_AIO ? qv_aio_arm(limit.aio, 1) : qv_uring_arm(limit.uring, 1), "arm");
    }
    pthread_mutex_init(&limit.mutex, NULL);
    pthread_cond_init(&limit.work, NULL);
    pthread_cond_init(&limit.room, NULL);
    check(-pthread_create(thread, NULL, writer, NULL), "thread");
}

static void stop(pthread_t thread) {
    pthread_mutex_lock(&limit.mutex);
    limit.stopping = 1;
    limit.writer_waits = 1;
    wake_writer();
    pthread_mutex_unlock(&limit.mutex);
    pthread_join(thread, NULL);
}

static int index_of(const char *const names[], const char *name, size_t size) {
    for (int i = 0; names[i] != NULL; i++)
        if (strlen(names[i]) == size && memcmp(names[i], name, size) == 0) return i;
    fprintf(stderr, "limit: unknown mode %s\n", name);
    exit(2);
}

static double cpu_seconds(void) {
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
           (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
}

int main(int argc, char **argv) {
    unsigned producers = 1;
    double seconds = 1;
    const char *mode = "dio-fds";
    limit.in_flight_max = 1;
    limit.batch_size = 480 << 10;
    limit.file_size = 32 << 20;
    limit.files = 2;
    limit.alignment = PAGE;
    limit.record_size = 1024;
    limit.window = 1;
    limit.directory = ".";
    for (int option; (option = getopt(argc, argv, "m:p:r:w:s:q:b:F:N:A:j:d:")) != -1;) {
        switch (option) {
            case 'm':
                mode = optarg;
                break;
            case 'p':
                producers = (unsigned)atoi(optarg);
                break;
            case 'r':
                limit.record_size = (size_t)atol(optarg);
                break;
            case 'w':
                limit.window = (unsigned)atoi(optarg);
                break;
            case 's':
                seconds = atof(optarg);
                break;
            case 'q':
                limit.in_flight_max = (unsigned)atoi(optarg);
                break;
            case 'b':
                limit.batch_size = (size_t)atol(optarg) << 10;
                break;
            case 'F':
                limit.file_size = (size_t)atol(optarg) << 20;
                break;
            case 'N':
                limit.files = (unsigned)atoi(optarg);
                break;
            case 'A':
                limit.alignment = (size_t)atol(optarg);
                break;
            case 'j':
                limit.join_us = (unsigned)atoi(optarg);
                break;
            case 'd':
                limit.directory = optarg;
                break;
            default:
                return 2;
        }
    }
    const char *dash = strchr(mode, '-');
    if (dash == NULL || producers < 1 || limit.window < 1 || limit.in_flight_max < 1) {
        fprintf(stderr, "limit: a mode is IO-SYNC; counts begin at 1\n");
        return 2;
    }
    limit.io = (enum io)index_of(IO_NAMES, mode, (size_t)(dash - mode));
    limit.sync = (enum sync)index_of(SYNC_NAMES, dash + 1, strlen(dash + 1));
    if (RECORD_HEADER + limit.record_size > limit.batch_size) check(-EMSGSIZE, "record");

    pthread_t writer_thread;
    start(&writer_thread);
    producer *all = calloc(producers, sizeof *all);
    uint64_t begun = qv_now_ns();
    double cpu = cpu_seconds();
    for (unsigned i = 0; i < producers; i++)
        check(-pthread_create(&all[i].thread, NULL, produce, &all[i]), "thread");
    qv_sleep_ns((uint64_t)(seconds * 1e9));
    limit.stop_producers = 1;
    uint64_t records = 0;
    for (unsigned i = 0; i < producers; i++) {
        pthread_join(all[i].thread, NULL);
        records += all[i].records;
        histogram_merge(&limit.latencies, &all[i].latencies);
    }
    double elapsed = (double)(qv_now_ns() - begun) / 1e9;
    cpu = cpu_seconds() - cpu;
    stop(writer_thread);

    printf(
        "{\"engine\":\"limit\",\"mode\":\"%s\",\"producers\":%u,\"record_size\":%zu,"
        "\"window\":%u,\"in_flight\":%u,\"join_us\":%u,\"records\":%llu,\"seconds\":%.3f,"
        "\"records_per_s\":%.0f,\"p50_us\":%.1f,\"p99_us\":%.1f,\"p999_us\":%.1f,"
        "\"records_per_batch\":%.2f,\"written_mb_per_s\":%.1f,\"cpu\":%.2f}\n",
        mode, producers, limit.record_size, limit.window, limit.in_flight_max, limit.join_us,
        (unsigned long long)records, elapsed, (double)records / elapsed,
        histogram_percentile_us(&limit.latencies, 0.5),
        histogram_percentile_us(&limit.latencies, 0.99),
        histogram_percentile_us(&limit.latencies, 0.999),
        limit.batches ? (double)limit.records / (double)limit.batches : 0.0,
        (double)limit.bytes_written / 1e6 / elapsed, cpu / elapsed);
    return 0;
}
