"""Where a message has been on this node, as operations of `broker`; for `broker trace`.

    records of the journal and its history ─▶ steps ┐
    queues, consumers, transactions ─▶ live state    ┴─▶ one JSON object for each message of the way

A message that is moved or redistributed, expires or becomes a dead letter goes on as a copy with an
id of its own. Copies are followed, and from a copy the way back to its original as well.
What went to another node is named by this node's id and the message's, as bridges name it there:
that node is asked by them. By whom a message was acknowledged no record says; who has it now, the
live state does.
"""

from __future__ import annotations

import asyncio
import uuid
from typing import TYPE_CHECKING, Final

from broker.management.broker_part import BrokerPart
from broker.management.errors import ManagementError
from broker.management.invocation import LONG, NAME, operation
from broker.management.json_texts import json_text
from broker.management.reasons.finding import find
from broker.management.reasons.observation import observed
from broker.management.reasons.rules import reasons
from broker.management.traces.steps import message_of, steps_of
from broker.management.waiting import awaited
from broker.routing.message_copies import ORIGINAL_ADDRESS, ORIGINAL_ID, ORIGINAL_QUEUE
from broker.routing.remote_bindings import STORE_AND_FORWARD
from broker.storage.open import FileStoreOptions
from broker.storage.traced_records import (
    messages_of_transaction,
    records_of_bridge_id,
    records_of_message,
)

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from broker.model.message import Message
    from broker.storage.traced_records import TracedRecord
    from journal.options import JournalOptions

__all__ = ["BrokerTraces"]

# Copies of copies that are followed.
COPIES_MAX: Final = 16


class BrokerTraces(BrokerPart):
    """See the module's text."""

    @operation("queryTraceAsJSON", LONG)
    def trace(self, message_id: int) -> Generator[float | None, None, str]:
        """Say where a message has been on this node, and where it is."""
        return self._answer([message_id], is_arrived=None)

    @operation("queryTraceAsJSON", NAME, LONG)
    def trace_from(self, node_id: str, message_id: int) -> Generator[float | None, None, str]:
        """The same of what a bridge brought from another node, by its id there."""
        bridge_id = _bridge_id(node_id, message_id)
        is_arrived = any(
            bridge_id in cache
            for name in self._addresses.by_name
            if (cache := self._broker.parts.postoffice.duplicates.find(f"BRIDGE.{name}"))
            is not None
        )
        journal = self._traced_journal
        ids = []
        if journal is not None:
            for record in (
                yield from awaited(asyncio.to_thread(records_of_bridge_id, journal, bridge_id))
            ):
                if record.tx_id is None:
                    continue
                for sent in (
                    yield from awaited(
                        asyncio.to_thread(messages_of_transaction, journal, record.tx_id)
                    )
                ):
                    is_arrived = True
                    ids.append(sent.record_id)
        return (yield from self._answer(list(dict.fromkeys(ids)), is_arrived=is_arrived))

    @property
    def _traced_journal(self) -> JournalOptions | None:
        store = self._broker.options.store
        return store.messages if isinstance(store, FileStoreOptions) else None

    def _answer(
        self, ids: list[int], *, is_arrived: bool | None
    ) -> Generator[float | None, None, str]:
        journal = self._traced_journal
        messages = []
        if len(ids) == 1:
            ids = yield from self._originals(journal, ids[0])
        seen: set[int] = set()
        while ids and len(seen) < COPIES_MAX:
            message_id = ids.pop(0)
            if message_id in seen:
                continue
            seen.add(message_id)
            found, copies = yield from self._trace(journal, message_id)
            messages.append(found)
            ids += copies
        answer: dict[str, object] = {
            "node": self._broker.node_id,
            "broker": self._broker.options.name,
            "records": _kept(journal),
            "messages": messages,
        }
        if is_arrived is not None:
            answer["arrived"] = is_arrived
        return json_text(answer)

    def _originals(
        self, journal: JournalOptions | None, message_id: int
    ) -> Generator[float | None, None, list[int]]:
        """Give the messages that this one was before, the first one first, and itself."""
        chain = [message_id]
        while len(chain) < COPIES_MAX:
            found, _ = yield from self._trace(journal, chain[0])
            original = found["original"]
            if not isinstance(original, dict):
                break
            _, copies = yield from self._trace(journal, original["messageID"])
            # An id of another node may be that of any message here: records have to say so.
            if chain[0] not in copies:
                break
            chain.insert(0, original["messageID"])
        return chain

    def _trace(
        self, journal: JournalOptions | None, message_id: int
    ) -> Generator[float | None, None, tuple[dict[str, object], list[int]]]:
        records: list[TracedRecord] = []
        if journal is not None:
            records = yield from awaited(asyncio.to_thread(records_of_message, journal, message_id))
        names = {queue.queue_id: name for name, queue in self._addresses.queues.items()}
        steps = steps_of(records, names)
        message = message_of(records)
        copies: list[int] = []
        if journal is not None:
            for tx_id in {one.tx_id for one in records if _is_moving(one)}:
                assert tx_id is not None, "that was asked"
                sent = yield from awaited(
                    asyncio.to_thread(messages_of_transaction, journal, tx_id)
                )
                copies += _copies(sent, message_id, message)
        live, held = yield from self._live(message_id)
        forwarded = sorted(
            {
                one.queue.rpartition(".")[2]
                for one in steps
                if one.what in ("routed", "acknowledged")
                and one.queue is not None
                and one.queue.startswith(STORE_AND_FORWARD)
            }
        )
        found: dict[str, object] = {
            "messageID": message_id,
            "address": None if message is None else message.address,
            "timestamp": None if message is None else message.timestamp,
            "original": _original(message or held),
            "steps": [one.as_json() for one in steps],
            "now": live,
            "copies": copies,
            "forwardedTo": forwarded,
        }
        return found, copies

    def _live(
        self, message_id: int
    ) -> Generator[float | None, None, tuple[list[dict[str, object]], Message | None]]:
        """Say which queues have it now, and why it waits there; and give it, if one has."""
        found: list[dict[str, object]] = []
        held: Message | None = None
        for name, queue in list(self._addresses.queues.items()):
            if queue.is_deleted or not (queue.message_count or queue.undecided_count):
                continue
            place = yield from find(self._broker, queue, message_id)
            if place.reference is None:
                continue
            held = place.reference.message
            state, message = observed(self._broker, queue, place, message_id)
            assert message is not None, "it was found"
            found.append(
                {
                    "queue": name,
                    "place": message.place.value,
                    "consumer": None if message.consumer is None else message.consumer.name,
                    "deliveries": message.delivery_count,
                    "reasons": [
                        {"code": one.code, "text": one.text, "action": one.action}
                        for one in reasons(state, message)
                    ],
                }
            )
        return found, held


def _original(message: Message | None) -> dict[str, object] | None:
    """Say what the message was before it was moved, expired or became a dead letter."""
    if message is None:
        return None
    message_id = message.get(ORIGINAL_ID)
    if not isinstance(message_id, int):
        return None
    return {
        "messageID": message_id,
        "queue": message.get(ORIGINAL_QUEUE),
        "address": message.get(ORIGINAL_ADDRESS),
    }


def _kept(journal: JournalOptions | None) -> str:
    """Say which records there are."""
    if journal is None:
        return "none: the messages of this broker are not in files"
    if journal.retention_directory is None:
        return "the journal alone: no history is kept (journal-retention-directory)"
    return "the journal and its history"


def _is_moving(record: TracedRecord) -> bool:
    return record.tx_id is not None and record.counts and record.kind == "update_tx"


def _copies(sent: Sequence[TracedRecord], message_id: int, message: Message | None) -> list[int]:
    """Give the messages that a transaction has sent in the place of one that it acknowledges."""
    found = []
    for record in sent:
        copy = message_of([record])
        if copy is None or record.record_id == message_id:
            continue
        is_like = message is not None and (copy.address, copy.timestamp, copy.user_id) == (
            message.address,
            message.timestamp,
            message.user_id,
        )
        if copy.get(ORIGINAL_ID) == message_id or is_like:
            found.append(record.record_id)
    return found


def _bridge_id(node_id: str, message_id: int) -> bytes:
    try:
        node = uuid.UUID(node_id)
    except ValueError:
        raise ManagementError(f"{node_id!r} is not the id of a node") from None
    return node.bytes + message_id.to_bytes(8, "big", signed=True)
