"""What was stored, as files that everybody reads: Parquet, JSON lines, CSV."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from journal.errors import OptionError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

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
    """Write all rows of a source.

    Parquet is partitioned: messages by node, address and hour of their timestamp, the others by
    node. In JSON bodies are base64; in CSV hexadecimal, and whatever has parts is JSON.

    Args:
        frame: what was read of it.
        source: its name.
        target: where to.
        overwrite: replace what is there.

    Raises:
        pyspark.errors.PySparkException: what Spark says, of reading or of writing.
    """
    mode = "overwrite" if overwrite else "errorifexists"
    if target.form == "jsonl":
        frame.write.mode(mode).json(target.folder)
        return
    if target.form == "csv":
        _flat(frame).write.mode(mode).csv(target.folder, header=True)
        return
    partitions = ["node"]
    if source in _TIMED:
        frame = with_hour(frame, _TIMED[source])
        partitions += ["address", "hour"]
    frame.write.mode(mode).partitionBy(*partitions).parquet(target.folder)


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
