"""Names of the properties by which Artemis keeps what MQTT knows of a message (MQTTUtil)."""

from __future__ import annotations

from typing import Final

__all__ = [
    "CLIENT_ID",
    "CONTENT_TYPE",
    "CORRELATION_DATA",
    "IS_INITIAL",
    "IS_RETAINED",
    "PACKET_ID",
    "PACKET_TYPE",
    "PAYLOAD_FORMAT",
    "QOS",
    "RESPONSE_TOPIC",
    "USER_PROPERTY",
    "USER_PROPERTY_COUNT",
]

QOS: Final = "mqtt.qos.level"
IS_RETAINED: Final = "mqtt.message.retain"
IS_INITIAL: Final = "mqtt.message.retain.initial.distribution"
"""It is a retained message that a new subscription gets; its value means nothing."""
PAYLOAD_FORMAT: Final = "mqtt.payload.format.indicator"
RESPONSE_TOPIC: Final = "mqtt.response.topic"
CORRELATION_DATA: Final = "mqtt.correlation.data"
CONTENT_TYPE: Final = "mqtt.content.type"
USER_PROPERTY_COUNT: Final = "mqtt.user.property.exists"
USER_PROPERTY: Final = "mqtt.ordered.user.property."
"""Before the place of the pair, a dot, and its name."""
CLIENT_ID: Final = "__AMQ_CID"
"""Who published it; subscriptions with no-local look at it."""
PACKET_ID: Final = "mqtt.message.id"
PACKET_TYPE: Final = "mqtt.message.type"
"""Both of a PUBREL that is still to be answered, kept as a message."""
