"""A journal that refuses what a test says, as on a full disk with its reserve used up."""

import errno
from types import MappingProxyType

from broker.server import opening
from journal.errors import JournalFull, UnknownTransaction


class FullJournal:
    """The journal of one run of a broker.

    Attributes:
        refused: calls and user types, of deletes None, that find no room now.
        is_full: nothing that adds finds room.
    """

    def __init__(self, real):
        self._real = real
        self.refused = set()
        self.is_full = False
        self._failed = set()

    def __getattr__(self, name):
        return getattr(self._real, name)

    def __len__(self):
        return len(self._real)

    def _check(self, call, kind=None, how=MappingProxyType({})):
        is_added = call != "delete" and "makes_room" not in how
        if (call, kind) in self.refused or (self.is_full and is_added):
            self._failed.update({how["tx"]} if "tx" in how else ())
            raise JournalFull(errno.ENOSPC, "no room")

    def add(self, record_id, kind, body, **how):
        self._check("add", kind, how)
        return self._real.add(record_id, kind, body, **how)

    def update(self, record_id, kind, body, **how):
        self._check("update", kind, how)
        return self._real.update(record_id, kind, body, **how)

    def delete(self, record_id, body=b"", **how):
        self._check("delete")
        return self._real.delete(record_id, body, **how)

    def rollback(self, tx, **how):
        try:
            return self._real.rollback(tx, **how)
        except UnknownTransaction:
            # As the journal, which knows of the transaction by what it refused.
            if tx not in self._failed:
                raise


def full_journals(monkeypatch, refused=(), which="messages", *, is_full=False):
    """Give brokers such journals; `refused` from the load on. The journals, the last one last."""
    made, real = [], opening.open_stores

    def opened(*arguments, **how):
        stores = real(*arguments, **how)
        made.append(FullJournal(getattr(stores, which)))
        made[-1].refused.update(refused)
        made[-1].is_full = is_full
        setattr(stores, which, made[-1])
        return stores

    monkeypatch.setattr(opening, "open_stores", opened)
    return made
