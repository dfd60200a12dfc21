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
    "amqpCredits": AcceptorParameter(
        at_least(INT, 1), 1000, "Messages that a sender may have on their way."
    ),
    "amqpLowCredits": AcceptorParameter(
        at_least(INT, 0), 300, "Credits left at which a sender gets more."
    ),
    "amqpMinLargeMessageSize": AcceptorParameter(
        INT,
        102400,
        "Bytes from which a message is large, kept in a place of its own; -1 none is.",
    ),
    "amqpDuplicateDetection": AcceptorParameter(
        BOOLEAN, True, "Whether the application property `_AMQ_DUPL_ID` is a duplicate id."
    ),
    "amqpIdleTimeout": AcceptorParameter(
        INT,
        None,
        "Milliseconds of silence that end a connection; 0 or less none. Without: "
        "connection-ttl-override, else a minute.",
    ),
    "amqpTreatRejectAsUnmodifiedDeliveryFailed": AcceptorParameter(
        BOOLEAN,
        False,
        "Whether a rejected message goes back to its queue as a failed delivery; else to the dead "
        "letter address.",
    ),
    "amqpUseModifiedForTransientDeliveryErrors": AcceptorParameter(
        BOOLEAN,
        False,
        "Whether a full address answers modified, if the source has that outcome; else rejected.",
    ),
    "amqpDrainOnTransientDeliveryErrors": AcceptorParameter(
        BOOLEAN, True, "Whether a full address that refuses takes the sender's credit back."
    ),
    "amqpLinkQuiesceTimeout": AcceptorParameter(
        at_least(INT, 0),
        600_000,
        "Milliseconds for a sender to give its credit back, then its link is detached; 0 without "
        "limit.",
    ),
    "maxFrameSize": AcceptorParameter(
        at_least(INT, 512), 131072, "Bytes of the largest frame that a client may send."
    ),
    "initialRemoteMaxFrameSize": AcceptorParameter(
        at_least(INT, 512), 4096, "Without effect: frames are as large as the client's open says."
    ),
    "saslMechanisms": AcceptorParameter(
        _MECHANISMS, MECHANISMS, "Offered in this order. Without: PLAIN,ANONYMOUS."
    ),
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
