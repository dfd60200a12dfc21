"""How the broker finds AMQP: the entry point AMQP, its first bytes, its acceptors' parameters."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from broker.protocols.amqp.parameters import PARAMETERS
from broker.protocols.registry import PREFIXES, AcceptorParameter, Detection, WebSocketUse

if TYPE_CHECKING:
    from collections.abc import Mapping

    from broker.protocols.peer import Sessions
    from broker.protocols.registry import ProtocolManager

__all__ = ["AMQP", "AmqpProtocolFactory"]

_FIRST: Final = b"AMQP"


class AmqpProtocolFactory:
    """A `ProtocolManagerFactory`."""

    name = "AMQP"
    detection_size = len(_FIRST)
    # The handler is given all bytes.
    preamble_size = 0
    parameters: Mapping[str, AcceptorParameter] = {**PARAMETERS, **PREFIXES}
    web_socket = WebSocketUse(("amqp",), takes_text=False)

    @property
    def unavailable(self) -> str | None:
        """Why it cannot be spoken, and what to do; None where it can."""
        if find_spec("proton") is not None:
            return None
        return "AMQP needs the package python-qpid-proton: pip install 'quiver-mq[amqp]'"

    def detect(self, first: bytes) -> Detection:
        """Whether a connection begins with a header of AMQP or its SASL layer."""
        if first.startswith(_FIRST):
            return Detection.YES
        return Detection.MORE if _FIRST.startswith(first) else Detection.NO

    def manager(self, sessions: Sessions) -> ProtocolManager:
        """Give what speaks AMQP for a broker."""
        # Without the engine a configuration is still read.
        from broker.protocols.amqp.protocol import AmqpProtocol

        return AmqpProtocol(sessions)


AMQP = AmqpProtocolFactory()
