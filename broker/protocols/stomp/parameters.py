"""What an acceptor's URI says of STOMP, by Artemis's names; older names of some count, too.

`stompNackOutcome` is ours: what becomes of a message that a client refuses. In Artemis it is gone,
as if it had been acknowledged.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any, Final

from broker.protocols.registry import AcceptorParameter
from broker.settings.value_types import (
    BOOLEAN,
    DOUBLE,
    INT,
    LONG,
    at_least,
    choice,
    minus_one_or_more_than,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["PARAMETERS", "NackOutcome", "min_large_size", "window_size"]

_INT_MAX: Final = 2**31 - 1
_LONG_MAX: Final = 2**63 - 1
_MIN_LARGE_DEFAULT: Final = 102400  # DEFAULT_MIN_LARGE_MESSAGE_SIZE
_WINDOW_DEFAULT: Final = 10240  # STOMP_DEFAULT_CONSUMER_WINDOW_SIZE


class NackOutcome(Enum):
    """What becomes of a message that a client refuses by NACK."""

    accept = "accept"
    """As if it had been acknowledged: it is gone."""
    redeliver = "redeliver"
    """It goes back to its queue, as a failed delivery: max-delivery-attempts counts it."""
    reject = "reject"
    """It goes to the dead letter address."""


_BYTES: Final = minus_one_or_more_than(INT, -1, most=_INT_MAX)
PARAMETERS: Final[Mapping[str, AcceptorParameter]] = {
    "connectionTtl": AcceptorParameter(
        at_least(LONG, 1),
        None,
        "Milliseconds of silence that end a connection. Without: connection-ttl-override, else "
        "a minute.",
    ),
    "connectionTtlMin": AcceptorParameter(
        at_least(LONG, 1), 1000, "Least milliseconds that a client's heart-beat may lead to."
    ),
    "connectionTtlMax": AcceptorParameter(
        at_least(LONG, 1), _LONG_MAX, "Most milliseconds that a client's heart-beat may lead to."
    ),
    "heartBeatToConnectionTtlModifier": AcceptorParameter(
        at_least(DOUBLE, 0.1), 2.0, "Silence that is allowed, in periods of the heart-beat."
    ),
    "stompConsumerWindowSize": AcceptorParameter(
        _BYTES,
        None,
        "Bytes of frames that a subscription with acknowledgements may have open; -1 without "
        "limit. Without: 10240.",
    ),
    "stompConsumerCredits": AcceptorParameter(
        _BYTES, None, "Older name of `stompConsumerWindowSize`."
    ),
    "stompMinLargeMessageSize": AcceptorParameter(
        _BYTES,
        None,
        "Bytes of a body from which it is stored outside of the journal; -1 never. "
        "Without: 102400.",
    ),
    "stomp-min-large-message-size": AcceptorParameter(
        _BYTES, None, "Older name of `stompMinLargeMessageSize`."
    ),
    "stompEnableMessageId": AcceptorParameter(
        BOOLEAN, False, "Whether messages get a property `amqMessageId`."
    ),
    "stomp-enable-message-id": AcceptorParameter(
        BOOLEAN, False, "Older name of `stompEnableMessageId`."
    ),
    "disableStompServerHeader": AcceptorParameter(
        BOOLEAN, False, "Whether CONNECTED has no header `server`."
    ),
    "stompNackOutcome": AcceptorParameter(
        choice(NackOutcome),
        NackOutcome.accept,
        "What becomes of a message that a client refuses (ours): accept, as Artemis; redeliver, "
        "counted as a failed delivery; reject, to the dead letter address.",
    ),
}


def min_large_size(parameters: Mapping[str, Any]) -> int:
    """Give the bytes of a body from which a message is large; -1 never."""
    return _first(
        parameters["stompMinLargeMessageSize"],
        parameters["stomp-min-large-message-size"],
        _MIN_LARGE_DEFAULT,
    )


def window_size(parameters: Mapping[str, Any]) -> int:
    """Give the bytes that a subscription with acknowledgements may have open; -1 without limit."""
    return _first(
        parameters["stompConsumerWindowSize"],
        parameters["stompConsumerCredits"],
        _WINDOW_DEFAULT,
    )


def _first(*values: int | None) -> int:
    return next(value for value in values if value is not None)
