"""The reference reads, compacts and goes on in what our journal wrote; and we in what it made."""

import random

import pytest
from journal.journal import Journal

from journal.folder import JournalName, list_files
from journal.options import JournalOptions
from journal.reader import read_folder
from tests.interop.layout import Record
from tests.interop.model import load_view, sorted_view

TYPES = ["NIO", "ASYNCIO", "MAPPED", "IO_URING"]
FILE_SIZE = 65536


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "journal"


def options(folder, kind, **changes):
    return JournalOptions(
        directory=folder,
        journal_type=kind,
        file_size=FILE_SIZE,
        compact_min_files=0,
        lock_acquisition_timeout_ms=0,
        **changes,
    )


def settings(kind="NIO"):
    """How the reference opens the folder: its own I/O of that kind, where it has one."""
    if kind == "ASYNCIO":
        return {"file_size": FILE_SIZE, "type": kind, "max_io": 500}
    return {"file_size": FILE_SIZE, "type": "MAPPED" if kind == "MAPPED" else "NIO"}


def append(journal, record, *, sync=False):
    """The call that makes our journal write that record."""
    tx = record.tx or None
    match record.kind:
        case "add" | "add_tx":
            journal.add(record.id, record.user_type, record.body, tx=tx, sync=sync)
        case "update" | "update_tx":
            journal.update(record.id, record.user_type, record.body, tx=tx, sync=sync)
        case "delete" | "delete_tx":
            journal.delete(record.id, record.body, tx=tx, sync=sync)
        case "event":
            journal.event(record.id, record.user_type, record.body, sync=sync)
        case "prepare":
            journal.prepare(record.tx, record.body, sync=sync)
        case "commit":
            journal.commit(record.tx, sync=sync)
        case "rollback":
            journal.rollback(record.tx, sync=sync)


def random_work(seed, count):
    """Records of every kind, with several transactions open at a time; ids used once."""
    chance = random.Random(seed)
    work, live, open_txs, prepared = [], [], {}, []
    next_id, next_tx = 1, 10_000_000
    for _ in range(count):
        kind = chance.choices(
            ["add", "update", "delete", "event", "tx", "end", "prepare"], [8, 4, 3, 1, 8, 2, 1]
        )[0]
        body = chance.randbytes(chance.choice([0, 5, 50, 500, 2000]))
        user_type = chance.randrange(256)
        if kind == "add" or (kind in ("update", "delete") and not live):
            work.append(Record("add", next_id, user_type, body))
            live.append(next_id)
            next_id += 1
        elif kind == "update":
            work.append(Record("update", chance.choice(live), user_type, body))
        elif kind == "delete":
            work.append(Record("delete", live.pop(chance.randrange(len(live)))))
        elif kind == "event":
            work.append(Record("event", next_id, user_type, body))
        elif kind == "tx":
            if len(open_txs) < 4:
                open_txs[next_tx] = []
                next_tx += 1
            tx = chance.choice(list(open_txs))
            if live and chance.random() < 0.3:
                victim = live.pop(chance.randrange(len(live)))
                work.append(Record("delete_tx", victim, body=body[:20], tx=tx))
            else:
                work.append(Record("add_tx", next_id, user_type, body, tx=tx))
                open_txs[tx].append(next_id)
                next_id += 1
        elif kind == "prepare" and open_txs:
            tx = chance.choice(list(open_txs))
            work.append(Record("prepare", body=body[:40], tx=tx))
            prepared.append((tx, open_txs.pop(tx)))
        elif kind == "end" and (open_txs or prepared):
            if prepared and chance.random() < 0.5:
                tx, ids = prepared.pop()
            else:
                if not open_txs:
                    continue
                tx = chance.choice(list(open_txs))
                ids = open_txs.pop(tx)
                if not any(record.tx == tx for record in work):
                    continue
            if chance.random() < 0.7:
                work.append(Record("commit", tx=tx))
                live += ids
            else:
                work.append(Record("rollback", tx=tx))
    return work


def write(folder, kind, work, **changes):
    journal = Journal(options(folder, kind, **changes))
    journal.open()
    journal.load()
    for number, record in enumerate(work):
        append(journal, record, sync=number % 7 == 0 and record.kind != "event" and not record.tx)
    journal.close()


def warnings_beside_uncommitted(reference):
    return [line for line in reference.warnings if "AMQ142015" not in line]


def assert_loads(reference, folder, work, kind="NIO"):
    view = reference.call("load", folder, **settings(kind))
    assert sorted_view(view) == sorted_view(load_view(work))
    assert warnings_beside_uncommitted(reference) == []


@pytest.mark.parametrize("checksums", [True, False])
@pytest.mark.parametrize("kind", TYPES)
def test_reference_loads_every_kind_of_record(reference, folder, kind, checksums):
    work = random_work(1, 400)
    write(folder, kind, work, checksums=checksums)

    assert_loads(reference, folder, work, kind)


@pytest.mark.parametrize("seed", range(10))
def test_reference_loads_random_work(reference, folder, seed):
    work = random_work(100 + seed, 300)
    write(folder, TYPES[seed % len(TYPES)], work)

    assert_loads(reference, folder, work)


@pytest.mark.parametrize("kind", TYPES)
def test_reference_compacts_ours(reference, folder, kind):
    work = random_work(2, 400)
    write(folder, kind, work)
    before = reference.call("load", folder, **settings(kind))

    after = reference.call("compact", folder, **settings(kind))

    assert warnings_beside_uncommitted(reference) == []
    assert contents(after) == contents(before)


@pytest.mark.parametrize("kind", TYPES)
def test_our_reader_follows_the_reference_in_our_folder(reference, folder, kind):
    """Ours, then its appends, its compaction, its appends again: no damage, no record lost."""
    work = random_work(3, 300)
    write(folder, kind, work)
    reference.call("append-after", folder, first_id=90_000, count=30, **settings(kind))
    reference.call("compact", folder, **settings(kind))
    reference.call("append-after", folder, first_id=91_000, count=30, **settings(kind))

    assert_our_reader_agrees(reference, folder)


def assert_our_reader_agrees(reference, folder):
    theirs = reference.call("raw", folder, **settings())
    views = list(read_folder(list_files(folder, JournalName())))
    assert [str(damage) for view in views for damage in view.damages] == []
    assert [
        [(record.offset, record.size) for record in view if record.verdict == "live"]
        for view in views
    ] == [[(record["offset"], record["size"]) for record in file["records"]] for file in theirs]


def contents(view):
    """What a load gives, but for how often it was compacted and in which order."""
    records = [{**record, "compact_count": 0} for record in view["committed"]]
    return {
        "committed": sorted(records, key=str),
        "prepared": [
            {**tx, "records": [{**record, "compact_count": 0} for record in tx["records"]]}
            for tx in sorted_view(view)["prepared"]
        ],
    }
