"""What a journal must hold, as plain Python: one operation after the other on lists and dicts."""

from dataclasses import dataclass, field

from journal.compaction_recovery import plan_recovery
from journal.folder import JournalName
from journal.index import RecordIndex
from journal.loader import Loader


@dataclass
class OpenTransaction:
    """Operations in order, and whether it is prepared."""

    operations: list = field(default_factory=list)
    extra: bytes | None = None


@dataclass
class Model:
    """The content of a journal.

    Attributes:
        records: (id, is_update, user_type, body) in log order, a transaction's at its commit.
        open: transactions by id, in the order of their first operation.
    """

    records: list = field(default_factory=list)
    open: dict = field(default_factory=dict)

    @property
    def live(self):
        return {record[0] for record in self.records if not record[1]}

    def apply(self, operation):
        """Take one operation: (kind, ...) as in the methods below."""
        getattr(self, operation[0])(*operation[1:])

    def add(self, record_id, user_type, body, tx=None):
        self.put((record_id, False, user_type, body), tx)

    def update(self, record_id, user_type, body, tx=None):
        self.put((record_id, True, user_type, body), tx)

    def put(self, record, tx):
        if tx is None:
            self.records.append(record)
        else:
            self.open.setdefault(tx, OpenTransaction()).operations.append(record)

    def delete(self, record_id, body=b"", tx=None):
        if tx is None:
            self.records = [record for record in self.records if record[0] != record_id]
        else:
            self.open.setdefault(tx, OpenTransaction()).operations.append((record_id, body))

    def prepare(self, tx, extra):
        self.open.setdefault(tx, OpenTransaction()).extra = extra

    def commit(self, tx):
        operations = self.open.pop(tx).operations
        self.records += [record for record in operations if len(record) == 4]
        gone = {record[0] for record in operations if len(record) == 2}
        self.records = [record for record in self.records if record[0] not in gone]

    def rollback(self, tx):
        self.open.pop(tx)

    def reopen(self):
        """Transactions that are open and not prepared are rolled back by a load."""
        self.open = {tx: one for tx, one in self.open.items() if one.extra is not None}

    def nothing(self):
        """An operation that changes nothing: an event, a sync, a compaction."""

    def compact(self):
        """Changes nothing, but see same()."""

    def view(self):
        """All of it, to be compared with that of a load."""
        prepared = []
        failed = []
        for tx, one in self.open.items():
            records = tuple(record for record in one.operations if len(record) == 4)
            deletes = tuple(record for record in one.operations if len(record) == 2)
            if one.extra is None:
                failed.append((tx, records, deletes))
            else:
                prepared.append((tx, one.extra, records, deletes))
        return tuple(self.records), tuple(prepared), tuple(failed)


def same(one, other, *, compacted=False):
    """Whether two views agree.

    A compaction moves what a transaction added from its commit to where it stood before, and open
    transactions behind each other; so does Artemis's. Then only the order of what one record
    is made of has to be the same.
    """
    if one == other or not compacted:
        return one == other
    return all(
        sorted(there, key=lambda entry: entry[0]) == sorted(should, key=lambda entry: entry[0])
        for there, should in zip(one, other, strict=True)
    )


def record_view(record):
    return (record.record_id, record.is_update, record.user_type, bytes(record.body))


def transactions_view(result):
    """The open transactions of a LoadResult, as Model.view() gives them."""
    prepared = [
        (
            tx.tx_id,
            tx.extra,
            tuple(map(record_view, tx.records)),
            tuple((delete.record_id, delete.body) for delete in tx.deletes),
        )
        for tx in result.prepared
    ]
    failed = [
        (
            tx.tx_id,
            tuple(map(record_view, tx.records)),
            tuple((delete.record_id, delete.body) for delete in tx.deletes),
        )
        for tx in result.failed
    ]
    return tuple(prepared), tuple(failed)


def read_folder_view(folder, damage="fail"):
    """(view, damages) of a folder as recovery and the loader find it; nothing is written."""
    plan = plan_recovery(folder, JournalName())
    loader = Loader(plan.files, RecordIndex(), damage=damage)
    result = loader.load()
    records = tuple(map(record_view, loader.records()))
    return (records, *transactions_view(result)), result.damages


def open_and_load(journal):
    """Open and load a journal; what it held, as Model.view() gives it, and the LoadResult."""
    records = []
    journal.open()
    result = journal.load(lambda batch: records.extend(map(record_view, batch)))
    return (tuple(records), *transactions_view(result)), result
