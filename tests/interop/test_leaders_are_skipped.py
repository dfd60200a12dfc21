"""Artemis reads files with leaders, marks and padding as if those were not there.

Every folder here is laid out by hand (layout.py), so that the scheme itself is on trial, not our
writer.
"""

import random

import pytest

from tests.interop.layout import END_MARK, HEADER_SIZE, LEADER_SIZE, FileLayout, Record
from tests.interop.model import load_view, sorted_view

ALIGNMENTS = [1, 512, 4096]


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "journal"
    path.mkdir()
    return path


def all_kinds():
    """Every kind of record and every end of a transaction; ids from 1, transactions from 900."""
    return [
        Record("add", 1, 5, b"one"),
        Record("add", 2, 200, b""),
        Record("update", 1, 6, b"one again"),
        Record("event", 77, 3, b"seen by nobody"),
        Record("add_tx", 3, 7, b"three", tx=900),
        Record("update_tx", 1, 8, b"one, third", tx=900),
        Record("delete_tx", 2, body=b"why", tx=900),
        Record("commit", tx=900, number_of_records=3),
        Record("add_tx", 4, 7, b"four", tx=901),
        Record("rollback", tx=901),
        Record("add_tx", 5, 7, b"five", tx=902),
        Record("delete_tx", 3, tx=902),
        Record("prepare", tx=902, body=b"xid", number_of_records=2),
        Record("add_tx", 6, 7, b"six", tx=903),
        Record("prepare", tx=903, body=b"", number_of_records=1),
        Record("commit", tx=903, number_of_records=1),
        Record("add_tx", 7, 7, b"seven", tx=904),
        Record("add", 8, 9, bytes(range(256)) * 5),
        Record("add", 9, 9, b"gone"),
        Record("delete", 9),
        Record("add", 10, 9, b"ten", compact_count=3),
    ]


def random_records(seed, count):
    """Adds, updates and deletes whose bodies look like records, leaders and noise."""
    chance = random.Random(seed)
    records, live = [], []
    for record_id in range(1, count + 1):
        size = chance.choice([0, 1, 7, 100, 480, 500, 512, 1000, 3000])
        filling = chance.choice([0x0B, 0x80, 0xF1, 0xF2, 0xF3, 0xF4, 0x00, None])
        body = bytes([filling]) * size if filling is not None else chance.randbytes(size)
        records.append(Record("add", record_id, chance.randrange(256), body))
        live.append(record_id)
        if chance.random() < 0.3:
            records.append(Record("update", chance.choice(live), 1, chance.randbytes(20)))
        if chance.random() < 0.2:
            records.append(Record("delete", live.pop(chance.randrange(len(live)))))
    return records


def in_flushes(records, layout, seed=1):
    """Append records in flushes of one to five, with an idle mark now and then."""
    chance = random.Random(seed)
    rest = list(records)
    while rest:
        count = chance.randint(1, 5)
        layout.flush(*rest[:count])
        rest = rest[count:]
        if chance.random() < 0.2:
            layout.idle_mark()


def over_files(records, folder, *, size=16384, alignment=1):
    """Lay records out over as many files as they need; the last file ends in an end mark."""
    layouts = [FileLayout(1, size, alignment)]
    for record in records:
        room = layouts[-1].size - len(layouts[-1].data)
        if room < len(record.encode(1)) + 4 * LEADER_SIZE + max(alignment, 512) + alignment:
            layouts[-1].idle_mark(END_MARK)
            layouts[-1].write(folder)
            layouts.append(FileLayout(layouts[-1].file_id + 1, size, alignment))
        layouts[-1].flush(record)
    layouts[-1].idle_mark(END_MARK)
    layouts[-1].write(folder)
    return layouts


def assert_loads(artemis, folder, records, *, failed=0, **config):
    view = artemis.call("load", folder, **config)
    warnings = [line for line in artemis.warnings if "AMQ142015" not in line]
    assert sorted_view(view) == sorted_view(load_view(records))
    assert warnings == []
    assert len(artemis.warnings) == failed


@pytest.mark.parametrize("alignment", ALIGNMENTS)
def test_all_kinds_of_records_load(artemis, folder, alignment):
    layout = FileLayout(1, alignment=alignment)
    in_flushes(all_kinds(), layout)
    layout.idle_mark(END_MARK)
    layout.write(folder)

    assert_loads(artemis, folder, all_kinds(), failed=1)


@pytest.mark.parametrize("alignment", ALIGNMENTS)
def test_scanner_finds_each_record_where_it_was_put(artemis, folder, alignment):
    layout = FileLayout(1, alignment=alignment)
    in_flushes(all_kinds(), layout)
    layout.write(folder)

    (file,) = artemis.call("raw", folder)

    assert [(record["offset"], record["size"]) for record in file["records"]] == layout.places
    assert file["last_data_pos"] == sum(layout.places[-1])
    assert file["marked_as_data_file_by_corruption"] == 0


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("alignment", ALIGNMENTS)
def test_bodies_that_look_like_records_load(artemis, folder, alignment, seed):
    records = random_records(seed, 60)
    over_files(records, folder, alignment=alignment, size=65536)

    assert_loads(artemis, folder, records, file_size=65536)


@pytest.mark.parametrize("kind", ["NIO", "MAPPED", "ASYNCIO"])
def test_every_io_type_of_artemis_loads_it(artemis, folder, kind):
    records = random_records(7, 60)
    over_files(records, folder, alignment=512 if kind == "ASYNCIO" else 1, size=65536)

    config = {"block_size": 512, "max_io": 500} if kind == "ASYNCIO" else {}
    assert_loads(artemis, folder, records, type=kind, file_size=65536, **config)


def test_transaction_over_files_is_whole(artemis, folder):
    parts = [Record("add_tx", i, 1, bytes(2000), tx=500) for i in range(1, 31)]
    layouts = over_files(parts, folder)
    last = layouts[-1]
    in_last = sum(1 for part in parts if part.encode(last.file_id) in bytes(last.data))
    commit = Record("commit", tx=500, number_of_records=0)
    next_file = FileLayout(last.file_id + 1, 16384)
    next_file.flush(commit)
    next_file.write(folder)

    assert in_last > 0
    assert_loads(artemis, folder, [*parts, commit], file_size=16384)


def test_artemis_appends_behind_our_end_mark(artemis, folder):
    layout = FileLayout(1)
    in_flushes(all_kinds()[:3], layout)
    layout.idle_mark(END_MARK)
    layout.write(folder)

    artemis.call("append-after", folder, first_id=50, count=4, body="x0a0b0c", user_type=4)

    theirs = [Record("add", i, 4, b"\x0a\x0b\x0c") for i in range(50, 54)]
    assert_loads(artemis, folder, [*all_kinds()[:3], *theirs])


@pytest.mark.parametrize("torn", range(1, 40, 3))
def test_torn_tail_is_written_over(artemis, folder, torn):
    """The last record is torn `torn` bytes before its end; Artemis goes on from there."""
    whole, last = Record("add", 1, 1, b"whole"), Record("add", 2, 1, b"torn")
    layout = FileLayout(1)
    layout.flush(whole)
    layout.flush(last)
    del layout.data[-torn:]
    layout.write(folder)

    artemis.call("append-after", folder, first_id=50, count=1, body="x01", user_type=4)

    assert_loads(artemis, folder, [whole, Record("add", 50, 4, b"\x01")])


@pytest.mark.parametrize("alignment", ALIGNMENTS)
def test_artemis_compacts_it(artemis, folder, alignment):
    records = random_records(3, 120)
    over_files(records, folder, alignment=alignment, size=65536)
    before = artemis.call("load", folder, file_size=65536)

    after = artemis.call("compact", folder, file_size=65536)

    assert artemis.warnings == []
    assert without_compact_counts(after) == without_compact_counts(before)
    assert max(record["compact_count"] for record in after["committed"]) == 1


def without_compact_counts(view):
    return [{**record, "compact_count": 0} for record in view["committed"]]


def test_file_used_again_by_artemis_hides_our_leaders(artemis, folder):
    """Our file under a new id, its stale records and leaders behind Artemis's first ones."""
    ours = [Record("add", i, 1, bytes(700)) for i in range(1, 21)]
    over_files(ours, folder)
    deletes = "\n".join(f"del {record.id}" for record in ours)
    fill = "\n".join(f"add {i} 2 r{i}:700" for i in range(100, 130))

    artemis.run(folder, f"open\n{deletes}\nnext\nreclaim\n{fill}\nstop\n", file_size=16384)

    files = artemis.call("raw", folder, file_size=16384)
    assert artemis.warnings == []
    found = [record["id"] for file in files for record in file["records"]]
    assert sorted(set(found) & set(range(100, 130))) == list(range(100, 130))
    view = artemis.call("load", folder, file_size=16384)
    assert [record["id"] for record in view["committed"]] == list(range(100, 130))
    assert artemis.warnings == []


@pytest.mark.parametrize("alignment", ALIGNMENTS)
def test_our_file_over_stale_bytes_of_ours_loads(artemis, folder, alignment):
    """As our pool recycles: a new id, the old use's leaders, records and marks left behind."""
    old = FileLayout(1, alignment=alignment)
    in_flushes(random_records(5, 30), old)
    new = FileLayout(9, alignment=alignment)
    in_flushes(all_kinds()[:3], new)
    new.write(folder, name="1", under=old.bytes())

    assert_loads(artemis, folder, all_kinds()[:3])


def test_free_file_renumbered_by_artemis_keeps_our_header_leader(artemis, folder):
    """Why a header leader that does not match does not prove damage.

    At every load Artemis gives each file without live data a new id, writing 16 bytes.
    """
    used, free = FileLayout(1), FileLayout(2)
    used.flush(Record("add", 1, 1, b"kept"))
    used.write(folder)
    path = free.write(folder)
    before = path.read_bytes()

    artemis.call("load", folder)

    after = path.read_bytes()
    assert after[:HEADER_SIZE] != before[:HEADER_SIZE]
    assert after[HEADER_SIZE:] == before[HEADER_SIZE:]
