"""What earlier uses of a journal file left in it: the scanner's reclaimed mode, for recovery tools.

A file that is used again gets a new id in its header and keeps its old bytes. Records carry the id
they were written under, so a reader of the file passes by those of earlier uses; `file_generations`
tells under which ids it could be read.
"""

from journal.format cimport (
    FORMAT_VERSION, HEADER_SIZE, SCAN_END, SCAN_RECORD, Header, Record, Scan, scan_begin, scan_next)

from libc.stdint cimport int32_t, uint64_t, uint8_t

__all__ = ["file_generations"]

cdef enum:
    GENERATIONS_MAX = 4096      # in one file; records of any more are passed by


def file_generations(data, *, int32_t version=FORMAT_VERSION):
    """The ids under which there are whole records in a journal file, in order of appearance.

    Args:
        data: the whole file, its header included.
        version: format version of its records, 1 or 2.

    Returns:
        Ids of 31 bits, as records carry them.
    """
    cdef const uint8_t[::1] view
    cdef Scan scan
    cdef Record record
    cdef Header header
    cdef int what
    cdef uint64_t p
    cdef object file_id
    if len(data) <= HEADER_SIZE:
        return []
    view = data
    header.version = version
    header.user_version = 0
    header.file_id = 0
    scan_begin(&scan, &view[0], <uint64_t>view.shape[0], &header, HEADER_SIZE)
    scan.reclaimed = True
    scan.leaders = False
    found = {}
    while len(found) < GENERATIONS_MAX:
        with nogil:
            what = scan_next(&scan, &record)
        if what == SCAN_END:
            break
        if what == SCAN_RECORD:
            p = record.offset + 1
            file_id = ((<uint64_t>view[p] << 24) | (<uint64_t>view[p + 1] << 16)
                       | (<uint64_t>view[p + 2] << 8) | view[p + 3])
            if file_id <= 0x7FFFFFFF:
                found[file_id] = None
    return list(found)
