#include "completion.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "file_ops.h"

int qv_slots_open(qv_slots *slots, unsigned depth) {
    slots->depth = depth;
    slots->free_count = depth;
    slots->slot = calloc(depth, sizeof *slots->slot);
    slots->free = calloc(depth, sizeof *slots->free);
    if (slots->slot == NULL || slots->free == NULL) {
        qv_slots_close(slots);
        return -ENOMEM;
    }
    /* A stack: the slot used last is the warm one. */
    for (uint32_t i = 0; i < depth; i++) slots->free[i] = depth - 1 - i;
    return 0;
}

void qv_slots_close(qv_slots *slots) {
    free(slots->slot);
    free(slots->free);
    slots->slot = NULL;
    slots->free = NULL;
}

static qv_io_event event_of(const qv_slot *slot, int call, uint64_t size) {
    return (qv_io_event){.call = call,
                         .fd = slot->fd,
                         .dirfd = -1,
                         .data = slot->data,
                         .size = size,
                         .offset = slot->offset,
                         .dsync = slot->dsync};
}

int64_t qv_slots_take(qv_slots *slots, int fd, const void *data, uint64_t size, uint64_t offset,
                      int dsync, uint64_t tag) {
    qv_slot asked = {
        .tag = tag, .data = data, .size = size, .offset = offset, .fd = fd, .dsync = dsync != 0};
    qv_io_event event;
    int64_t answer;
    uint32_t index;

    if (size > QV_IO_SIZE_MAX || offset > (uint64_t)INT64_MAX - size) return -EINVAL;
    if (slots->free_count == 0) return -EAGAIN;
    event = event_of(&asked, QV_CALL_SUBMIT, size);
    answer = qv_ask_io_hook(&event);
    if (answer < 0) return answer;
    if (answer > 0 && (uint64_t)answer < size) asked.size = (uint64_t)answer;
    index = slots->free[--slots->free_count];
    slots->slot[index] = asked;
    return index;
}

void qv_slots_submitted(const qv_slots *slots, uint32_t index) {
    qv_io_event event = event_of(&slots->slot[index], QV_CALL_SUBMIT, slots->slot[index].size);

    event.done = 1;
    (void)qv_ask_io_hook(&event);
}

void qv_slots_put_back(qv_slots *slots, uint32_t index) {
    assert(index < slots->depth && slots->free_count < slots->depth);
    slots->free[slots->free_count++] = index;
}

qv_completion qv_slots_complete(qv_slots *slots, uint32_t index, int64_t result) {
    const qv_slot *slot = &slots->slot[index];
    qv_completion completion = {.tag = slot->tag, .result = result};
    qv_io_event event = event_of(slot, QV_CALL_COMPLETE, result > 0 ? (uint64_t)result : 0);
    int64_t answer = qv_ask_io_hook(&event);

    if (answer < 0 || (answer > 0 && answer < result)) completion.result = answer;
    if (completion.result >= 0) {
        event.size = (uint64_t)completion.result;
        event.done = 1;
        (void)qv_ask_io_hook(&event);
    }
    qv_slots_put_back(slots, index);
    return completion;
}
