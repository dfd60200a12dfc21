"""The commands of OpenWire and what they hold, as Classic's clients send and take them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from broker.protocols.openwire.fields import DataType, Kind, field
from broker.protocols.openwire.identifiers import (
    BrokerId,
    ConnectionId,
    ConsumerId,
    MessageId,
    ProducerId,
    SessionId,
    TransactionId,
)

__all__ = [
    "ActiveMQBlobMessage",
    "ActiveMQBytesMessage",
    "ActiveMQDestination",
    "ActiveMQMapMessage",
    "ActiveMQMessage",
    "ActiveMQObjectMessage",
    "ActiveMQQueue",
    "ActiveMQStreamMessage",
    "ActiveMQTempQueue",
    "ActiveMQTempTopic",
    "ActiveMQTextMessage",
    "ActiveMQTopic",
    "BrokerInfo",
    "Command",
    "ConnectionControl",
    "ConnectionError",
    "ConnectionInfo",
    "ConsumerControl",
    "ConsumerInfo",
    "ControlCommand",
    "DataArrayResponse",
    "DataResponse",
    "DestinationInfo",
    "ExceptionResponse",
    "FlushCommand",
    "IntegerResponse",
    "KeepAliveInfo",
    "MessageAck",
    "MessageDispatch",
    "MessagePull",
    "ProducerAck",
    "ProducerInfo",
    "RemoveInfo",
    "RemoveSubscriptionInfo",
    "Response",
    "SessionInfo",
    "ShutdownInfo",
    "Throwable",
    "TransactionInfo",
]


@dataclass(slots=True)
class Throwable(DataType):
    """An exception: what it says of itself, as text. It is never made one.

    Attributes:
        class_name: of the peer's language.
        message: for people; None is none.
    """

    class_name: str | None = None
    message: str | None = None


# --- destinations -----------------------------------------------------------------------------


@dataclass(slots=True, unsafe_hash=True)
class ActiveMQQueue(DataType):
    """A queue."""

    physical_name: str | None = field(Kind.STRING)


@dataclass(slots=True, unsafe_hash=True)
class ActiveMQTopic(DataType):
    """A topic."""

    physical_name: str | None = field(Kind.STRING)


@dataclass(slots=True, unsafe_hash=True)
class ActiveMQTempQueue(DataType):
    """A queue that ends with its connection."""

    physical_name: str | None = field(Kind.STRING)


@dataclass(slots=True, unsafe_hash=True)
class ActiveMQTempTopic(DataType):
    """A topic that ends with its connection."""

    physical_name: str | None = field(Kind.STRING)


ActiveMQDestination: TypeAlias = (
    ActiveMQQueue | ActiveMQTopic | ActiveMQTempQueue | ActiveMQTempTopic
)


# --- commands ---------------------------------------------------------------------------------


@dataclass(slots=True)
class Command(DataType):
    """What all commands begin with."""

    command_id: int = field(Kind.INT)
    response_required: bool = field(Kind.BOOLEAN)


@dataclass(slots=True)
class BrokerInfo(Command):
    """Which broker it is."""

    broker_id: BrokerId | None = field(Kind.CACHED)
    broker_url: str | None = field(Kind.STRING)
    peer_broker_infos: list[BrokerInfo | None] | None = field(Kind.ARRAY)
    broker_name: str | None = field(Kind.STRING)
    slave_broker: bool = field(Kind.BOOLEAN)
    master_broker: bool = field(Kind.BOOLEAN)
    fault_tolerant_configuration: bool = field(Kind.BOOLEAN)
    duplex_connection: bool = field(Kind.BOOLEAN, since=2)
    network_connection: bool = field(Kind.BOOLEAN, since=2)
    connection_id: int = field(Kind.LONG, since=2)
    broker_upload_url: str | None = field(Kind.STRING, since=3)
    network_properties: str | None = field(Kind.STRING, since=3)


@dataclass(slots=True)
class ConnectionInfo(Command):
    """Who the client is."""

    connection_id: ConnectionId | None = field(Kind.CACHED)
    client_id: str | None = field(Kind.STRING)
    password: str | None = field(Kind.STRING)
    user_name: str | None = field(Kind.STRING)
    broker_path: list[BrokerId | None] | None = field(Kind.ARRAY)
    broker_master_connector: bool = field(Kind.BOOLEAN)
    manageable: bool = field(Kind.BOOLEAN)
    client_master: bool = field(Kind.BOOLEAN, since=2)
    fault_tolerant: bool = field(Kind.BOOLEAN, since=6)
    failover_reconnect: bool = field(Kind.BOOLEAN, since=6)
    client_ip: str | None = field(Kind.STRING, since=8)


@dataclass(slots=True)
class SessionInfo(Command):
    """A session begins."""

    session_id: SessionId | None = field(Kind.CACHED)


@dataclass(slots=True)
class ConsumerInfo(Command):
    """A consumer begins."""

    consumer_id: ConsumerId | None = field(Kind.CACHED)
    browser: bool = field(Kind.BOOLEAN)
    destination: ActiveMQDestination | None = field(Kind.CACHED)
    prefetch_size: int = field(Kind.INT)
    maximum_pending_message_limit: int = field(Kind.INT)
    dispatch_async: bool = field(Kind.BOOLEAN)
    selector: str | None = field(Kind.STRING)
    client_id: str | None = field(Kind.STRING, since=10)
    subscription_name: str | None = field(Kind.STRING)
    no_local: bool = field(Kind.BOOLEAN)
    exclusive: bool = field(Kind.BOOLEAN)
    retroactive: bool = field(Kind.BOOLEAN)
    priority: int = field(Kind.BYTE)
    broker_path: list[BrokerId | None] | None = field(Kind.ARRAY)
    additional_predicate: DataType | None = field(Kind.NESTED)
    network_subscription: bool = field(Kind.BOOLEAN)
    optimized_acknowledge: bool = field(Kind.BOOLEAN)
    no_range_acks: bool = field(Kind.BOOLEAN)
    network_consumer_path: list[ConsumerId | None] | None = field(Kind.ARRAY, since=4)


@dataclass(slots=True)
class ProducerInfo(Command):
    """A producer begins."""

    producer_id: ProducerId | None = field(Kind.CACHED)
    destination: ActiveMQDestination | None = field(Kind.CACHED)
    broker_path: list[BrokerId | None] | None = field(Kind.ARRAY)
    dispatch_async: bool = field(Kind.BOOLEAN, since=2)
    window_size: int = field(Kind.INT, since=3)


@dataclass(slots=True)
class TransactionInfo(Command):
    """A transaction begins, ends, or is asked for."""

    connection_id: ConnectionId | None = field(Kind.CACHED)
    transaction_id: TransactionId | None = field(Kind.CACHED)
    type: int = field(Kind.BYTE)


@dataclass(slots=True)
class DestinationInfo(Command):
    """A destination is made or removed."""

    connection_id: ConnectionId | None = field(Kind.CACHED)
    destination: ActiveMQDestination | None = field(Kind.CACHED)
    operation_type: int = field(Kind.BYTE)
    timeout: int = field(Kind.LONG)
    broker_path: list[BrokerId | None] | None = field(Kind.ARRAY)


@dataclass(slots=True)
class RemoveSubscriptionInfo(Command):
    """A durable subscription ends for good."""

    connection_id: ConnectionId | None = field(Kind.CACHED)
    subscription_name: str | None = field(Kind.STRING)
    client_id: str | None = field(Kind.STRING)


@dataclass(slots=True)
class KeepAliveInfo(Command):
    """Nothing else was sent for a while."""


@dataclass(slots=True)
class ShutdownInfo(Command):
    """The connection ends."""


@dataclass(slots=True)
class RemoveInfo(Command):
    """A connection, session, consumer or producer ends."""

    object_id: ConnectionId | SessionId | ConsumerId | ProducerId | None = field(Kind.CACHED)
    last_delivered_sequence_id: int = field(Kind.LONG, since=5)


@dataclass(slots=True)
class ControlCommand(Command):
    """A command of an operator; refused."""

    command: str | None = field(Kind.STRING)


@dataclass(slots=True)
class FlushCommand(Command):
    """Between brokers; refused."""


@dataclass(slots=True)
class ConnectionError(Command):
    """What went wrong with a command that wants no answer."""

    exception: Throwable | None = field(Kind.THROWABLE)
    connection_id: ConnectionId | None = field(Kind.NESTED)


@dataclass(slots=True)
class ConsumerControl(Command):
    """A consumer's window changes, or it is closed."""

    destination: ActiveMQDestination | None = field(Kind.NESTED, since=6)
    close: bool = field(Kind.BOOLEAN)
    consumer_id: ConsumerId | None = field(Kind.NESTED)
    prefetch: int = field(Kind.INT)
    flush: bool = field(Kind.BOOLEAN, since=2)
    start: bool = field(Kind.BOOLEAN, since=2)
    stop: bool = field(Kind.BOOLEAN, since=2)


@dataclass(slots=True)
class ConnectionControl(Command):
    """Where the client may go, and whether it has to."""

    close: bool = field(Kind.BOOLEAN)
    exit: bool = field(Kind.BOOLEAN)
    fault_tolerant: bool = field(Kind.BOOLEAN)
    resume: bool = field(Kind.BOOLEAN)
    suspend: bool = field(Kind.BOOLEAN)
    connected_brokers: str | None = field(Kind.STRING, since=6)
    reconnect_to: str | None = field(Kind.STRING, since=6)
    rebalance_connection: bool = field(Kind.BOOLEAN, since=6)
    token: bytes | None = field(Kind.BYTES, since=8)


@dataclass(slots=True)
class ProducerAck(Command):
    """A producer's window is larger again."""

    producer_id: ProducerId | None = field(Kind.NESTED)
    size: int = field(Kind.INT)


@dataclass(slots=True)
class MessagePull(Command):
    """A consumer without prefetch wants one message."""

    consumer_id: ConsumerId | None = field(Kind.CACHED)
    destination: ActiveMQDestination | None = field(Kind.CACHED)
    timeout: int = field(Kind.LONG)
    correlation_id: str | None = field(Kind.STRING, since=3)
    message_id: MessageId | None = field(Kind.NESTED, since=3)


@dataclass(slots=True)
class MessageAck(Command):
    """What a consumer has done with messages."""

    destination: ActiveMQDestination | None = field(Kind.CACHED)
    transaction_id: TransactionId | None = field(Kind.CACHED)
    consumer_id: ConsumerId | None = field(Kind.CACHED)
    ack_type: int = field(Kind.BYTE)
    first_message_id: MessageId | None = field(Kind.NESTED)
    last_message_id: MessageId | None = field(Kind.NESTED)
    message_count: int = field(Kind.INT)
    poison_cause: Throwable | None = field(Kind.THROWABLE, since=7)


@dataclass(slots=True)
class Response(Command):
    """The answer to a command."""

    correlation_id: int = field(Kind.INT)


@dataclass(slots=True)
class ExceptionResponse(Response):
    """A command is refused."""

    exception: Throwable | None = field(Kind.THROWABLE)


@dataclass(slots=True)
class DataResponse(Response):
    """An answer with an object."""

    data: DataType | None = field(Kind.NESTED)


@dataclass(slots=True)
class DataArrayResponse(Response):
    """An answer with objects."""

    data: list[DataType | None] | None = field(Kind.ARRAY)


@dataclass(slots=True)
class IntegerResponse(Response):
    """An answer with a number."""

    result: int = field(Kind.INT)


# --- messages ---------------------------------------------------------------------------------


@dataclass(slots=True)
class ActiveMQMessage(Command):
    """A message without a body, and what all messages have.

    Attributes:
        content: the body as its type has it; compressed where it says so.
        marshalled_properties: a primitive map.
    """

    producer_id: ProducerId | None = field(Kind.CACHED)
    destination: ActiveMQDestination | None = field(Kind.CACHED)
    transaction_id: TransactionId | None = field(Kind.CACHED)
    original_destination: ActiveMQDestination | None = field(Kind.CACHED)
    message_id: MessageId | None = field(Kind.NESTED)
    original_transaction_id: TransactionId | None = field(Kind.CACHED)
    group_id: str | None = field(Kind.STRING)
    group_sequence: int = field(Kind.INT)
    correlation_id: str | None = field(Kind.STRING)
    persistent: bool = field(Kind.BOOLEAN)
    expiration: int = field(Kind.LONG)
    priority: int = field(Kind.BYTE)
    reply_to: ActiveMQDestination | None = field(Kind.NESTED)
    timestamp: int = field(Kind.LONG)
    type: str | None = field(Kind.STRING)
    content: bytes | None = field(Kind.BYTES)
    marshalled_properties: bytes | None = field(Kind.BYTES)
    data_structure: DataType | None = field(Kind.NESTED)
    target_consumer_id: ConsumerId | None = field(Kind.CACHED)
    compressed: bool = field(Kind.BOOLEAN)
    redelivery_counter: int = field(Kind.INT)
    broker_path: list[BrokerId | None] | None = field(Kind.ARRAY)
    arrival: int = field(Kind.LONG)
    user_id: str | None = field(Kind.STRING)
    received_by_df_bridge: bool = field(Kind.BOOLEAN)
    droppable: bool = field(Kind.BOOLEAN, since=2)
    cluster: list[BrokerId | None] | None = field(Kind.ARRAY, since=3)
    broker_in_time: int = field(Kind.LONG, since=3)
    broker_out_time: int = field(Kind.LONG, since=3)
    jms_x_group_first_for_consumer: bool = field(Kind.BOOLEAN, since=10)


@dataclass(slots=True)
class ActiveMQBytesMessage(ActiveMQMessage):
    """Bytes."""


@dataclass(slots=True)
class ActiveMQMapMessage(ActiveMQMessage):
    """Values by name."""


@dataclass(slots=True)
class ActiveMQObjectMessage(ActiveMQMessage):
    """An object of the sender's language: bytes."""


@dataclass(slots=True)
class ActiveMQStreamMessage(ActiveMQMessage):
    """Values in order."""


@dataclass(slots=True)
class ActiveMQTextMessage(ActiveMQMessage):
    """A text."""


@dataclass(slots=True)
class ActiveMQBlobMessage(ActiveMQMessage):
    """Where the body can be fetched; refused."""

    remote_blob_url: str | None = field(Kind.STRING, since=3)
    mime_type: str | None = field(Kind.STRING, since=3)
    deleted_by_broker: bool = field(Kind.BOOLEAN, since=3)


@dataclass(slots=True)
class MessageDispatch(Command):
    """A message for a consumer; without one it is told that there is none."""

    consumer_id: ConsumerId | None = field(Kind.CACHED)
    destination: ActiveMQDestination | None = field(Kind.CACHED)
    message: ActiveMQMessage | None = field(Kind.NESTED)
    redelivery_counter: int = field(Kind.INT)
