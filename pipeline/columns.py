"""A column as all of its users need it: Spark's schema, Arrow's, the guide's table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    import pyarrow

__all__ = ["Column", "arrow_schema", "spark_schema"]


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
