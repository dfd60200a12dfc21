"""Addresses, queues, diverts, limits and settings as a configuration names them."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

from broker.config.xml_fields import (
    Context,
    attribute,
    check_names,
    child_attribute,
    custom,
    element,
    grouped,
    line,
    optional,
    optional_attribute,
    read,
)
from broker.model.address import WildcardConfiguration
from broker.model.routing_type import RoutingType
from broker.settings.settings import SETTINGS, AddressSettings
from broker.settings.value_types import BOOLEAN, INT, LONG, TEXT, choice, minus_one_or_more_than

if TYPE_CHECKING:
    from broker.config.document import Element

log = logging.getLogger("broker.config")

__all__ = [
    "AddressConfig",
    "AddressingConfig",
    "ComponentRoutingType",
    "DivertConfig",
    "QueueConfig",
    "ResourceLimits",
    "Transformer",
    "transformer",
]

_CHARACTER: Final = TEXT.within(lambda text: len(text) == 1, "one character")
_CONSUMERS: Final = minus_one_or_more_than(INT, -1)
_NAME: Final = TEXT.within(bool, "not empty")


class ComponentRoutingType(Enum):
    """What a divert or bridge does to the routing type of a message."""

    STRIP = "STRIP"
    PASS = "PASS"
    ANYCAST = "ANYCAST"
    MULTICAST = "MULTICAST"


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueConfig:
    """A queue; None is what the address settings say.

    `address` and `routing_type` are given by the address that it stands in.
    """

    name: str = attribute("name", _NAME)
    """Of the queue."""
    address: str = element("address", TEXT, "")
    """Of the queue; only below `queues`, the older form."""
    routing_type: RoutingType = RoutingType.MULTICAST
    filter: str | None = child_attribute("filter", "string")
    """Selector: only messages that it matches come into the queue."""
    durable: bool = element("durable", BOOLEAN, True)
    """Whether the queue and its durable messages survive a restart."""
    user: str | None = optional("user", TEXT)
    """Who is taken for its creator."""
    max_consumers: int | None = optional_attribute("max-consumers", _CONSUMERS)
    """Most consumers; -1 without limit."""
    purge_on_no_consumers: bool | None = optional_attribute("purge-on-no-consumers", BOOLEAN)
    """Whether it drops its messages when its last consumer leaves."""
    exclusive: bool | None = optional_attribute("exclusive", BOOLEAN)
    """Whether one consumer at a time gets all messages."""
    group_rebalance: bool | None = optional_attribute("group-rebalance", BOOLEAN)
    """Whether groups are assigned anew when a consumer is added."""
    group_rebalance_pause_dispatch: bool | None = optional_attribute(
        "group-rebalance-pause-dispatch", BOOLEAN
    )
    """Whether delivery pauses until the old consumers have acknowledged."""
    group_buckets: int | None = optional_attribute("group-buckets", INT)
    """Buckets that groups are hashed into; -1 remembers each group."""
    group_first_key: str | None = optional_attribute("group-first-key", TEXT)
    """Property that is set in the first message of a group for its consumer."""
    last_value: bool | None = optional_attribute("last-value", BOOLEAN)
    """Whether it keeps only the newest message of each key."""
    last_value_key: str | None = optional_attribute("last-value-key", TEXT)
    """Property of messages that is the key."""
    non_destructive: bool | None = optional_attribute("non-destructive", BOOLEAN)
    """Whether consuming leaves messages in it."""
    consumers_before_dispatch: int | None = optional_attribute("consumers-before-dispatch", INT)
    """Consumers that it waits for before it delivers."""
    delay_before_dispatch_ms: int | None = optional_attribute("delay-before-dispatch", LONG)
    """How long it waits for them at most; -1 without limit."""
    enabled: bool | None = optional_attribute("enabled", BOOLEAN)
    """Whether messages are routed to it."""
    ring_size: int | None = optional_attribute("ring-size", LONG)
    """Most messages: a new one drops the oldest. -1 without limit."""
    where: str = line()


@dataclass(frozen=True, slots=True, kw_only=True)
class AddressConfig:
    """An address with its routing types and queues."""

    name: str
    routing_types: frozenset[RoutingType]
    queues: tuple[QueueConfig, ...]
    where: str


def _address(parent: Element, context: Context) -> AddressConfig:
    check_names(parent, ("anycast", "multicast"), ("name",), context)
    name = parent.attributes.get("name", "")
    if not name:
        raise parent.wrong("<address> needs a name")
    types = []
    queues: list[QueueConfig] = []
    for child in parent.children:
        if child.name not in ("anycast", "multicast"):
            continue
        check_names(child, ("queue",), (), context)
        routing_type = RoutingType[child.name.upper()]
        types.append(routing_type)
        for one in child.children:
            queue = read(QueueConfig, one, context)
            queues.append(replace(queue, address=name, routing_type=routing_type))
    if not types:
        raise parent.wrong(f"address {name!r} has no routing type: <anycast/> or <multicast/>")
    return AddressConfig(
        name=name,
        routing_types=frozenset(types),
        queues=tuple(queues),
        where=f"{parent.file}:{parent.line}",
    )


def _addresses(parent: Element, context: Context) -> tuple[AddressConfig, ...]:
    """What stands in <addresses>.

    An address that stands there twice has the queues of both. It has the routing types of the last
    one and of these queues. Artemis does the same: it deploys one after the other, and takes away a
    routing type only if no queue has it.
    """
    check_names(parent, ("address",), (), context)
    found: dict[str, AddressConfig] = {}
    for child in parent.children:
        if child.name != "address":
            continue
        address = _address(child, context)
        if (before := found.get(address.name)) is not None:
            changed = {queue.name for queue in address.queues}
            kept = {one.routing_type for one in before.queues if one.name not in changed}
            address = replace(
                before,
                routing_types=address.routing_types | kept,
                queues=before.queues + address.queues,
            )
        found[address.name] = address
    return tuple(found.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Transformer:
    """What changes messages on the way of a divert or bridge."""

    class_name: str
    properties: tuple[tuple[str, str], ...] = ()


def transformer(parent: Element, context: Context) -> Transformer:
    """What stands in <transformer>."""
    check_names(parent, ("class-name", "property"), (), context)
    names = [child.text for child in parent.children if child.name == "class-name"]
    if len(names) != 1:
        raise parent.wrong("<transformer> needs one <class-name>")
    properties = []
    for child in parent.children:
        if child.name == "property":
            check_names(child, (), ("key", "value"), context)
            properties.append((child.attributes.get("key", ""), child.attributes.get("value", "")))
    return Transformer(class_name=names[0], properties=tuple(properties))


@dataclass(frozen=True, slots=True, kw_only=True)
class DivertConfig:
    """What is sent to an address goes to another one, too or instead."""

    name: str = attribute("name", _NAME)
    """Of the divert."""
    address: str = element("address", _NAME)
    """Where messages come to."""
    # Several are separated by commas.
    forwarding_address: str = element("forwarding-address", _NAME)
    """Where they go; several are separated by commas."""
    routing_name: str | None = optional("routing-name", TEXT)
    """Name of the binding; without, a generated one."""
    exclusive: bool = element("exclusive", BOOLEAN, False)
    """Whether they go there only, or there too."""
    filter: str | None = child_attribute("filter", "string")
    """Selector: only messages that it matches are diverted."""
    transformer: Transformer | None = custom("transformer", transformer, None)
    """What changes messages on their way."""
    transformer_class_name: str | None = optional("transformer-class-name", TEXT)
    """Older form of `transformer`."""
    routing_type: ComponentRoutingType = element(
        "routing-type", choice(ComponentRoutingType), ComponentRoutingType.STRIP
    )
    """Routing type that they get: PASS keeps theirs, STRIP removes it."""
    where: str = line()


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceLimits:
    """What one user may have; -1 is no limit."""

    match: str = attribute("match", _NAME)
    """Name of the user."""
    # The schema calls it sessions, Artemis's parser looks for connections.
    max_sessions: int = element("max-sessions", INT, -1, "max-connections")
    """Most connections of that user; -1 without limit."""
    max_queues: int = element("max-queues", INT, -1)
    """Most queues that the user may have made; -1 without limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wildcards:
    routing_enabled: bool = element("routing-enabled", BOOLEAN, True, "enabled")
    """Whether messages to an address also go to queues of wildcard addresses."""
    delimiter: str = element("delimiter", _CHARACTER, ".")
    """Character between the words of an address."""
    any_words: str = element("any-words", _CHARACTER, "#")
    """Character that stands for any number of words."""
    single_word: str = element("single-word", _CHARACTER, "*")
    """Character that stands for one word."""


def _wildcards(parent: Element, context: Context) -> WildcardConfiguration:
    found = read(_Wildcards, parent, context)
    try:
        return WildcardConfiguration(
            delimiter=found.delimiter,
            single_word=found.single_word,
            any_words=found.any_words,
            routing_enabled=found.routing_enabled,
        )
    except ValueError as error:
        raise parent.wrong(str(error)) from None


_SETTING_OF_ELEMENT: Final = {name: item for item in SETTINGS for name in item.elements}


def _settings(parent: Element, context: Context) -> tuple[tuple[str, AddressSettings], ...]:
    check_names(parent, ("address-setting",), (), context)
    found: dict[str, AddressSettings] = {}
    for child in parent.children:
        if child.name != "address-setting":
            continue
        match = child.attributes.get("match")
        if not match:
            raise child.wrong("<address-setting> needs a match")
        settings = _setting(child, context)
        if match in found:
            # As Artemis does; security settings are the other way round.
            wrong = child.wrong(f"address setting {match!r} stands twice; the first counts")
            log.warning("AMQ222301: %s", wrong)
            continue
        found[match] = settings
    return tuple(found.items())


def _setting(parent: Element, context: Context) -> AddressSettings:
    check_names(parent, _SETTING_OF_ELEMENT, ("match",), context)
    given: dict[str, Any] = {}
    for child in parent.children:
        item = _SETTING_OF_ELEMENT.get(child.name)
        if item is None:
            continue
        if item.attribute in given:
            raise child.wrong(f"<{child.name}> stands a second time")
        if not child.text and item.kind is not TEXT:
            raise child.wrong(f"<{child.name}> is empty; it is {item.kind.name}")
        try:
            given[item.attribute] = item.kind.parse(child.text)
        except ValueError as error:
            raise child.wrong(f"<{child.name}>: {error}") from None
    return AddressSettings(**given)


@dataclass(frozen=True, slots=True, kw_only=True)
class AddressingConfig:
    """Everything about addresses that is not a single value."""

    wildcards: WildcardConfiguration = custom(
        "wildcard-addresses", _wildcards, WildcardConfiguration()
    )
    """Characters of wildcard addresses."""
    addresses: tuple[AddressConfig, ...] = custom("addresses", _addresses, ())
    """Addresses and queues that are there from the start."""
    # Deprecated: queues outside of an address; <address> in them names it.
    queues: tuple[QueueConfig, ...] = grouped("queues", "queue", QueueConfig)
    """Older form: queues outside of an address."""
    diverts: tuple[DivertConfig, ...] = grouped("diverts", "divert", DivertConfig)
    """Send what comes to one address to another one, too or instead."""
    address_settings: tuple[tuple[str, AddressSettings], ...] = custom(
        "address-settings", _settings, ()
    )
    """How addresses behave, by match; several matches of an address are merged, the closest first.
    """
    # Of two of one user the last one counts.
    resource_limits: tuple[ResourceLimits, ...] = grouped(
        "resource-limit-settings", "resource-limit-setting", ResourceLimits
    )
    """What one user may have."""
