"""How the broker finds STOMP: the entry point STOMP, its first bytes, its acceptors' parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker.protocols.registry import PREFIXES, AcceptorParameter, Detection, WebSocketUse
from broker.protocols.stomp.parameters import PARAMETERS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from broker.protocols.peer import Sessions
    from broker.protocols.registry import ProtocolManager

__all__ = ["STOMP", "StompProtocolFactory"]

_FIRST: Final = (b"CONNECT", b"STOMP")


class StompProtocolFactory:
    """A `ProtocolManagerFactory`."""

    name = "STOMP"
    detection_size = max(map(len, _FIRST))
    # The handler is given all bytes.
    preamble_size = 0
    parameters: Mapping[str, AcceptorParameter] = {**PARAMETERS, **PREFIXES}
    web_socket = WebSocketUse(("v10.stomp", "v11.stomp", "v12.stomp"), takes_text=True)

    def detect(self, first: bytes) -> Detection:
        """Whether a connection begins with one of the two commands that may come first."""
        if first.startswith(_FIRST):
            return Detection.YES
        if any(command.startswith(first) for command in _FIRST):
            return Detection.MORE
        return Detection.NO

    def manager(self, sessions: Sessions) -> ProtocolManager:
        """Give what speaks STOMP for a broker."""
        # A configuration is read without all of the protocol.
        from broker.protocols.stomp.handler import StompProtocol

        return StompProtocol(sessions)


STOMP = StompProtocolFactory()
