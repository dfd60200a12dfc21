/* What every test program here uses: two checks, a way to run cases, a fresh folder. */
#ifndef CHECK_H
#define CHECK_H

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "file_ops.h"

#define EXIT_SKIPPED 77 /* what is tested does not exist on this machine; stdout says why */

static int check_failures;
static const char *check_case = "";

#define CHECK(condition)                                                                   \
    do {                                                                                   \
        if (!(condition)) {                                                                \
            printf("%s:%d: %s: not so: %s\n", __FILE__, __LINE__, check_case, #condition); \
            check_failures++;                                                              \
        }                                                                                  \
    } while (0)

#define CHECK_EQ(actual, expected)                                                             \
    do {                                                                                       \
        int64_t check_a = (int64_t)(actual), check_e = (int64_t)(expected);                    \
        if (check_a != check_e) {                                                              \
            printf("%s:%d: %s: %s is %" PRId64 ", expected %" PRId64 "\n", __FILE__, __LINE__, \
                   check_case, #actual, check_a, check_e);                                     \
            check_failures++;                                                                  \
        }                                                                                      \
    } while (0)

typedef struct check_entry {
    const char *name;
    void (*run)(void);
} check_entry;

#define CASE(function) {#function, function}

static int check_run(const check_entry *cases, size_t count) {
    for (size_t i = 0; i < count; i++) {
        check_case = cases[i].name;
        cases[i].run();
        qv_set_io_hook(NULL, NULL);
    }
    printf("%zu cases, %d failures\n", count, check_failures);
    return check_failures ? EXIT_FAILURE : EXIT_SUCCESS;
}

#define RUN_CASES(cases) check_run(cases, sizeof(cases) / sizeof((cases)[0]))

/* A new, empty folder below the working directory, which the test runner made for this program. */
static inline int fresh_dir(void) {
    char path[] = "case-XXXXXX";

    if (mkdtemp(path) == NULL) abort();
    return qv_open_dir(path);
}

#endif
