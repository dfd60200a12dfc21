"""One folder, used by our journal and Artemis in turn; after each turn both load the same."""

import shutil

import pytest

from journal import Journal, JournalOptions
from tests.interop.model import body_view, contents, load_view
from tests.interop.work import Work, append, script

FILE_SIZE = 65536
TYPES = ["NIO", "ASYNCIO", "MAPPED", "IO_URING"]
SETTINGS = {"file_size": FILE_SIZE, "type": "NIO"}
ARTEMIS_SETTINGS = [
    SETTINGS,
    {"file_size": FILE_SIZE, "type": "MAPPED"},
    {"file_size": FILE_SIZE, "type": "ASYNCIO", "max_io": 500},
]


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "journal"
    path.mkdir()
    return path


def our_journal(folder, kind, **changes):
    return Journal(
        JournalOptions(
            directory=folder,
            journal_type=kind,
            file_size=FILE_SIZE,
            compact_min_files=0,
            lock_acquisition_timeout_ms=0,
            **changes,
        )
    )


def record_view(record):
    return {
        "id": record.record_id,
        "user_type": (record.user_type + 128) % 256 - 128,
        "update": record.is_update,
        "compact_count": record.compact_count,
        **body_view(bytes(record.body)),
    }


def our_view(journal):
    """What our load gives, as expected.json shows it; leaves the journal loaded."""
    committed = []
    journal.open()
    result = journal.load(lambda batch: committed.extend(map(record_view, batch)))
    assert [str(damage) for damage in result.damages] == []
    return {
        "committed": committed,
        "prepared": [
            {
                "tx": tx.tx_id,
                "extra_data": body_view(tx.extra),
                "records": [record_view(record) for record in tx.records],
                "records_to_delete": [
                    {"id": delete.record_id, **body_view(delete.body)} for delete in tx.deletes
                ],
            }
            for tx in result.prepared
        ],
        "failed_transactions": [],
    }


def our_turn(folder, kind, records, *, crash=False, checksums=True):
    """Append with our journal and stop, or leave the folder as a killed process does."""
    journal = our_journal(folder, kind, checksums=checksums)
    our_view(journal)
    for number, record in enumerate(records):
        append(journal, record, sync=number % 5 == 0 and record.kind == "add")
    if crash:
        journal.sync()
        copy = folder.with_name("crashed")
        # A file on its way into the pool may get its name in between; it holds nothing.
        shutil.copytree(folder, copy, ignore=shutil.ignore_patterns("*.tmp"))
        journal.close()
        shutil.rmtree(folder)
        copy.rename(folder)
    else:
        journal.close()


def assert_both_load(artemis, folder, kind, work):
    expected = load_view(work.records)
    expected["failed_transactions"] = []
    copy = folder.with_name("copy")
    shutil.copytree(folder, copy)
    theirs = artemis.call("load", copy, **SETTINGS)
    shutil.rmtree(copy)
    assert contents(theirs) == contents(expected)
    shutil.copytree(folder, copy)
    journal = our_journal(copy, kind)
    ours = our_view(journal)
    journal.close()
    shutil.rmtree(copy)
    assert contents(ours) == contents(expected)


@pytest.mark.parametrize("kind", TYPES)
def test_we_load_what_artemis_compacted_of_ours(artemis, folder, kind):
    work = Work(20)
    our_turn(folder, kind, work.turn(300))
    artemis.call("compact", folder, **SETTINGS)

    assert_both_load(artemis, folder, kind, work)

    our_turn(folder, kind, work.turn(200))
    assert_both_load(artemis, folder, kind, work)


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("seed", range(5))
def test_many_turns(artemis, folder, kind, seed):
    """Either side with any of its I/O types, ours now and then without checksums."""
    work = Work(seed)
    for _ in range(8):
        turn = work.chance.choice(["ours", "ours crash", "theirs", "theirs crash", "compact"])
        settings = work.chance.choice(ARTEMIS_SETTINGS)
        if turn.startswith("ours"):
            checksums = work.chance.random() < 0.8
            our_turn(folder, kind, work.turn(80), crash="crash" in turn, checksums=checksums)
        elif turn.startswith("theirs"):
            steps = script(work.turn(80), crash="crash" in turn)
            artemis.run(folder, steps, **settings)
        else:
            artemis.call("compact", folder, **settings)

        assert_both_load(artemis, folder, kind, work)
