"""The client in asyncio."""

from broker.client.aio.administration import QueueSettings, SharedQueueSettings
from broker.client.aio.client import AsyncClient
from broker.client.aio.connection import AsyncConnection
from broker.client.aio.consumer import AsyncConsumer
from broker.client.aio.everywhere import AsyncEverywhereConsumer
from broker.client.aio.producer import AsyncProducer
from broker.client.aio.received import AsyncReceived
from broker.client.aio.session import AsyncSession

__all__ = [
    "AsyncClient",
    "AsyncConnection",
    "AsyncConsumer",
    "AsyncEverywhereConsumer",
    "AsyncProducer",
    "AsyncReceived",
    "AsyncSession",
    "QueueSettings",
    "SharedQueueSettings",
]
