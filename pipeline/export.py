"""Exports frames to Parquet, JSON lines or CSV, atomically."""

from __future__ import annotations

import re
import uuid
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from journal.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import DataFrame, SparkSession

__all__ = ["FORMATS", "Target", "export", "with_hour"]

FORMATS: Final = ("parquet", "jsonl", "csv")
# Above it a timestamp has more than four digits of year, which no folder is called.
TIME_MAX_MS: Final = 253_402_300_800_000
# Sources whose rows have an address, and their column of time.
_TIMED: Final = {"messages": "timestamp_ms"}
# What the names of files end with, but for a word about their compression.
_EXTENSIONS: Final = {"parquet": "parquet", "jsonl": "json", "csv": "csv"}
# What Spark's settings of `rebalance` begin with.
_ADAPTIVE: Final = "spark.sql.adaptive"


@dataclass(frozen=True, slots=True)
class Target:
    """Where an export goes.

    Attributes:
        form: one of FORMATS.
        folder: made by the export; of any file system that Spark writes to.
    """

    form: str
    folder: str

    @classmethod
    def parse(cls, text: str) -> Target:
        """Read FORMAT:FOLDER.

        >>> Target.parse("parquet:out")
        Target(form='parquet', folder='out')

        Raises:
            OptionError: it is not that.
        """
        form, mark, folder = text.partition(":")
        if not mark or form not in FORMATS or not folder:
            raise OptionError(f"{text!r} is not FORMAT:FOLDER; formats are {', '.join(FORMATS)}")
        return cls(form, folder)


def with_hour(frame: DataFrame, time: str) -> DataFrame:
    """The frame with a column `hour`, such as 2026-11-21-18, in UTC whatever the session's zone.

    Args:
        frame: any.
        time: its column in milliseconds since 1970; 0, null and what is past the year 9999 have
            no hour.
    """
    from pyspark.sql import functions as f

    since = f"timestampadd(MILLISECOND, {time}, TIMESTAMP_NTZ'1970-01-01 00:00:00')"
    is_time = (f.col(time) > 0) & (f.col(time) < TIME_MAX_MS)
    return frame.withColumn("hour", f.when(is_time, f.date_format(f.expr(since), "yyyy-MM-dd-HH")))


def export(
    frame: DataFrame,
    source: str,
    target: Target,
    *,
    columns: Sequence[str] = (),
    where: str | None = None,
    file_size: int | None = None,
    overwrite: bool = False,
    append: bool = False,
) -> None:
    """Write rows of a source: all of them are there in the end, or what was there before.

    Parquet is partitioned: messages by node, address and hour of their timestamp, the others by
    node. In JSON bodies are base64; in CSV hexadecimal, and whatever has parts is JSON.

    What an export that was killed has left beside the folder, or in it, is undone first. So one
    export at a time may write to a folder; who reads it while files are appended sees some of them.

    Args:
        frame: what was read of it.
        source: its name.
        target: where to.
        columns: that files have, in this order; none: all. Those by which Parquet is partitioned
            are names of folders.
        where: a condition in Spark's SQL; rows that do not fulfil it are left out.
        file_size: bytes of a file, about; what one task read of a folder is never cut. None: each
            task writes a file into each folder that it has rows for.
        overwrite: replace what is there.
        append: add to what is there, if anything is.

    Raises:
        OptionError: something is there, and is neither to be replaced nor added to. Or it has files
            of another format. Or `frame` lacks one of the columns.
        pyspark.errors.PySparkException: what Spark says, of the condition, of reading or of
            writing.
    """
    unknown = [name for name in columns if name not in frame.columns]
    if unknown:
        raise OptionError(f"no column {unknown[0]!r}; there are: {', '.join(frame.columns)}")
    place = _Place(frame.sparkSession, target.folder)
    place.undo()
    # Spark's own `overwrite` deletes what is there before it reads the first row.
    if place.exists() and not (overwrite or append):
        raise OptionError(
            f"{target.folder} is there already: --overwrite replaces it, --append adds to it"
        )
    if append:
        place.check_format(target.form)
    try:
        _write(
            frame if where is None else frame.where(where),
            source,
            target.form,
            place.beside,
            columns,
            file_size,
        )
        if append and place.exists():
            place.add_beside()
        else:
            place.take_beside()
    finally:
        place.undo()


def _write(
    frame: DataFrame,
    source: str,
    form: str,
    folder: str,
    columns: Sequence[str],
    file_size: int | None,
) -> None:
    partitions = []
    if form == "parquet":
        partitions = ["node"]
        if source in _TIMED:
            frame = with_hour(frame, _TIMED[source])
            partitions += ["address", "hour"]
    if columns:
        others = [name for name in partitions if name not in columns]
        frame = frame.select(*(f"`{name}`" for name in (*columns, *others)))
    with _sized(frame, partitions, file_size) as sized:
        if form == "jsonl":
            sized.write.json(folder)
        elif form == "csv":
            _flat(sized).write.csv(folder, header=True)
        else:
            sized.write.partitionBy(*partitions).parquet(folder)


@contextmanager
def _sized(frame: DataFrame, keys: Sequence[str], size: int | None) -> Iterator[DataFrame]:
    """The frame in parts of about so many bytes, each with the rows of few folders."""
    if size is None:
        yield frame
        return
    # Spark counts the bytes that its tasks hand over, compressed.
    settings = frame.sparkSession.conf
    changes = {
        f"{_ADAPTIVE}.advisoryPartitionSizeInBytes": str(size),
        # Else parts are as many as there are cores, and of 1 MiB at least.
        f"{_ADAPTIVE}.coalescePartitions.parallelismFirst": "false",
        f"{_ADAPTIVE}.coalescePartitions.minPartitionSize": str(min(size, 1 << 20)),
    }
    before = {name: settings.get(name, None) for name in changes}
    for name, value in changes.items():
        settings.set(name, value)
    try:
        yield frame.hint("rebalance", *keys)
    finally:
        for name, old in before.items():
            if old is None:
                settings.unset(name)
            else:
                settings.set(name, old)


class _Place:
    """A folder of whatever file system, and one beside it that is written first.

    Beside it are, hidden, with an id of 32 hexadecimal digits:

        .<name>.<id>            being written
        .<name>.<id>.append     whole; its files go into the folder, where their names begin with id
        .<name>.<id>.old        what was there, until the new one has its name

    Attributes:
        beside: the first of these; no other writer uses it.
    """

    def __init__(self, spark: SparkSession, folder: str) -> None:
        jvm: Any = spark._jvm  # Spark has no call of Python for its file systems.
        session: Any = spark._jsparkSession
        self._new_path = jvm.org.apache.hadoop.fs.Path
        path = self._new_path(folder)
        self._files = path.getFileSystem(session.sessionState().newHadoopConf())
        self._path = self._files.makeQualified(path)
        self._id = uuid.uuid4().hex
        self._beside = self._hidden(self._id)
        self._old = self._hidden(self._id, ".old")
        self.beside = str(self._beside.toString())

    def _hidden(self, id_: str, kind: str = "") -> Any:  # noqa: ANN401 - Java's Path.
        return self._new_path(self._path.getParent(), f".{self._path.getName()}.{id_}{kind}")

    def exists(self) -> bool:
        """Whether there is a folder, or a file, of that name."""
        return bool(self._files.exists(self._path))

    def check_format(self, form: str) -> None:
        """Raise OptionError where the folder has files, and none of that format."""
        names = [str(path.getName()) for path in self._all(self._path)]
        names = [name for name in names if not name.startswith(("_", "."))]
        if names and not any(f".{_EXTENSIONS[form]}" in name for name in names):
            raise OptionError(f"{self._path.toString()} has files of another format: {names[0]}")

    def take_beside(self) -> None:
        """Replace the target by the files that were written."""
        was_there = self.exists()
        if was_there:
            self._rename(self._path, self._old)
        self._rename(self._beside, self._path)
        if was_there:
            self._files.delete(self._old, True)

    def add_beside(self) -> None:
        """Put the files that were written to those that are there."""
        whole = self._hidden(self._id, ".append")
        self._rename(self._beside, whole)
        root = str(whole.toUri().getPath())
        for file in list(self._all(whole)):
            parts = str(file.toUri().getPath()).removeprefix(root).strip("/").split("/")
            if parts[-1].startswith(("_", ".")):
                continue
            folder = self._path
            for part in parts[:-1]:
                folder = self._new_path(folder, part)
            self._files.mkdirs(folder)
            self._rename(file, self._new_path(folder, f"{self._id}-{parts[-1]}"))
        self._files.delete(whole, True)

    def undo(self) -> None:
        """Undo what was begun and not ended, by this one or by one that was killed."""
        parent = self._path.getParent()
        if not self._files.exists(parent):
            return
        pattern = re.compile(rf"\.{re.escape(self._path.getName())}\.([0-9a-f]{{32}})(\.\w+)?")
        for status in self._files.listStatus(parent):
            path = status.getPath()
            match = pattern.fullmatch(str(path.getName()))
            if match is None:
                continue
            if match[2] == ".append":
                for file in list(self._all(self._path)):
                    if str(file.getName()).startswith(f"{match[1]}-"):
                        self._files.delete(file, False)
            if match[2] == ".old" and not self.exists():
                self._rename(path, self._path)
            else:
                self._files.delete(path, True)

    def _all(self, folder: Any) -> Iterator[Any]:  # noqa: ANN401 - Java's Path.
        """The paths of the files below a folder, if it is there."""
        if self._files.exists(folder):
            found = self._files.listFiles(folder, True)
            while found.hasNext():
                yield found.next().getPath()

    def _rename(self, old: Any, new: Any) -> None:  # noqa: ANN401 - Java's Path.
        if not self._files.rename(old, new):
            raise OptionError(f"{old.toString()} cannot be renamed to {new.toString()}")


def _flat(frame: DataFrame) -> DataFrame:
    """The frame with text in place of bytes and of what has parts."""
    from pyspark.sql import functions as f

    columns = []
    for name, kind in frame.dtypes:
        column = f.col(f"`{name}`")
        if kind == "binary":
            column = f.lower(f.hex(column))
        elif kind.startswith(("map", "array", "struct")):
            column = f.to_json(column)
        columns.append(column.alias(name))
    return frame.select(*columns)
