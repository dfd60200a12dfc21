"""Prepared transactions, handed to the node that gets all messages.

    XaStart ─▶ what it sends: _AMQ_ROUTE_TO ─▶ what it acknowledges: _AMQ_ACK_ROUTE_TO too ─▶ XaEnd
    ─▶ XaPrepare ─▶ noted here ─▶ rolled back here, what it had acknowledged is removed

The note is durable before the rollback: a start that finds it does the rest (scale_down_notes.py).
If this broker is killed between XaPrepare and the note, the transaction is in doubt on both nodes,
and the next scale-down finds it there.

A transaction with messages in pages stays, and is reported.

Threads: the event loop's alone.
"""

from __future__ import annotations

import asyncio
import logging
import struct
from typing import TYPE_CHECKING, Any, Final

from broker.bridges.core.sending import Sending, Sent
from broker.client.errors import NotConnected, XaRefused
from broker.model.properties import PropertyType
from broker.routing.queue_ids import ACK_ROUTE_TO
from broker.server.scale_down_messages import make_copy
from broker.server.scale_down_notes import forget, note_of, note_of_xid, remove_all
from broker.storage.durable import durable
from broker.transactions.xa import XaCode

if TYPE_CHECKING:
    from collections.abc import Mapping

    from broker.bridges.core.target import Link
    from broker.model.xid import Xid
    from broker.queues.queue import Queue
    from broker.routing.duplicates import DuplicateCache
    from broker.server.scale_down_target import ScaleDownTarget
    from broker.storage.manager import StorageManager
    from broker.transactions.transaction import Transaction
    from broker.transactions.xa import XaTransactions

__all__ = ["move_transactions"]

log = logging.getLogger("broker")

_ID: Final = struct.Struct(">q")


async def move_transactions(
    target: ScaleDownTarget,
    transactions: XaTransactions,
    storage: StorageManager,
    queues: Mapping[int, Queue],
    own_node: bytes,
    notes: DuplicateCache,
) -> int:
    """Hand over those that can be; how many.

    Args:
        target: connected.
        transactions: of this broker.
        storage: where the end of each is recorded.
        queues: of this broker, by their ids.
        own_node: the 16 bytes of this broker's node id.
        notes: see scale_down_notes.py.

    Raises:
        ClientError: the link is lost, or the target refuses.
        JournalError: the storage has failed.
    """
    count = 0
    for one in transactions.prepared():
        if one.xid is None or one.paged is not None:
            log.warning(
                "prepared transaction %s has messages in pages: it stays until it is decided",
                one.xid,
            )
            continue
        await _hand_over(target, one, one.xid, queues, own_node)
        await _end_here(transactions, storage, one, one.xid, notes)
        count += 1
    return count


async def _hand_over(
    target: ScaleDownTarget,
    transaction: Transaction,
    xid: Xid,
    queues: Mapping[int, Queue],
    own_node: bytes,
) -> None:
    session = await target.xa_session()
    try:
        try:
            await session.xa_start(xid)
        except XaRefused as error:
            if error.code == XaCode.DUPLICATE_XID:
                # It was prepared there before this broker ended.
                return
            raise
        link = target.link.with_session(session)
        await _send(target, link, transaction, queues, own_node)
        await session.xa_end(xid)
        try:
            await session.xa_prepare(xid)
        except XaRefused as error:
            if "Duplicate message" not in str(error):
                raise
            # It was prepared there, and committed since.
            log.info("transaction %s was committed by the target before", xid)
    finally:
        await session.close()


async def _send(
    target: ScaleDownTarget,
    link: Link,
    transaction: Transaction,
    queues: Mapping[int, Queue],
    own_node: bytes,
) -> None:
    """Send all of it, and wait until the target has it."""
    done = asyncio.Event()
    failures: list[Exception] = []
    left = len(transaction.sends) + len(transaction.acknowledged)

    def answered(sent: Sent, error: Exception | None) -> None:
        nonlocal left
        left -= 1
        if error is not None:
            failures.append(error)
        if error is not None or not left:
            done.set()

    def failed(error: Exception) -> None:
        failures.append(error)
        done.set()

    sending = Sending(link, on_answer=answered, on_failed=failed, on_room=lambda: None)
    try:
        number = 0
        for references, is_acknowledged in (
            (transaction.sends, False),
            (transaction.acknowledged, True),
        ):
            for reference in references:
                number += 1
                queue = queues[reference.queue.queue_id]
                queue_id = await target.queue_id(queue, queue.binding.address)
                copy = make_copy(reference.message, queue, queue_id, own_node)
                if is_acknowledged:
                    copy.set(ACK_ROUTE_TO, PropertyType.BYTES, _ID.pack(queue_id))
                sending.put(Sent(reference.message, number), copy)
        while left and not failures:
            waits: list[asyncio.Future[Any]] = [asyncio.ensure_future(done.wait()), link.lost]
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            waits[0].cancel()
            if link.lost.done():
                raise NotConnected(str(link.lost.result()))
    finally:
        sending.close()
    if failures:
        raise failures[0]


async def _end_here(
    transactions: XaTransactions,
    storage: StorageManager,
    transaction: Transaction,
    xid: Xid,
    notes: DuplicateCache,
) -> None:
    """Note that the target has it, and forget it."""
    context = storage.new_context()
    acknowledged = list(transaction.acknowledged)
    for note in (note_of_xid(xid), *map(note_of, acknowledged)):
        notes.add(note, notes.record(note, None))
    await durable(context)
    transactions.take(xid).rollback(context)
    await durable(context)
    remove_all(acknowledged)
    forget(notes)
