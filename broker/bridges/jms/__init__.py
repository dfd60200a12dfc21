"""JMS bridges: messages moved between any two providers, with a quality of service."""

from broker.bridges.jms.blocking import JMSBridge
from broker.bridges.jms.core import CoreConnectionFactory
from broker.bridges.jms.errors import (
    BridgeConfigError,
    BridgeError,
    ConnectionLost,
    InDoubtError,
    ProviderError,
    ProviderTimeout,
    QualityOfServiceError,
    XaError,
)
from broker.bridges.jms.message import ID_LISTS, BodyKind, JMSMessage, first_id
from broker.bridges.jms.options import ExactlyOnce, JMSBridgeOptions, QualityOfService
from broker.bridges.jms.providers import (
    Capabilities,
    Credentials,
    Destination,
    DestinationKind,
    SessionKind,
    Subscription,
)
from broker.bridges.jms.state import BridgeState

__all__ = [
    "ID_LISTS",
    "BodyKind",
    "BridgeConfigError",
    "BridgeError",
    "BridgeState",
    "Capabilities",
    "ConnectionLost",
    "CoreConnectionFactory",
    "Credentials",
    "Destination",
    "DestinationKind",
    "ExactlyOnce",
    "InDoubtError",
    "JMSBridge",
    "JMSBridgeOptions",
    "JMSMessage",
    "ProviderError",
    "ProviderTimeout",
    "QualityOfService",
    "QualityOfServiceError",
    "SessionKind",
    "Subscription",
    "XaError",
    "first_id",
]
