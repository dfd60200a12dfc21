"""Reads the files that a compaction copies from, in steps that stay in the core's own cache.

    file ──256 KiB──▶ window ──scanned, checksums verified──▶ records, used before the next step

To move 10 MiB through main memory costs more than to verify and to copy them, so a step is read,
scanned and copied from before the next is read (window.pyx). Meanwhile the kernel reads the next
file ahead, if it is not in the page cache.

Only its end says what of a file can be believed. Of one that is sound so far all is given at once:
what was copied of it counts for nothing yet, should its end not bear it out. A file that is not
sound, since Artemis wrote a part of it, say, raises NotSound; then all begins again with
`validates_first`, and every file is read twice: validated, then given.

Rejected:
- a second thread that reads a whole file ahead: the processors had more to do in all, and none was
  left for appends;
- a map of the file, which saves a copy but turns an error of the disk into SIGBUS.

Memory: a window, and 80 bytes a record of a file; 160 with `validates_first`.
"""

import errno
from typing import NamedTuple

from libc.stdlib cimport free
from libc.string cimport memset

from journal.errors import JournalDamaged, JournalIOError
from journal.window import STEP_SIZE

from journal.files.base cimport io_advise, io_close
from journal.format cimport CHECKSUM_BAD, SCAN_END, scan_in_windows
from journal.validation cimport validate
from journal.scan cimport FileScan
from journal.window cimport window_more

__all__ = ["NotSound", "OldFile", "OldFiles"]


class OldFile(NamedTuple):
    """A file to compact: closed, and older than every file that is not."""

    name: str
    number: int
    file_id: int
    slot: int


class NotSound(Exception):
    """The file must be validated as a whole before it is used."""


cdef class OldFiles:
    """The files of one compaction, in order, record by record.

    Args:
        folder: the journal's.
        files: OldFile of each, at least one.
        user_version: the journal's.
        validates_first: every file is validated before anything of it is given.

    Order of calls: open_next(), more() until it is false, end(), for each file; close(). Threads:
    one.
    """

    def __cinit__(self, Folder folder, list files, int32_t user_version, bint validates_first):
        self.folder = folder
        self.files = files
        self.user_version = user_version
        self.validates_first = validates_first
        self.window.fd = -1
        self.window.step = step_size
        self.ahead_fd = -1

    def __dealloc__(self):
        self.close()

    cdef FileScan open_next(self):
        """Begin the next file; what is found in it stands in the scan that is returned.

        Raises:
            JournalIOError: it cannot be read.
            JournalDamaged: with `validates_first`: it does not hold what was written to it.
        """
        self.name = self.files[self.given].name
        self.window.fd = self.ahead_fd if self.ahead_fd >= 0 else self.open_ahead(self.given)
        self.given += 1
        self.ahead_fd = -1
        if self.given < len(self.files):
            self.ahead_fd = self.open_ahead(self.given)
        self.validated = None
        self.begin()
        if self.validates_first:
            with nogil:
                while self.more():
                    pass
            self.validate_found()
            self.validated = self.found
            self.begin()
        return self.found

    cdef bint more(self) except -1 nogil:
        """Scan another step; false once the file is at its end.

        The items that it found are those from `first` on, and their bodies are at body_of() until
        the next call.

        Raises:
            JournalIOError: it cannot be read.
            NotSound: without `validates_first`.
        """
        cdef int failed = 0, what
        if self.is_at_end:
            return False
        if self.is_begun:
            failed = window_more(&self.window, &self.scan)
        self.is_begun = True
        self.first = self.found.count
        if not failed:
            what = self.found.go_on(&self.scan)
            self.is_at_end = what == SCAN_END
            failed = what if what < 0 else self.take_verdicts()
        if failed:
            self.fail(-failed)
        return True

    cdef int take_verdicts(self) except -1 nogil:
        """What was found of the step as validated before, or as sound so far; 0 or -errno."""
        cdef size_t i
        if self.validated is None:
            if not self.validates_first and not self.found.is_sound and not self.found.is_short:
                self.not_sound()
            return 0
        if self.found.count > self.validated.count:
            return -errno_EIO
        for i in range(self.first, self.found.count):
            self.found.items[i].verdict = self.validated.items[i].verdict
        return 0

    cdef const uint8_t *body_of(self, const Record *record) noexcept nogil:
        """The bytes of a record of this step."""
        return self.scan.data + (record.body_offset - self.scan.base)

    def end(self):
        """All of the file was used: close it.

        Raises:
            JournalDamaged: it does not hold what was written to it: nothing copied of it counts.
            JournalIOError: it cannot be read.
            NotSound: without `validates_first`.
        """
        cdef int fd = self.window.fd
        if self.validated is None:
            self.validate_found()
        elif self.found.record_count != self.validated.record_count:
            self.fail(errno_EIO)
        self.bytes_read += self.scan.size
        self.window.fd = -1
        self.folder.close_file(fd, self.name)

    def close(self):
        """Close what is open, and free the memory. Idempotent."""
        if self.window.fd >= 0:
            io_close(self.window.fd)
        if self.ahead_fd >= 0:
            io_close(self.ahead_fd)
        self.window.fd = self.ahead_fd = -1
        free(self.window.buffer)
        self.window.buffer = NULL
        self.window.room = 0

    def open_ahead(self, Py_ssize_t number):
        """Open a file and have the kernel read it ahead; its descriptor."""
        cdef int fd = self.folder.open(self.files[number].name)
        # Advice that is not taken costs nothing but time.
        with nogil:
            io_advise(fd, 0, 0, True)
        return fd

    def begin(self):
        """Read the first bytes of the file that is open."""
        cdef int failed
        cdef uint64_t size = self.folder.size(self.window.fd, self.name)
        self.found = FileScan(self.name, self.user_version)
        memset(&self.scan, 0, sizeof(Scan))
        with nogil:
            scan_in_windows(&self.scan, size)
            failed = window_more(&self.window, &self.scan)
            if not failed:
                self.found.begin(&self.scan)
        self.is_begun = self.is_at_end = False
        if failed:
            self.fail(-failed)

    def validate_found(self):
        """All of the file was read: can it be believed?"""
        cdef int failed
        with nogil:
            failed = self.found.finish(&self.scan, &self.window)
        if failed:
            self.fail(-failed)
        if not self.validates_first and not self.found.is_short and not (
                self.found.is_sound and self.found.header.checksum != CHECKSUM_BAD):
            self.not_sound()
        validate(self.found, False)
        damages = [damage for damage, is_ours in self.found.found if is_ours]
        if damages:
            raise JournalDamaged(damages)

    cdef int not_sound(self) except -1 with gil:
        raise NotSound(f"{self.name} is to be validated as a whole")

    cdef int fail(self, int error) except -1 with gil:
        if error == errno_ENOMEM:
            raise MemoryError("no memory for a file to compact")
        raise JournalIOError(error, f"cannot read {self.name}, to compact it",
                             str(self.folder.path))


cdef uint64_t step_size = STEP_SIZE
cdef int errno_ENOMEM = errno.ENOMEM
cdef int errno_EIO = errno.EIO
