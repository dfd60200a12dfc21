"""Threads that wait for a number that only grows, until a counter is beyond it: batches on disk.

A number's waiters are woken all at once, by one call. Then they would queue again, for the GIL,
where each sleeps and is woken once more. That is three switches a record instead of one, most of
them to a processor that has to be roused first. So threads are admitted to the GIL one at a time
(admit()), and a thread that is not admitted yet stays runnable. The holder of the admission
releases it when it waits for its next record, which is when it gives up the GIL.

No thread depends on that release:
- after ADMISSION_NS the next thread takes the admission over;
- a thread that has looked LOOKS_MAX times goes on without it;
- if holders are mostly late, since they do more than append, all threads go on without it.

Threads: any, without the GIL; admission is for those that ask for the GIL next.
"""

from libc.errno cimport EINTR

from journal.atomics cimport add32, load32, load64, pause_spin, store32, swap64_if
from journal.parking cimport now_ns, park, unpark

cdef extern from *:
    """
    #include <sched.h>

    /* When this thread took an admission that it has not released yet; 0: none. */
    static __thread uint64_t passed_ns;
    #define qv_passed_ns() (passed_ns)
    #define qv_set_passed_ns(v) (passed_ns = (v))
    """
    int sched_yield() noexcept nogil
    uint64_t get_passed_ns "qv_passed_ns"() noexcept nogil
    void set_passed_ns "qv_set_passed_ns"(uint64_t value) noexcept nogil

# Admission between waking up and the GIL, see admit(). From there through the GIL to the next
# wait takes a thread 3 to 6 us. A holder older than HOLD_NS was preempted: a waiting thread yields
# its processor, which may be the one that the holder waits for. A holder older than ADMISSION_NS
# does other work. A yield moves a thread behind all others, so it must not come early; a preempted
# holder that loses the admission ends in a crowd at the GIL. 64 threads on two processors, rate
# over the limit program's: 1.4 with an ADMISSION_NS of 50 us, 1.1 with 20 us.
# docs/decisions/0010 has the alternatives.
cdef uint64_t HOLD_NS = 7_000
cdef uint64_t ADMISSION_NS = 50_000
cdef enum:
    # Looks at an admission that is taken, about 20 us of them: with as many processors as threads
    # all of them would spin until the last one's turn.
    LOOKS_MAX = 256
    # Of the holders at least a fifth must come back in time, over a hundred or more, or admission
    # is off for a while. Often or quickly is worse: threads that crowd at the GIL are late.
    ADMISSION_LOSS = 4          # what a late holder adds to the losses; a prompt one takes one off
    ADMISSION_LOSSES_MAX = 512
    ADMISSION_REST = 1024       # groups until admission is tried again


cdef class Waiters:
    """See the module's text."""

    cdef int wait(self, uint64_t number, uint64_t *counter, int *error) noexcept nogil:
        """Return 0 once the counter is beyond the number; or -error, once there is one.

        WOKEN_BY_A_SIGNAL: the handlers of Python have not run, and the number is not reached.
        """
        cdef uint32_t i = number % WAIT_WORDS
        cdef uint32_t seen
        cdef bint parked = False
        cdef int result = 0
        self.end_admission()
        while True:
            seen = load32(&self.words[i])
            if load64(counter) > number:
                if parked:
                    self.admit()
                return 0
            if error[0]:
                return -error[0]
            add32(&self.waiters[i], 1)
            if load64(counter) <= number and not error[0]:
                parked = True
                result = park(&self.words[i], seen)
            add32(&self.waiters[i], <uint32_t>-1)
            if result == -EINTR and load64(counter) <= number:
                return WOKEN_BY_A_SIGNAL

    cdef void wake(self, uint64_t first, uint64_t end) noexcept nogil:
        """The counter has become `end`: wake those who wait for first ... end - 1."""
        cdef uint32_t rest = load32(&self.admission_rest)
        cdef uint64_t number
        if rest:
            store32(&self.admission_rest, rest - 1)
        if end - first > WAIT_WORDS:
            first = end - WAIT_WORDS
        for number in range(first, end):
            add32(&self.words[number % WAIT_WORDS], 1)
            if load32(&self.waiters[number % WAIT_WORDS]):
                unpark(&self.words[number % WAIT_WORDS], True)

    cdef void wake_all(self) noexcept nogil:
        """There is an error: wake everybody."""
        cdef uint32_t i
        for i in range(WAIT_WORDS):
            add32(&self.words[i], 1)
            unpark(&self.words[i], True)

    cdef void admit(self) noexcept nogil:
        """Wait for one's turn to ask for the GIL, for a moment."""
        cdef uint64_t holder, now
        cdef int looks = 0
        while not load32(&self.admission_rest) and looks < LOOKS_MAX:
            looks += 1
            holder = load64(&self.admitted_at)     # When it was passed last.
            now = now_ns()
            if holder == 0 or now > holder + ADMISSION_NS:
                if swap64_if(&self.admitted_at, &holder, now):
                    set_passed_ns(now)
                    if holder:
                        self.note_late()
                    return
            elif now < holder + HOLD_NS:
                pause_spin()
            else:
                sched_yield()

    cdef void end_admission(self) noexcept nogil:
        """Release the admission, if this thread holds it and no other has taken it over."""
        cdef uint64_t mine = get_passed_ns()
        cdef uint32_t losses
        if mine:
            set_passed_ns(0)
            # Before the release: only the holder, and the thread that takes over, count losses.
            losses = load32(&self.admission_losses)
            if losses:
                store32(&self.admission_losses, losses - 1)
            swap64_if(&self.admitted_at, &mine, 0)

    cdef void note_late(self) noexcept nogil:
        """A holder was late. The count may miss one when two meet: it is a rule of thumb."""
        cdef uint32_t losses = load32(&self.admission_losses) + ADMISSION_LOSS
        if losses >= ADMISSION_LOSSES_MAX:
            losses = 0
            store32(&self.admission_rest, ADMISSION_REST)
        store32(&self.admission_losses, losses)
