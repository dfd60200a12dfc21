/* io_uring: the cases of queue_cases.h. */
#include "uring_queue.h"

typedef qv_uring_queue queue;
#define QUEUE(name) qv_uring_##name

#include "queue_cases.h"
