# Fields of context.py's classes, compiled; see setup.py (COMPILED).

cimport cython


cdef class Completions:
    cdef object _check
    cdef object _clock
    cdef object _failure
    cdef object _flush_now
    cdef bint _is_held
    cdef bint _is_running
    cdef object _on_failure
    cdef double _proved_s
    cdef object _waiting
    cdef public Counter bindings
    cdef public object call_later
    cdef public Counter messages
    cdef public Counter pages

    cdef bint _is_durable(self)

    @cython.locals(messages=Counter)
    cpdef object flush_now(self)

    @cython.locals(call=_Call)
    cpdef object run_due(self)

    @cython.locals(now_s=double)
    cdef bint may_tell(self)
    cdef bint _prove(self, double now_s)

    @cython.locals(call=_Call)
    cpdef object wait(
        self, OperationContext context, Admission admission, callback, tuple arguments)


@cython.freelist(256)
cdef class _Call:
    cdef readonly tuple arguments
    cdef long long bindings
    cdef readonly object callback
    cdef OperationContext context
    cdef Admission admission
    cdef long long messages
    cdef long long pages

    cdef object fill(
        self,
        Completions completions,
        OperationContext context,
        Admission admission,
        callback,
        tuple arguments,
    )
    cdef bint is_due(self, Completions completions)
    cdef object run(self, Completions completions)


cdef class Admission:
    cdef public bint is_open
    cdef public long long messages


cdef class Counter:
    cdef Completions _owner
    cdef public long long appended
    cdef public long long durable
    cdef public long long unflushed


cdef class OperationContext:
    cdef long long _bindings
    cdef Completions _completions
    cdef long long _messages
    cdef long long _pages
    cdef public Py_ssize_t pending

    cpdef object note(self)
    cpdef object then(self, callback, tuple arguments)

    @cython.locals(completions=Completions)
    cpdef object count(self, callback, tuple arguments)
    cdef bint _is_durable(self)
