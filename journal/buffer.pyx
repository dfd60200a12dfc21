"""The timed buffer: many records, one write, one sync; and the flusher thread that does it.

Producers fill a ring of batches (batch_ring.pyx); the flusher empties it into files.

When the flusher is free it takes the batch being filled if anybody waits for it, otherwise at
the latest `timeout_ns` after its first record, synced if any record asks for it. A lone record
that somebody waits for waits for no timer. Where more of them were in the last group it gives
late-comers a moment (`group_delay_ns`): their producers were just woken and are about to ask again.
Records without a waiter do not count for this. All batches that are ready go as one group: written
side by side where the back end has a queue, then one sync for all of them.

A file is closed once its last batch is on disk, with an end mark. A journal that is idle or closes
writes a mark alone.

The first failed write or sync is final: every counter stays, every waiter gets the error.

Threads: any thread may call, without the GIL, what buffer.pxd declares; `lock` guards all state,
and callers hold it from reserve() to release(). The flusher never takes the GIL, and never holds
`lock` across a system call that touches the disk.
"""

import errno

from libc.string cimport memset

from journal.atomics cimport add32, load32, load64, pause_spin, store64
from journal.batch_ring cimport BUFFER_ALIGNMENT, SLOTS_MAX, BatchRing, Slot
from journal.files.base cimport BackEnd, io_alloc, io_free
from journal.format cimport END_MARK, LEADER_SIZE, MARK, encode_mark
from journal.native cimport qv_completion
from journal.parking cimport (
    bump_event, close_event, now_ns, open_event, park, park_until, set_timer_slack, sleep_ns,
    take_event, unpark)
from journal.waiters cimport WOKEN_BY_A_SIGNAL, Waiters

cdef int EIO = errno.EIO, EAGAIN = errno.EAGAIN, EINTR = errno.EINTR

cdef enum:
    TIMER_SLACK_NS = 1000       # the kernel's 50 us would make a join of 10 us one of 60
    PREWARMS_MAX = 8            # in a row without a record: no queue keeps what is announced
# A moment for producers that were just woken to ask again: the wake-ups come one after another,
# so it is longer than C threads would want. And half a second without work before an idle mark.
cdef uint64_t GROUP_DELAY_NS = 25_000
cdef uint64_t IDLE_NS = 500_000_000
# A processor that sleeps takes about as long to wake: who expects a record and looks out for it any
# longer had better sleep again.
cdef uint64_t PREWARM_NS = 50_000
cdef uint64_t FOREVER = <uint64_t>-1


cdef class GroupBuffer(BatchRing):
    """A ring of batches, filled by producers and emptied by one native thread.

    Attributes of the constructor:
        back_end: what writes; closed by its owner after close().
        capacity: bytes of one slot; the largest batch.
        timeout_ns: the longest time in nanoseconds that a record without a waiter stays in the
            buffer; 0 writes each at once.
        datasync: sync what is asked to be synced; off, "synced" means written.
        leaders: the journal writes leaders, so batches may open with marks.
    """

    def __cinit__(self, BackEnd back_end, *, uint64_t capacity, uint64_t timeout_ns,
                  bint datasync, bint leaders):
        self.timeout_ns = timeout_ns
        self.group_delay_ns = min(GROUP_DELAY_NS, timeout_ns)
        self.idle_ns = IDLE_NS
        self.datasync = datasync
        self.event_fd = -1
        self.waiting = Waiters()
        pthread_mutex_init(&self.lock, NULL)
        # What lies before the mark in its sector's predecessor, and the mark's own block.
        self.mark_block = <uint8_t *>io_alloc(
            2 * max(<uint64_t>BUFFER_ALIGNMENT, <uint64_t>back_end.alignment), BUFFER_ALIGNMENT)
        if self.mark_block == NULL:
            raise MemoryError
        self.event_fd = open_event()
        if self.event_fd < 0:
            raise OSError(-self.event_fd, "cannot open an eventfd")

    def __dealloc__(self):
        # The ring, which the thread fills and empties, goes behind this.
        if self.running:
            with nogil:
                self.halt()
        io_free(self.mark_block)
        if self.event_fd >= 0:
            close_event(self.event_fd)
        pthread_mutex_destroy(&self.lock)

    cdef int start(self) except -1:
        """Start the flusher thread; begin_file() came first."""
        cdef int result = pthread_create(
            &self.thread, NULL, <void *(*)(void *) noexcept nogil>flusher_main, <void *>self)
        if result:
            raise OSError(result, "cannot start the flusher thread")
        self.running = True
        return 0

    def close(self):
        """Write and sync all that is accepted, then end the flusher thread. Idempotent.

        No appends are allowed any more. After an error only the thread is ended.
        """
        if self.running:
            with nogil:
                self.halt()

    cdef void halt(self) noexcept nogil:
        pthread_mutex_lock(&self.lock)
        self.stopping = True
        self.wanted = self.head + 1
        self.release()
        pthread_join(self.thread, NULL)
        self.running = False

    cdef void flush_now(self) noexcept nogil:
        """Sync at once what would be synced with a later batch. Without the lock."""
        if load64(&self.sync_due) > load64(&self.synced):
            pthread_mutex_lock(&self.lock)
            if self.sync_due > self.wanted:
                self.wanted = self.sync_due
            self.release()

    cdef void prewarm(self) noexcept nogil:
        """Somebody is about to add what he waits for: let the flusher wake meanwhile.

        Without the lock. A flusher that is awake looks at what comes by itself.
        """
        if not self.parked or self.idle_prewarms >= PREWARMS_MAX:
            return
        pthread_mutex_lock(&self.lock)
        if self.parked:
            self.is_prewarmed = True
            self.wake()
        else:
            pthread_mutex_unlock(&self.lock)

    cdef void release(self) noexcept nogil:
        """Give up the lock, and wake the flusher if it has reason to look."""
        cdef Slot *slot = &self.slots[self.head % self.slot_count]
        # The first record of a batch starts the timer: no news for who looks in time by himself.
        if self.parked and (self.stopping or self.wanted > self.synced
                            or self.flush_to > self.written or self.taken < self.head
                            or (slot.records == 1
                                and slot.started_ns + self.timeout_ns < self.parked_until)):
            self.wake()
        else:
            pthread_mutex_unlock(&self.lock)

    cdef void wake(self) noexcept nogil:
        """Wake the flusher, which is parked, and give up the lock."""
        self.parked = False
        add32(&self.signal, 1)
        pthread_mutex_unlock(&self.lock)
        unpark(&self.signal, False)

    # Waiting, without the lock. WOKEN_BY_A_SIGNAL: have Python look at it, and ask again.

    cdef void want(self, uint64_t batch) noexcept nogil:
        """Request a sync of the batch as soon as possible, once; does not wait."""
        if load64(&self.wanted) <= batch:
            pthread_mutex_lock(&self.lock)
            if self.wanted <= batch:
                self.wanted = batch + 1
            self.release()

    cdef int wait_synced(self, uint64_t batch) noexcept nogil:
        """Return when the batch is on disk: 0, or -errno of the failure that ended the buffer.

        Requests the sync if no other thread has.
        """
        if load64(&self.synced) > batch:
            return 0
        self.want(batch)
        return self.waiting.wait(batch, &self.synced, &self.error)

    cdef int wait_written(self, uint64_t batch) noexcept nogil:
        """Return when the batch is in its file: 0 or -errno."""
        if load64(&self.written) > batch:
            return 0
        pthread_mutex_lock(&self.lock)
        if self.flush_to <= batch:
            self.flush_to = batch + 1
        self.release()
        return self.waiting.wait(batch, &self.written, &self.error)

    cdef int wait_for_room(self) noexcept nogil:
        """Return when a slot is free again: 0 or -errno. Ask reserve() again."""
        cdef uint32_t seen
        cdef int result = 0
        while result != -EINTR:
            pthread_mutex_lock(&self.lock)
            if self.error or self.next_is_free():
                pthread_mutex_unlock(&self.lock)
                return -self.error
            seen = load32(&self.room_word)
            self.room_waiters = 1
            self.release()
            result = park(&self.room_word, seen)
        return WOKEN_BY_A_SIGNAL

    cdef void notify(self, uint64_t first, uint64_t end) noexcept nogil:
        """Wake those who wait for batches first ... end - 1, for room, and the event loop.

        Gives up the lock meanwhile: who is woken wants it at once, with the GIL in hand.
        """
        cdef bint event = self.event_wanted, room = self.room_waiters
        self.event_wanted = False
        self.room_waiters = 0
        add32(&self.room_word, 1)
        pthread_mutex_unlock(&self.lock)
        if event:
            bump_event(self.event_fd)
        self.waiting.wake(first, end)
        if room:
            unpark(&self.room_word, True)
        pthread_mutex_lock(&self.lock)

    cdef void fail(self, int error) noexcept nogil:
        """The end: under the lock. Everybody who waits or asks from now on gets `error`."""
        if not self.error:
            self.error = error
        bump_event(self.event_fd)
        self.waiting.wake_all()
        add32(&self.room_word, 1)
        unpark(&self.room_word, True)

    # The flusher thread.

    cdef void run(self) noexcept nogil:
        cdef uint64_t now
        set_timer_slack(TIMER_SLACK_NS)
        pthread_mutex_lock(&self.lock)
        while not self.error:
            if self.taken < self.head:
                self.flush_group()
                continue
            now = now_ns()
            if self.slots[self.head % self.slot_count].records:
                if self.due(now):
                    self.delay_group()
                    self.flush_group()
                    continue
            elif self.wanted > self.synced and self.synced < self.written:
                self.sync_only()
                continue
            elif self.stopping:
                if self.mark_due():
                    self.write_mark()
                break
            elif self.mark_due() and now >= self.idle_since_ns + self.idle_ns:
                self.write_mark()
                continue
            if self.is_prewarmed:
                self.poll_for_record(now + PREWARM_NS)
            else:
                self.sleep(now)
        pthread_mutex_unlock(&self.lock)

    cdef bint due(self, uint64_t now) noexcept nogil:
        """Whether the batch being filled must go now."""
        cdef Slot *slot = &self.slots[self.head % self.slot_count]
        return (self.wanted > self.synced or self.flush_to > self.head or self.stopping
                or now >= slot.started_ns + self.timeout_ns)

    cdef void sleep(self, uint64_t now) noexcept nogil:
        """Park until someone releases with a reason, or until the next deadline.

        Behind a group the deadline is the time when a record that came at once would be due. So a
        producer that adds a record without a waiter need not wake the flusher to set the timer.
        Waking a thread costs the producer more than the record.
        """
        cdef Slot *slot = &self.slots[self.head % self.slot_count]
        cdef uint64_t deadline = FOREVER
        cdef uint32_t seen = load32(&self.signal)
        if slot.records:
            deadline = slot.started_ns + self.timeout_ns
        else:
            if self.mark_due():
                deadline = self.idle_since_ns + self.idle_ns
            if now < self.idle_since_ns + self.timeout_ns:
                deadline = min(deadline, self.idle_since_ns + self.timeout_ns)
        self.parked = True
        self.parked_until = deadline
        pthread_mutex_unlock(&self.lock)
        if deadline == FOREVER:
            park(&self.signal, seen)
        else:
            park_until(&self.signal, seen, deadline)
        pthread_mutex_lock(&self.lock)
        self.parked = False

    cdef void poll_for_record(self, uint64_t until) noexcept nogil:
        """Stay awake until what is expected has come, or for a moment."""
        self.is_prewarmed = False
        pthread_mutex_unlock(&self.lock)
        while load64(&self.wanted) <= load64(&self.synced) and now_ns() < until:
            pause_spin()
        pthread_mutex_lock(&self.lock)
        self.idle_prewarms += 1

    cdef void delay_group(self) noexcept nogil:
        # If as many as last time have come already, no late-comers are expected.
        if self.slots[self.head % self.slot_count].awaited < self.last_group_awaited \
                and self.group_delay_ns and not self.stopping:
            pthread_mutex_unlock(&self.lock)
            sleep_ns(self.group_delay_ns)
            pthread_mutex_lock(&self.lock)

    cdef void flush_group(self) noexcept nogil:
        """Write every batch that is ready, sync once if anybody waits, and tell them."""
        cdef uint64_t first = self.taken, end, old_synced = self.synced
        cdef uint64_t started, spent, bytes = 0, awaited = 0
        cdef Slot *last = NULL
        cdef OpenFile *file
        cdef bint sync
        cdef int result
        if self.slots[self.head % self.slot_count].records and self.next_is_free() \
                and (self.wanted > self.head or self.flush_to > self.head):
            self.seal()
        elif self.taken == self.head:
            self.seal()
        end = first
        while end < self.head:
            last = &self.slots[end % self.slot_count]
            bytes += last.size
            awaited += last.awaited
            end += 1
            if last.closes_file:
                break
        self.taken = end
        file = last.file
        # A file is synced when it is left, so that "on disk" never has a hole in between.
        sync = self.wanted > self.synced or self.sync_due > self.synced or last.closes_file
        pthread_mutex_unlock(&self.lock)

        started = now_ns()
        result = self.write_group(first, end, sync and self.datasync)
        if result == 0 and last.closes_file and self.marks:
            result = self.write_end_mark(last)
        spent = now_ns() - started

        pthread_mutex_lock(&self.lock)
        self.idle_since_ns = started + spent
        if result < 0:
            self.fail(-result)
            return
        self.flushes += 1
        self.bytes_written += bytes
        self.io_ns += spent
        if spent > self.io_ns_max:
            self.io_ns_max = spent
        self.last_group_awaited = awaited
        if awaited:
            self.idle_prewarms = 0
        store64(&self.written, end)
        if sync:
            self.syncs += 1
            file.synced_ordinal = last.ordinal_end
            store64(&self.synced, end)
        file.marked_ordinal = last.marked_ordinal
        file.is_done = last.closes_file
        self.notify(old_synced if sync else first, end)

    cdef int write_group(self, uint64_t first, uint64_t end, bint sync) noexcept nogil:
        cdef uint64_t batch
        cdef Slot *slot
        cdef int result
        slot = &self.slots[first % self.slot_count]
        if end - first == 1 and slot.size:
            return self.back_end.put(slot.file, slot.data, slot.size, slot.offset, sync)
        if end - first > 1 and self.back_end.queue_depth > 1:
            result = self.write_overlapped(first, end)
            if result < 0:
                return result
        else:
            for batch in range(first, end):
                slot = &self.slots[batch % self.slot_count]
                if slot.size:
                    result = self.back_end.put(slot.file, slot.data, slot.size, slot.offset,
                                               False)
                    if result < 0:
                        return result
        return self.back_end.sync(slot.file) if sync else 0

    cdef int write_overlapped(self, uint64_t first, uint64_t end) noexcept nogil:
        """Batches side by side through the queue; all results are in when this returns."""
        cdef qv_completion[SLOTS_MAX] completions
        cdef uint64_t batch = first
        cdef uint32_t in_flight = 0
        cdef int result = 0, error = 0, i
        cdef Slot *slot
        while batch < end or in_flight:
            while batch < end and not error:
                slot = &self.slots[batch % self.slot_count]
                if slot.size:
                    result = self.back_end.put_later(slot.file, slot.data, slot.size, slot.offset,
                                                     False, batch)
                    if result == -EAGAIN and in_flight:
                        break
                    if result < 0:
                        error = result
                        break
                    in_flight += 1
                batch += 1
            if error and not in_flight:
                break
            if in_flight:
                result = self.back_end.wait(1, completions, SLOTS_MAX)
                if result < 0:
                    return result
                in_flight -= result
                for i in range(result):
                    slot = &self.slots[completions[i].tag % self.slot_count]
                    if completions[i].result < 0:
                        error = <int>completions[i].result
                    elif <uint64_t>completions[i].result != slot.size:
                        error = -EIO
        return error

    cdef int write_end_mark(self, Slot *slot) noexcept nogil:
        """Close a file whose last batch is on disk. The caller that closes the file syncs it."""
        cdef uint64_t offset = self.mark_offset(slot.file)
        if offset + self.padded(slot.file, LEADER_SIZE) > slot.file.size:
            return 0    # The writer that filled it kept no room for one.
        return self.put_mark(slot.file, slot.file.position, offset, END_MARK, slot.ordinal_end,
                             False)

    cdef int put_mark(self, OpenFile *file, uint64_t start, uint64_t offset, uint8_t marker,
                      uint32_t ordinal, bint sync) noexcept nogil:
        """Write a mark at `offset`, and zeros from `start` up to it."""
        cdef uint64_t size = offset - start + self.padded(file, LEADER_SIZE)
        memset(self.mark_block, 0, size)
        encode_mark(self.mark_block + (offset - start), marker, file.file_id, ordinal)
        return self.back_end.put(file, self.mark_block, size, start, sync)

    cdef void sync_only(self) noexcept nogil:
        """Nothing to write, but somebody waits for what was written before."""
        cdef uint64_t end = self.written, old = self.synced
        cdef OpenFile *file = self.file
        # The batches in question are all in the current file: the others were synced when left.
        cdef uint32_t ordinal = file.ordinal
        cdef int result = 0
        pthread_mutex_unlock(&self.lock)
        if self.datasync:
            result = self.back_end.sync(file)
        pthread_mutex_lock(&self.lock)
        self.idle_since_ns = now_ns()
        if result < 0:
            self.fail(-result)
            return
        self.syncs += 1
        file.synced_ordinal = ordinal
        store64(&self.synced, end)
        self.notify(old, end)

    cdef bint mark_due(self) noexcept nogil:
        """Whether more is on disk than the last mark says, and there is room to say it."""
        return (self.marks and self.file.marked_ordinal < self.file.synced_ordinal
                and self.slots[self.head % self.slot_count].records == 0
                and self.taken == self.head
                and self.file.position + self.padded(self.file, LEADER_SIZE) <= self.file.size)

    cdef void write_mark(self) noexcept nogil:
        """Say, alone, how much is on disk: the journal is idle or closes.

        If no end mark would fit behind this mark any more, a load could not go on behind it. Then
        the mark is the end mark; it is written again, with all that came meanwhile, when the file
        is left.
        """
        cdef OpenFile *file = self.file
        cdef uint32_t claimed = file.synced_ordinal
        cdef uint64_t start = file.position, offset = self.mark_offset(file)
        cdef uint64_t end = offset + self.padded(file, LEADER_SIZE)
        cdef uint8_t marker = END_MARK if self.mark_end(file, end) > file.size else MARK
        cdef int result
        # What is appended meanwhile fills a slot, and is written over the mark by this thread.
        pthread_mutex_unlock(&self.lock)
        result = self.put_mark(file, start, offset, marker, claimed, True)
        pthread_mutex_lock(&self.lock)
        if result < 0:
            self.fail(-result)
            return
        file.marked_ordinal = claimed


cdef void *flusher_main(GroupBuffer self) noexcept nogil:
    self.run()
    return NULL


cdef void event_bump(int fd) noexcept nogil:
    """Make an eventfd readable."""
    bump_event(fd)


cdef uint64_t event_take(int fd) noexcept nogil:
    """Empty an eventfd."""
    return take_event(fd)
