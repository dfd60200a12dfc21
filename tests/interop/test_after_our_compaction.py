"""What our compaction made: Artemis loads it, in its own order, and goes on in it."""

import shutil

import pytest

from tests.interop.model import contents, load_view, sorted_view
from tests.interop.test_both_take_turns import our_journal, our_turn, our_view
from tests.interop.work import Work

TYPES = ["NIO", "ASYNCIO", "MAPPED", "IO_URING"]
SETTINGS = {"file_size": 65536, "type": "NIO"}


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "journal"
    path.mkdir()
    return path


def compact(folder, kind, **changes):
    """Load, compact all older files, close; whether any was replaced."""
    journal = our_journal(folder, kind, **changes)
    our_view(journal)
    is_compacted = journal.compact()
    journal.close()
    return is_compacted


def written(artemis, folder, but_for):
    """Every record that Artemis's scanner finds, without its place.

    Args:
        but_for: the open transactions; Artemis copies their records where they come, we
            behind all others, and no load can tell.
    """
    return [
        {name: value for name, value in record.items() if name not in ("offset", "size")}
        for file in artemis.call("raw", folder, **SETTINGS)
        for record in file["records"]
        if record.get("tx") not in but_for
    ]


def last_in_any_order(records, replaceable):
    """Records, and in the end replaceable updates: Artemis's order of those is a hash's."""
    first = len(records)
    while first and records[first - 1]["update"] and records[first - 1]["user_type"] in replaceable:
        first -= 1
    return records[:first] + sorted(records[first:], key=str)


@pytest.mark.parametrize("checksums", [True, False], ids=["checksums", "plain"])
@pytest.mark.parametrize("kind", TYPES)
def test_artemis_loads_what_we_compacted(artemis, folder, kind, checksums):
    work = Work(30)
    our_turn(folder, kind, work.turn(400), checksums=checksums)

    assert compact(folder, kind, checksums=checksums)

    expected = load_view(work.records)
    expected["failed_transactions"] = []
    view = artemis.call("load", folder, **SETTINGS)
    assert contents(view) == contents(expected)
    assert artemis.warnings == []


@pytest.mark.parametrize("checksums", [True, False], ids=["checksums", "plain"])
@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("replaceable", [[], range(128)], ids=["", "replaceable"])
def test_order_is_that_of_artemis_own_compaction(artemis, folder, kind, checksums, replaceable):
    """Loaded by Artemis: records, transactions, compact counts, and the order of each."""
    our_turn(folder, kind, Work(41).turn(400), checksums=checksums)
    theirs = folder.with_name("theirs")
    shutil.copytree(folder, theirs)

    compact(folder, kind, checksums=checksums, replaceable_types=frozenset(replaceable))
    types = ",".join(map(str, replaceable))
    by_them = artemis.call("compact", theirs, **SETTINGS, replaceable=types)

    by_us = artemis.call("load", folder, **SETTINGS)
    for what in ("prepared", "failed_transactions", "number_of_records", "max_id"):
        assert by_us[what] == by_them[what]
    assert last_in_any_order(by_us["committed"], replaceable) == last_in_any_order(
        by_them["committed"], replaceable
    )
    assert max(record["compact_count"] for record in by_us["committed"]) == 1
    prepared = [tx["tx"] for tx in by_us["prepared"]]
    assert len(prepared) > 2
    if not replaceable:
        assert written(artemis, folder, prepared) == written(artemis, theirs, prepared)


@pytest.mark.parametrize("checksums", [True, False], ids=["checksums", "plain"])
@pytest.mark.parametrize("kind", TYPES)
def test_artemis_goes_on_in_what_we_compacted(artemis, folder, kind, checksums):
    work = Work(50)
    our_turn(folder, kind, work.turn(300), checksums=checksums)
    compact(folder, kind, checksums=checksums)
    before = artemis.call("load", folder, **SETTINGS)

    artemis.call("append-after", folder, first_id=90_000, count=200, body="r5:700", **SETTINGS)

    view = artemis.call("load", folder, **SETTINGS)
    assert view["committed"][: len(before["committed"])] == before["committed"]
    added = [record["id"] for record in view["committed"][len(before["committed"]) :]]
    assert added == list(range(90_000, 90_200))
    journal = our_journal(folder, kind, checksums=checksums)
    ours = our_view(journal)
    journal.close()
    assert sorted_view(ours) == sorted_view(view)
