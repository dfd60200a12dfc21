"""JMS names in selectors, as the broker's filters call them.

A name is replaced as a whole identifier outside of quotes only, a quoted value only as a whole. The
table is Artemis's (SelectorTranslator).
"""

from __future__ import annotations

import re
from typing import Final

_NAMES: Final = {
    "JMSDeliveryMode": "AMQDurable",
    "JMSPriority": "AMQPriority",
    "JMSTimestamp": "AMQTimestamp",
    "JMSMessageID": "AMQUserID",
    "JMSExpiration": "AMQExpiration",
    "JMSXGroupID": "AMQGroupID",
}
_VALUES: Final = {"'PERSISTENT'": "'DURABLE'", "'NON_PERSISTENT'": "'NON_DURABLE'"}
# A quoted text, in which '' is one quote; or a whole identifier, by Java's rules.
_TOKEN: Final = re.compile(r"'(?:[^']|'')*'|[^\W\d][\w$]*|\$[\w$]*")


def translate_selector(selector: str) -> str:
    """Give the broker's filter for a JMS selector.

    >>> translate_selector("JMSPriority > 4 AND note = 'JMSPriority'")
    "AMQPriority > 4 AND note = 'JMSPriority'"
    >>> translate_selector("JMSDeliveryMode = 'PERSISTENT' OR myJMSPriority = 1")
    "AMQDurable = 'DURABLE' OR myJMSPriority = 1"
    """
    return _TOKEN.sub(lambda found: _translate(found.group()), selector)


def _translate(token: str) -> str:
    return _VALUES.get(token) or _NAMES.get(token) or token
