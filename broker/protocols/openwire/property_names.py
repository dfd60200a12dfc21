"""Properties of Core messages that stand for fields of OpenWire (OpenWireConstants)."""

from __future__ import annotations

from typing import Final

__all__ = [
    "ARRIVAL",
    "BROKER_IN_TIME",
    "CLIENT_ID",
    "CLUSTER",
    "COMMAND_ID",
    "COMPRESSED",
    "CORRELATION_ID",
    "DATA_STRUCTURE",
    "DLQ_CAUSE",
    "DROPPABLE",
    "DUPLICATE_ID",
    "GROUP_SEQUENCE",
    "MESSAGE_ID",
    "ORIGINAL_DESTINATION",
    "OWN_PREFIX",
    "PATH",
    "PRODUCER_ID",
    "REPLY_TO",
    "REPLY_TO_OLD",
    "SCHEDULED_DELAY",
    "TYPE",
    "USER_ID",
]

OWN_PREFIX: Final = "__HDR_"
ARRIVAL: Final = "__HDR_ARRIVAL"
BROKER_IN_TIME: Final = "__HDR_BROKER_IN_TIME"
CLUSTER: Final = "__HDR_CLUSTER"
COMMAND_ID: Final = "__HDR_COMMAND_ID"
COMPRESSED: Final = "__HDR_COMPRESSED"
DATA_STRUCTURE: Final = "__HDR_DATASTRUCTURE"
DROPPABLE: Final = "__HDR_DROPPABLE"
MESSAGE_ID: Final = "__HDR_MESSAGE_ID"
ORIGINAL_DESTINATION: Final = "__HDR_ORIG_DESTINATION"
PATH: Final = "__HDR_BROKER_PATH"
PRODUCER_ID: Final = "__HDR_PRODUCER_ID"
USER_ID: Final = "__HDR_USER_ID"
REPLY_TO_OLD: Final = "__HDR_REPLY_TO"
DLQ_CAUSE: Final = "__HDR_dlqDeliveryFailureCause"
CLIENT_ID: Final = "__AMQ_CID"
CORRELATION_ID: Final = "JMSCorrelationID"
REPLY_TO: Final = "JMSReplyTo"
TYPE: Final = "JMSType"
GROUP_SEQUENCE: Final = "_AMQ_GROUP_SEQUENCE"
DUPLICATE_ID: Final = "_AMQ_DUPL_ID"
SCHEDULED_DELAY: Final = "AMQ_SCHEDULED_DELAY"
