"""What an acceptor's URI says of MQTT, by Artemis's names and with its defaults (MQTTUtil)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker.protocols.mqtt.wire import SIZE_MAX, VARIABLE_MAX
from broker.protocols.registry import PREFIXES, AcceptorParameter
from broker.settings.value_types import BOOLEAN, INT, LONG, minus_one_or_more_than

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["PARAMETERS"]

_KEEP_ALIVE_DEFAULT_S: Final = 60
_NEVER_S: Final = 2**32 - 2  # Seconds that end; one more is never.
_TWO_BYTES: Final = minus_one_or_more_than(INT, -1, most=SIZE_MAX)

PARAMETERS: Final[Mapping[str, AcceptorParameter]] = {
    "defaultMqttSessionExpiryInterval": AcceptorParameter(
        minus_one_or_more_than(LONG, -1, most=_NEVER_S),
        -1,
        "Seconds that a session of MQTT 3 without Clean Session outlives its connection; "
        "-1 for ever.",
    ),
    "topicAliasMaximum": AcceptorParameter(
        _TWO_BYTES,
        SIZE_MAX,
        "Topics that a client of MQTT 5 may name by a number; -1 tells it nothing, and 0 is meant.",
    ),
    "receiveMaximum": AcceptorParameter(
        minus_one_or_more_than(INT, 0, most=SIZE_MAX),
        SIZE_MAX,
        "Messages of QoS 1 and 2 of a client that may wait for an answer; -1 tells it nothing, "
        "and 65535 is meant. Artemis does not enforce it.",
    ),
    "serverKeepAlive": AcceptorParameter(
        _TWO_BYTES,
        _KEEP_ALIVE_DEFAULT_S,
        "Seconds of silence; half as much again ends a connection. 0 never, -1 as the client says.",
    ),
    "maximumPacketSize": AcceptorParameter(
        minus_one_or_more_than(INT, 0, most=VARIABLE_MAX),
        VARIABLE_MAX,
        "Bytes of the largest packet; -1 is the protocol's own limit.",
    ),
    "closeMqttConnectionOnPublishAuthorizationFailure": AcceptorParameter(
        BOOLEAN, True, "Whether a client that may not publish loses its connection."
    ),
    "allowLinkStealing": AcceptorParameter(
        BOOLEAN,
        True,
        "Whether a client that comes again takes the place of its older connection; else it is "
        "refused.",
    ),
    "defaultMaximumInFlightPublishMessages": AcceptorParameter(
        INT,
        SIZE_MAX,
        "Messages that may wait for an answer of a client that names no Receive Maximum; "
        "0 or less without limit.",
    ),
    **PREFIXES,
}
