"""How the broker finds the Core protocol: the entry point CORE."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.protocols.core.frames import MAGIC
from broker.protocols.registry import PREFIXES, AcceptorParameter, Detection
from broker.settings.value_types import TEXT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from broker.protocols.peer import Sessions
    from broker.protocols.registry import ProtocolManager

__all__ = ["CORE", "CoreProtocolFactory"]


class CoreProtocolFactory:
    """A `ProtocolManagerFactory`."""

    name = "CORE"
    detection_size = preamble_size = len(MAGIC)
    parameters: Mapping[str, AcceptorParameter] = {
        **PREFIXES,
        "clusterConnection": AcceptorParameter(
            TEXT, "", "Cluster connection whose topology clients are told; without, the first."
        ),
    }

    def detect(self, first: bytes) -> Detection:
        """Whether a connection begins as Core's clients do."""
        if first.startswith(MAGIC):
            return Detection.YES
        return Detection.MORE if MAGIC.startswith(first) else Detection.NO

    def manager(self, sessions: Sessions) -> ProtocolManager:
        """Give what speaks Core for a broker."""
        # A configuration is read without all of the protocol.
        from broker.protocols.core.handler import CoreProtocol

        return CoreProtocol(sessions)


CORE = CoreProtocolFactory()
