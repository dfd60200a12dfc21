"""What an acceptor's URI says of AMQP, by Artemis's names (ProtonProtocolManager)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from broker.protocols.registry import AcceptorParameter
from broker.settings.value_types import BOOLEAN, INT, TEXTS, at_least

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["MECHANISMS", "PARAMETERS", "silence_ms"]

TTL_MS_DEFAULT: Final = 60_000  # As of Core.

MECHANISMS: Final = ("PLAIN", "ANONYMOUS")
"""Of SASL, in the order in which they are offered."""

_KNOWN: Final = (*MECHANISMS, "EXTERNAL")
_MECHANISMS: Final = TEXTS.within(
    lambda names: set(names) <= set(_KNOWN), f"a list of {', '.join(_KNOWN)}"
)
PARAMETERS: Final[Mapping[str, AcceptorParameter]] = {
    # Messages that a sender may have on their way, and how few are left when it gets more.
    "amqpCredits": AcceptorParameter(at_least(INT, 1), 1000),
    "amqpLowCredits": AcceptorParameter(at_least(INT, 0), 300),
    # Bytes of a message from which it is stored outside of the journal; 0 and less: never.
    "amqpMinLargeMessageSize": AcceptorParameter(INT, 102400),
    "amqpDuplicateDetection": AcceptorParameter(BOOLEAN, True),
    # ms of silence that end a connection; None takes connection-ttl-override, else a minute; 0 and
    # less: none does.
    "amqpIdleTimeout": AcceptorParameter(INT, None),
    "amqpTreatRejectAsUnmodifiedDeliveryFailed": AcceptorParameter(BOOLEAN, False),
    "amqpUseModifiedForTransientDeliveryErrors": AcceptorParameter(BOOLEAN, False),
    # What a full address does to a sender that has credit left, and for how many ms.
    "amqpDrainOnTransientDeliveryErrors": AcceptorParameter(BOOLEAN, True),
    "amqpLinkQuiesceTimeout": AcceptorParameter(at_least(INT, 0), 600_000),
    # Bytes; the least is that of the standard.
    "maxFrameSize": AcceptorParameter(at_least(INT, 512), 131072),
    "initialRemoteMaxFrameSize": AcceptorParameter(at_least(INT, 512), 4096),
    "saslMechanisms": AcceptorParameter(_MECHANISMS, MECHANISMS),
}


def silence_ms(values: Mapping[str, Any], override_ms: int) -> int:
    """Give the ms of silence that end a connection; 0 for none.

    Args:
        values: of the parameters.
        override_ms: connection-ttl-override; -1 for none.
    """
    wanted: int | None = values["amqpIdleTimeout"]
    if wanted is None:
        wanted = override_ms if override_ms > 0 else TTL_MS_DEFAULT
    return max(0, wanted)
