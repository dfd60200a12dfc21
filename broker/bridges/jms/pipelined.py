"""Batches from source to target without waiting in between: each step, in the batches' order.

    SEND_LAST         acknowledge ─▶ send ─▶ confirmed ─▶ done
    ACKNOWLEDGE_LAST
    DUPLICATE_IDS     send ─▶ confirmed ─▶ acknowledge ─▶ done

A step of a batch begins when the one before it has ended well, for this batch and all before it.
Meanwhile later batches are received and sent: a link with latency carries as many as the bridge
lets be on their way. One acknowledgement is under way at a time, and says so for all that are due.

For sides that can (`BatchSender`, `BatchReceiver`): those of the Core protocol. What holds for one
batch at a time (`transfers.py`) holds here: nothing is acknowledged before every message up to it
has been confirmed, or, with SEND_LAST, nothing is sent before its acknowledgement counts.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from broker.bridges.jms.duplicate_ids import give_ids

if TYPE_CHECKING:
    from collections.abc import Sequence

    from broker.bridges.jms.message import JMSMessage
    from broker.bridges.jms.providers import BatchReceiver, BatchSender, Done, Session

__all__ = ["PipelinedAcknowledgeLast", "PipelinedSendLast"]


class _Batch(NamedTuple):
    messages: Sequence[JMSMessage]
    done: Done


class _Pipelined:
    """What both orders share: acknowledging, several batches at once.

    Args:
        source: session that receives.
        receiver: of it.
        sender: to the target.
    """

    begins = False
    receives_ahead = True

    def __init__(self, source: Session, receiver: BatchReceiver, sender: BatchSender) -> None:
        self.source_session = source
        self.receiver = receiver
        self._sender = sender
        # To be acknowledged, in order.
        self._due: deque[_Batch] = deque()
        self._acknowledging: asyncio.Task[None] | None = None
        self._is_over = False

    async def begin(self, *, is_empty: bool) -> None:
        """Nothing."""

    async def undo(self) -> None:
        """Nothing: the sessions' end does it."""

    def close(self) -> None:
        """Acknowledge nothing more."""
        self._is_over = True
        if self._acknowledging is not None:
            self._acknowledging.cancel()

    def _acknowledge(self, batch: _Batch) -> None:
        """Acknowledge a batch behind those before it."""
        self._due.append(batch)
        if self._acknowledging is None and not self._is_over:
            loop = asyncio.get_running_loop()
            self._acknowledging = loop.create_task(self._acknowledge_all())

    async def _acknowledge_all(self) -> None:
        while self._due and not self._is_over:
            due = tuple(self._due)
            self._due.clear()
            try:
                await self.receiver.acknowledge_until(due[-1].messages[-1])
            except Exception as error:  # noqa: BLE001 - a provider may raise anything.
                self._is_over = True
                for batch in due:
                    batch.done(error)
                return
            for batch in due:
                self._acknowledged(batch)
        self._acknowledging = None

    def _acknowledged(self, batch: _Batch) -> None:
        batch.done(None)


class PipelinedAcknowledgeLast(_Pipelined):
    """DUPLICATES_OK.

    Args:
        source: session that receives.
        receiver: of it.
        sender: to the target.
        node_id: of the source, for ONCE_AND_ONLY_ONCE: the target drops what comes again. None
            gives messages no ids.
    """

    def __init__(
        self, source: Session, receiver: BatchReceiver, sender: BatchSender, node_id: str | None
    ) -> None:
        super().__init__(source, receiver, sender)
        self._node_id = node_id

    async def move(self, messages: Sequence[JMSMessage], done: Done) -> None:
        """Send; acknowledge once that is confirmed."""
        if self._node_id is not None:
            give_ids(messages, self._node_id)
        batch = _Batch(messages, done)
        self._sender.send_batch(messages, lambda error: self._sent(batch, error))

    def _sent(self, batch: _Batch, error: Exception | None) -> None:
        if error is None:
            self._acknowledge(batch)
        else:
            # Nothing behind it is confirmed any more.
            batch.done(error)


class PipelinedSendLast(_Pipelined):
    """AT_MOST_ONCE."""

    async def move(self, messages: Sequence[JMSMessage], done: Done) -> None:
        """Acknowledge; send once that counts: nothing that is sent can come again."""
        self._acknowledge(_Batch(messages, done))

    def _acknowledged(self, batch: _Batch) -> None:
        self._sender.send_batch(batch.messages, batch.done)
