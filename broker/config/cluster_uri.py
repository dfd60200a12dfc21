"""A cluster connection as one URI.

    static:(tcp://host1:61616,tcp://host2:61616)?connectorName=own;maxHops=1
    multicast://DISCOVERY-GROUP?connectorName=own;messageLoadBalancingType=STRICT

Parameters are the properties of Artemis's ClusterConnectionConfiguration. One that there is not is
refused with the nearest name; Artemis passes over it without a word.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from broker.config.cluster_connections import (
    ATTEMPTS,
    BYTES,
    CALL_FAILOVER_TIMEOUT,
    FACTOR,
    GT_0,
    NAME,
    WINDOW,
    ClusterConnection,
    MessageLoadBalancing,
    StaticConnectors,
)
from broker.config.transport import parse_transport
from broker.config.xml_fields import check_names
from broker.settings.value_types import BOOLEAN, INT, TEXT, ValueType, at_least, choice
from journal.nearest import nearest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from broker.config.document import Element
    from broker.config.xml_fields import Context

__all__ = ["read_cluster_connection_uri"]

_DIRECT_ONLY: Final = "allowDirectConnectionsOnly"
_PARAMETERS: Final[Mapping[str, tuple[str, ValueType[Any]]]] = {
    "address": ("address", TEXT),
    "connectorName": ("connector_ref", NAME),
    "clientFailureCheckPeriod": ("check_period_ms", GT_0),
    "connectionTTL": ("connection_ttl_ms", GT_0),
    "minLargeMessageSize": ("min_large_message_size_bytes", BYTES),
    "callTimeout": ("call_timeout_ms", GT_0),
    "callFailoverTimeout": ("call_failover_timeout_ms", CALL_FAILOVER_TIMEOUT),
    "retryInterval": ("retry_interval_ms", GT_0),
    "retryIntervalMultiplier": ("retry_interval_multiplier", FACTOR),
    "maxRetryInterval": ("max_retry_interval_ms", GT_0),
    "initialConnectAttempts": ("initial_connect_attempts", ATTEMPTS),
    "reconnectAttempts": ("reconnect_attempts", ATTEMPTS),
    "duplicateDetection": ("use_duplicate_detection", BOOLEAN),
    "messageLoadBalancingType": ("message_load_balancing", choice(MessageLoadBalancing)),
    "maxHops": ("max_hops", at_least(INT, 0)),
    "confirmationWindowSize": ("confirmation_window_size_bytes", WINDOW),
    "producerWindowSize": ("producer_window_size_bytes", WINDOW),
    "clusterNotificationInterval": ("notification_interval_ms", GT_0),
    "clusterNotificationAttempts": ("notification_attempts", at_least(INT, 1)),
    "topologyScannerAttempts": ("topology_scanner_attempts", ATTEMPTS),
    "clientId": ("client_id", TEXT),
}


def read_cluster_connection_uri(element: Element, context: Context) -> ClusterConnection:
    """Read a `<cluster-connection-uri>`.

    Raises:
        ConfigError: it has no name or address, or the address is not such a URI.
    """
    check_names(element, (), ("name", "address"), context)
    for attribute in ("name", "address"):
        if not element.attributes.get(attribute):
            raise element.wrong(f"<cluster-connection-uri> needs the attribute {attribute}")
    name = element.attributes["name"]
    try:
        values = _parse(element.attributes["address"])
    except ValueError as error:
        raise element.wrong(f"cluster-connection-uri {name!r}: {error}") from None
    return ClusterConnection(name=name, where=f"{element.file}:{element.line}", **values)


def _parse(uri: str) -> dict[str, Any]:
    scheme, colon, rest = uri.strip().partition(":")
    if not colon or scheme not in ("static", "multicast"):
        raise ValueError(f"{uri!r} is neither static:(URI,URI)?NAME=VALUE nor multicast://GROUP")
    place, members, query = _split(rest.removeprefix("//"), uri)
    values = _values(query)
    is_direct = values.pop(_DIRECT_ONLY, False)
    if members:
        values["members"] = tuple(
            parse_transport(f"{index}", member) for index, member in enumerate(members)
        )
        values["static_connectors"] = StaticConnectors(allow_direct_connections_only=is_direct)
    elif scheme == "multicast" and place:
        values["discovery_group_ref"] = place
    else:
        raise ValueError(f"{uri!r} names no other broker")
    if "connector_ref" not in values:
        raise ValueError("it needs connectorName: how others reach this broker")
    return values


def _split(rest: str, uri: str) -> tuple[str, list[str], str]:
    """Give the name of a group, the URIs in brackets, and the query."""
    if not rest.startswith("("):
        place, _, query = rest.partition("?")
        return place, [], query
    inner, bracket, query = rest[1:].rpartition(")")
    if not bracket or (query and not query.startswith("?")):
        raise ValueError(f"{uri!r}: a list is written (URI,URI)?NAME=VALUE")
    return "", [one.strip() for one in inner.split(",") if one.strip()], query[1:]


def _values(query: str) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for item in filter(None, query.replace("&", ";").split(";")):
        name, equals, text = item.strip().partition("=")
        if not equals:
            raise ValueError(f"{item!r} is not NAME=VALUE")
        if name == _DIRECT_ONLY:
            values[name] = _parsed(BOOLEAN, name, text)
            continue
        if name not in _PARAMETERS:
            near = nearest(name, (*_PARAMETERS, _DIRECT_ONLY), "{}")
            raise ValueError(f"no parameter {name}{near}")
        field, kind = _PARAMETERS[name]
        values[field] = _parsed(kind, name, text)
    return values


def _parsed(kind: ValueType[Any], name: str, text: str) -> Any:  # noqa: ANN401 - of any kind.
    try:
        return kind.parse(unquote(text))
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None
