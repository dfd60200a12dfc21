/* A tap for tests: records what it is told, and answers one call as ordered. */
#ifndef TAP_H
#define TAP_H

#include <string.h>

#include "file_ops.h"

#define TAP_EVENTS_MAX 256

typedef struct tap {
    int call;       /* the call to answer; 0: none */
    int after;      /* let so many of these pass first */
    int64_t answer; /* as qv_io_hook gives it */
    int count;
    qv_io_event events[TAP_EVENTS_MAX]; /* name pointers are dead; names below */
    char name[TAP_EVENTS_MAX][32];
    char name2[TAP_EVENTS_MAX][32];
} tap;

static inline int64_t tap_hook(void *ctx, qv_io_event *event) {
    tap *t = ctx;

    if (t->count < TAP_EVENTS_MAX) {
        t->events[t->count] = *event;
        if (event->name != NULL) strncpy(t->name[t->count], event->name, 31);
        if (event->name2 != NULL) strncpy(t->name2[t->count], event->name2, 31);
        t->count++;
    }
    if (event->done || event->call != t->call) return 0;
    if (t->after > 0) {
        t->after--;
        return 0;
    }
    return t->answer;
}

/* Starts anew: answers `call` once `after` of them have passed; 0 only records. */
static inline void tap_on(tap *t, int call, int after, int64_t answer) {
    memset(t, 0, sizeof *t);
    t->call = call;
    t->after = after;
    t->answer = answer;
    qv_set_io_hook(tap_hook, t);
}

static inline void tap_off(void) { qv_set_io_hook(NULL, NULL); }

#endif
