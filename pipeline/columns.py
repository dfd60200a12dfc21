"""Column definitions, for Spark's schema, Arrow's, and the table in the guide."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from journal.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import pyarrow

__all__ = [
    "Column",
    "arrow_schema",
    "batch_of_rows",
    "chosen",
    "spark_schema",
    "stored",
    "with_times",
]


class Column(NamedTuple):
    """One column of a source.

    Attributes:
        name: with the unit last, where it has one.
        type: in the words of Spark's SQL.
        meaning: one phrase.
    """

    name: str
    type: str
    meaning: str


def spark_schema(columns: tuple[Column, ...]) -> str:
    r"""The columns as Spark's DDL, meanings as comments.

    >>> spark_schema((Column("size", "int", "bytes of the broker's record"),))
    "`size` int COMMENT 'bytes of the broker\\'s record'"
    """
    return ", ".join(
        f"`{column.name}` {column.type} COMMENT '{_quoted(column.meaning)}'" for column in columns
    )


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace("'", "\\'")


# The types that our columns have; the names of the inner fields are those that Spark gives them.
_REFERENCE: Final = (
    "array<struct<queue_id: bigint, state: string, delivery_count: int, scheduled_ms: bigint>>"
)


def arrow_schema(columns: tuple[Column, ...]) -> pyarrow.Schema:
    """The columns as Arrow has them when Spark reads record batches of this schema."""
    import pyarrow as pa

    text = pa.string()
    types = {
        "binary": pa.binary(),
        "boolean": pa.bool_(),
        "bigint": pa.int64(),
        "int": pa.int32(),
        "smallint": pa.int16(),
        "string": text,
        "timestamp": pa.timestamp("us", tz="UTC"),
        "timestamp_ntz": pa.timestamp("us"),
        "map<string, string>": pa.map_(text, text),
        "array<string>": pa.list_(pa.field("element", text)),
        _REFERENCE: pa.list_(
            pa.field(
                "element",
                pa.struct(
                    [
                        ("queue_id", pa.int64()),
                        ("state", text),
                        ("delivery_count", pa.int32()),
                        ("scheduled_ms", pa.int64()),
                    ]
                ),
            )
        ),
    }
    return pa.schema([(column.name, types[column.type]) for column in columns])


# --- some of the columns ------------------------------------------------------------------------

# Columns that are made of others.
_TIMES: Final = {"timestamp": "timestamp_ms", "expiration": "expiration_ms"}
# Of a moment that is a date in all time zones: the end of the year 9998, ms since 1970.
_DATE_MAX_MS: Final = 253_370_764_800_000


def chosen(
    source: str, columns: tuple[Column, ...], given: Iterable[tuple[str, str, bool]]
) -> tuple[Column, ...]:
    """The columns of a source that a query's schema names, in its order.

    Args:
        source: what it is called.
        columns: those that it has.
        given: of each column of the schema: name, type in the words of Spark's SQL, may be null.

    Raises:
        OptionError: one is not there, is named twice, has another type or must not be null; or
            there is none.

    >>> size = Column("size", "int", "bytes of the record")
    >>> chosen("journal", (size,), [("size", "int", True)]) == (size,)
    True
    """
    known = {column.name: column for column in columns}
    found: dict[str, Column] = {}
    for name, kind, may_be_null in given:
        column = known.get(name)
        if column is None:
            raise OptionError(f"schema: {source} has no column {name!r}; there are: {_all(known)}")
        if name in found:
            raise OptionError(f"schema: column {name!r} of {source} is named twice")
        if kind.replace(" ", "") != column.type.replace(" ", ""):
            raise OptionError(
                f"schema: column {name!r} of {source} is {column.type}: it cannot be read as {kind}"
            )
        if not may_be_null:
            raise OptionError(f"schema: column {name!r} of {source} may be null: drop NOT NULL")
        found[name] = column
    if not found:
        raise OptionError(f"schema: no column; {source} has: {_all(known)}")
    return tuple(found.values())


def _all(known: Iterable[str]) -> str:
    return ", ".join(known)


def stored(columns: Iterable[Column]) -> tuple[Column, ...]:
    """The columns once each, and in place of a time the milliseconds that it is made of."""
    found = {}
    for column in columns:
        one = column
        if column.name in _TIMES:
            one = Column(_TIMES[column.name], "bigint", "")
        found[one.name] = one
    return tuple(found.values())


def with_times(batch: pyarrow.RecordBatch, columns: Sequence[Column]) -> pyarrow.RecordBatch:
    """Give the columns of a batch that are wanted, with those that are made of milliseconds.

    Args:
        batch: of stored() columns, and perhaps of more.
        columns: those wanted, in their order.
    """
    import pyarrow as pa

    names = [column.name for column in columns]
    if names == batch.schema.names:
        return batch
    arrays = [
        _times(batch.column(_TIMES[name])) if name in _TIMES else batch.column(name)
        for name in names
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=arrow_schema(tuple(columns)))


def _times(milliseconds: pyarrow.Array) -> pyarrow.Array:
    import pyarrow as pa
    import pyarrow.compute as pc

    is_date = pc.and_(pc.greater(milliseconds, 0), pc.less(milliseconds, _DATE_MAX_MS))
    dates = pc.if_else(is_date, milliseconds, pa.scalar(None, pa.int64()))
    return dates.cast(pa.timestamp("ms", tz="UTC")).cast(pa.timestamp("us", tz="UTC"))


def batch_of_rows(rows: list[dict[str, Any]], columns: tuple[Column, ...]) -> pyarrow.RecordBatch:
    """A batch of rows that have values by column, and more than are wanted.

    Args:
        rows: without the times that are made of milliseconds.
        columns: those wanted.
    """
    import pyarrow as pa

    made = pa.RecordBatch.from_pylist(rows, schema=arrow_schema(stored(columns)))
    return with_times(made, columns)
