"""The typed header of tickets.pyx."""

from libc.stdint cimport int64_t

from journal.completion cimport CompletionQueue

cdef class Tickets(CompletionQueue):
    cdef readonly int64_t durable_below     # tickets below this number are durable
    cdef readonly object error              # what ended the store, None: nothing yet
    cdef bint event_wanted
