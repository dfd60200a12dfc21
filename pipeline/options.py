"""The options of the sources, read once."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from journal.errors import OptionError
from pipeline.filters import LONG_MAX
from pipeline.object_store import parse_options

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Offsets", "SourceOptions", "flag_of", "integer_of", "one_of", "values_of"]

_WORDS: Final = {"true": True, "false": False}
_KNOWN: Final = (
    *("path", "paths", "records", "part", "node", "live", "failOnDataLoss", "userVersion"),
    *(
        "prefix",
        "extension",
        "asOfMs",
        "user",
        "password",
        "table",
        "rowsPerTask",
        "bytesPerTask",
        "maxLargeBodyBytes",
        "filterPushdown",
        "storageOptions",
    ),
)
# Of a table: seconds of work for a task, beside which its start and its connection cost little.
ROWS_PER_TASK: Final = 100_000
# Of files, as Spark has it for its own (spark.sql.files.maxPartitionBytes): 0.1 s of a core, so
# that reading is most of a task's work, not its start (benchmarks.bench_pipeline).
BYTES_PER_TASK: Final = 128 << 20
# Arrow counts the bytes of a column, and Java those of an array, with 31 bits.
LARGE_BODY_BYTES_MAX: Final = 1 << 30
INT_MAX: Final = (1 << 31) - 1
# Of a moment that is a date in all time zones: the end of the year 9998, ms since 1970.
TIMESTAMP_MAX_MS: Final = 253_370_764_800_000
# Of `read` alone.
_OF_BATCHES: Final = ("where",)
# Of `readStream` alone.
_OF_STREAMS: Final = (
    *("startingOffsets", "startingTimestamp", "endingOffsets", "endingTimestamp"),
    "maxRecordsPerTrigger",
)
# Of a position by folder, as a checkpoint and a query's progress have it.
_POSITION: Final = ("file_id", "offset", "greatest_id")
# Of a word, or of positions by folder.
Offsets: TypeAlias = "str | dict[str, dict[str, int]]"


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """What a query says of its source.

    Attributes:
        paths: folders, globs or URLs, as given to `load`.
        records: of the source `journal`: `raw`, or `live`.
        part: of an instance or data folder: `messages`, or `bindings`.
        node: in place of the names found; None: those found.
        is_live: read a journal even while somebody writes to it.
        fails_on_data_loss: damage ends the query; else it is rows.
        user_version: of every file's header.
        prefix: of the files' names; None: found.
        extension: likewise.
        as_of_ms: the moment that decides what has expired and what is scheduled; ms since 1970.
        user: of a URL, in place of its own.
        password: likewise; never shown.
        table: of a URL; None: MESSAGES, of the source `bindings` BINDINGS.
        rows_per_task: of a database: about so many rows of its table, by ranges of record ids.
        bytes_per_task: of files that are read one by one: a task reads files of one folder of
            about so many bytes together, and one file at least.
        large_body_bytes_max: of `messages`: bodies of large messages of so many bytes at most are
            read; 0: none.
        takes_filters: a frame takes the filters of a query over, so that it must not be used again
            with others; see Reader.pushFilters().
        where: conditions on the rows of the frame, as Wanted.take_text() reads them.
        storage_options: of an object store: parameters of fsspec's file system, never shown; the
            packages also take them from the environment.
        starting_offsets: of a new stream: `earliest`, all that is there, or `latest`, what comes;
            or positions by folder, of others the beginning.
        starting_timestamp_ms: of a new stream of a history: copies made since; ms since 1970.
        ending_offsets: of a stream: `latest`, what is there when it starts, or positions by folder,
            beyond which nothing is read, and of others nothing; None: no end.
        ending_timestamp_ms: of a stream of a history: copies made before; ms since 1970.
        max_records_per_trigger: of a stream; None: no limit.
    """

    paths: tuple[str, ...]
    records: str = "raw"
    part: str = "messages"
    node: str | None = None
    is_live: bool = False
    fails_on_data_loss: bool = True
    user_version: int = 0
    prefix: str | None = None
    extension: str | None = None
    as_of_ms: int = 0
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    table: str | None = None
    rows_per_task: int = ROWS_PER_TASK
    bytes_per_task: int = BYTES_PER_TASK
    large_body_bytes_max: int = 0
    takes_filters: bool = False
    where: str | None = None
    storage_options: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)
    starting_offsets: Offsets = "earliest"
    starting_timestamp_ms: int | None = None
    ending_offsets: Offsets | None = None
    ending_timestamp_ms: int | None = None
    max_records_per_trigger: int | None = None

    @classmethod
    def read(cls, given: Mapping[str, str], *, is_stream: bool = False) -> SourceOptions:
        """Read what Spark hands to a source; names are compared without regard to case.

        Args:
            given: the options.
            is_stream: of `readStream`, which has more of them, and reads while somebody writes.

        Raises:
            OptionError: an option that there is not, or a value that it cannot have.
        """
        known = (*_KNOWN, *_OF_STREAMS) if is_stream else (*_KNOWN, *_OF_BATCHES)
        values = values_of(given, known)
        return cls(
            paths=_paths(values),
            records=one_of(values, "records", ("raw", "live")),
            part=one_of(values, "part", ("messages", "bindings")),
            node=values.get("node"),
            is_live=flag_of(values, "live", default=is_stream),
            fails_on_data_loss=flag_of(values, "failOnDataLoss", default=True),
            user_version=_between(values, "userVersion", 0, -INT_MAX, INT_MAX),
            prefix=values.get("prefix"),
            extension=values.get("extension"),
            as_of_ms=_between(values, "asOfMs", time.time_ns() // 1_000_000, 0, LONG_MAX),
            user=values.get("user"),
            password=values.get("password"),
            table=values.get("table"),
            rows_per_task=_limit(values, "rowsPerTask") or ROWS_PER_TASK,
            bytes_per_task=_limit(values, "bytesPerTask") or BYTES_PER_TASK,
            large_body_bytes_max=_between(values, "maxLargeBodyBytes", 0, 0, LARGE_BODY_BYTES_MAX),
            takes_filters=flag_of(values, "filterPushdown", default=False),
            where=values.get("where"),
            storage_options=parse_options(values.get("storageOptions")),
            starting_offsets=_offsets(values, "startingOffsets", ("earliest", "latest")),
            starting_timestamp_ms=_timestamp(values, "startingTimestamp"),
            ending_offsets=_offsets(values, "endingOffsets", ("latest",))
            if "endingOffsets" in values
            else None,
            ending_timestamp_ms=_timestamp(values, "endingTimestamp"),
            max_records_per_trigger=_limit(values, "maxRecordsPerTrigger"),
        )


def values_of(given: Mapping[str, str], known: tuple[str, ...]) -> dict[str, str]:
    """The values by the names as they are known; given ones may be in any case.

    Raises:
        OptionError: an option that there is not.
    """
    names = {name.lower(): name for name in known}
    values: dict[str, str] = {}
    for name, value in given.items():
        if name.lower() not in names:
            raise OptionError(f"no option {name!r}; there are: {', '.join(known)}")
        values[names[name.lower()]] = value
    return values


def _paths(values: Mapping[str, str]) -> tuple[str, ...]:
    paths = [values["path"]] if "path" in values else []
    if "paths" in values:
        paths += json.loads(values["paths"])
    if not paths:
        raise OptionError(
            "no path; give load() a folder, a glob or a URL; of a table Spark hands no path on, so"
            " in SQL write CREATE TEMPORARY VIEW name USING journal OPTIONS (path '...')"
        )
    return tuple(paths)


def one_of(values: Mapping[str, str], name: str, words: tuple[str, ...]) -> str:
    """Give one of some words, the first where nothing was said.

    Raises:
        OptionError: it is none of them.
    """
    value = values.get(name, words[0])
    if value not in words:
        raise OptionError(f"{name}={value!r}: must be {' or '.join(words)}")
    return value


def flag_of(values: Mapping[str, str], name: str, *, default: bool) -> bool:
    """Give true or false.

    Raises:
        OptionError: it is neither.
    """
    if name not in values:
        return default
    if values[name].lower() not in _WORDS:
        raise OptionError(f"{name}={values[name]!r}: must be true or false")
    return _WORDS[values[name].lower()]


def integer_of(values: Mapping[str, str], name: str, default: int) -> int:
    """Give a whole number.

    Raises:
        OptionError: it is none.
    """
    try:
        return int(values.get(name, default))
    except ValueError:
        raise OptionError(f"{name}={values[name]!r}: must be a whole number") from None


def _between(values: Mapping[str, str], name: str, default: int, least: int, most: int) -> int:
    value = integer_of(values, name, default)
    if not least <= value <= most:
        raise OptionError(f"{name}={value}: must be {least} to {most}")
    return value


def _timestamp(values: Mapping[str, str], name: str) -> int | None:
    if name not in values:
        return None
    return _between(values, name, 0, 0, TIMESTAMP_MAX_MS)


def _offsets(values: Mapping[str, str], name: str, words: tuple[str, ...]) -> Offsets:
    """One of some words, the first where nothing was said; or positions by folder, as JSON."""
    value = values.get(name, words[0])
    if not value.lstrip().startswith("{"):
        if value not in words:
            raise OptionError(
                f"{name}={value!r}: must be {' or '.join(words)}, or a JSON object of positions by"
                " folder, such as endOffset in a query's progress"
            )
        return value
    try:
        given: Any = json.loads(value)
    except ValueError as error:
        raise OptionError(f"{name}: not JSON: {error}") from None
    for folder, position in given.items():
        if not isinstance(position, dict) or not all(
            type(position.get(key)) is int for key in _POSITION
        ):
            raise OptionError(
                f"{name}: the position of {folder!r} must have the whole numbers"
                f" {', '.join(_POSITION)}"
            )
    return {folder: {key: position[key] for key in _POSITION} for folder, position in given.items()}


def _limit(values: Mapping[str, str], name: str) -> int | None:
    if name not in values:
        return None
    value = integer_of(values, name, 0)
    if value < 1:
        raise OptionError(f"{name}={value}: must be 1 or more")
    # More than that is no limit, and Spark counts with so many bits.
    return min(value, LONG_MAX)
