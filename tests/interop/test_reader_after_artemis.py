"""Our reader on folders that both wrote: ours first, then Artemis after a stop or a crash."""

import pytest

from journal import Journal, JournalOptions
from journal.folder import JournalName, list_files
from journal.reader import read_folder
from tests.interop.layout import END_MARK, FileLayout, Record
from tests.interop.test_leaders_are_skipped import (
    ALIGNMENTS,
    all_kinds,
    in_flushes,
    over_files,
    random_records,
)

SIZE = 65536


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "journal"
    path.mkdir()
    return path


def settings(alignment):
    """How Artemis opens a folder so that it writes with that alignment."""
    if alignment == 1:
        return {"file_size": SIZE, "type": "NIO"}
    return {"file_size": SIZE, "type": "ASYNCIO", "max_io": 500, "block_size": alignment}


def assert_same_records(artemis, folder, alignment=1, damages=()):
    """Our reader and Artemis's scanner see the same live records, and nothing damaged."""
    theirs = artemis.call("raw", folder, **settings(alignment))
    ours, found = [], []
    for view in read_folder(list_files(folder, JournalName())):
        ours.append([(record.offset, record.size) for record in view if record.verdict == "live"])
        found += [damage for damage in view.damages if not damage.torn]
    assert [str(damage) for damage in found] == list(damages)
    assert ours == [
        [(record["offset"], record["size"]) for record in file["records"]] for file in theirs
    ]


@pytest.mark.parametrize("alignment", ALIGNMENTS)
def test_untouched_folder(artemis, folder, alignment):
    over_files(random_records(1, 60), folder, alignment=alignment, size=SIZE)

    assert_same_records(artemis, folder, alignment)


@pytest.mark.parametrize("alignment", ALIGNMENTS)
def test_artemis_appended_behind_our_end_mark(artemis, folder, alignment):
    layout = FileLayout(1, SIZE, alignment)
    in_flushes(all_kinds(), layout)
    layout.idle_mark(END_MARK)
    layout.write(folder)

    artemis.call("append-after", folder, first_id=50, count=4, **settings(alignment))

    assert_same_records(artemis, folder, alignment)


@pytest.mark.parametrize("alignment", ALIGNMENTS)
def test_artemis_renumbered_our_free_files(artemis, folder, alignment):
    """Free files of ours, one never used and one with stale records, get new ids at its load."""
    used = FileLayout(5, SIZE, alignment)
    used.flush(Record("add", 1, 1, b"kept"))
    used.write(folder)
    old = FileLayout(2, SIZE, alignment)
    in_flushes(random_records(4, 8), old)
    FileLayout(6, SIZE, alignment).write(folder, name="2", under=old.bytes())
    FileLayout(7, SIZE, alignment).write(folder, name="3")

    artemis.call("load", folder, **settings(alignment))

    assert_same_records(artemis, folder, alignment)


@pytest.mark.parametrize("alignment", ALIGNMENTS)
def test_artemis_used_our_files_again(artemis, folder, alignment):
    ours = [Record("add", i, 1, bytes([0xF1]) * 700) for i in range(1, 200)]
    over_files(ours, folder, alignment=alignment, size=SIZE)
    deletes = "\n".join(f"del {record.id}" for record in ours)
    fill = "\n".join(f"add {i} 2 r{i}:700" for i in range(300, 450))

    artemis.run(folder, f"open\n{deletes}\nnext\nreclaim\n{fill}\nstop\n", **settings(alignment))

    assert_same_records(artemis, folder, alignment)


@pytest.mark.parametrize("alignment", ALIGNMENTS)
def test_artemis_freed_our_files_and_wrote_no_record(artemis, folder, alignment):
    """Of a file that it frees it writes 16 bytes of header, before our leader and our records."""
    dead = [Record("add", i, 1, bytes([0xF1]) * 700) for i in range(1, 200)]
    deletes = [Record("delete", i) for i in range(1, 200)]
    stays = Record("add", 500, 1, b"stays")
    layouts = over_files([*dead, *deletes, stays], folder, alignment=alignment, size=SIZE)

    artemis.run(folder, "open\nreclaim\nstop\n", **settings(alignment))

    views = read_folder(list_files(folder, JournalName()))
    assert max(view.file_id for view in views) > layouts[-1].file_id
    assert_same_records(artemis, folder, alignment)
    journal = Journal(JournalOptions(directory=folder, journal_type="NIO", file_size=SIZE))
    ids = []
    journal.open()
    result = journal.load(lambda batch: ids.extend(record.record_id for record in batch))
    journal.close()
    assert ids == [500]
    assert result.damages == []


@pytest.mark.parametrize("alignment", ALIGNMENTS)
def test_artemis_compacted_it(artemis, folder, alignment):
    over_files(random_records(3, 120), folder, alignment=alignment, size=SIZE)

    artemis.call("compact", folder, **settings(alignment))

    assert_same_records(artemis, folder, alignment)


def torn_folder(folder, alignment, torn):
    """Two synced flushes, then one of three records of which only the middle is on the disk."""
    layout = FileLayout(1, SIZE, alignment)
    layout.flush(Record("add", 1, 1, b"one"))
    layout.flush(Record("add", 2, 1, b"two"))
    layout.flush(*(Record("add", i, 1, bytes([i]) * 600) for i in (3, 4, 5)))
    layout.idle_mark()
    lost = {
        "first": [-3],
        "last": [-1],
        "first and last": [-3, -1],
        "middle": [-2],
        "all": [-3, -2, -1],
    }
    for place in lost[torn]:
        offset, size = layout.places[place]
        layout.data[offset + 300 : offset + size] = bytes(size - 300)
    # The idle mark behind the last record was never reached either.
    offset, size = layout.places[-1]
    layout.data[offset + size :] = bytes(len(layout.data) - offset - size)
    layout.write(folder)


@pytest.mark.parametrize("alignment", ALIGNMENTS)
@pytest.mark.parametrize("torn", ["first", "last", "first and last", "middle", "all"])
@pytest.mark.parametrize("count", [1, 120])
def test_artemis_went_on_after_our_crash(artemis, folder, alignment, torn, count):
    """Leaders of what was never acknowledged may be left behind Artemis's records.

    With `count` 120 Artemis rolled on, and the torn tail is no longer the newest file's.
    """
    torn_folder(folder, alignment, torn)

    artemis.call(
        "append-after", folder, first_id=50, count=count, body="r5:1000", **settings(alignment)
    )

    live, damages = [], []
    for view in read_folder(list_files(folder, JournalName())):
        live += [record.record_id for record in view if record.verdict == "live"]
        damages += [str(damage) for damage in view.damages if not damage.torn]
    assert [i for i in live if i not in (3, 4, 5)] == [1, 2, *range(50, 50 + count)]
    assert damages == []
