"""The messages of a running broker's queue as Arrow record batches; browsed, not consumed.

First as rows, where a connection that is lost is made again in between, then as batches of them.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any

from broker.client.content import unpacked
from broker.client.errors import ClientError
from pipeline.columns import batch_of_rows
from pipeline.message_content import core_body, core_headers
from pipeline.raw_rows import BODIES_MAX, ROWS_MAX
from pipeline.schema import BROKER

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator

    import pyarrow as pa

    from broker.client import Received, Session
    from pipeline.broker_connection import BrokerConnection
    from pipeline.columns import Column

__all__ = ["received_rows", "row_batches"]

Row = dict[str, Any]


def received_rows(
    connection: BrokerConnection,
    look: Callable[[Session, Collection[int]], Iterable[Received]],
) -> Iterator[Row]:
    """Give messages as rows, each once, over restarts of the broker.

    Args:
        connection: to the broker.
        look: gives messages over a session, but those with these ids, which were given over a
            session before. Large ones are read whole, one at a time.

    Raises:
        ClientError: the broker refuses, or is away for too long.
    """
    given = array("q")
    while True:
        try:
            for received in look(connection.session, set(given)):
                row = _row(received)
                connection.works()
                given.append(received.message_id)
                yield row
        except ClientError as error:
            connection.lost(error)
        else:
            return


def row_batches(
    found: Iterable[Row],
    *,
    node: str,
    queue: str,
    columns: tuple[Column, ...] = BROKER,
) -> Iterator[pa.RecordBatch]:
    """Give rows of received_rows() as record batches, in their order.

    Args:
        found: the rows.
        node: what stands in the column.
        queue: likewise.
        columns: those wanted.
    """
    rows: list[Row] = []
    size = 0
    for one in found:
        row = {"node": node, "queue": queue, **one}
        rows.append(row)
        size += row["body_size"]
        if len(rows) >= ROWS_MAX or size >= BODIES_MAX:
            yield batch_of_rows(rows, columns)
            rows, size = [], 0
    if rows:
        yield batch_of_rows(rows, columns)


def _row(received: Received) -> Row:
    message = received.message
    body = b"".join(received.chunks()) if received.is_large else unpacked(message)
    return {
        "message_id": received.message_id,
        **{
            name: value
            for name, value in core_headers(message, message.properties, message.address).items()
            if name != "protocol"
        },
        "is_large": received.is_large,
        **core_body(message.type, body),
        "delivery_count": received.delivery_count,
    }
