r"""Topics and filters of MQTT, and the addresses that they are.

    a/b          a.b            $share/group/a/+    share group, filter a/+
    a/+/#        a.*.#          foo1.0/bar          foo1\.0.bar

A character that means something in addresses is escaped by a backslash there, and a backslash by
another one. An address that no client of MQTT made is escaped the other way round: the Core address
a/b is the topic a\/b (WildcardConfiguration.convert of Artemis).

An address may begin with a prefix of its acceptor, which says its routing type:

    anycast:a/b  anycast:a.b   the address a.b, ANYCAST
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from broker.model.address import ESCAPE, SEPARATOR, split_fqqn
from broker.protocols.mqtt.errors import MqttError
from broker.protocols.mqtt.reason_codes import ReasonCode
from broker.protocols.name_syntax import converted, syntax_of

if TYPE_CHECKING:
    from broker.model.address import WildcardConfiguration
    from broker.model.routing_type import RoutingType
    from broker.sessions.prefixes import Prefixes

__all__ = [
    "OWN_PREFIX",
    "Destination",
    "SharedFilter",
    "address_of",
    "check_filter",
    "check_topic",
    "destination_of",
    "split_shared",
    "topic_of",
]

OWN_PREFIX: Final = "$sys.mqtt."
"""Of names in which this protocol keeps what it has to: clients get nowhere near."""
_SHARE: Final = "$share/"
_MQTT: Final = "/+#"
_WILDCARDS: Final = "+#"
_NAMES_MAX: Final = 4096  # Asked for with each message, of few names.


class SharedFilter(NamedTuple):
    """A filter, and the name of the group that shares its messages; None without one."""

    share: str | None
    filter: str


class Destination(NamedTuple):
    """An address without a prefix, and the routing type that its prefix says; None without one."""

    address: str
    routing_type: RoutingType | None


def check_topic(topic: str) -> None:
    """See that a topic is one that messages can be sent to.

    Raises:
        MqttError: it is empty, or has wildcards.
    """
    if not topic:
        raise MqttError(ReasonCode.PROTOCOL_ERROR, "a topic that is empty")
    if "+" in topic or "#" in topic:
        raise MqttError(ReasonCode.TOPIC_NAME_INVALID, f"wildcards in the topic {topic[:80]!r}")


def split_shared(text: str) -> SharedFilter:
    """Give the group and the filter of what a client subscribes to.

    Raises:
        MqttError: it begins like a shared one, and is none.

    >>> split_shared("$share/g/a/+")
    SharedFilter(share='g', filter='a/+')
    """
    if not text.startswith(_SHARE):
        return SharedFilter(None, text)
    share, separator, rest = text.removeprefix(_SHARE).partition("/")
    if not share or not separator or not rest or any(one in share for one in _WILDCARDS):
        raise _invalid(text)
    return SharedFilter(share, rest)


def check_filter(text: str) -> None:
    """See that a filter, without its group, is valid.

    Raises:
        MqttError: a wildcard stands beside other characters, or # before the end; or it is empty,
            or names a queue.
    """
    levels = text.split("/")
    for position, level in enumerate(levels):
        is_wild = "+" in level or "#" in level
        is_last = position == len(levels) - 1
        if is_wild and (len(level) > 1 or (level == "#" and not is_last)):
            raise _invalid(text)
    if not text or SEPARATOR in text:
        raise _invalid(text)


def _invalid(text: str) -> MqttError:
    return MqttError(ReasonCode.TOPIC_FILTER_INVALID, f"the topic filter {text[:80]!r}")


@lru_cache(maxsize=_NAMES_MAX)
def address_of(topic: str, wildcards: WildcardConfiguration) -> str:
    r"""Give the address of a topic, or the pattern of a filter.

    >>> from broker.model.address import DEFAULT_WILDCARDS
    >>> address_of("foo1.0/bar/+", DEFAULT_WILDCARDS)
    'foo1\\.0.bar.*'
    """
    return converted(topic, _MQTT, syntax_of(wildcards), _MQTT)


def destination_of(
    topic: str, wildcards: WildcardConfiguration, prefixes: Prefixes, invalid: ReasonCode
) -> Destination:
    """Give where a topic or a filter leads.

    Args:
        topic: of a message, or a filter.
        wildcards: how addresses are written.
        prefixes: of the acceptor.
        invalid: the reason where there is nothing behind a prefix.

    Raises:
        MqttError: there is nothing behind its prefix.
    """
    address = address_of(topic, wildcards)
    if not prefixes:
        return Destination(address, None)
    plain, routing_type = prefixes.split(address)
    if not plain:
        raise MqttError(invalid, f"a prefix without an address: {topic[:80]!r}")
    return Destination(plain, routing_type)


@lru_cache(maxsize=_NAMES_MAX)
def topic_of(address: str, wildcards: WildcardConfiguration) -> str:
    r"""Give the topic of an address; a queue that it names is left out.

    >>> from broker.model.address import DEFAULT_WILDCARDS
    >>> topic_of("foo1\\.0.bar", DEFAULT_WILDCARDS), topic_of("a/b", DEFAULT_WILDCARDS)
    ('foo1.0/bar', 'a\\/b')
    """
    own = syntax_of(wildcards)
    # A doubled backslash says as well that a client of MQTT made it; Artemis doubles that again.
    return converted(split_fqqn(address)[0], own, _MQTT, own + ESCAPE)
