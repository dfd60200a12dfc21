"""The Python client: `Client` for threads, `AsyncClient` for asyncio, over one state machine."""

from broker.client.aio import (
    AsyncClient,
    AsyncConnection,
    AsyncConsumer,
    AsyncEverywhereConsumer,
    AsyncProducer,
    AsyncReceived,
    AsyncSession,
    QueueSettings,
    SharedQueueSettings,
)
from broker.client.balancing import (
    BalancingPolicy,
    FirstElement,
    Random,
    RandomSticky,
    RoundRobin,
)
from broker.client.blocking import Client, Connection, Consumer, Producer, Received, Session
from broker.client.content import MessageHeaders, make_message
from broker.client.errors import (
    AddressFull,
    AnswerTimeout,
    BrokerRefused,
    CallInterrupted,
    CallTimeout,
    ClientError,
    ClosedError,
    DuplicateId,
    NotConnected,
    QueueExists,
    QueueMissing,
    SecurityRefused,
    TransactionOutcomeUnknown,
    TransactionRolledBack,
    XaRefused,
)
from broker.client.options import ClientOptions, ClientSettings
from broker.client.session_state import AckMode
from broker.model.message import Message
from broker.model.routing_type import RoutingType
from broker.model.xid import Xid

__all__ = [
    "AckMode",
    "AddressFull",
    "AnswerTimeout",
    "AsyncClient",
    "AsyncConnection",
    "AsyncConsumer",
    "AsyncEverywhereConsumer",
    "AsyncProducer",
    "AsyncReceived",
    "AsyncSession",
    "BalancingPolicy",
    "BrokerRefused",
    "CallInterrupted",
    "CallTimeout",
    "Client",
    "ClientError",
    "ClientOptions",
    "ClientSettings",
    "ClosedError",
    "Connection",
    "Consumer",
    "DuplicateId",
    "FirstElement",
    "Message",
    "MessageHeaders",
    "NotConnected",
    "Producer",
    "QueueExists",
    "QueueMissing",
    "QueueSettings",
    "Random",
    "RandomSticky",
    "Received",
    "RoundRobin",
    "RoutingType",
    "SecurityRefused",
    "Session",
    "SharedQueueSettings",
    "TransactionOutcomeUnknown",
    "TransactionRolledBack",
    "XaRefused",
    "Xid",
    "make_message",
]
