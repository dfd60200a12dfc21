"""A journal against plain lists and dicts: any operations, in any order, over any restarts."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from journal.errors import RecordTooLarge
from journal.journal import Journal
from tests.crash.model import Model, open_and_load, read_folder_view, same
from tests.crash.states import copy_out
from tests.crash.workload import TYPES, small_options, smallest_file
from tests.fuzz.call_order import CallOrder

BODIES = st.binary(max_size=700)
USER_TYPES = st.integers(0, 255)
# How an operation is told: waited for or not, with sync or without.
SYNCS = st.sampled_from(
    [
        {"sync": sync, "done": done, "wait": wait}
        for sync in (True, False, None)
        for done in (True, False)
        for wait in (True, False)
    ]
)
PICK = st.integers(0, 1 << 30)


FULL = 1_000  # examples of each I/O type
SHARE = 2  # Shares of the full length are so many times smaller: they run in `make test-all`.


class JournalMachine(RuleBasedStateMachine):
    """`model` is what the journal must hold; ids that a transaction touches are left alone.

    Attributes:
        kind: the I/O type; a subclass sets it.
        ran: examples and steps that all machines of the subclass took.
    """

    kind: str
    ran: dict

    def __init__(self):
        super().__init__()
        self.place = tempfile.TemporaryDirectory()
        self.folder = Path(self.place.name) / "journal"
        self.model = Model()
        self.next_id = 0
        self.busy = {}
        self.journal = None
        self.calls = CallOrder()
        self.ran["examples"] += 1

    @initialize(
        checksums=st.booleans(),
        file_size=st.sampled_from([None, 2048, 4096, 16384]),
        buffer_size=st.sampled_from([1024, 4096, 65536]),
        buffer_timeout_ns=st.sampled_from([0, 10_000, 3_000_000]),
        pool_files=st.sampled_from([-1, 0, 2, 5]),
        min_files=st.sampled_from([2, 4]),
        compact_min_files=st.sampled_from([0, 3]),
    )
    def start(self, file_size, **options):
        options["file_size"] = file_size or smallest_file(self.kind)
        self.options = small_options(self.folder, self.kind, compact_percentage=70, **options)
        self.open()

    def open(self):
        self.journal = Journal(self.options)
        view, result = open_and_load(self.journal)
        assert [str(damage) for damage in result.damages if not damage.torn] == []
        assert same(view, self.model.view(), compacted=True)
        self.model.reopen()
        self.busy = {tx: ids for tx, ids in self.busy.items() if tx in self.model.open}

    def new_id(self):
        self.next_id += 1
        return self.next_id

    def free(self):
        touched = set().union(*self.busy.values()) if self.busy else set()
        return sorted(self.model.live - touched)

    def do(self, operation, how, *arguments):
        """One operation, told as `how` says."""
        done = self.calls.done() if how["done"] else None
        getattr(self.journal, operation)(*arguments, sync=how["sync"], done=done, wait=how["wait"])
        if done is not None:
            self.calls.accepted()

    def fits(self, body):
        return body[: max(0, self.journal.record_size_max - 60)]

    @invariant()
    def count_step(self):
        self.ran["steps"] += 1

    @rule(user_type=USER_TYPES, body=BODIES, sync=SYNCS)
    def add(self, user_type, body, sync):
        record, body = self.new_id(), self.fits(body)
        self.do("add", sync, record, user_type, body)
        self.model.add(record, user_type, body)

    @rule(count=st.integers(1, 20), body=BODIES, sync=SYNCS)
    def add_many(self, count, body, sync):
        ids, body = [self.new_id() for _ in range(count)], self.fits(body)
        self.do("add_many", sync, ids, 7, [body] * count)
        for record in ids:
            self.model.add(record, 7, body)

    @precondition(lambda self: self.journal and self.free())
    @rule(pick=PICK, user_type=USER_TYPES, body=BODIES, sync=SYNCS)
    def update(self, pick, user_type, body, sync):
        free, body = self.free(), self.fits(body)
        record = free[pick % len(free)]
        self.do("update", sync, record, user_type, body)
        self.model.update(record, user_type, body)

    @precondition(lambda self: self.journal and self.free())
    @rule(pick=PICK, count=st.integers(1, 12), sync=SYNCS)
    def delete(self, pick, count, sync):
        free = self.free()
        for record in free[pick % len(free) :][:count]:
            self.do("delete", sync, record)
            self.model.delete(record)

    @rule(pick=PICK, body=BODIES, operation=st.sampled_from(["add", "update", "delete"]))
    def in_transaction(self, pick, body, operation):
        open_ones = [tx for tx, one in self.model.open.items() if one.extra is None]
        tx = open_ones[pick % len(open_ones)] if open_ones and pick % 3 else self.new_id()
        free, body = self.free(), self.fits(body)
        record = free[pick % len(free)] if free and operation != "add" else self.new_id()
        if not free or operation == "add":
            self.journal.add(record, 5, body, tx=tx)
            self.model.add(record, 5, body, tx)
        elif operation == "update":
            self.journal.update(record, 6, body, tx=tx)
            self.model.update(record, 6, body, tx)
        else:
            self.journal.delete(record, body[:40], tx=tx)
            self.model.delete(record, body[:40], tx)
        self.busy.setdefault(tx, set()).add(record)

    @precondition(lambda self: self.model.open)
    @rule(pick=PICK, ending=st.sampled_from(["commit", "rollback", "prepare"]), sync=SYNCS)
    def end_transaction(self, pick, ending, sync):
        tx = sorted(self.model.open)[pick % len(self.model.open)]
        if ending == "prepare":
            if self.model.open[tx].extra is None:
                self.do("prepare", sync, tx, b"extra")
                self.model.prepare(tx, b"extra")
            return
        self.do(ending, sync, tx)
        getattr(self.model, ending)(tx)
        self.busy.pop(tx, None)

    @rule(operation=st.sampled_from(["try_update", "try_delete", "add_many"]), sync=SYNCS)
    def nothing_to_write(self, operation, sync):
        missing = self.new_id()
        arguments = {"try_update": (missing, 1, b"x"), "try_delete": (missing,)}
        self.do(operation, sync, *arguments.get(operation, ([], 1, [])))

    @rule(pick=PICK, sync=SYNCS)
    def failed_transaction(self, pick, sync):
        """An operation of it is refused; whether anything of it was written, it is rolled back."""
        open_ones = [tx for tx, one in self.model.open.items() if one.extra is None]
        tx = open_ones[pick % len(open_ones)] if open_ones and pick % 2 else self.new_id()
        with pytest.raises(RecordTooLarge):
            self.journal.add(self.new_id(), 1, bytes(self.journal.record_size_max), tx=tx)
        self.do("rollback", sync, tx)
        self.model.open.pop(tx, None)
        self.busy.pop(tx, None)

    @rule()
    def reap(self):
        with self.calls.reaping():
            self.journal.reap()

    @rule()
    def reclaim(self):
        self.journal.reclaim()

    @rule()
    def compact(self):
        self.journal.compact()

    @rule()
    def crash_after_sync(self):
        """The folder as it is now, loaded elsewhere; files may come and go while it is copied."""
        self.journal.sync()
        while (files := self.read_all()) is None or files != self.read_all():
            pass
        copy = Path(self.place.name) / "copy"
        copy_out(files, copy)
        view, _ = read_folder_view(copy)
        assert same(view, self.model.view(), compacted=True)

    def read_all(self):
        """{name: bytes}; None when a file vanished meanwhile."""
        try:
            return {path.name: path.read_bytes() for path in self.folder.glob("*.*")}
        except FileNotFoundError:
            return None

    @rule()
    def reopen(self):
        self.calls.close(self.journal)
        self.open()

    def teardown(self):
        if self.journal is not None:
            self.calls.close(self.journal)
            view, _ = read_folder_view(self.folder)
            assert same(view, self.model.view(), compacted=True)
        self.place.cleanup()


@pytest.mark.slow
@pytest.mark.parametrize("kind", TYPES)
def test_a_journal_behaves_as_its_model(kind, effort, figures):
    is_full = effort(FULL) == FULL
    machine = type("JournalMachine", (JournalMachine,), {"kind": kind})
    machine.ran = {"examples": 0, "steps": 0}
    machine.TestCase.settings = settings(
        max_examples=FULL if is_full else effort(FULL // SHARE, least=10),
        # Shares of the full length take the same steps every time, so that a change is what turns
        # them red; the full length looks for new ones.
        derandomize=not is_full,
        stateful_step_count=50,
        deadline=None,
        print_blob=True,
        suppress_health_check=list(HealthCheck),
    )
    try:
        machine.TestCase("runTest").runTest()
    finally:
        figures("model machine", **machine.ran)
