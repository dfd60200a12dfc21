"""What a transaction log stands on in tests: a store that a kill takes what is not synced from."""

import errno
from types import SimpleNamespace

from journal.errors import JournalFull


class ForgetfulStore:
    """A store of records of which a kill leaves what was synced."""

    def __init__(self, records=()):
        self.records = dict(records)
        self.synced = dict(records)
        self.is_dead = False
        self.room = None

    def open(self):
        pass

    def load(self, on_batch):
        on_batch(
            [
                SimpleNamespace(record_id=one, user_type=user_type, body=body)
                for one, (user_type, body) in self.records.items()
            ]
        )

    def add(self, record_id, user_type, body, *, sync):
        assert record_id not in self.records
        if self.room == 0:
            raise JournalFull(errno.ENOSPC, "the disk is full")
        if self.room is not None:
            self.room -= 1
        self._change(lambda: self.records.update({record_id: (user_type, bytes(body))}), sync)
        return record_id

    def wait(self, ticket):
        self._change(lambda: None, sync=True)

    def delete(self, record_id, *, sync):
        self._change(lambda: self.records.pop(record_id), sync)

    def _change(self, change, sync):
        if not self.is_dead:
            change()
            if sync:
                self.synced = dict(self.records)

    def killed(self):
        """What the next process opens."""
        self.is_dead = True
        return ForgetfulStore(self.synced)

    def close(self):
        pass


class FakeClock:
    def __init__(self):
        self.now = 0.0

    def monotonic_s(self):
        return self.now
