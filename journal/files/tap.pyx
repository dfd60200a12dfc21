"""The tap on all file calls, for tests: a recorder of what reached the disk, an injector of faults.

Every call of ext/file_ops and of the queues asks one process-wide hook (`qv_set_io_hook` in
ext/file_ops.h). Here that hook is a Python function.

Why this is part of the product's build: the tests of durability test the very modules that are
shipped, not a build made for them; and a user who doubts a disk can run them. Nothing in the
product imports this module, and without a tap a file call pays one predictable branch.

Threads: the tap is called on the thread that makes the file call, the flusher's included, with the
GIL taken for it. File calls never hold a lock of the journal, so a tap may take its time.
"""

import errno
from typing import NamedTuple

from libc.stdint cimport int64_t

from journal.files.base cimport set_io_hook
from journal.native cimport (
    QV_CALL_CLOSE, QV_CALL_COMPLETE, QV_CALL_CREATE, QV_CALL_MAP, QV_CALL_MKDIR, QV_CALL_OPEN,
    QV_CALL_READ, QV_CALL_RENAME, QV_CALL_SUBMIT, QV_CALL_SYNC_ALL, QV_CALL_SYNC_DATA,
    QV_CALL_SYNC_DIR, QV_CALL_SYNC_MAP, QV_CALL_TRUNCATE, QV_CALL_UNLINK, QV_CALL_WRITE,
    qv_io_event, qv_io_hook)

__all__ = ["IoEvent", "set_tap"]

cdef int EIO = errno.EIO
cdef dict NAMES = {
    QV_CALL_OPEN: "open", QV_CALL_CREATE: "create", QV_CALL_READ: "read",
    QV_CALL_WRITE: "write", QV_CALL_SYNC_DATA: "sync_data", QV_CALL_SYNC_ALL: "sync_all",
    QV_CALL_SYNC_DIR: "sync_dir", QV_CALL_RENAME: "rename", QV_CALL_UNLINK: "unlink",
    QV_CALL_TRUNCATE: "truncate", QV_CALL_MAP: "map", QV_CALL_SYNC_MAP: "sync_map",
    QV_CALL_CLOSE: "close", QV_CALL_MKDIR: "mkdir", QV_CALL_SUBMIT: "submit",
    QV_CALL_COMPLETE: "complete",
}

cdef object tap_function = None
cdef object tap_error = None


class IoEvent(NamedTuple):
    """One file call, as ext/file_ops.h describes it.

    Attributes:
        call: "open", "create", "read", "write", "sync_data", "sync_all", "sync_dir", "rename",
            "unlink", "truncate", "map", "sync_map", "close", "mkdir", "submit" or "complete".
        is_done: it has happened; before that the tap's answer decides about it.
        fd: of the file; for a rename the directory of the new name; -1 where there is none.
        dirfd: of the directory that `name` is in; -1 where there is none.
        name, target: of the file, and what a rename makes of it; empty where there is none.
        data: the bytes of a write, submit or sync_map; empty for all else.
        size, offset: bytes; what they mean depends on the call.
        is_synced: a write that returns only once it is on disk; a map that is written to.
    """

    call: str
    is_done: bool
    fd: int
    dirfd: int
    name: str
    target: str
    data: bytes
    size: int
    offset: int
    is_synced: bool


cdef int64_t ask(void *context, qv_io_event *event) noexcept with gil:
    global tap_error
    cdef bytes data = b""
    function = tap_function
    if function is None:
        return 0
    try:
        if event.data != NULL and event.call in (QV_CALL_WRITE, QV_CALL_SUBMIT, QV_CALL_SYNC_MAP):
            data = (<const char *>event.data)[:event.size]
        answer = function(IoEvent(
            NAMES[event.call], bool(event.done), event.fd, event.dirfd,
            event.name.decode("utf-8", "surrogateescape") if event.name != NULL else "",
            event.name2.decode("utf-8", "surrogateescape") if event.name2 != NULL else "",
            data, event.size, event.offset, bool(event.dsync)))
        return 0 if answer is None else answer
    except BaseException as error:
        # A tap that is itself wrong must not pass for a working disk.
        tap_error = tap_error or error
        return -<int64_t>EIO


def set_tap(function):
    """Have `function` asked before and told after every file call of this process.

    Args:
        function: called as function(IoEvent). Its answer before the call decides: None or 0 goes
            on, a negative errno fails the call without making it, a positive number makes a
            write, submit or complete a short one. The answer after it is ignored. None takes the
            tap off.

    Raises:
        BaseException: what the tap taken off has raised; file calls had failed with EIO then.

    Set and remove it only while no other thread is inside a file call.
    """
    global tap_function, tap_error
    error, tap_error = tap_error, None
    if function is None:
        set_io_hook(NULL, NULL)
        tap_function = None
    else:
        tap_function = function
        set_io_hook(<qv_io_hook>ask, NULL)
    if error is not None:
        raise error
