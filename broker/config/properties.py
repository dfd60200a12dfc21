"""A configuration as broker properties: `name.name=value`, one a line, as Artemis names them.

The scalar elements, addresses with their queues, address settings, security settings, diverts,
acceptors, connectors and the kind of ha-policy. Clusters, bridges, federations and brokers' own
plugins are not written. Passwords and what unmasks them are hidden.
"""

from __future__ import annotations

import dataclasses
import re
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

from broker.config.ha import (
    Colocated,
    PrimaryOnly,
    ReplicationBackup,
    ReplicationPrimary,
    SharedStoreBackup,
    SharedStorePrimary,
)
from broker.security.permission import Permission
from broker.settings.settings import SETTINGS
from journal.options import JournalType

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker.config.load import BrokerConfig
    from broker.config.transport import TransportConfig

__all__ = ["REDACTED", "configuration_properties"]

REDACTED: Final = "**redacted**"
_SCALARS: Final = ("general", "limits", "security", "management", "watch", "persistence")
# Properties of Artemis's ConfigurationImpl that are not the element in camel case.
_IRREGULAR: Final = {
    "connection-ttl-check-interval": "connectionTtlCheckInterval",
    "connection-ttl-override": "connectionTTLOverride",
    "id-cache-size": "IDCacheSize",
    "jmx-domain": "JMXDomain",
    "jmx-management-enabled": "JMXManagementEnabled",
    "jmx-use-broker-name": "JMXUseBrokerName",
    "network-check-NIC": "networkCheckNIC",
    "network-check-URL-list": "networkCheckURLList",
    "page-max-concurrent-io": "pageMaxConcurrentIO",
    "persist-id-cache": "persistIDCache",
    "wild-card-routing-enabled": "wildcardRoutingEnabled",
}
# Of these it has one for each kind of journal.
_OF_A_JOURNAL: Final = {
    "journal-buffer-size": "journalBufferSize",
    "journal-buffer-timeout": "journalBufferTimeout",
    "journal-max-io": "journalMaxIO",
}
_POLICIES: Final = {
    PrimaryOnly: "PRIMARY_ONLY",
    SharedStorePrimary: "SHARED_STORE_PRIMARY",
    SharedStoreBackup: "SHARED_STORE_BACKUP",
    ReplicationPrimary: "REPLICATION_PRIMARY_QUORUM_VOTING",
    ReplicationBackup: "REPLICATION_BACKUP_QUORUM_VOTING",
    Colocated: "COLOCATED",
}
# Attributes of a queue's configuration, with the unit of theirs that Artemis leaves out.
_UNIT: Final = re.compile(r"_(ms|bytes|percent|ns|s)$")


def configuration_properties(config: BrokerConfig) -> list[str]:
    """Give the lines, in the order of their names.

    >>> from broker.config.load import BrokerConfig
    >>> [one for one in configuration_properties(BrokerConfig()) if "IDCache" in one]
    ['IDCacheSize=20000', 'persistIDCache=true']
    """
    found: dict[str, str] = {}
    for names, value in _all(config):
        if value is not None:
            name = ".".join(map(_quoted, names))
            is_secret = "PASSWORD" in name.upper()
            found[name] = REDACTED if is_secret else _text(value)
    return [f"{name}={found[name]}" for name in sorted(found, key=str.lower)]


def _all(config: BrokerConfig) -> Iterator[tuple[tuple[str, ...], object]]:
    yield from _scalars(config)
    yield from _transports("acceptorConfigurations", "Acceptor", config.cluster.acceptors)
    yield from _transports("connectorConfigurations", "Connector", config.cluster.connectors)
    yield from _addresses(config)
    for match, settings in config.addressing.address_settings:
        for item in SETTINGS:
            if item.attribute in settings.given:
                yield ("addressSettings", match, item.json_name), settings.given[item.attribute]
    for match, table in config.permissions.security_settings.permissions:
        for role in sorted(frozenset().union(*table.roles.values())):
            yield ("securityRoles", match, role, "name"), role
            for permission in Permission:
                is_allowed = table.allows(permission, frozenset({role}))
                yield ("securityRoles", match, role, permission.value), is_allowed
    for divert in config.addressing.diverts:
        yield from _fields(("divertConfigurations", divert.name), divert)
    policy = config.cluster.ha_policy
    if policy is not None:
        yield ("HAPolicyConfiguration",), _POLICIES[type(policy)]


def _scalars(config: BrokerConfig) -> Iterator[tuple[tuple[str, ...], object]]:
    suffix = "_AIO" if config.persistence.journal_type is JournalType.ASYNCIO else "_NIO"
    for group in _SCALARS:
        values = getattr(config, group)
        for field in dataclasses.fields(values):
            elements = getattr(field.metadata.get("xml"), "elements", ())
            value = getattr(values, field.name)
            if not elements or dataclasses.is_dataclass(value):
                continue
            name = elements[0]
            if name == "async-connection-execution-enabled":
                # Artemis has no property of it.
                continue
            if name in _OF_A_JOURNAL:
                yield (_OF_A_JOURNAL[name] + suffix,), value
            else:
                yield (_IRREGULAR.get(name) or _camel(name),), value


def _transports(
    name: str, kind: str, configured: tuple[TransportConfig, ...]
) -> Iterator[tuple[tuple[str, ...], object]]:
    for one in configured:
        yield (name, one.name, "name"), one.name
        factory = f"org.apache.activemq.artemis.core.remoting.impl.netty.Netty{kind}Factory"
        yield (name, one.name, "factoryClassName"), factory
        place = {"scheme": one.scheme, "host": one.host, "port": one.port}
        for key, value in {**one.parameters, **place}.items():
            yield (name, one.name, "params", key), value


def _addresses(config: BrokerConfig) -> Iterator[tuple[tuple[str, ...], object]]:
    for address in config.addressing.addresses:
        place = ("addressConfigurations", address.name)
        yield (*place, "name"), address.name
        yield (*place, "routingTypes"), ",".join(one.name for one in sorted(address.routing_types))
        for queue in address.queues:
            yield from _fields((*place, "queueConfigurations", queue.name), queue)


def _fields(place: tuple[str, ...], value: Any) -> Iterator[tuple[tuple[str, ...], object]]:  # noqa: ANN401 - a dataclass
    for field in dataclasses.fields(value):
        found = getattr(value, field.name)
        if field.name == "where" or dataclasses.is_dataclass(found):
            continue
        name = "filter_string" if field.name == "filter" else _UNIT.sub("", field.name)
        yield (*place, _camel(name.replace("_", "-"))), found


def _camel(name: str) -> str:
    """Give an element's name as a property's.

    >>> _camel("journal-min-files")
    'journalMinFiles'
    """
    first, *others = name.split("-")
    return first + "".join(one[:1].upper() + one[1:] for one in others)


def _quoted(name: str) -> str:
    """Give a name as part of a key; dots in it do not divide.

    >>> _quoted("a.b"), _quoted("a")
    ('"a.b"', 'a')
    """
    escaped = name.replace("=", "\\\\=").replace(":", "\\\\:")
    return f'"{escaped}"' if "." in name else escaped


def _text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, tuple | list | frozenset):
        return ",".join(map(_text, value))
    return str(value)
