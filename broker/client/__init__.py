"""The Python client: `Client` for threads, `AsyncClient` for asyncio, over one state machine."""

from broker.client.aio import (
    AsyncClient,
    AsyncConnection,
    AsyncConsumer,
    AsyncProducer,
    AsyncReceived,
    AsyncSession,
)
from broker.client.balancing import (
    BalancingPolicy,
    FirstElement,
    Random,
    RandomSticky,
    RoundRobin,
)
from broker.client.blocking import Client, Connection, Consumer, Producer, Received, Session
from broker.client.content import make_message
from broker.client.errors import ClientError
from broker.client.options import ClientOptions
from broker.client.session_state import AckMode

__all__ = [
    "AckMode",
    "AsyncClient",
    "AsyncConnection",
    "AsyncConsumer",
    "AsyncProducer",
    "AsyncReceived",
    "AsyncSession",
    "BalancingPolicy",
    "Client",
    "ClientError",
    "ClientOptions",
    "Connection",
    "Consumer",
    "FirstElement",
    "Producer",
    "Random",
    "RandomSticky",
    "Received",
    "RoundRobin",
    "Session",
    "make_message",
]
