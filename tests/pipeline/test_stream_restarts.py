"""Queries that follow a writing, compacting journal are killed and started again."""

import json
import random
import threading
import time

import pytest

pytest.importorskip(
    "pyspark.sql.streaming.datasource", reason="needs PySpark 4.2: quiver-mq[spark]"
)

import pyarrow.parquet

from journal import Journal, JournalOptions, JournalType
from journal.errors import WrongUse
from journal.folder import JournalName, list_files
from journal.reader import read_file, read_folder
from journal.retention import list_history
from pipeline.session import check_installed
from tests.pipeline.programs import Program

# Of so many adds one stays for good.
KEPT_EACH = 8
BODY = bytes(200)
ADDS_AT_ONCE = 10


class Writer:
    """A journal with a history that is written, deleted from and compacted until stopped."""

    def __init__(self, root):
        self.options = JournalOptions(
            directory=root / "node" / "journal",
            journal_type=JournalType.NIO,
            file_size=1 << 15,
            compact_min_files=4,
            compact_percentage=60,
            retention_directory=root / "node" / "history",
            retention_period_ms=10**9,
        )
        self.last_id = 0
        self.error = None
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self):
        self._thread.start()
        while not any(self.options.retention_directory.glob("*.amq")):
            assert self._thread.is_alive(), self.error
            time.sleep(0.05)

    def _run(self):
        try:
            with Journal(self.options) as journal:
                journal.load()
                while not self._is_over.wait(0.05):
                    first = self.last_id + 1
                    for number in range(first, first + ADDS_AT_ONCE):
                        journal.add(number, 45, BODY, sync=False)
                        if number % KEPT_EACH:
                            journal.delete(number, sync=False)
                    journal.sync()
                    self.last_id = first + ADDS_AT_ONCE - 1
        except BaseException as error:
            self.error = error
            raise

    def stop(self):
        self._is_over.set()
        self._thread.join()
        assert self.error is None


def start(root, how):
    return Program(root / "followed.log", "tests.pipeline.followed", root, how)


def committed(root, source):
    return len(list((root / f"{source}.checkpoint" / "commits").glob("[0-9]*")))


def wait_for_batches(program, root, count):
    """Until each of both queries has committed so many batches more; whether they have.

    They have not where Spark gave up a worker: a restart like others, but not one of ours.
    """
    before = {source: committed(root, source) for source in ("journal", "retention")}
    return program.wait_until(
        lambda: all(committed(root, source) >= before[source] + count for source in before)
    )


def written(folder):
    """The rows in files that a batch has committed, by the sink's own log."""
    log = folder / "_spark_metadata"
    batches = sorted(int(path.name) for path in log.iterdir() if path.name.isdigit())
    whole = [path for path in log.glob("*.compact") if path.stem.isdigit()]
    files = []
    if whole:
        newest = max(whole, key=lambda path: int(path.stem))
        files += newest.read_text().splitlines()[1:]
        batches = [number for number in batches if number > int(newest.stem)]
    for number in batches:
        files += (log / str(number)).read_text().splitlines()[1:]
    return [
        row
        for line in files
        for row in pyarrow.parquet.read_table(
            json.loads(line)["path"].removeprefix("file://")
        ).to_pylist()
    ]


def copied_ids(folder):
    return [
        record.record_id
        for copy in list_history(folder, JournalName())
        for record in read_file(copy.path, is_newest=False)
        if record.kind == "add"
    ]


def compacted_ids(folder):
    files = [file for file in list_files(folder, JournalName()) if not file.is_short]
    return [
        record.record_id
        for view in read_folder(files)
        for record in view
        if record.kind == "add" and record.compact_count
    ]


@pytest.mark.slow
@pytest.mark.timeout(7200)  # Each start of Spark takes a minute on a busy machine.
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_each_record_comes_once_over_restarts(tmp_path, effort):
    try:
        check_installed()
    except WrongUse as missing:
        pytest.skip(str(missing))
    writer = Writer(tmp_path)
    writer.start()
    luck = random.Random(5)
    left = effort(20, least=2)
    while left:
        program = start(tmp_path, "forever")
        try:
            left -= wait_for_batches(program, tmp_path, 2)
            time.sleep(luck.random())
        finally:
            program.kill()
    writer.stop()
    while not start(tmp_path, "available-now").finish():
        pass

    seen = {source: written(tmp_path / f"{source}.parquet") for source in ("journal", "retention")}

    assert len(compacted_ids(tmp_path / "node" / "journal")) > 10
    for rows in seen.values():
        assert [row for row in rows if row["damage"] is not None] == []
        ids = [row["record_id"] for row in rows]
        assert len(ids) == len(set(ids))
    kept = set(range(KEPT_EACH, writer.last_id + 1, KEPT_EACH))
    assert kept <= {row["record_id"] for row in seen["journal"]}
    assert sorted(row["record_id"] for row in seen["retention"]) == copied_ids(
        tmp_path / "node" / "history"
    )
