"""One sector of a journal that was closed in order is lost: it is damage, or nothing was in it."""

import shutil

import pytest

from journal import Journal, JournalDamaged, JournalOptions, UnsupportedFormat
from tests.crash.workload import TYPES

WAIT_S = 60


def options(folder, kind, **changes):
    return JournalOptions(
        directory=folder, journal_type=kind, compact_min_files=0, **{"file_size": 65536} | changes
    )


def written(folder, kind, sizes, **changes):
    """A journal with records of these sizes, closed; its records' ids."""
    with Journal(options(folder, kind, **changes)) as journal:
        journal.load()
        for record_id, size in enumerate(sizes, 1):
            journal.add(record_id, 0, b"x" * size)
    return list(range(1, len(sizes) + 1))


def loaded_without(folder, kind, file, offset, size, copy):
    """The ids that a load finds when one sector reads as zeros; None when it is refused."""
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(folder, copy)
    with (copy / file).open("r+b") as changed:
        changed.seek(offset)
        changed.write(bytes(size))
    found = []
    try:
        with Journal(options(copy, kind, file_size=(copy / file).stat().st_size)) as journal:
            journal.load(lambda batch: found.extend(record.record_id for record in batch))
    except (JournalDamaged, UnsupportedFormat):
        return None
    return found


def used_sectors(path, sector):
    data = path.read_bytes()
    return [at for at in range(0, len(data), sector) if any(data[at : at + sector])]


@pytest.mark.parametrize("sector", [512, 4096])
@pytest.mark.parametrize("sizes", [[5], [5, 6, 7], [100] * 30, [5000, 20, 5000], [4030]])
@pytest.mark.parametrize("kind", TYPES)
def test_no_lost_sector_of_a_closed_journal_loses_a_record_in_silence(
    kind, sizes, sector, tmp_path
):
    ids = written(tmp_path / "journal", kind, sizes)

    for at in used_sectors(tmp_path / "journal" / "activemq-data-1.amq", sector):
        found = loaded_without(
            tmp_path / "journal", kind, "activemq-data-1.amq", at, sector, tmp_path / "copy"
        )
        assert found in (None, ids), at


@pytest.mark.parametrize("kind", TYPES)
def test_no_lost_sector_of_a_full_file_loses_a_record_in_silence(kind, tmp_path):
    """In a file that is left for the next one nothing else tells where its records end."""
    ids = written(tmp_path / "journal", kind, [3000] * 45)
    first = tmp_path / "journal" / "activemq-data-1.amq"

    for at in used_sectors(first, 4096)[-3:]:
        found = loaded_without(tmp_path / "journal", kind, first.name, at, 4096, tmp_path / "copy")
        assert found in (None, ids), at


def test_no_lost_sector_of_a_compacted_file_loses_a_record_in_silence(tmp_path):
    with Journal(options(tmp_path / "journal", "NIO")) as journal:
        journal.load()
        for record_id in range(1, 60):
            journal.add(record_id, 0, b"x" * 3000, sync=False)
        for record_id in range(1, 60):
            if record_id % 4:
                journal.delete(record_id, sync=False)
        journal.sync()
        assert journal.compact()
        compacted = {file.name for file in journal.file_counts() if file.live_bytes}
    ids = [record_id for record_id in range(1, 60) if record_id % 4 == 0]

    assert compacted
    for name in compacted:
        for at in used_sectors(tmp_path / "journal" / name, 512)[-9:]:
            found = loaded_without(tmp_path / "journal", "NIO", name, at, 512, tmp_path / "copy")
            assert found in (None, ids), (name, at)


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("file_size", [2048, 8192, 65536])
def test_a_journal_that_is_closed_after_each_record_keeps_all(kind, file_size, tmp_path):
    """Marks in sectors of their own are passed over, in files of any size."""
    found = []
    for record_id in range(1, 31):
        changes = {"file_size": file_size, "device_block_size": 512}
        with Journal(options(tmp_path, kind, **changes)) as journal:
            found.clear()
            journal.load(lambda batch: found.extend(record.record_id for record in batch))
            assert found == list(range(1, record_id))
            journal.add(record_id, 0, b"x" * 100)
