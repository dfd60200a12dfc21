"""Answers to the requests of one session, in their order, once what was asked for is durable.

    request ─▶ session ─▶ context ─▶ done(error) ─▶ answer or error, confirmation

All of them pass the session's context, errors too. A request that is refused is not confirmed, as
in Artemis.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

import broker.protocols.core.packed as packed
from broker.errors import BrokerError, ErrorCode
from broker.protocols.core import packet_session as sessions
from broker.protocols.core.frames import HEADER_SIZE
from broker.protocols.core.packet_connection import (
    NO_CORRELATION,
    ExceptionResponse,
    NullResponse,
)
from broker.protocols.core.packet_message import SendLarge
from broker.protocols.core.packet_xa import XaFailed
from journal.errors import RecordTooLarge

if TYPE_CHECKING:
    from broker.protocols.core.channel import Channel
    from broker.protocols.core.packet import Packet
    from broker.storage.context import OperationContext
    from journal.errors import JournalError

__all__ = ["Answers", "refusal_of"]

log = logging.getLogger("broker")

_NULL_TYPE: Final = NullResponse.types[0][1]
_V1: Final = 0
# A client does not wait for these, and would take an error for the answer of another request.
_UNANSWERED: Final = (
    sessions.ConsumerCredits,
    sessions.ForceDelivery,
    sessions.Expired,
    sessions.Start,
    sessions.RequestProducerCredits,
    sessions.CreateProducer,
    sessions.RemoveProducer,
    XaFailed,
    SendLarge,
)


class Answers:
    """See the module's text.

    Args:
        channel: where they go.
        context: of the session, by which they wait.
        session_name: for the log.
    """

    def __init__(self, channel: Channel, context: OperationContext, session_name: str) -> None:
        self._channel = channel
        self._context = context
        self._session_name = session_name

    # Later: the context calls `done` with None, or with what ended the storage.

    def answer(self, size: int, response: Packet | None = None) -> None:
        """Answer once all before is durable; NullResponse where `response` is None."""
        self._context.after(self._send_answer, size, response)

    def _send_answer(self, error: Exception | None, size: int, response: Packet | None) -> None:
        if error is not None:
            self.send_failure(error)
            return
        if response is None:
            self.send_null()
        else:
            self._channel.send(response)
        self._handled(size)

    def answer_now(self, size: int, response: Packet) -> None:
        """Answer in the `done` of a request: all before it is durable."""
        self._send_answer(None, size, response)

    def silently(self, size: int) -> None:
        """A request without an answer was handled; what it recorded may still be on its way."""
        if self._channel.window_size != -1:
            self._context.count(self.unanswered, (size,))

    def answered(self, error: Exception | None, size: int, correlation_id: int) -> None:
        """The `done` of requests that want a NullResponse."""
        if error is not None:
            self._send_failure(error, correlation_id)
            return
        self._send_null(correlation_id)
        self._handled(size)

    def unanswered(self, error: Exception | None, size: int) -> None:
        """The `done` of requests that want no answer: they are confirmed all the same."""
        if error is None:
            self._handled(size)

    # Errors.

    def refuse(self, error: BrokerError, packet: Packet | None = None) -> None:
        """Answer a request with an error, if it wants an answer; in the order of the answers."""
        self.refuse_request(
            error,
            getattr(packet, "correlation_id", None),
            wants_answer=not isinstance(packet, _UNANSWERED)
            and getattr(packet, "requires_response", True),
            is_counted=packet is None or packet.is_confirmed,
        )

    def refuse_request(
        self,
        error: BrokerError,
        correlation_id: int | None,
        *,
        wants_answer: bool,
        is_counted: bool = True,
    ) -> None:
        """The same for a request of which no packet was made."""
        if wants_answer:
            self._context.after(self._send_refusal, error, correlation_id)
        else:
            log.warning("%s: unacknowledged request failed: %s", self._session_name, error.text)
        if is_counted:
            # The client counts it too: else it would send again what came after it.
            self.silently(HEADER_SIZE)

    def _send_refusal(
        self, _: Exception | None, error: BrokerError, correlation_id: int | None
    ) -> None:
        if correlation_id is None:
            # The request has no number: the answer has the layout that knows of none.
            self._channel.send(ExceptionResponse(int(error.code), error.text), _V1)
        else:
            self._channel.send(ExceptionResponse(int(error.code), error.text, correlation_id))

    def _send_failure(self, error: Exception, correlation_id: int | None) -> None:
        """Answer with an error: the storage has failed, and no request succeeds."""
        refusal = BrokerError(ErrorCode.IO_ERROR, f"the storage has failed: {error}")
        self._send_refusal(None, refusal, correlation_id)

    # At once.

    def send_null(self) -> None:
        """Answer a request that has no number; it is not counted."""
        self._send_null(NO_CORRELATION)

    def send_failure(self, error: Exception) -> None:
        """Answer such a request with what ended the storage."""
        self._send_failure(error, None)

    def send(self, response: Packet) -> None:
        """Answer with a packet that is not counted."""
        self._channel.send(response)

    def _send_null(self, correlation_id: int) -> None:
        channel = self._channel
        channel.send_frame(packed.null(_NULL_TYPE, channel.channel_id, correlation_id), True)

    def _handled(self, size: int) -> None:
        if self._channel.window_size != -1:
            self._channel.handled(size)


def refusal_of(error: BrokerError | JournalError) -> BrokerError:
    """Give what the client is told."""
    if isinstance(error, BrokerError):
        return error
    if isinstance(error, RecordTooLarge):
        return BrokerError(ErrorCode.IO_ERROR, f"AMQ229133: {error}")
    return BrokerError(ErrorCode.IO_ERROR, str(error))
