"""Batches on their way to a broker of the Core protocol, sent without waiting for their answers.

    send_batch() ─▶ BatchMessages ─▶ each message confirmed, or the batch's commit ─▶ done(None)

How they are made and sent: batch_messages.py.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from broker.bridges.core.sending import Sent
from broker.bridges.jms.core.batch_messages import fail_without_reply
from broker.client.errors import DuplicateId
from broker.protocols.core.packet_session import Commit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from broker.bridges.jms.core.batch_messages import BatchMessages
    from broker.bridges.jms.message import JMSMessage
    from broker.bridges.jms.providers import Done
    from broker.client.replies import Reply
    from broker.model.message import Message
    from broker.protocols.core.packet import Packet

__all__ = ["CoreBatchSender"]


@dataclass(slots=True)
class _Batch:
    """One that has no outcome yet.

    Attributes:
        done: is told it.
        missing: messages that are not confirmed.
    """

    done: Done
    missing: int


class _OfBatch(Sent):
    """A message of a batch."""

    __slots__ = ("batch",)

    def __init__(self, message: Message, number: int, batch: _Batch) -> None:
        super().__init__(message, number)
        self.batch = batch


class CoreBatchSender:
    """See the module's text, and `BatchSender`.

    Args:
        messages: sends over a session that is transacted, or one whose sends are confirmed each.
        is_transacted: each batch is a transaction.
    """

    def __init__(self, messages: BatchMessages, *, is_transacted: bool) -> None:
        self._state = messages.state
        self._is_transacted = is_transacted
        self._batches: deque[_Batch] = deque()
        self._failure: Exception | None = None
        self._messages = messages
        messages.open(on_failed=self.fail, on_answer=None if is_transacted else self._answered)

    def send_batch(self, messages: Sequence[JMSMessage], done: Done) -> None:
        """Send a batch behind the others; see `BatchSender`."""
        if self._failure is not None:
            done(self._failure)
            return
        batch = _Batch(done, len(messages))
        self._batches.append(batch)
        is_put = self._messages.put(
            messages, lambda message, number: _OfBatch(message, number, batch)
        )
        if is_put and self._is_transacted:
            self._messages.call_behind(partial(self._commit, batch))

    def fail(self, error: Exception) -> None:
        """Send nothing any more; no batch has its outcome yet, and none will.

        Args:
            error: why.
        """
        if self._failure is not None:
            return
        self._failure = error
        self._messages.close()
        batches, self._batches = self._batches, deque()
        for batch in batches:
            batch.done(error)

    def _answered(self, sent: Sent, error: Exception | None) -> None:
        # A broker may refuse a known id instead of dropping the message: it is there.
        if error is not None and not isinstance(error, DuplicateId):
            self.fail(error)
            return
        assert isinstance(sent, _OfBatch), "it was put here"
        sent.batch.missing -= 1
        if not sent.batch.missing:
            self._succeeded(sent.batch)

    def _commit(self, batch: _Batch) -> None:
        reply = self._state.channel.call_correlated(Commit())
        fail_without_reply(reply, self._state, "Commit", self.fail)
        reply.when_done(partial(self._committed, batch))

    def _committed(self, batch: _Batch, reply: Reply[Packet]) -> None:
        if reply.error is not None:
            self.fail(reply.error)
        elif self._failure is None:
            self._succeeded(batch)

    def _succeeded(self, batch: _Batch) -> None:
        """Tell it behind those before it, which are answered first but for a refused message."""
        if self._failure is None:
            batch.missing = 0
            while self._batches and not self._batches[0].missing:
                self._batches.popleft().done(None)
