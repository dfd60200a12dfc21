/* One message at a time through a broker, by the Core protocol: the least that
 * a client can cost.
 *
 *   core_ping PRODUCER CONSUMER SEND ACKNOWLEDGE WARM SECONDS
 *
 *   PRODUCER, CONSUMER   descriptors of connected sockets, whose sessions have
 * begun SEND                 file: the frame of a send that asks for an answer
 *   ACKNOWLEDGE          file: the frame of an acknowledgement; the message's
 * id is put into it WARM, SECONDS        before the clock runs, and after
 *
 * The producer sends, and waits for the answer. The consumer, a second thread,
 * acknowledges the last message of what one read has brought. Prints one line
 * of JSON.
 *
 *   frame     size after it (4) | type (1) | channel (8) | body
 *   message   where its body ends (4), from the frame's start | body | id (8) |
 * ...
 *
 * Threads: each has its own socket and buffer; `is_over` alone is shared. */
#include <arpa/inet.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
  HEADER = 13,
  TYPE_AT = 4,
  ROOM = 1 << 18,
  FRAME_MAX = 1 << 14,
  SAMPLES_MAX = 1 << 22
};
enum {
  NULL_RESPONSE = 21,
  EXCEPTION = 20,
  RECEIVE_MESSAGE = 75,
  ACKNOWLEDGED_AT = HEADER + 8
};

struct frame {
  uint8_t bytes[FRAME_MAX];
  size_t size;
};

struct stream {
  int fd;
  size_t filled;
  uint8_t bytes[ROOM];
};

static struct frame send_frame, acknowledge_frame;
static struct stream producer, consumer;
static uint64_t samples[SAMPLES_MAX];
static atomic_bool is_over;

static void fail(const char *what) {
  perror(what);
  exit(1);
}

static uint64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static uint32_t int_at(const uint8_t *place) {
  uint32_t value;
  memcpy(&value, place, sizeof value);
  return ntohl(value);
}

static void load(const char *path, struct frame *frame) {
  FILE *file = fopen(path, "rb");
  if (!file)
    fail(path);
  frame->size = fread(frame->bytes, 1, FRAME_MAX, file);
  fclose(file);
}

static void put(int fd, const struct frame *frame) {
  size_t done = 0;
  while (done < frame->size) {
    ssize_t count = write(fd, frame->bytes + done, frame->size - done);
    if (count <= 0)
      fail("write");
    done += (size_t)count;
  }
}

/* Reads once, and gives each whole frame to `take`; what is left of a frame
 * stays. */
static void read_frames(struct stream *stream,
                        void (*take)(const uint8_t *frame, void *with),
                        void *with) {
  ssize_t count =
      read(stream->fd, stream->bytes + stream->filled, ROOM - stream->filled);
  size_t at = 0;
  if (count <= 0) {
    if (atomic_load(&is_over))
      return;
    fail("read");
  }
  stream->filled += (size_t)count;
  while (stream->filled - at >= 4 &&
         stream->filled - at >= 4 + int_at(stream->bytes + at)) {
    take(stream->bytes + at, with);
    at += 4 + int_at(stream->bytes + at);
  }
  memmove(stream->bytes, stream->bytes + at, stream->filled - at);
  stream->filled -= at;
}

static void note_message(const uint8_t *frame, void *with) {
  const uint8_t **last = with;
  if (frame[TYPE_AT] == RECEIVE_MESSAGE) {
    *last = acknowledge_frame.bytes + ACKNOWLEDGED_AT;
    memcpy(acknowledge_frame.bytes + ACKNOWLEDGED_AT,
           frame + int_at(frame + HEADER) + 4, 8);
  }
}

static void *consume(void *unused) {
  while (!atomic_load(&is_over)) {
    const uint8_t *last = NULL;
    read_frames(&consumer, note_message, &last);
    if (last)
      put(consumer.fd, &acknowledge_frame);
  }
  return unused;
}

static void note_answer(const uint8_t *frame, void *with) {
  if (frame[TYPE_AT] == EXCEPTION) {
    fprintf(stderr, "the broker refuses the message\n");
    exit(1);
  }
  *(int *)with |= frame[TYPE_AT] == NULL_RESPONSE;
}

static int later(const void *one, const void *other) {
  uint64_t a = *(const uint64_t *)one, b = *(const uint64_t *)other;
  return (a > b) - (a < b);
}

int main(int count, char **words) {
  pthread_t thread;
  uint64_t warm_end, end, begun;
  size_t sent = 0;
  if (count != 7) {
    fprintf(
        stderr,
        "usage: core_ping PRODUCER CONSUMER SEND ACKNOWLEDGE WARM SECONDS\n");
    return 2;
  }
  producer.fd = atoi(words[1]);
  consumer.fd = atoi(words[2]);
  load(words[3], &send_frame);
  load(words[4], &acknowledge_frame);
  if (pthread_create(&thread, NULL, consume, NULL))
    fail("pthread_create");
  warm_end = now_ns() + (uint64_t)(atof(words[5]) * 1e9);
  end = warm_end + (uint64_t)(atof(words[6]) * 1e9);
  while ((begun = now_ns()) < end) {
    int is_answered = 0;
    put(producer.fd, &send_frame);
    while (!is_answered)
      read_frames(&producer, note_answer, &is_answered);
    if (begun >= warm_end && sent < SAMPLES_MAX)
      samples[sent++] = now_ns() - begun;
  }
  atomic_store(&is_over, 1);
  if (!sent)
    return 1;
  qsort(samples, sent, sizeof samples[0], later);
  printf("{\"confirmed_per_s\": %.1f, \"p50_us\": %.1f, \"p99_us\": %.1f}\n",
         (double)sent / atof(words[6]), (double)samples[sent / 2] / 1e3,
         (double)samples[sent * 99 / 100] / 1e3);
  return 0;
}
