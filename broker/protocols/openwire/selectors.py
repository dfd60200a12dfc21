"""Selectors of OpenWire in Core's words (OpenWireUtil, SelectorTranslator)."""

from __future__ import annotations

import re
from typing import Final

from broker.protocols.openwire.property_names import CLIENT_ID, MESSAGE_ID

__all__ = ["core_selector"]

_NAMES: Final = {
    "JMSDeliveryMode": "AMQDurable",
    "JMSPriority": "AMQPriority",
    "JMSTimestamp": "AMQTimestamp",
    "JMSExpiration": "AMQExpiration",
    "JMSMessageID": MESSAGE_ID,
    "JMSXGroupID": "AMQGroupID",
}
# A text in quotes stays as it is, and a name is one as a whole.
_TOKEN: Final = re.compile(r"'(?:[^']|'')*'|[A-Za-z_$][\w$]*")
_MODES: Final = {"'PERSISTENT'": "'DURABLE'", "'NON_PERSISTENT'": "'NON_DURABLE'"}


def core_selector(selector: str | None, not_of: str | None = None) -> str | None:
    """Give a selector as the broker reads it; None takes all.

    Args:
        selector: of the client.
        not_of: a client whose messages are left out.

    >>> core_selector("JMSPriority > 4 AND x = 'JMSPriority'", "me")
    "(AMQPriority > 4 AND x = 'JMSPriority') AND (__AMQ_CID <> 'me' OR __AMQ_CID IS NULL)"
    """
    text = selector
    if text is not None:
        if "JMS" in text:
            has_mode = "JMSDeliveryMode" in text

            def name(found: re.Match[str]) -> str:
                token = found[0]
                if token in _NAMES:
                    return _NAMES[token]
                return _MODES.get(token, token) if has_mode else token

            text = _TOKEN.sub(name, text)
        if not text.strip():
            text = None
    if not_of is None:
        return text
    own = not_of.replace("'", "''")
    others = f"({CLIENT_ID} <> '{own}' OR {CLIENT_ID} IS NULL)"
    return others if text is None else f"({text}) AND {others}"
