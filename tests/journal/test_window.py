"""A file read step by step is found to hold what it holds when it is read at once."""

import os
import random

import pytest

import journal.window
from journal.errors import JournalError
from journal.files.base import Folder
from journal.folder import JournalName, list_files
from journal.index import RecordIndex
from journal.loader import Loader
from journal.window import STEP_SIZE
from tests.journal.build import Built
from tests.journal.golden import scenarios

STEPS = (32, 64, 500)  # at least a header and its leader
FLIPS = 150


def outcome(folder, name, **how):
    """All that a load tells, or how it refused."""
    try:
        return told(Loader(list_files(folder, name), RecordIndex(), damage="quarantine", **how))
    except JournalError as error:
        return type(error), str(error)


def told(loader):
    result = loader.load()
    records = [(r.record_id, r.body, r.file, r.offset, r.checksum) for r in loader.records()]
    return repr((result, records))


@pytest.mark.parametrize("step_size", STEPS)
@pytest.mark.parametrize("scenario", scenarios(), ids=lambda scenario: scenario.name)
def test_folder_of_artemis(scenario, step_size, tmp_path):
    folder = scenario.unpack(tmp_path)
    config = scenario.expected["config"]
    name = JournalName(config["prefix"], config["extension"])

    assert outcome(folder, name, step_size=step_size) == outcome(folder, name)


@pytest.mark.parametrize("step_size", STEPS)
def test_damaged_file_of_ours(step_size, tmp_path):
    built = Built(size=4096)
    built.add(1)
    built.tx_add(9, 2)
    built.mark()
    built.commit(9, 1)
    built.add(3, b"\x0b\0\0\0\x01 begins like a record" * 20)
    path = built.mark().save(tmp_path)
    whole = path.read_bytes()
    chance = random.Random(step_size)
    for _ in range(FLIPS):
        damaged = bytearray(whole)
        for _ in range(chance.randint(1, 3)):
            damaged[chance.randrange(len(whole) // 4)] ^= 1 << chance.randrange(8)
        path.write_bytes(damaged[: chance.choice([len(whole), chance.randrange(len(whole))])])

        assert outcome(tmp_path, JournalName(), step_size=step_size) == outcome(
            tmp_path, JournalName()
        )


def test_records_larger_than_a_step(tmp_path):
    built = Built(size=1 << 20)
    for record_id, size in enumerate((300_000, 10, 400_000, 200_000), 1):
        built.add(record_id, bytes([record_id]) * size)
    built.mark().save(tmp_path)
    loader = Loader(list_files(tmp_path, JournalName()), RecordIndex())

    loader.load()

    assert [(r.record_id, len(r.body), r.checksum) for r in loader.records()] == [
        (1, 300_000, "ok"),
        (2, 10, "ok"),
        (3, 400_000, "ok"),
        (4, 200_000, "ok"),
    ]


def shrinking(path, size):
    """A Folder that measures a file, which then loses all beyond `size` bytes."""

    class Shrinking(Folder):
        def size(self, fd, name):
            measured = super().size(fd, name)
            os.truncate(path, size)
            return measured

    return Shrinking


@pytest.mark.parametrize("step_size", [*STEPS, STEP_SIZE])
@pytest.mark.parametrize("size", [0, 15, 20, 40, 600, 1100, 2500])
def test_file_that_shrinks_during_its_scan(step_size, size, tmp_path, monkeypatch):
    """A file cut during its scan is reported as one that was cut before."""
    built = Built(size=4096)
    built.add(1)
    built.mark()
    built.add(2, bytes(700))
    built.add(3, bytes(1000))
    path = built.mark().save(tmp_path)
    files = list_files(tmp_path, JournalName())
    loader = Loader(files, RecordIndex(), damage="quarantine", step_size=step_size)
    monkeypatch.setattr(journal.window, "Folder", shrinking(path, size))

    shrunk = told(loader)

    assert path.stat().st_size == size
    monkeypatch.undo()
    assert shrunk == told(Loader(files, RecordIndex(), damage="quarantine"))
