"""Whether this process may still write to a folder that other processes reach.

A lock of a file system may be lost while its owner stands still, or does not know of it: another
process takes the folder then, and reads what is there. So whatever writes to the files of a journal
asks its guard just before: the flusher once a batch, all else once a file, name or chunk. What was
begun by then still ends.
"""

from posix.fcntl cimport F_SETLK, F_WRLCK, SEEK_SET, fcntl, flock
from posix.stat cimport fstat, struct_stat
from posix.time cimport CLOCK_BOOTTIME, clock_gettime, timespec

from libc.errno cimport EACCES, EAGAIN, ENOLCK, errno as last_error
from libc.stdint cimport uint64_t

from journal.errors import JournalIOError

__all__ = ["WriteGuard"]

# So old may the last look at the lock itself be. On NFS it is a question to the server.
cdef uint64_t LOCK_NS = 1_000_000_000


cdef uint64_t now_ns() noexcept nogil:
    """Nanoseconds that also go on while the machine is suspended."""
    cdef timespec now
    clock_gettime(CLOCK_BOOTTIME, &now)
    return <uint64_t>now.tv_sec * 1_000_000_000 + <uint64_t>now.tv_nsec


cdef class WriteGuard:
    """The right of one owner to write, until it is lost for good.

    Args:
        lock_fd: of a file that this process has locked (fcntl). Deleted or replaced, it is lost.
        owner_fd: of another file, which who takes the folder replaces; -1 where there is none.
        explain: gives the JournalIOError of a loss, and tells of it; called from any thread.

    Both files have to be open as long as anything asks.

    Threads: any. A look is one system call a file, and a third one a second at most.
    """

    def __cinit__(self, int lock_fd, int owner_fd, explain):
        self.lock_fd = lock_fd
        self.owner_fd = owner_fd
        self.explain = explain
        self.locked_ns = now_ns()

    cdef int prove(self) noexcept nogil:
        """0, or -errno once it is lost."""
        if not self.error:
            if not (self.has_name(self.lock_fd)
                    and (self.owner_fd < 0 or self.has_name(self.owner_fd))):
                self.error = ENOLCK
            elif now_ns() - self.locked_ns > LOCK_NS:
                self.lock_again()
        return -self.error

    cdef bint has_name(self, int fd) noexcept nogil:
        """Whether an open file has a name yet. One that cannot be looked at has none."""
        cdef struct_stat found
        return fstat(fd, &found) == 0 and found.st_nlink > 0

    cdef void lock_again(self) noexcept nogil:
        """Take the lock once more, which changes nothing as long as it is this process's."""
        cdef flock wanted
        wanted.l_type = F_WRLCK
        wanted.l_whence = SEEK_SET
        wanted.l_start = 0
        wanted.l_len = 0
        if fcntl(self.lock_fd, F_SETLK, &wanted) == 0:
            self.locked_ns = now_ns()
        else:
            self.error = ENOLCK if last_error in (EACCES, EAGAIN) else last_error

    @property
    def is_lost(self):
        """Whether it is known to be lost; looks at nothing."""
        return self.error != 0

    def locked(self):
        """Say that the lock was looked at just now, and is this process's."""
        self.locked_ns = now_ns()

    def refuse(self):
        """It is lost: nothing is written from now on."""
        self.error = ENOLCK

    def end(self):
        """The folder was given up, and both files may be closed: nothing is written from now on.

        What asks no more may be kept by messages: it does not keep who explains.
        """
        self.error = ENOLCK
        self.explain = None

    def failure(self):
        """Give the error of the loss."""
        explain = self.explain
        if explain is None:
            return JournalIOError(ENOLCK, "the folder was given up")
        return explain()

    def check(self):
        """See that it is not lost.

        Raises:
            JournalIOError: it is, for good.
        """
        cdef int result
        with nogil:
            result = self.prove()
        if result < 0:
            raise self.failure()
