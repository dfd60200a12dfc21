"""Acceptors and connectors as operators are shown them: a name, a class of Artemis, parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from broker.config.transport import TransportConfig
    from broker.transport.acceptor import Acceptor

__all__ = [
    "ACCEPTOR_CLASS",
    "CONNECTOR_CLASS",
    "acceptor_parameters",
    "connector_parameters",
    "transport_row",
]

# What `tcp` stands for in Artemis; nothing of that name is loaded here.
_NETTY: Final = "org.apache.activemq.artemis.core.remoting.impl.netty"
ACCEPTOR_CLASS: Final = f"{_NETTY}.NettyAcceptorFactory"
CONNECTOR_CLASS: Final = f"{_NETTY}.NettyConnectorFactory"
# Parameters that a protocol takes and not the transport: Artemis has them apart.
_EXTRA: Final = ("amqp", "mqtt", "stomp", "openwire", "supportAdvisory", "suppressInternal")


def _hidden(parameters: dict[str, str]) -> dict[str, str]:
    return {
        name: "****" if "password" in name.lower() else value for name, value in parameters.items()
    }


def acceptor_parameters(
    acceptor: Acceptor, configured: TransportConfig | None = None
) -> dict[str, str]:
    """Give an acceptor's parameters as texts, passwords hidden; the port is the one it has.

    Args:
        acceptor: that listens, or could.
        configured: what a configuration says of it.
    """
    more = {} if configured is None else dict(configured.parameters)
    place = {"scheme": "tcp", "host": acceptor.options.host, "port": str(acceptor.port)}
    return _hidden({**more, **place})


def connector_parameters(connector: TransportConfig) -> dict[str, str]:
    """Give a connector's parameters as texts, passwords hidden."""
    place = {"host": connector.host, "port": str(connector.port)}
    return _hidden({**connector.parameters, **place})


def transport_row(name: str, class_name: str, parameters: dict[str, str]) -> dict[str, object]:
    """Give one acceptor or connector as the lists in JSON have it."""
    extra = {key: value for key, value in parameters.items() if key.startswith(_EXTRA)}
    return {
        "name": name,
        "factoryClassName": class_name,
        "params": {key: value for key, value in parameters.items() if key not in extra},
        "extraProps": extra,
    }
