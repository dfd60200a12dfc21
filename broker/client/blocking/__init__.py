"""The client for threads."""

from broker.client.blocking.client import Client, Connection
from broker.client.blocking.consumer import Consumer, Received
from broker.client.blocking.producer import Producer
from broker.client.blocking.session import Session

__all__ = ["Client", "Connection", "Consumer", "Producer", "Received", "Session"]
