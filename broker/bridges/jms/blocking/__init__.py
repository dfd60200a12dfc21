"""JMS bridges in programs with threads, and providers whose calls block."""

from broker.bridges.jms.blocking.bridge import JMSBridge
from broker.bridges.jms.blocking.providers import (
    BlockingConnection,
    BlockingConnectionFactory,
    BlockingReceiver,
    BlockingSender,
    BlockingSession,
    BlockingTwoPhaseSession,
)

__all__ = [
    "BlockingConnection",
    "BlockingConnectionFactory",
    "BlockingReceiver",
    "BlockingSender",
    "BlockingSession",
    "BlockingTwoPhaseSession",
    "JMSBridge",
]
