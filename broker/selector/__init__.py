"""Selectors of messages: the JMS grammar, over the properties and headers of Core messages."""

from __future__ import annotations

from broker.selector.filter import Filter, parse
from broker.selector.jms import translate_jms
from broker.selector.lexer import SelectorError
from broker.selector.values import SupportsProperties

__all__ = ["Filter", "SelectorError", "SupportsProperties", "parse", "translate_jms"]
