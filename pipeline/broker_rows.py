"""What a queue of a running broker holds, as Arrow record batches: looked at, not taken."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from broker.client.content import unpacked
from broker.storage.stored_messages import MessageType
from pipeline.columns import arrow_schema
from pipeline.message_content import core_headers, text_of
from pipeline.raw_rows import BODIES_MAX, ROWS_MAX
from pipeline.schema import BROKER

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from broker.client import Received

__all__ = ["received_batches"]


def received_batches(
    found: Iterable[Received], *, node: str, queue: str
) -> Iterator[pa.RecordBatch]:
    """Give messages of a queue, in its order.

    Args:
        found: the messages; large ones are read whole, one at a time.
        node: what stands in the column.
        queue: likewise.

    Raises:
        ClientError: the connection is lost.
    """
    schema = arrow_schema(BROKER)
    rows: list[dict[str, Any]] = []
    size = 0
    for received in found:
        row = {"node": node, "queue": queue, **_row(received)}
        rows.append(row)
        size += row["body_size"]
        if len(rows) >= ROWS_MAX or size >= BODIES_MAX:
            yield pa.RecordBatch.from_pylist(rows, schema=schema)
            rows, size = [], 0
    if rows:
        yield pa.RecordBatch.from_pylist(rows, schema=schema)


def _row(received: Received) -> dict[str, Any]:
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
        "body": body,
        "body_size": len(body),
        "text": text_of(body) if message.type == MessageType.TEXT else None,
        "delivery_count": received.delivery_count,
    }
