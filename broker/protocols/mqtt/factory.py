"""How the broker finds MQTT: the entry point MQTT, its first bytes, its acceptors' parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker.protocols.mqtt.parameters import PARAMETERS
from broker.protocols.registry import Detection, WebSocketUse

if TYPE_CHECKING:
    from collections.abc import Mapping

    from broker.protocols.peer import Sessions
    from broker.protocols.registry import AcceptorParameter, ProtocolManager

__all__ = ["MQTT", "MqttProtocolFactory"]

_CONNECT: Final = 0x10
_SIZE_BYTES_MAX: Final = 4
# With the size of each before it.
_NAMES: Final = (b"\0\x04MQTT", b"\0\x06MQIsdp")


class MqttProtocolFactory:
    """A `ProtocolManagerFactory`."""

    name = "MQTT"
    detection_size = 1 + _SIZE_BYTES_MAX + max(map(len, _NAMES))
    # The handler is given all bytes.
    preamble_size = 0
    parameters: Mapping[str, AcceptorParameter] = PARAMETERS
    # [MQTT-6.0.0-1]: a frame of text ends the connection.
    web_socket = WebSocketUse(("mqtt", "mqttv3.1"), takes_text=False)

    def detect(self, first: bytes) -> Detection:
        """Whether a connection begins with CONNECT and the protocol's name."""
        if first[0] != _CONNECT:
            return Detection.NO
        for at in range(1, 1 + _SIZE_BYTES_MAX):
            if at >= len(first):
                return Detection.MORE
            if first[at] < 0x80:
                rest = first[at + 1 :]
                if rest.startswith(_NAMES):
                    return Detection.YES
                is_begun = any(name.startswith(rest) for name in _NAMES)
                return Detection.MORE if is_begun else Detection.NO
        return Detection.NO

    def manager(self, sessions: Sessions) -> ProtocolManager:
        """Give what speaks MQTT for a broker."""
        # A configuration is read without all of the protocol.
        from broker.protocols.mqtt.protocol import MqttProtocol

        return MqttProtocol(sessions)


MQTT = MqttProtocolFactory()
