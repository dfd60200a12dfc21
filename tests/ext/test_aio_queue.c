/* Kernel AIO: the cases of queue_cases.h. */
#include "aio_queue.h"

typedef qv_aio_queue queue;
#define QUEUE(name) qv_aio_##name

#include "queue_cases.h"
