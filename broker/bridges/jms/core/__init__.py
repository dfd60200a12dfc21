"""Source and target of a JMS bridge by the Core protocol: our broker, or Apache Artemis."""

from broker.bridges.jms.core.factory import CoreConnectionFactory
from broker.bridges.jms.core.in_process import InProcessBroker

__all__ = ["CoreConnectionFactory", "InProcessBroker"]
