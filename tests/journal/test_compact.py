"""Compaction keeps every live record, whatever happens meanwhile."""

import random
import shutil
import threading

import pytest

from journal import Journal, JournalOptions
from journal.control import ControlList
from journal.errors import JournalDamaged
from journal.folder import CONTROL_FILE
from journal.replacement import control_file
from tests.journal.golden import scenarios
from tests.journal.stored import View, loaded, pins_of

TYPES = ("NIO", "ASYNCIO", "MAPPED", "IO_URING")


class Model:
    """A journal and the plain dict that says what must be in it."""

    def __init__(self, folder, seed=1, first_id=1, journal=None, **changes):
        self.journal = loaded(folder, **changes) if journal is None else journal
        self.random = random.Random(seed)
        self.live = {}
        self.next_id = first_id
        self.open = {}

    def body(self):
        return bytes([self.next_id % 251]) * self.random.randrange(120)

    def add(self, tx=None):
        record_id, body = self.next_id, self.body()
        self.next_id += 1
        self.journal.add(record_id, 5, body, tx=tx)
        return record_id, [(False, 5, body)]

    def pick(self):
        """A live record that no open transaction deletes."""
        return self.random.choice(list(self.live)) if len(self.live) > 5 else None

    def step(self):
        act = self.random.randrange(12)
        victim = self.pick()
        if act < 4 or victim is None:
            record_id, body = self.add()
            self.live[record_id] = body
        elif act < 7:
            del self.live[victim]
            self.journal.delete(victim)
        elif act < 9:
            body = self.body()
            self.journal.update(victim, 7, body)
            self.live[victim].append((True, 7, body))
        elif act == 9:
            self.begin(victim)
        elif self.open:
            self.end(self.random.choice(list(self.open)), commits=act == 10)

    def begin(self, victim):
        tx = 1_000_000_000 + self.next_id
        adds = dict(self.add(tx) for _ in range(self.random.randrange(1, 4)))
        body = self.body()
        self.journal.update(next(iter(adds)), 8, body, tx=tx)
        adds[next(iter(adds))].append((True, 8, body))
        self.journal.delete(victim, tx=tx)
        self.open[tx] = (adds, victim, self.live.pop(victim))

    def end(self, tx, commits):
        adds, victim, body = self.open.pop(tx)
        if commits:
            self.journal.commit(tx)
            self.live.update(adds)
        else:
            self.journal.rollback(tx)
            self.live[victim] = body

    def end_all(self):
        for tx in list(self.open):
            self.end(tx, commits=self.random.random() < 0.5)


def same_records(view, live):
    found = {key: sorted(records) for key, records in view.records.items()}
    return found == {key: sorted(records) for key, records in live.items()}


@pytest.mark.parametrize("checksums", [True, False], ids=["checksums", "plain"])
@pytest.mark.parametrize("kind", TYPES)
def test_live_records_survive_compactions(tmp_path, kind, checksums):
    changes = {"journal_type": kind, "checksums": checksums}
    model = Model(tmp_path, **changes)

    for _ in range(4):
        for _ in range(400):
            model.step()
        assert model.journal.compact()
    model.end_all()
    pins = pins_of(model.journal)
    model.journal.close()

    view = View(tmp_path, **changes)
    assert same_records(view, model.live)
    assert view.length == len(model.live)
    assert not view.result.damages
    assert view.pins == pins


def test_appends_from_threads_while_compacting(tmp_path):
    journal = loaded(tmp_path)
    models = [
        Model(tmp_path, seed=n, first_id=1 + n * 1_000_000, journal=journal) for n in range(3)
    ]
    failures = []

    enough = threading.Event()

    def work(model):
        try:
            while not enough.wait(0.0005):  # As producers do who wait for the disk.
                for _ in range(10):
                    model.step()
            model.end_all()
        except BaseException as error:
            failures.append(error)
            raise

    threads = [threading.Thread(target=work, args=(model,)) for model in models]
    for thread in threads:
        thread.start()
    try:
        compactions = 0
        while compactions < 5 and not failures:
            compactions += journal.compact()
            enough.wait(0.001)
    finally:
        enough.set()
    for thread in threads:
        thread.join()
    pins = pins_of(journal)
    journal.close()

    assert not failures
    assert compactions == 5
    live = {key: value for model in models for key, value in model.live.items()}
    view = View(tmp_path)
    assert same_records(view, live)
    assert view.pins == pins


def test_everything_deleted_leaves_no_file_pinned(tmp_path):
    model = Model(tmp_path)
    for _ in range(600):
        model.step()
    model.end_all()
    model.journal.compact()

    for record_id in model.live:
        model.journal.delete(record_id)
    assert pins_of(model.journal) == {}
    model.journal.close()

    assert not View(tmp_path).records


def test_live_bytes_are_the_sizes_of_the_records(tmp_path):
    journal = loaded(tmp_path)
    for record_id in range(1, 301):
        journal.add(record_id, 1, b"x" * 100)
    for record_id in range(1, 301, 2):
        journal.delete(record_id)
    for record_id in range(2, 301, 2):
        journal.add(1000 + record_id, 1, b"y" * 10, tx=record_id)
        journal.commit(record_id)

    journal.compact()

    counts = journal.file_counts()
    assert sum(count.live_bytes for count in counts) == 150 * 123 + 150 * 41
    journal.close()


def test_compact_counts_rise_and_stop_at_127(tmp_path):
    journal = loaded(tmp_path)
    journal.add(1, 1, b"a")
    for number in range(130):
        journal.add(2 + number, 1, b"b")
        journal.delete(2 + number)
        assert journal.compact()
    journal.close()

    assert View(tmp_path).compact_counts[1] == [127]


def test_only_the_last_replaceable_update_is_kept(tmp_path):
    changes = {"replaceable_types": frozenset([34, 36])}
    journal = loaded(tmp_path, **changes)
    journal.add(1, 1, b"a")
    for number in range(20):
        journal.update(1, 34, b"count %d" % number)
        journal.update(1, 36, b"time %d" % number)
        journal.update(1, 7, b"plain %d" % number)

    journal.compact()
    pins = pins_of(journal)
    journal.close()

    view = View(tmp_path, **changes)
    plain = [(True, 7, b"plain %d" % number) for number in range(20)]
    last = [(True, 34, b"count 19"), (True, 36, b"time 19")]
    assert view.records[1] == [(False, 1, b"a"), *plain, *last]
    assert view.pins == pins


def test_old_generation_is_split_off_once(tmp_path):
    """Records of many ages give exactly two files."""
    journal = loaded(tmp_path, file_size=64 * 1024)
    for record_id in range(1, 11):
        journal.add(record_id, 1, b"x" * 10)
        assert journal.compact()
    before = {count.file_id for count in journal.file_counts()}
    for record_id in range(11, 40):
        journal.add(record_id, 1, b"y" * 3000)
    journal.compact()

    ids = [count.file_id for count in journal.file_counts()]
    journal.close()
    assert len(ids) >= 3
    assert ids == sorted(ids)
    assert before
    view = View(tmp_path, file_size=64 * 1024)
    assert len(view.records) == 39


def test_open_transaction_is_carried_over_and_commits(tmp_path):
    journal = loaded(tmp_path)
    journal.add(1, 1, b"old")
    journal.add(2, 1, b"new", tx=77)
    journal.update(2, 3, b"more", tx=77)
    journal.delete(1, tx=77)
    for _ in range(3):
        assert journal.compact()
        journal.add(3, 1, b"later") if 3 not in journal else journal.update(3, 1, b"later")

    journal.commit(77)
    pins = pins_of(journal)
    journal.close()

    view = View(tmp_path)
    assert view.records[2] == [(False, 1, b"new"), (True, 3, b"more")]
    assert 1 not in view.records
    assert view.pins == pins


def test_prepared_transaction_is_carried_over_and_survives_restart(tmp_path):
    journal = loaded(tmp_path)
    journal.add(1, 1, b"old")
    journal.add(2, 1, b"new", tx=77)
    journal.delete(1, tx=77)
    journal.prepare(77, b"branch")
    journal.prepare(78, b"empty")
    for _ in range(2):
        assert journal.compact()
        journal.add(9, 1, b"")
        journal.delete(9)
    journal.close()

    view = View(tmp_path)
    assert view.prepared == {77: (b"branch", [(2, False, 1, b"new")], [1]), 78: (b"empty", [], [])}
    journal = loaded(tmp_path)
    assert journal.compact()
    journal.commit(77)
    journal.rollback(78)
    assert journal.compact()
    journal.close()
    assert set(View(tmp_path).records) == {2}


def test_transaction_id_used_again_is_told_apart(tmp_path):
    journal = loaded(tmp_path)
    journal.add(1, 1, b"first", tx=5)
    journal.commit(5)
    journal.add(2, 1, b"second", tx=5)
    journal.rollback(5)
    journal.add(3, 1, b"third", tx=5)

    journal.compact()
    journal.commit(5)
    journal.close()

    assert dict(View(tmp_path).records) == {1: [(False, 1, b"first")], 3: [(False, 1, b"third")]}


def test_nothing_to_compact(tmp_path):
    journal = loaded(tmp_path)

    assert not journal.compact()
    journal.close()


def test_all_live_is_not_worth_it(tmp_path):
    """Leaders make records of Artemis longer: no ids are left for the extra files."""
    journal = loaded(tmp_path, checksums=False)
    for record_id in range(1, 20000):
        journal.add(record_id, 1, b"")
    journal.close()
    journal = loaded(tmp_path)

    assert not journal.compact()
    journal.add(99999, 1, b"still here")
    journal.close()

    # Before that the files thread may be making one.
    assert not list(tmp_path.glob("*.cmp")) + list(tmp_path.glob("*.tmp"))
    assert len(View(tmp_path).records) == 20000


def test_record_as_large_as_a_file_goes_without_leader(tmp_path):
    journal = loaded(tmp_path, checksums=False, buffer_size=32 * 1024)
    journal.add(1, 1, b"x" * (16 * 1024 - 16 - 23))
    journal.add(2, 1, b"small")
    journal.close()
    journal = loaded(tmp_path)
    journal.add(3, 1, b"more")
    journal.add(4, 1, b"gone")
    journal.delete(4)
    for number in range(300):
        journal.add(10 + number, 1, b"gone" * 20)
        journal.delete(10 + number)

    assert journal.compact()
    journal.close()

    view = View(tmp_path)
    assert set(view.records) == {1, 2, 3}
    assert not view.result.damages


def test_damage_stops_the_compaction_not_the_journal(tmp_path):
    journal = loaded(tmp_path)
    for record_id in range(1, 500):
        journal.add(record_id, 1, b"x" * 50)
    journal.sync()
    oldest = tmp_path / journal.file_counts()[0].name
    data = bytearray(oldest.read_bytes())
    data[300] ^= 1
    oldest.write_bytes(data)

    with pytest.raises(JournalDamaged):
        journal.compact()
    journal.add(1000, 1, b"goes on")
    journal.close()

    assert not list(tmp_path.glob("*.cmp")) + list(tmp_path.glob("*.tmp"))


def is_compacted(journal):
    """Whether a file has a lower id than its name, which it took from the pool."""
    return any(
        count.file_id < int(count.name.split("-")[2].split(".")[0])
        for count in journal.file_counts()
    )


def test_compaction_starts_by_itself(tmp_path):
    journal = loaded(tmp_path, compact_min_files=3, compact_percentage=50)
    for record_id in range(1, 3001):
        journal.add(record_id, 1, b"x" * 60)
        if record_id % 100:
            journal.delete(record_id)
    waiting = threading.Event()
    for _ in range(1000):
        if is_compacted(journal) or waiting.wait(0.02):
            break
    compacted = is_compacted(journal)
    journal.close()

    assert compacted
    assert set(View(tmp_path).records) == set(range(100, 3001, 100))


def test_journal_goes_on_if_no_thread_can_be_started(tmp_path, monkeypatch, caplog):
    begin = threading.Thread.start

    def start(thread):
        if thread.name == "journal-compaction":
            raise RuntimeError("can't start new thread")
        begin(thread)

    monkeypatch.setattr(threading.Thread, "start", start)
    journal = loaded(tmp_path, compact_min_files=3, compact_percentage=50)
    for record_id in range(1, 3001):
        journal.add(record_id, 1, b"x" * 60)
        if record_id % 100:
            journal.delete(record_id)
    waiting = threading.Event()
    for _ in range(1000):
        if "no compaction" in caplog.text or waiting.wait(0.02):
            break
    assert journal.compact()
    journal.close()

    assert "no compaction, the journal goes on without it" in caplog.text
    assert set(View(tmp_path).records) == set(range(100, 3001, 100))


# --- crashes between the steps -------------------------------------------------------------------


def crash_folder(tmp_path):
    """The folder before and after a compaction, with one delete and one commit during it."""
    folder = tmp_path / "journal"
    model = Model(folder)
    for _ in range(800):
        model.step()
    model.end_all()
    model.journal.sync()
    model.journal.close()
    before = tmp_path / "before"
    shutil.copytree(folder, before)
    model.journal = loaded(folder)
    assert model.journal.compact()
    after = [count.name for count in model.journal.file_counts()][:-1]
    model.journal.close()
    return before, folder, after, model.live


@pytest.mark.parametrize("checksums", [True, False], ids=["checksums", "plain"])
def test_every_state_that_a_crash_can_leave_loads(tmp_path, checksums):
    before, folder, after, live = crash_folder(tmp_path)
    old = [path.name for path in before.glob("*.amq") if path.name not in after]
    data = View(shutil.copytree(before, tmp_path / "look")).result.files
    old = [file.name for file in data if file.has_data]
    control = control_file(
        ControlList(tuple(old), tuple(f"{name}.cmp" for name in after)), 0, checksums
    )

    def state(number):
        target = tmp_path / f"state{number}"
        shutil.copytree(before, target)
        for name in after:
            (target / name).unlink(missing_ok=True)
            shutil.copy(folder / name, target / f"{name}.cmp")
        return target

    def check(target):
        view = View(target)
        assert same_records(view, live)
        assert not view.result.damages
        assert not list(target.glob("*.cmp")) + list(target.glob("*.tmp"))
        assert not (target / CONTROL_FILE).exists()
        assert same_records(View(target), live)

    check(state("no control"))
    target = state("control cut short")
    (target / CONTROL_FILE).write_bytes(control[:30])
    check(target)
    target = state("control not named yet")
    (target / "activemq-data-0.amq.tmp").write_bytes(control)
    check(target)
    for olds in range(len(old) + 1):
        target = state(f"control {olds}")
        (target / CONTROL_FILE).write_bytes(control)
        for name in old[:olds]:
            (target / name).rename(target / f"{name}.tmp")
        check(target)
    for news in range(len(after) + 1):
        target = state(f"renamed {news}")
        (target / CONTROL_FILE).write_bytes(control)
        for name in old:
            (target / name).rename(target / f"{name}.tmp")
        for name in after[:news]:
            (target / f"{name}.cmp").rename(target / name)
        check(target)
    target = state("control gone")
    for name in old:
        (target / name).rename(target / f"{name}.tmp")
    for name in after:
        (target / f"{name}.cmp").rename(target / name)
    check(target)


# --- what Artemis wrote ------------------------------------------------------------------

LOADED = [scenario for scenario in scenarios() if "load_error" not in scenario.expected["load"]]


@pytest.mark.parametrize("scenario", LOADED, ids=str)
@pytest.mark.parametrize("checksums", [True, False], ids=["checksums", "plain"])
def test_folders_of_artemis_keep_their_records(scenario, checksums, tmp_path):
    config = scenario.expected["config"]
    changes = {
        "prefix": config["prefix"],
        "extension": config["extension"],
        "user_version": config["user_version"],
        "file_size": config["file_size"],
        "buffer_size": 1 << 20,
        "checksums": checksums,
    }
    before = View(scenario.unpack(tmp_path / "before"), **changes)
    folder = scenario.unpack(tmp_path / "after")
    journal = loaded(folder, **changes)

    journal.compact()
    pins = pins_of(journal)
    journal.close()

    after = View(folder, **changes)
    # An update whose add was lost to damage has nothing to update; Artemis drops it too.
    with_add = {key: value for key, value in before.records.items() if not value[0][0]}
    assert dict(after.records) == with_add
    assert after.prepared == before.prepared
    assert after.length == before.length
    if scenario.name != "id_reuse":  # Files are pinned for ever where an id is used twice.
        assert after.pins == pins


def test_a_newest_file_with_records_in_its_header_block_is_compacted_too(tmp_path):
    """Compacted files begin records at offset 16; one that a restart goes on in was passed over."""
    options = JournalOptions(
        directory=tmp_path,
        journal_type="ASYNCIO",
        checksums=False,
        file_size=2048,
        buffer_size=1024,
        compact_min_files=0,
        device_block_size=512,
    )
    with Journal(options) as journal:
        journal.load()
        journal.add(1, 1, b"", tx=100)
        journal.compact()
        journal.add(2, 1, b"", tx=100)
        journal.compact()
        journal.commit(100, sync=True)
        journal.update(1, 2, b"", sync=True)
        journal.compact()

    with Journal(options) as journal:
        journal.load()
        journal.compact()

        assert 1 in journal
        assert 2 in journal

    with Journal(options) as journal:
        records = []
        journal.load(records.extend)

        assert [(record.record_id, record.is_update) for record in records] == [
            (1, False),
            (2, False),
            (1, True),
        ]


def test_prepared_transactions_keep_the_order_in_which_they_began(tmp_path):
    """A load reports them so, and Artemis's compaction keeps it."""
    journal = loaded(tmp_path)
    journal.add(1, 1, b"plain")
    for tx in (901, 902, 903):
        journal.add(tx + 1000, 1, bytes([tx % 256]), tx=tx)
    # The places of 902 and 901, in that order, are taken by 905 and 904.
    journal.rollback(901)
    journal.rollback(902)
    for tx in (905, 904):
        journal.add(tx + 1000, 1, bytes([tx % 256]), tx=tx)
        journal.prepare(tx, b"extra")
    journal.prepare(903, b"extra")
    for record_id in range(5000, 5200):
        journal.add(record_id, 1, bytes(100))
        journal.delete(record_id)

    assert journal.compact()
    journal.close()

    assert list(View(tmp_path).prepared) == [903, 905, 904]
