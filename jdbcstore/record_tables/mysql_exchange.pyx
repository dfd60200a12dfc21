"""One transaction of MySQL's protocol on a socket: commands, their answers, and then a COMMIT.

The thread that does it needs the GIL once at the end. PyMySQL takes it for every packet, and while
an event loop is busy each of those costs up to a switch interval (sys.setswitchinterval, 5 ms), as
long as the server takes for hundreds of rows.

Packets: https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_basic_packets.html. An
answer is one packet (0x00: done, 0xff: failed), or rows: how many columns, one packet for each, an
end (0xfe), one packet for each row, and an end. The connection has agreed neither on
CLIENT_DEPRECATE_EOF nor on compression; PyMySQL knows of neither.
"""

import os

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.exc cimport PyErr_CheckSignals
from libc.errno cimport EAGAIN, EINTR, errno
from libc.stdint cimport uint8_t
from libc.string cimport memcpy, memmove

from jdbcstore.record_tables.mysql_commands cimport Commands

cdef extern from "<sys/socket.h>" nogil:
    int MSG_DONTWAIT, MSG_NOSIGNAL
    ssize_t recv(int fd, void *to, size_t size, int flags)
    ssize_t send(int fd, const void *data, size_t size, int flags)

cdef extern from "<poll.h>" nogil:
    struct pollfd:
        int fd
        short events
        short revents
    short POLLIN, POLLOUT
    int poll(pollfd *fds, unsigned long count, int timeout_ms)

cdef enum:
    ROOM = 16384                # Of answers: a row of a fence, or an error with its text.
    HEAD_SIZE = 4               # Of a packet: its size (3 bytes), its number.
    OK = 0x00
    END = 0xfe
    END_SIZE_MAX = 8            # A longer packet that begins so is a row.
    FAILED = 0xff
    COLUMNS_MAX = 250           # More are counted in several bytes; here it is something else.

cdef enum Phase:
    FIRST
    COLUMNS
    ROWS

# What drive() and its parts return.
cdef enum Step:
    GO_ON
    FINISHED
    INTERRUPTED                 # By a signal: to be called again.
    TIMED_OUT
    GONE                        # The peer closed it, or `code` says why it failed.
    MALFORMED                    # No answer looks like this.

cdef bytes COMMIT = b"\x07\0\0\0\x03COMMIT"


cdef struct Exchange:
    int fd
    int timeout_ms              # Of one wait; -1: for ever.
    int code                    # errno
    const char *data            # What is left to send.
    size_t size
    const char *commit          # What to send then, unless it is sent already.
    size_t commit_size
    int answer_count            # Of the commands.
    int answers_left
    Phase phase
    int columns_left
    int row_count               # Of all answers.
    int idle_count              # Of commands that say they changed no row.
    int errors
    size_t filled               # Bytes in `room`.
    size_t error_size           # Of the first error, in `error`.
    uint8_t room[ROOM]
    uint8_t error[ROOM]


cdef Step wait(Exchange *call, short events) noexcept nogil:
    cdef pollfd watched
    cdef int count
    watched.fd = call.fd
    watched.events = events
    watched.revents = 0
    count = poll(&watched, 1, call.timeout_ms)
    if count > 0:
        return GO_ON
    if count == 0:
        return TIMED_OUT
    return failed(call)


cdef Step failed(Exchange *call) noexcept nogil:
    if errno == EINTR:
        return INTERRUPTED
    call.code = errno
    return GONE


cdef Step take(Exchange *call, const uint8_t *packet, size_t size) noexcept nogil:
    """Look at one packet of an answer."""
    cdef uint8_t first
    if size == 0:
        return MALFORMED
    first = packet[0]
    if first == FAILED:
        # Behind a first command without a row nothing counts, and so no error does.
        if call.row_count or call.answers_left == call.answer_count:
            if not call.errors:
                memcpy(call.error, packet, size)
                call.error_size = size
            call.errors += 1
        call.answers_left -= 1
        call.phase = FIRST
    elif call.phase == FIRST:
        if first == OK and size > 1:
            call.answers_left -= 1
            call.idle_count += packet[1] == 0
        elif first <= COLUMNS_MAX and size == 1:
            call.phase = COLUMNS
            call.columns_left = first
        else:
            return MALFORMED
    elif first == END and size <= END_SIZE_MAX:
        if call.phase == COLUMNS:
            if call.columns_left:
                return MALFORMED
            call.phase = ROWS
        else:
            call.answers_left -= 1
            call.phase = FIRST
    elif call.phase == COLUMNS:
        call.columns_left -= 1
    else:
        call.row_count += 1
    return GO_ON


cdef Step take_all(Exchange *call) noexcept nogil:
    """Look at all packets that have come."""
    cdef size_t place = 0, size
    cdef const uint8_t *head
    cdef Step step
    while call.filled - place >= HEAD_SIZE:
        head = call.room + place
        size = head[0] | (<size_t>head[1] << 8) | (<size_t>head[2] << 16)
        if HEAD_SIZE + size > ROOM or not call.answers_left:
            return MALFORMED
        if call.filled - place < HEAD_SIZE + size:
            break
        step = take(call, head + HEAD_SIZE, size)
        if step != GO_ON:
            return step
        place += HEAD_SIZE + size
    memmove(call.room, call.room + place, call.filled - place)
    call.filled -= place
    return GO_ON


cdef Step drive(Exchange *call) noexcept nogil:
    """Send what is left to send, then take what is left to take."""
    cdef ssize_t count
    cdef Step step
    while call.size:
        count = send(call.fd, call.data, call.size, MSG_DONTWAIT | MSG_NOSIGNAL)
        if count >= 0:
            call.data += count
            call.size -= count
            continue
        step = wait(call, POLLOUT) if errno == EAGAIN else failed(call)
        if step != GO_ON:
            return step
    while call.answers_left:
        count = recv(call.fd, call.room + call.filled, ROOM - call.filled, MSG_DONTWAIT)
        if count > 0:
            call.filled += count
            step = take_all(call)
        elif count == 0:
            step = GONE
        else:
            step = wait(call, POLLIN) if errno == EAGAIN else failed(call)
        if step != GO_ON:
            return step
    return FINISHED if not call.filled else MALFORMED


cdef Step transact(Exchange *call) noexcept nogil:
    """The commands, and the COMMIT if all is well by then."""
    cdef Step step = drive(call)
    if step == FINISHED and call.commit_size and call.row_count and not call.errors \
            and not call.idle_count:
        call.data = call.commit
        call.size = call.commit_size
        call.commit_size = 0
        call.answers_left = 1
        step = drive(call)
    if call.commit_size == 0:
        call.idle_count = 0     # All had changed something; the COMMIT says that it has not.
    return step


def exchange(int fd, Commands commands not None, int timeout_ms):
    """Send commands together; COMMIT if all is done, with a row from one and changes by the others.

    Does not hold the GIL while it waits.

    Args:
        fd: a socket without TLS, on which nothing is left unread, and which must not be closed
            meanwhile: its number might be another file's by then.
        commands: each shorter than a packet; they must not change meanwhile.
        timeout_ms: what one wait for the socket may take; -1: for ever.

    Returns:
        (how many rows all commands returned, how many changed nothing, the packet of the first
        error or None). With a row, without an idle one and an error it is committed; else the
        transaction is open. If the first command returned no row, errors of the others are not
        told: it is the fence, and a refused broker's rows may collide with the new owner's.

    Raises:
        OSError: the connection failed in the middle; what was done is unknown.
        BaseException: what a signal's handler raised, in the middle as well.
    """
    cdef Exchange call
    cdef Step step
    call.fd = fd
    call.timeout_ms = timeout_ms
    call.code = 0
    call.data = commands.data
    call.size = commands.size
    call.commit = PyBytes_AS_STRING(COMMIT)
    call.commit_size = PyBytes_GET_SIZE(COMMIT)
    call.answer_count = call.answers_left = len(commands.places)
    call.phase = FIRST
    call.columns_left = call.row_count = call.idle_count = call.errors = 0
    call.filled = call.error_size = 0
    while True:
        with nogil:
            step = transact(&call)
        if step != INTERRUPTED:
            break
        PyErr_CheckSignals()
    if step == TIMED_OUT:
        raise TimeoutError(f"the database was silent for {timeout_ms} ms")
    if step == MALFORMED:
        raise ConnectionError("the database's answer is not valid in the MySQL protocol")
    if step == GONE:
        if call.code:
            raise OSError(call.code, os.strerror(call.code))
        raise ConnectionResetError("the database closed the connection")
    return call.row_count, call.idle_count, \
        call.error[:call.error_size] if call.errors else None
