"""A message journal that refuses what a test says, as on a full disk with its reserve used up."""

import errno

from broker.server import opening
from journal.errors import JournalFull


class FullJournal:
    """The journal of one run of a broker.

    Attributes:
        refused: calls and user types, of deletes None, that find no room now.
    """

    def __init__(self, real):
        self._real = real
        self.refused = set()

    def __getattr__(self, name):
        return getattr(self._real, name)

    def __len__(self):
        return len(self._real)

    def _check(self, call, kind=None):
        if (call, kind) in self.refused:
            raise JournalFull(errno.ENOSPC, "no room")

    def add(self, record_id, kind, body, **how):
        self._check("add", kind)
        return self._real.add(record_id, kind, body, **how)

    def update(self, record_id, kind, body, **how):
        self._check("update", kind)
        return self._real.update(record_id, kind, body, **how)

    def delete(self, record_id, body=b"", **how):
        self._check("delete")
        return self._real.delete(record_id, body, **how)


def full_journals(monkeypatch, refused=()):
    """Give brokers such journals; `refused` from the load on. The journals, the last one last."""
    made, real = [], opening.open_stores

    def opened(*arguments, **how):
        stores = real(*arguments, **how)
        made.append(FullJournal(stores.messages))
        made[-1].refused.update(refused)
        stores.messages = made[-1]
        return stores

    monkeypatch.setattr(opening, "open_stores", opened)
    return made
