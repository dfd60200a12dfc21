"""What a client and the broker agree on by CONNECT and CONNACK."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from broker.protocols.mqtt.packets import Version
from broker.protocols.mqtt.properties import PropertyId
from broker.protocols.mqtt.session_state import NEVER_S
from broker.protocols.mqtt.wire import SIZE_MAX, VARIABLE_MAX
from broker.sessions.prefixes import NO_PREFIXES, Prefixes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from broker.protocols.mqtt.packets import Connect
    from broker.protocols.mqtt.properties import Properties

__all__ = ["Agreement", "agree"]

# A packet of the greatest size that its field can say.
_PACKET_MAX: Final = VARIABLE_MAX + 5
# A client may be silent for half as long again.
_PATIENCE: Final = 1.5


class Agreement(NamedTuple):
    """See the module's text.

    Attributes:
        version: of the protocol.
        silence_s: seconds after which a silent client is left; 0 never.
        expiry_s: how long its session outlives the connection.
        receive_maximum: messages of QoS 1 and 2 that the client may have open.
        packet_size_max: bytes of a packet that the client takes.
        alias_maximum: how many topics the client knows by a number.
        wants_problems: the client wants to be told why something was refused.
        prefixes: that it may put before topics.
        properties: of the CONNACK, but for an assigned client id.
    """

    version: Version
    silence_s: float
    expiry_s: int
    receive_maximum: int
    packet_size_max: int
    alias_maximum: int
    wants_problems: bool
    prefixes: Prefixes
    properties: Properties


def agree(connect: Connect, parameters: Mapping[str, Any]) -> Agreement:
    """Give what a client and an acceptor agree on.

    Args:
        connect: of the client.
        parameters: of the acceptor.
    """
    asked, is_5 = connect.properties, connect.version is Version.V5
    server_s: int = parameters["serverKeepAlive"]
    keep_alive_s = server_s
    if server_s < 0 or 0 < connect.keep_alive_s <= server_s:
        keep_alive_s = connect.keep_alive_s
    default_open: int = parameters["defaultMaximumInFlightPublishMessages"]
    if not 0 < default_open <= SIZE_MAX:
        default_open = SIZE_MAX
    if is_5:
        expiry_s = asked.get(PropertyId.SESSION_EXPIRY_INTERVAL, 0)
    elif connect.clean_start:
        expiry_s = 0
    else:
        default_s: int = parameters["defaultMqttSessionExpiryInterval"]
        expiry_s = NEVER_S if default_s < 0 else default_s
    return Agreement(
        connect.version,
        keep_alive_s * _PATIENCE,
        expiry_s,
        asked.get(PropertyId.RECEIVE_MAXIMUM, default_open),
        min(asked.get(PropertyId.MAXIMUM_PACKET_SIZE, _PACKET_MAX), _PACKET_MAX),
        asked.get(PropertyId.TOPIC_ALIAS_MAXIMUM, 0),
        asked.get(PropertyId.REQUEST_PROBLEM_INFORMATION, 1) == 1,
        # All connections without any share one.
        Prefixes(parameters["anycastPrefix"], parameters["multicastPrefix"]) or NO_PREFIXES,
        _told(parameters, keep_alive_s, connect.keep_alive_s) if is_5 else {},
    )


def _told(parameters: Mapping[str, Any], keep_alive_s: int, asked_s: int) -> Properties:
    """Give the properties of a CONNACK, in Artemis's order."""
    found: dict[PropertyId, Any] = {}
    if parameters["topicAliasMaximum"] >= 0:
        found[PropertyId.TOPIC_ALIAS_MAXIMUM] = parameters["topicAliasMaximum"]
    if keep_alive_s != asked_s:
        found[PropertyId.SERVER_KEEP_ALIVE] = keep_alive_s
    if parameters["maximumPacketSize"] >= 0:
        found[PropertyId.MAXIMUM_PACKET_SIZE] = parameters["maximumPacketSize"]
    if 0 < parameters["receiveMaximum"] < SIZE_MAX:
        found[PropertyId.RECEIVE_MAXIMUM] = parameters["receiveMaximum"]
    return found
