"""A journal in a test's folder, and what a load finds in it."""

from collections import defaultdict

from journal.journal import Journal
from journal.options import JournalOptions

SMALL = {
    "journal_type": "NIO",
    "file_size": 16 * 1024,
    "buffer_size": 8 * 1024,
    "compact_min_files": 0,
    "lock_acquisition_timeout_ms": 0,
    "sync_transactional": False,
    "sync_non_transactional": False,
}


def options(folder, **changes):
    return JournalOptions(directory=folder, **{**SMALL, **changes})


def loaded(folder, **changes):
    """An open journal; the caller closes it."""
    journal = Journal(options(folder, **changes))
    journal.open()
    journal.load()
    return journal


class View:
    """What a load gives, without the order between records.

    Attributes:
        records: id -> [(is_update, user_type, body)], in order.
        compact_counts: id -> their compact counts.
        prepared: tx id -> (extra, records, deletes).
        pins: file id -> (pins that nothing released, live bytes), of files that are pinned.
        releases: (file id, file id) -> pins of the second that records in the first release.
    """

    def __init__(self, folder, **changes):
        self.records = defaultdict(list)
        self.compact_counts = defaultdict(list)
        journal = Journal(options(folder, **changes))
        journal.open()
        self.result = journal.load(self.take)
        self.length = len(journal)
        self.pins = pins_of(journal)
        journal.close()
        self.prepared = {
            tx.tx_id: (
                tx.extra,
                [(r.record_id, r.is_update, r.user_type, bytes(r.body)) for r in tx.records],
                [delete.record_id for delete in tx.deletes],
            )
            for tx in self.result.prepared
        }

    def take(self, batch):
        for record in batch:
            self.records[record.record_id].append(
                (record.is_update, record.user_type, bytes(record.body))
            )
            self.compact_counts[record.record_id].append(record.compact_count)


def pins_of(journal):
    counts = journal.file_counts()
    released = defaultdict(int)
    for count in counts:
        for target, number in count.negatives.items():
            released[target] += number
    return {
        count.file_id: (count.positives - released[count.file_id], count.live_bytes)
        for count in counts
        if count.positives > released[count.file_id]
    }
