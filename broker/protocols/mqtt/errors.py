"""What ends a connection: a packet that is not what the specification says, or is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from broker.protocols.mqtt.properties import Properties
    from broker.protocols.mqtt.reason_codes import ReasonCode
    from broker.protocols.mqtt.versions import Version

__all__ = ["MqttError"]


class MqttError(Exception):
    """A client of MQTT 5 is told the code by DISCONNECT or CONNACK; one of MQTT 3 is left.

    Attributes:
        code: for the client.
        text: for the log, and the client where it wants that (Request Problem Information).
        properties: of the CONNACK that tells it.
        version: of a CONNECT that is refused, where it came as far as that.
    """

    def __init__(self, code: ReasonCode, text: str) -> None:
        super().__init__(text)
        self.code = code
        self.text = text
        self.properties: Properties = {}
        self.version: Version | None = None
