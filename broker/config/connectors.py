"""Connectors: which parameters they take.

They are told to clients and to other brokers; what a parameter does, they decide. One that Artemis
does not have is refused with the nearest name, as an acceptor's is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.config.transport import TransportConfig, transports
from broker.model.connector_parameters import CONNECTOR_PARAMETERS

if TYPE_CHECKING:
    from broker.config.document import Element
    from broker.config.xml_fields import Context

__all__ = ["connectors"]


def connectors(parent: Element, context: Context) -> tuple[TransportConfig, ...]:
    """What stands in <connectors>."""
    return transports(parent, context, CONNECTOR_PARAMETERS)
