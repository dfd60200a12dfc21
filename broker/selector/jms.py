"""Selectors of JMS clients: the same language with other names for the headers."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["translate_jms"]

# SelectorTranslator of Artemis, which the client applies before it sends a selector.
_NAMES: Final = {
    "JMSDeliveryMode": "AMQDurable",
    "JMSPriority": "AMQPriority",
    "JMSTimestamp": "AMQTimestamp",
    "JMSMessageID": "AMQUserID",
    "JMSExpiration": "AMQExpiration",
    "JMSXGroupID": "AMQGroupID",
    "'PERSISTENT'": "'DURABLE'",
    "'NON_PERSISTENT'": "'NON_DURABLE'",
}
# Whole quoted texts and whole names, so that no part of one is taken for a header.
_WORD: Final = re.compile(r"""'(?:''|[^'])*'|"(?:""|[^"])*"|[A-Za-z_$][A-Za-z0-9_$]*""")


def translate_jms(text: str) -> str:
    """A selector with the broker's names in place of those of JMS.

    >>> translate_jms("JMSPriority > 4 AND note <> 'JMSPriority'")
    "AMQPriority > 4 AND note <> 'JMSPriority'"
    """
    return _WORD.sub(lambda match: _NAMES.get(match[0], match[0]), text)
