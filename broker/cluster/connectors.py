"""Connectors of the configuration as others are told them: in broadcasts, in topologies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.config.transport import SECRETS, TransportConfig
from broker.model.transport_configuration import TransportConfiguration

if TYPE_CHECKING:
    from broker.model.transport_configuration import ParameterValue

__all__ = ["told_connector"]

_DEFAULT_HOST, _DEFAULT_PORT = "localhost", 61616


def told_connector(connector: TransportConfig) -> TransportConfiguration:
    """Give a connector as it goes over the network.

    All values are texts, as Artemis's are that come from a URI. Passwords are left out, which
    Artemis sends: clients have key stores of their own.
    """
    # The order in which Artemis sends these two; its meaning does not depend on it.
    parameters: dict[str, ParameterValue] = {
        "port": str(connector.port or _DEFAULT_PORT),
        "host": connector.host or _DEFAULT_HOST,
    }
    parameters.update(
        (name, value) for name, value in connector.parameters.items() if name not in SECRETS
    )
    return TransportConfiguration(connector.name, parameters=parameters)
