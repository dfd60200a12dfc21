"""What a queue of a running broker holds, as Arrow record batches: looked at, not taken."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from broker.client.content import unpacked
from pipeline.columns import batch_of_rows
from pipeline.message_content import core_body, core_headers
from pipeline.raw_rows import BODIES_MAX, ROWS_MAX
from pipeline.schema import BROKER

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa

    from broker.client import Received
    from pipeline.columns import Column

__all__ = ["received_batches"]


def received_batches(
    found: Iterable[Received],
    *,
    node: str,
    queue: str,
    columns: tuple[Column, ...] = BROKER,
) -> Iterator[pa.RecordBatch]:
    """Give messages of a queue, in its order.

    Args:
        found: the messages; large ones are read whole, one at a time.
        node: what stands in the column.
        queue: likewise.
        columns: those wanted.

    Raises:
        ClientError: the connection is lost.
    """
    rows: list[dict[str, Any]] = []
    size = 0
    for received in found:
        row = {"node": node, "queue": queue, **_row(received)}
        rows.append(row)
        size += row["body_size"]
        if len(rows) >= ROWS_MAX or size >= BODIES_MAX:
            yield batch_of_rows(rows, columns)
            rows, size = [], 0
    if rows:
        yield batch_of_rows(rows, columns)


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
        **core_body(message.type, body),
        "delivery_count": received.delivery_count,
    }
