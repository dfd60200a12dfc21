"""A random workload on one journal, with every try and acknowledgement noted where it happens."""

import random

from journal.journal import Journal
from journal.options import JournalOptions, JournalType

TYPES = [kind.value for kind in JournalType]
FILE_SIZES = (2048, 4096, 8192)


def small_options(folder, kind, **changes):
    """Options with files of a few sectors, so that a short workload fills and reuses many."""
    options = {
        "directory": folder,
        "journal_type": JournalType(kind),
        "file_size": 4096,
        "buffer_size": 4096,
        "buffer_timeout_ns": 100_000,
        "device_block_size": 512,
        "max_io": 4,
        "compact_min_files": 0,
        "lock_acquisition_timeout_ms": 0,
    }
    return JournalOptions(**(options | changes))


def smallest_file(kind):
    """Bytes of the smallest file that a type takes, with blocks of 512 bytes."""
    return 1536 if JournalType(kind).is_direct else 1024


def random_options(folder, kind, rng, **changes):
    """small_options() with sizes and limits drawn by `rng`."""
    return small_options(
        folder,
        kind,
        **{
            "file_size": rng.choice((smallest_file(kind), *FILE_SIZES)),
            "buffer_size": rng.choice((1024, 4096, 65536)),
            "buffer_timeout_ns": rng.choice((0, 50_000, 2_000_000)),
            "pool_files": rng.choice((-1, 2, 4)),
            "min_files": rng.choice((2, 3)),
        }
        | changes,
    )


class Workload:
    """Operations of one thread on one journal, in the order of the log.

    Attributes:
        operations: all that were tried, as Model.apply() takes them.
        note: called as note("try", n) before and note("ack", n) after an operation is durable;
            n counts operations from 1.
        acked: operations known to be durable, so far.
    """

    def __init__(self, journal, rng, note, *, operations=None, first_id=1):
        self.journal = journal
        self.rng = rng
        self.note = note
        self.operations = [] if operations is None else operations
        self.acked = 0
        self.live = set()
        self.in_tx = {}
        self.prepared = {}
        self.next_id = first_id
        self.size_max = min(journal.record_size_max - 60, 1500)

    def body(self):
        rng = self.rng
        size = rng.choice((0, 1, 20, 100, 100, 300, 500, 900, self.size_max))
        size = min(size, self.size_max)
        # Never zeros: a lost sector must not look like what was written.
        return bytes([1 + len(self.operations) % 255]) * size

    def new_id(self):
        self.next_id += 1
        return self.next_id

    def acknowledged(self, number):
        def done(error):
            if error is None:
                self.ack(number)

        return done

    def ack(self, number):
        self.acked = max(self.acked, number)
        self.note("ack", number)

    def do(self, operation, call, *arguments, is_tx=False, **keywords):
        """One operation by a random way: waiting, by callback, or without a sync."""
        self.operations.append(operation)
        number = len(self.operations)
        self.note("try", number)
        if is_tx:
            return call(*arguments, **keywords)
        way = self.rng.random()
        if way < 0.35:
            call(*arguments, sync=True, **keywords)
            self.ack(number)
        elif way < 0.7:
            call(*arguments, sync=True, done=self.acknowledged(number), **keywords)
        else:
            call(*arguments, sync=False, **keywords)
        if self.rng.random() < 0.3:
            self.journal.reap()
        return None

    def step(self):
        """One random operation."""
        rng = self.rng
        choice = rng.random()
        free = sorted(self.live)
        if choice < 0.3 or (not free and choice < 0.55):
            self.add()
        elif choice < 0.4:
            record_id, body, user_type = rng.choice(free or [0]), self.body(), rng.randrange(100)
            if record_id:
                self.do(
                    ("update", record_id, user_type, body),
                    self.journal.update,
                    record_id,
                    user_type,
                    body,
                )
        elif choice < 0.55:
            record_id = rng.choice(free[:5])
            self.live.discard(record_id)
            self.do(("delete", record_id), self.journal.delete, record_id)
        elif choice < 0.8:
            self.tx_operation()
        elif choice < 0.93:
            self.end_transaction()
        elif choice < 0.96:
            self.do(("nothing",), self.journal.event, 1, 1, self.body())
        elif choice < 0.98:
            self.sync()
        elif choice < 0.99:
            self.journal.reclaim()
        else:
            self.operations.append(("compact",))
            self.note("try", len(self.operations))
            self.journal.compact()

    def add(self):
        record_id, body, user_type = self.new_id(), self.body(), self.rng.randrange(100)
        self.live.add(record_id)
        self.do(("add", record_id, user_type, body), self.journal.add, record_id, user_type, body)

    def tx_operation(self):
        rng = self.rng
        if not self.in_tx or rng.random() < 0.3:
            tx = self.new_id()
            self.in_tx[tx] = (set(), set())
        else:
            tx = rng.choice(sorted(self.in_tx))
        added, deleted = self.in_tx[tx]
        choice = rng.random()
        body, user_type = self.body(), rng.randrange(100)
        if choice < 0.6 or not self.live:
            record_id = self.new_id()
            added.add(record_id)
            operation = ("add", record_id, user_type, body, tx)
            self.do(operation, self.journal.add, record_id, user_type, body, tx=tx, is_tx=True)
        elif choice < 0.8:
            record_id = rng.choice(sorted(self.live))
            # No other operation may touch it meanwhile.
            self.live.discard(record_id)
            added.add(record_id)
            operation = ("update", record_id, user_type, body, tx)
            self.do(operation, self.journal.update, record_id, user_type, body, tx=tx, is_tx=True)
        else:
            record_id = rng.choice(sorted(self.live))
            self.live.discard(record_id)
            deleted.add(record_id)
            operation = ("delete", record_id, body[:50], tx)
            self.do(operation, self.journal.delete, record_id, body[:50], tx=tx, is_tx=True)

    def end_transaction(self):
        rng = self.rng
        choice = rng.random()
        if self.prepared and choice < 0.3:
            tx = rng.choice(sorted(self.prepared))
            added, deleted = self.prepared.pop(tx)
        elif self.in_tx:
            tx = rng.choice(sorted(self.in_tx))
            added, deleted = self.in_tx.pop(tx)
            if choice > 0.8:
                self.prepared[tx] = (added, deleted)
                extra = self.body()[:40]
                self.do(("prepare", tx, extra), self.journal.prepare, tx, extra)
                return
        else:
            return
        if rng.random() < 0.8:
            self.live |= added
            self.do(("commit", tx), self.journal.commit, tx)
        else:
            # Updated and deleted ones go on to live; added ones never did.
            self.live |= deleted | {record for record in added if record in self.journal}
            self.do(("rollback", tx), self.journal.rollback, tx)

    def sync(self):
        number = len(self.operations)
        self.journal.sync()
        self.ack(number)

    def run(self, count):
        """So many random operations, and the end of the journal."""
        for _ in range(count):
            self.step()
        self.finish()

    def finish(self):
        """Close; everything is acknowledged then."""
        number = len(self.operations)
        self.journal.close()
        self.ack(number)


def new_workload(folder, kind, seed, note, **changes):
    """An opened and loaded journal, and a workload on it, all drawn from `seed`."""
    rng = random.Random(seed)
    journal = Journal(random_options(folder, kind, rng, **changes))
    journal.open()
    journal.load()
    return Workload(journal, rng, note)
