"""NIO: pwrite through the page cache and fdatasync.

Runs on any file system. One write at a time: the page cache does the overlapping.
"""

from journal.files.base cimport BackEnd


cdef class NioBackEnd(BackEnd):
    """Plain writes at any offset; what the base does."""
