"""The data types that are known, by the number that stands before each. No other is decoded.

Nothing is ever made by a name that comes over the wire. What Classic's brokers say among each other
(discovery, journals, replays, networks) is not known here.
"""

from __future__ import annotations

from typing import Final

from broker.protocols.openwire import commands as c
from broker.protocols.openwire import identifiers as i
from broker.protocols.openwire.fields import VERSION_MAX, DataType, Field, fields_of

__all__ = ["CLASSES", "FIELDS", "LAST_VERSION", "NUMBERS"]

LAST_VERSION: Final = VERSION_MAX

# CommandTypes.
CLASSES: Final[dict[int, type[DataType]]] = {
    2: c.BrokerInfo,
    3: c.ConnectionInfo,
    4: c.SessionInfo,
    5: c.ConsumerInfo,
    6: c.ProducerInfo,
    7: c.TransactionInfo,
    8: c.DestinationInfo,
    9: c.RemoveSubscriptionInfo,
    10: c.KeepAliveInfo,
    11: c.ShutdownInfo,
    12: c.RemoveInfo,
    14: c.ControlCommand,
    15: c.FlushCommand,
    16: c.ConnectionError,
    17: c.ConsumerControl,
    18: c.ConnectionControl,
    19: c.ProducerAck,
    20: c.MessagePull,
    21: c.MessageDispatch,
    22: c.MessageAck,
    23: c.ActiveMQMessage,
    24: c.ActiveMQBytesMessage,
    25: c.ActiveMQMapMessage,
    26: c.ActiveMQObjectMessage,
    27: c.ActiveMQStreamMessage,
    28: c.ActiveMQTextMessage,
    29: c.ActiveMQBlobMessage,
    30: c.Response,
    31: c.ExceptionResponse,
    32: c.DataResponse,
    33: c.DataArrayResponse,
    34: c.IntegerResponse,
    100: c.ActiveMQQueue,
    101: c.ActiveMQTopic,
    102: c.ActiveMQTempQueue,
    103: c.ActiveMQTempTopic,
    110: i.MessageId,
    111: i.LocalTransactionId,
    112: i.XATransactionId,
    120: i.ConnectionId,
    121: i.SessionId,
    122: i.ConsumerId,
    123: i.ProducerId,
    124: i.BrokerId,
}

NUMBERS: Final = {data_type: number for number, data_type in CLASSES.items()}
FIELDS: Final[dict[type[DataType], tuple[Field, ...]]] = {
    one: fields_of(one) for one in CLASSES.values()
}
