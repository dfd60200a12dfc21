"""How the broker finds OpenWire: the entry point OPENWIRE, its first bytes, its parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker.protocols.openwire.parameters import PARAMETERS
from broker.protocols.registry import AcceptorParameter, Detection

if TYPE_CHECKING:
    from collections.abc import Mapping

    from broker.protocols.peer import Sessions
    from broker.protocols.registry import ProtocolManager

__all__ = ["OPENWIRE", "OpenWireProtocolFactory"]

# Behind four bytes of size: the type of a WireFormatInfo, and what it begins with.
_SIZE: Final = 4
_FIRST: Final = b"\1Act"


class OpenWireProtocolFactory:
    """A `ProtocolManagerFactory`."""

    name = "OPENWIRE"
    detection_size = _SIZE + len(_FIRST)
    # The handler is given all bytes.
    preamble_size = 0
    parameters: Mapping[str, AcceptorParameter] = PARAMETERS

    def detect(self, first: bytes) -> Detection:
        """Whether a connection begins with a WireFormatInfo."""
        # No frame of that kind has 64 KiB: other protocols begin with letters.
        if any(first[:2]):
            return Detection.NO
        rest = first[_SIZE:]
        if rest == _FIRST:
            return Detection.YES
        return Detection.MORE if _FIRST.startswith(rest) else Detection.NO

    def manager(self, sessions: Sessions) -> ProtocolManager:
        """Give what speaks OpenWire for a broker."""
        # A configuration is read without all of the protocol.
        from broker.protocols.openwire.protocol import OpenWireProtocol

        return OpenWireProtocol(sessions)


OPENWIRE = OpenWireProtocolFactory()
