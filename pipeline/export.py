"""What was stored, as files that everybody reads: Parquet, JSON lines, CSV."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from journal.errors import OptionError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["FORMATS", "Target", "export", "with_hour"]

FORMATS: Final = ("parquet", "jsonl", "csv")
# Above it a timestamp has more than four digits of year, which no folder is called.
TIME_MAX_MS: Final = 253_402_300_800_000
# Sources whose rows have an address, and their column of time.
_TIMED: Final = {"messages": "timestamp_ms"}


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


def export(frame: DataFrame, source: str, target: Target, *, overwrite: bool = False) -> None:
    """Write all rows of a source: all of them are there in the end, or what was there before.

    Parquet is partitioned: messages by node, address and hour of their timestamp, the others by
    node. In JSON bodies are base64; in CSV hexadecimal, and whatever has parts is JSON.

    Args:
        frame: what was read of it.
        source: its name.
        target: where to.
        overwrite: replace what is there.

    Raises:
        OptionError: something is there, and is not to be replaced.
        pyspark.errors.PySparkException: what Spark says, of reading or of writing.
    """
    # Spark's own `overwrite` deletes what is there before it reads the first row.
    place = _Place(frame.sparkSession, target.folder)
    if place.exists() and not overwrite:
        raise OptionError(f"{target.folder} is there already: --overwrite replaces it")
    try:
        _write(frame, source, target.form, place.beside)
        place.take_beside()
    finally:
        place.drop_beside()


def _write(frame: DataFrame, source: str, form: str, folder: str) -> None:
    if form == "jsonl":
        frame.write.json(folder)
        return
    if form == "csv":
        _flat(frame).write.csv(folder, header=True)
        return
    partitions = ["node"]
    if source in _TIMED:
        frame = with_hour(frame, _TIMED[source])
        partitions += ["address", "hour"]
    frame.write.partitionBy(*partitions).parquet(folder)


class _Place:
    """A folder of whatever file system, and one beside it that is written first.

    Attributes:
        beside: hidden, with the old content or the new one; nobody else has it.
    """

    def __init__(self, spark: SparkSession, folder: str) -> None:
        jvm: Any = spark._jvm  # Spark has no call of Python for its file systems.
        session: Any = spark._jsparkSession
        self._path = jvm.org.apache.hadoop.fs.Path(folder)
        self._files = self._path.getFileSystem(session.sessionState().newHadoopConf())
        self._path = self._files.makeQualified(self._path)
        name = f".{self._path.getName()}.{uuid.uuid4().hex}"
        self._beside = jvm.org.apache.hadoop.fs.Path(self._path.getParent(), name)
        self._old = jvm.org.apache.hadoop.fs.Path(self._path.getParent(), f"{name}.old")
        self.beside = str(self._beside.toString())

    def exists(self) -> bool:
        """Whether there is a folder, or a file, of that name."""
        return bool(self._files.exists(self._path))

    def take_beside(self) -> None:
        """Put what was written in the place of what was there."""
        was_there = self.exists()
        if was_there:
            self._rename(self._path, self._old)
        try:
            self._rename(self._beside, self._path)
        except OptionError:
            if was_there:
                self._rename(self._old, self._path)
            raise
        if was_there:
            self._files.delete(self._old, True)

    def drop_beside(self) -> None:
        """What was not taken goes."""
        self._files.delete(self._beside, True)

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
