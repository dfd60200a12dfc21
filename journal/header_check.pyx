"""Headers that may say another id than their file has: damaged, or used again by Artemis.

Every record of a file is read under the id of its header. So once all files are applied, a load
looks at the ids that a leader disowns, or that two files have, and reports those that cannot be
true. docs/decisions/0008 says how.
"""

import itertools

from journal.errors import Damage
from journal.format import header_block
from journal.reader import read_bytes

from libc.stdint cimport int64_t

from journal.format cimport (
    ADD_RECORD, CHECKSUM_NONE, CHECKSUM_OK, COMMIT_RECORD, DELETE_RECORD, DELETE_RECORD_TX,
    HEADER_SIZE, PREPARE_RECORD, ROLLBACK_RECORD, SCAN_RECORD, UPDATE_RECORD_TX, Record)
from journal.id_map cimport id_map_get
from journal.validation cimport validate
from journal.replay cimport Replay, is_tx_record
from journal.scan cimport NO_CLAIM, FileScan, scan_bytes

__all__ = ["HeaderCheck"]


cdef class HeaderCheck:
    """Takes note of each file as it is applied; damages() tells at the end.

    Args:
        replay: what the files left; looked at by damages() only.
        loaded: LoadedFile of each, by number.
        user_version: what every header must say.
    """

    def __init__(self, Replay replay not None, list loaded not None, int32_t user_version):
        self.replay = replay
        self.loaded = loaded
        self.user_version = user_version
        self.claims = []
        self.sealed = set()
        self.found = []

    cdef int note(self, int32_t number, FileScan scan, uint64_t records,
                  uint64_t checksums) except -1:
        """A file was applied: so many live records, so many of them with a good leader."""
        if records > checksums:
            self.unmarked_max_id = max(self.unmarked_max_id, scan.header.file_id)
        if checksums and scan.header.checksum == CHECKSUM_OK:
            self.checked_max_id = max(self.checked_max_id, scan.header.file_id)
        if scan.header_claim != NO_CLAIM:
            self.claims.append((number, scan))
        if scan.header.checksum != CHECKSUM_NONE:
            self.sealed.add(scan.name)
        return 0

    cdef list damages(self):
        """(Damage, True) of each header that cannot be true."""
        self.check_claims()
        self.check_ids()
        return self.found

    cdef object check_claims(self):
        """Headers disowned by their leader in favour of another id that the file's records carry.

        Artemis leaves just that when it uses one of our files again, since it writes 16 bytes
        only; else the header is damaged. docs/decisions/0008 says how the two are told apart.
        """
        cdef FileScan scan
        for number, scan in self.claims:
            if scan.header_claim in (NO_CLAIM, scan.header.file_id) or scan.record_count \
                    or self.is_used_again(number, scan):
                continue
            self.found.append((Damage(
                scan.name, 0, HEADER_SIZE,
                f"header damaged: it says file id {scan.header.file_id}, its checksum and the"
                f" records say {scan.header_claim}"), True))

    cdef bint is_used_again(self, number, FileScan scan) except -1:
        """Whether Artemis gave the file its id, or reading it under the old one is the same.

        A new id is above every other one of its day. Where Artemis wrote last, it freed
        the file too: our next load gives its free files headers of ours.
        """
        file_id = scan.header.file_id
        if file_id < scan.header_claim or file_id <= self.checked_max_id \
                or sum(file.file_id == file_id for file in self.loaded) > 1:
            return False
        return self.unmarked_max_id >= max(1, self.checked_max_id) \
            or self.would_change_nothing(number, scan.header_claim)

    cdef bint would_change_nothing(self, number, int64_t file_id) except -1:
        """Whether all that was loaded stays the same with this file read under `file_id`.

        Ids are never used twice: an add or update is gone if any file deletes its id.
        """
        cdef FileScan scan
        cdef const Record *record
        cdef size_t i
        file = self.loaded[number]
        data = bytearray(read_bytes(file.path))
        data[:HEADER_SIZE] = header_block(file_id, self.user_version, leader=False)
        scan = scan_bytes(file.name, data, self.user_version)
        validate(scan, False)
        if any(is_fatal for _, is_fatal in scan.found):
            return False
        deleted = set()
        outcomes = {scan.items[i].record.tx_id: scan.items[i].record.type for i in range(scan.count)
                    if scan.items[i].what == SCAN_RECORD
                    and scan.items[i].record.type in (COMMIT_RECORD, ROLLBACK_RECORD)}
        for i in range(scan.count):
            record = &scan.items[i].record
            if scan.items[i].what != SCAN_RECORD:
                continue
            if is_tx_record(record) and self.replay.holder(record.tx_id) != NULL:
                return False
            if record.type == PREPARE_RECORD and record.tx_id not in outcomes:
                return False
            if record.type == DELETE_RECORD or record.type == DELETE_RECORD_TX:
                if self.replay.index.contains(record.record_id):
                    return False
                if record.type == DELETE_RECORD or outcomes.get(record.tx_id) == COMMIT_RECORD:
                    deleted.add(record.record_id)
        for i in range(scan.count):
            record = &scan.items[i].record
            if scan.items[i].what == SCAN_RECORD and ADD_RECORD <= record.type <= UPDATE_RECORD_TX \
                    and record.record_id not in deleted \
                    and id_map_get(&self.replay.deleted, record.record_id) < 0 \
                    and not (is_tx_record(record)
                             and outcomes.get(record.tx_id) == ROLLBACK_RECORD):
                return False
        return True

    cdef object check_ids(self):
        """No two files have one id: a header that was overwritten with another's hides a file."""
        for older, newer in itertools.pairwise(self.loaded):
            if older.file_id == newer.file_id and self.sealed & {older.name, newer.name}:
                self.found.append((Damage(
                    newer.name, 0, HEADER_SIZE,
                    f"header damaged: it says file id {newer.file_id}, as {older.name} does"),
                    True))
