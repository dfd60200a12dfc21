"""The data sources of `pipeline` beside their upper bounds: rows a second, MB a second, by core.

    python -m benchmarks.bench_pipeline [--messages 200000] [--journals 4] [--body 1024]
        [--master 'local[2]'] [--rounds 3] [--only messages] [--folder DIR]

Journals are written as a broker does it: Core messages as clients of JMS send them, each with a
reference to a queue, every tenth acknowledged. All is read from the page cache, and what Spark
gets is dropped (`noop`), so that only reading counts.

    journal, messages     our sources; of `journal` raw and live
    parquet               the same rows, from what `pipeline export` writes of them: the limit
    generator             record batches of the same rows, made beforehand and given again and
                          again by a Python source, in a task a journal: what Spark's
                          Python source API allows
    N tasks               the same in as many tasks as ours, where those are more
    empty task            what a task of a Python source costs that reads nothing; printed last
    print-data            `journal print-data --format jsonl`, one process: the peer

Then questions about `messages`, each beside the same one about Parquet: all columns, some, one,
`count()`, and two filters in one query. Ours have the columns of a `.schema(...)`, and conditions
of the option `where`; `as it comes` has neither, so that Spark drops what is not asked for.

Each is read once before, then `--rounds` times in turns: the median; print-data, which takes long,
once, and one journal. MB are those of the journals'
files. By core: of a master `local[n]` a share of n, of print-data all. Claim: `journal` and
`messages` reach 60 % of the generator.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from benchmarks.measure import machine_line
from broker.model.message import Message
from broker.model.properties import Property, PropertyType
from broker.model.wire import RecordType
from journal import Journal, JournalOptions
from pipeline.columns import spark_schema
from pipeline.export import Target, export
from pipeline.options import SourceOptions
from pipeline.registration import register
from pipeline.schema import JOURNAL, MESSAGES
from pipeline.session import open_session
from pipeline.sources.journal import LiveReader, RawReader
from pipeline.sources.messages import MessagesReader

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from pipeline.columns import Column
    from pipeline.sources.reading import Reader

FILE_SIZE = 10 << 20
QUEUE_ID = 3
ACKNOWLEDGED_EACH = 10
# Rows that the generator has at hand: as many as one batch of ours.
GENERATED_ROWS = 16_384
# So many that to plan them costs little beside.
EMPTY_TASKS = 100


class Case(NamedTuple):
    """What is read.

    Attributes:
        name: of the case.
        reader: plans the tasks of our source.
        columns: of its rows.
        options: of the query.
        printed: arguments of `print-data` that give the same; None: nothing does.
    """

    name: str
    reader: type[Reader]
    columns: tuple[Column, ...]
    options: dict[str, str]
    printed: tuple[str, ...] | None


CASES = (
    Case("journal", RawReader, JOURNAL, {}, ("--raw",)),
    Case("journal, live", LiveReader, JOURNAL, {"records": "live"}, ()),
    Case("messages", MessagesReader, MESSAGES, {}, ("--decode",)),
)


# --- what is read -------------------------------------------------------------------------------


def fill(folder: Path, count: int, body_size: int) -> None:
    """Write a message journal."""
    options = JournalOptions(directory=folder, file_size=FILE_SIZE)
    reference = QUEUE_ID.to_bytes(8, "big")
    with Journal(options) as journal:
        journal.load()
        for number in range(1, count + 1):
            message = Message(
                "orders",
                number.to_bytes(8, "big") * (body_size // 8),
                type=4,
                durable=True,
                timestamp=1_700_000_000_000 + number,
                user_id=number.to_bytes(16, "big"),
                message_id=number,
                properties=[
                    Property("__AMQ_CID", PropertyType.STRING, "client"),
                    Property("_AMQ_ROUTING_TYPE", PropertyType.BYTE, 1),
                    Property("number", PropertyType.INT, number),
                ],
            )
            kind = int(RecordType.ADD_MESSAGE_PROTOCOL)
            journal.add(number, kind, message.record(), sync=False)
            journal.update(number, int(RecordType.ADD_REF), reference, sync=False)
            if number % ACKNOWLEDGED_EACH == 0:
                journal.update(number, int(RecordType.ACKNOWLEDGE_REF), reference, sync=False)
        journal.sync()


def first_batch(case: Case, journal: Path) -> pa.RecordBatch:
    """So many rows of a case as the generator repeats."""
    reader = case.reader(SourceOptions.read({"path": str(journal), **case.options}))
    found: list[pa.RecordBatch] = []
    for batch in (batch for part in reader.partitions() for batch in reader.read(part)):
        found.append(batch)
        if sum(one.num_rows for one in found) >= GENERATED_ROWS:
            break
    (batch,) = pa.Table.from_batches(found).slice(0, GENERATED_ROWS).combine_chunks().to_batches()
    return batch


class GeneratorReader(DataSourceReader):
    """Gives one batch again and again, in tasks of the same number of rows."""

    def __init__(self, options: dict[str, str]) -> None:
        self.file, self.rows = options["batch"], int(options["rows"])
        self.tasks = int(options["tasks"])

    def partitions(self) -> list[InputPartition]:
        """The tasks, by number."""
        return [InputPartition(number) for number in range(self.tasks)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a task."""
        if not self.rows:
            return
        with pa.memory_map(self.file) as source, pa.ipc.open_file(source) as batches:
            batch = batches.get_batch(0)
            left = self.rows // self.tasks
            while left > 0:
                yield batch.slice(0, min(left, batch.num_rows))
                left -= batch.num_rows


class Generator(DataSource):
    """What a source costs that has its batches already."""

    @classmethod
    def name(cls) -> str:
        """For `format()`."""
        return "bench_generator"

    def schema(self) -> str:
        """That of the case."""
        return self.options["ddl"]

    def reader(self, schema: StructType) -> DataSourceReader:
        """Plan a query."""
        return GeneratorReader({name: self.options[name] for name in ("batch", "rows", "tasks")})


# --- measuring ----------------------------------------------------------------------------------


def drop(frame: DataFrame) -> float:
    """Read all of it; seconds."""
    started = time.perf_counter()
    frame.write.format("noop").mode("overwrite").save()
    return time.perf_counter() - started


def print_data(journal: Path, arguments: tuple[str, ...]) -> float:
    """Print one journal; seconds."""
    command = [sys.executable, "-m", "journal.cli.main", "print-data", str(journal)]
    command += ["--format", "jsonl", *arguments]
    started = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - started


def frames(
    spark: SparkSession, case: Case, journals: list[Path], place: Path
) -> tuple[dict[str, DataFrame], int]:
    """By name what Spark reads for a case; and how many rows each of them has."""
    source = case.name.partition(",")[0]
    ours = spark.read.format(source).options(**case.options).load(list(map(str, journals)))
    word = re.sub(r"\W+", "-", case.name)
    export(ours, source, Target("parquet", str(place / f"{word}.parquet")), overwrite=True)
    parquet = spark.read.parquet(str(place / f"{word}.parquet"))
    rows = parquet.count()
    batch = first_batch(case, journals[0])
    with (
        pa.OSFile(str(place / f"{word}.arrow"), "wb") as sink,
        pa.ipc.new_file(sink, batch.schema) as out,
    ):
        out.write_batch(batch)
    generator = (
        spark.read.format("bench_generator")
        .option("ddl", spark_schema(case.columns))
        .option("batch", str(place / f"{word}.arrow"))
        .option("rows", str(rows))
    )
    paths = json.dumps(list(map(str, journals)))
    tasks = len(case.reader(SourceOptions.read({"paths": paths, **case.options})).partitions())
    found = {
        "ours": ours,
        "parquet": parquet,
        "generator": generator.option("tasks", str(len(journals))).load(),
    }
    if tasks != len(journals):
        found[f"{tasks} tasks"] = generator.option("tasks", str(tasks)).load()
    return found, rows


def questions(
    spark: SparkSession, journals: list[Path], parquet: DataFrame, last_id: int
) -> dict[str, dict[str, Callable[[], float]]]:
    """What is asked of messages, by what; each gives seconds.

    Args:
        spark: the session.
        journals: what ours read.
        parquet: the same rows.
        last_id: of a journal.
    """
    types = {column.name: column.type for column in MESSAGES}

    def ours(*names: str, where: str = "") -> DataFrame:
        reading = spark.read.format("messages")
        if where:
            reading = reading.option("where", where)
        if names:
            reading = reading.schema(", ".join(f"`{name}` {types[name]}" for name in names))
        return reading.load(list(map(str, journals)))

    def both(lower: DataFrame, upper: DataFrame) -> DataFrame:
        return lower.select(*some).union(upper.select(*some))

    some = ("message_id", "address", "timestamp", "body_size")
    tenth = last_id // 10
    low, high = f"message_id <= {tenth}", f"message_id > {last_id - tenth}"
    plain = ours()
    return {
        "all columns": {
            "ours": lambda: drop(plain),
            "parquet": lambda: drop(parquet),
        },
        f"{len(some)} columns": {
            "ours": lambda: drop(ours(*some)),
            "as it comes": lambda: drop(plain.select(*some)),
            "parquet": lambda: drop(parquet.select(*some)),
        },
        "1 column": {
            "ours": lambda: drop(ours("message_id")),
            "as it comes": lambda: drop(plain.select("message_id")),
            "parquet": lambda: drop(parquet.select("message_id")),
        },
        "count()": {
            "ours": lambda: counted(ours("message_id")),
            "as it comes": lambda: counted(plain),
            "parquet": lambda: counted(parquet),
        },
        "2 filters": {
            "ours": lambda: drop(both(ours(*some, where=low), ours(*some, where=high))),
            "as it comes": lambda: drop(both(plain.where(low), plain.where(high))),
            "parquet": lambda: drop(both(parquet.where(low), parquet.where(high))),
        },
    }


def counted(frame: DataFrame) -> float:
    """Count the rows; seconds."""
    started = time.perf_counter()
    frame.count()
    return time.perf_counter() - started


def measure_questions(
    spark: SparkSession, journals: list[Path], place: Path, rounds: int, last_id: int
) -> None:
    """Print a line for each question, and by what it is answered."""
    folder = str(place / "questions.parquet")
    frame = spark.read.format("messages").load(list(map(str, journals)))
    export(frame, "messages", Target("parquet", folder), overwrite=True)
    print(f"{'question':14} {'by':11} {'seconds':>8} {'of parquet':>10}  of {rounds}")
    for name, asked in questions(spark, journals, spark.read.parquet(folder), last_id).items():
        seconds: dict[str, list[float]] = {by: [] for by in asked}
        for ask in asked.values():
            ask()
        for _ in range(rounds):
            for by, ask in asked.items():
                seconds[by].append(ask())
        limit = statistics.median(seconds["parquet"])
        for by, found_s in seconds.items():
            middle = statistics.median(found_s)
            spread = f"{min(found_s):.2f} to {max(found_s):.2f}"
            print(f"{name:14} {by:11} {middle:8.2f} {middle / limit:10.1f}  {spread}", flush=True)


def empty_tasks_s(spark: SparkSession) -> float:
    """What a task costs that reads nothing, seconds of the time of all cores."""
    empty = (
        spark.read.format("bench_generator")
        .option("ddl", spark_schema(JOURNAL))
        .option("batch", "")
        .option("rows", "0")
        .option("tasks", str(EMPTY_TASKS))
        .load()
    )
    drop(empty)
    return drop(empty) / EMPTY_TASKS


def measure(
    spark: SparkSession, case: Case, journals: list[Path], place: Path, rounds: int, cores: int
) -> None:
    """Print the lines of a case."""
    found, rows = frames(spark, case, journals, place)
    runs: dict[str, Callable[[], float]] = {
        name: lambda frame=frame: drop(frame)  # type: ignore[misc]
        for name, frame in found.items()
    }
    if case.printed is not None:
        arguments = case.printed
        runs["print-data"] = lambda: print_data(journals[0], arguments)
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for name, run in runs.items():
        if name != "print-data":
            run()
    for number in range(rounds):
        for name, run in runs.items():
            if name != "print-data" or number == 0:
                seconds[name].append(run())
    size_mb = sum(file.stat().st_size for one in journals for file in one.iterdir()) / 1e6
    per_core = {}
    for name, found_s in seconds.items():
        is_alone = name == "print-data"
        share = 1 / len(journals) if is_alone else 1.0
        middle = statistics.median(found_s)
        by = 1 if is_alone else cores
        per_core[name] = rows * share / middle / by
        print(
            f"{case.name:14} {name:11} {rows * share:10,.0f} {middle:8.2f}"
            f" {rows * share / middle:12,.0f} {size_mb * share / middle:9.1f}"
            f" {per_core[name]:12,.0f}  {min(found_s):.2f} to {max(found_s):.2f}",
            flush=True,
        )
    shares = ", ".join(
        f"{per_core['ours'] / rate:.2f} of {name}"
        for name, rate in per_core.items()
        if name != "ours"
    )
    print(f"{case.name:14} {shares}", flush=True)


def main() -> None:
    """Write the journals, and measure."""
    parser = argparse.ArgumentParser(description="the data sources of pipeline")
    parser.add_argument("--messages", type=int, default=200_000, help="in all journals")
    parser.add_argument("--journals", type=int, default=4)
    parser.add_argument("--body", type=int, default=1024, help="bytes of a message's body")
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", help="cases, or questions, so called")
    parser.add_argument("--folder", type=Path, help="where the journals are written")
    arguments = parser.parse_args()
    cores = int((re.findall(r"\[(\d+)", arguments.master) or ["1"])[0])
    with tempfile.TemporaryDirectory(dir=arguments.folder) as name:
        place = Path(name)
        print(machine_line(place))
        journals = [place / f"node-{number}" / "journal" for number in range(arguments.journals)]
        for journal in journals:
            fill(journal, arguments.messages // arguments.journals, arguments.body)
        spark = open_session(arguments.master)
        register(spark)
        spark.dataSource.register(Generator)
        print(
            f"{'source':14} {'by':11} {'rows':>10} {'seconds':>8} {'rows/s':>12} {'MB/s':>9}"
            f" {'rows/s/core':>12}  of {arguments.rounds}"
        )
        try:
            for case in CASES:
                if arguments.only in case.name:
                    measure(spark, case, journals, place, arguments.rounds, cores)
            if arguments.only in "questions":
                last_id = arguments.messages // arguments.journals
                measure_questions(spark, journals, place, arguments.rounds, last_id)
            print(f"empty task: {empty_tasks_s(spark) * cores * 1e3:.0f} ms of a core")
        finally:
            spark.stop()


if __name__ == "__main__":
    main()
