"""Transactions that are open, looked at: what of a queue they hold, and prepared ones in detail."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Final

from broker.management.json_texts import json_text
from broker.management.message_counters import java_short_time
from broker.management.message_maps import message_map
from broker.model.message_types import MessageType
from broker.printing.describe import xid_base64

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker.management.access import ManagedBroker
    from broker.queues.consumer import Consumer
    from broker.queues.queue import Queue
    from broker.queues.reference import Reference
    from broker.sessions.session import Session
    from broker.transactions.transaction import Transaction

__all__ = [
    "acknowledged_of",
    "open_transactions",
    "prepared_details",
    "prepared_html",
    "uncommitted_count",
]

_TYPES: Final[dict[int, str]] = {
    MessageType.DEFAULT: "Default",
    MessageType.OBJECT: "ObjectMessage",
    MessageType.TEXT: "TextMessage",
    MessageType.BYTES: "ByteMessage",
    MessageType.MAP: "MapMessage",
    MessageType.STREAM: "StreamMessage",
}
# Of texts and bytes among a message's properties.
_SIZE_MAX: Final = 256


def open_transactions(broker: ManagedBroker) -> Iterator[tuple[str, Transaction]]:
    """Give every transaction that is not decided, with the name of who works in it.

    Those of sessions first, then what transaction managers have taken from their sessions.
    """
    seen = set()
    for session in broker.clients.sessions.values():
        tx = session.tx
        if tx is not None:
            seen.add(id(tx))
            connection_id = session.origin.connection_id
            yield f"ServerSession [id={connection_id}:{session.name}]", tx
    for tx in broker.parts.transactions.all():
        if id(tx) not in seen and tx.xid is not None:
            yield f"Transaction [xid={xid_base64(tx.xid)}]", tx


def acknowledged_of(
    broker: ManagedBroker, queue: Queue
) -> Iterator[tuple[str, Consumer | None, list[Reference]]]:
    """Give what open transactions acknowledge of a queue, by transaction and consumer.

    A consumer that is closed, or of an earlier run of the broker, is None.
    """
    for name, tx in open_transactions(broker):
        found: dict[Consumer | None, list[Reference]] = {}
        for reference in tx.acknowledged:
            if reference.queue is queue:
                consumer = tx.consumers.get(reference)
                if consumer is not None and consumer.is_closed:
                    consumer = None
                found.setdefault(consumer, []).append(reference)
        for consumer, references in found.items():
            yield name, consumer, references


def uncommitted_count(consumer: Consumer, session: Session) -> int:
    """Give how many messages a consumer has acknowledged in its session's transaction."""
    if session.tx is None:
        return 0
    return sum(one is consumer for one in session.tx.consumers.values())


def prepared_details(tx: Transaction) -> dict[str, object]:
    """Give what a prepared transaction would send and acknowledge (CoreTransactionDetail)."""
    xid = tx.xid
    assert xid is not None, "only one with a name can be prepared"
    return {
        "creation_time": java_short_time(tx.started_ms),
        "xid_as_base64": xid_base64(xid),
        "xid_format_id": xid.format_id,
        "xid_global_txid": xid.gtx.decode("utf-8", "replace"),
        "xid_branch_qual": xid.bq.decode("utf-8", "replace"),
        "tx_related_messages": [
            *(_detail("(+) send", reference) for reference in tx.sends),
            *(_detail("(-) receive", reference) for reference in tx.acknowledged),
        ],
    }


def _detail(operation: str, reference: Reference) -> dict[str, object]:
    message = reference.message
    return {
        "message_operation_type": operation,
        "message_type": _TYPES.get(message.type, "UnknownMessage"),
        "message_properties": message_map(message, _SIZE_MAX),
        # Beyond Artemis: which one it is, and whose.
        "queue": reference.queue.name,
        "messageID": message.message_id,
    }


def prepared_html(transactions: list[Transaction]) -> str:
    """Give the same as tables, the oldest first."""
    head = "<h3>*** Prepared Transaction Details ***</h3>"
    if not transactions:
        return f"{head}<p>No entry.</p>"
    parts = [head]
    for tx in transactions:
        found = prepared_details(tx)
        cells = {name: escape(json_text(value)) for name, value in found.items()}
        parts += [
            '<table border="1">',
            f"<tr><th>creation_time</th><td>{cells['creation_time']}</td>",
            f'<th>xid_as_base_64</th><td colspan="3">{cells["xid_as_base64"]}</td></tr>',
            f"<tr><th>xid_format_id</th><td>{cells['xid_format_id']}</td>",
            f"<th>xid_global_txid</th><td>{cells['xid_global_txid']}</td>",
            f"<th>xid_branch_qual</th><td>{cells['xid_branch_qual']}</td></tr>",
            '<tr><th colspan="6">Message List</th></tr><tr><td colspan="6">',
            '<table border="1" cellspacing="0" cellpadding="0">',
        ]
        messages = found["tx_related_messages"]
        assert isinstance(messages, list), "made so"
        for one in messages:
            properties = ", ".join(
                f"{escape(name)}={escape(json_text(value))}"
                for name, value in one["message_properties"].items()
            )
            parts += [
                f"<tr><th>operation_type</th><td>{escape(one['message_operation_type'])}</td>",
                f"<th>message_type</th><td>{escape(one['message_type'])}</td></tr>",
                f'<tr><th>properties</th><td colspan="3">{properties}</td></tr>',
            ]
        parts += ["</table></td></tr>", "</table><br>"]
    return "".join(parts)
