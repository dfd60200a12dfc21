"""Broadcast groups and discovery groups: how a broker tells who it is, and hears who others are.

Defaults of ActiveMQDefaultConfiguration; milliseconds. An endpoint that is not UDP stands in
`<endpoint name="…"><property key="…" value="…"/></endpoint>`, which Artemis does not have; it has
the role of JGroups there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

from broker.config.xml_fields import (
    attribute,
    check_names,
    custom,
    element,
    line,
    optional,
    repeated,
)
from broker.discovery.endpoints import (
    JGROUPS_REFUSED,
    endpoint_named,
    installed_endpoints,
    read_endpoint_parameters,
)
from broker.discovery.udp import ANY_PORT, UdpEndpoint, check_group_address
from broker.errors import BrokerError
from broker.settings.value_types import INT, LONG, TEXT, at_least

if TYPE_CHECKING:
    from collections.abc import Mapping

    from broker.config.document import Element
    from broker.config.xml_fields import Context
    from broker.discovery.endpoints import Endpoint
    from broker.environment import Environment

__all__ = ["BroadcastGroup", "DiscoveryGroup", "EndpointConfig"]

_NAME: Final = TEXT.within(bool, "not empty")
_GT_0: Final = at_least(LONG, 1)
_PORT: Final = INT.within(lambda value: value == ANY_PORT or 0 < value < 65536, "-1, or 1 to 65535")


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointConfig:
    """What carries broadcasts in place of UDP.

    Attributes:
        name: of the entry point.
        properties: its parameters, as values.
        broadcasts: whether broadcast groups can use it.
    """

    name: str
    properties: Mapping[str, Any]
    broadcasts: bool

    def open_with(self, environment: Environment) -> Endpoint:
        """Make the endpoint; nothing is opened yet.

        Raises:
            ValueError: the values do not fit together.
            BrokerError: it is not installed any more.
        """
        return endpoint_named(self.name).endpoint(self.properties, environment)


def _endpoint(parent: Element, context: Context) -> EndpointConfig:
    check_names(parent, ("property",), ("name",), context)
    name = parent.attributes.get("name", "")
    texts: dict[str, str] = {}
    for child in parent.children:
        check_names(child, (), ("key", "value"), context)
        texts[child.attributes.get("key", "")] = child.attributes.get("value", "")
    try:
        factory = endpoint_named(name)
        values = read_endpoint_parameters(factory, texts)
    except ValueError as error:
        raise parent.wrong(f"<endpoint>: {error}") from None
    except BrokerError as error:
        raise parent.wrong(error.text) from None
    return EndpointConfig(name=name, properties=values, broadcasts=factory.broadcasts)


class _Group(Protocol):
    """What both kinds of groups have."""

    @property
    def local_bind_address(self) -> str | None:
        """Of the interface."""

    @property
    def local_bind_port(self) -> int:
        """That is bound there."""

    @property
    def group_address(self) -> str | None:
        """Of the multicast group."""

    @property
    def group_port(self) -> int:
        """Of the multicast group."""

    @property
    def jgroups_file(self) -> str | None:
        """Of Artemis."""

    @property
    def jgroups_channel(self) -> str | None:
        """Of Artemis."""

    @property
    def endpoint(self) -> EndpointConfig | None:
        """In place of UDP."""


def _check(group: _Group) -> None:
    """UDP, whole, or an endpoint.

    Raises:
        ValueError: JGroups, two of them, or half of one.
    """
    has_jgroups = group.jgroups_file is not None or group.jgroups_channel is not None
    has_address, has_port = group.group_address is not None, group.group_port != ANY_PORT
    if has_jgroups:
        if has_address or has_port:
            raise ValueError("it takes group-address and group-port, or jgroups-file: not both")
        raise ValueError(f"<jgroups-file>: {JGROUPS_REFUSED}; {_instead()}")
    if group.endpoint is not None:
        if has_address or has_port or group.local_bind_address is not None:
            raise ValueError("it takes group-address and group-port, or <endpoint>: not both")
        return
    if not (has_address and has_port):
        raise ValueError("it takes both group-address and group-port, or <endpoint>")
    assert group.group_address is not None
    check_group_address(group.group_address)
    if group.local_bind_port != ANY_PORT and group.local_bind_address is None:
        raise ValueError("local-bind-port goes with local-bind-address")


def _instead() -> str:
    try:
        installed = installed_endpoints()
    except BrokerError as error:
        raise ValueError(error.text) from None
    names = ", ".join(f'<endpoint name="{one}">' for one in installed)
    return f"take group-address and group-port for UDP, or one of {names}"


def _udp(group: _Group, environment: Environment) -> Endpoint:
    assert group.group_address is not None, "or an <endpoint>"
    return UdpEndpoint(
        environment=environment,
        group_address=group.group_address,
        group_port=group.group_port,
        local_bind_address=group.local_bind_address,
        local_bind_port=group.local_bind_port,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class BroadcastGroup:
    """Says who this node is."""

    name: str = attribute("name", _NAME)
    """Of the group."""
    local_bind_address: str | None = optional("local-bind-address", TEXT)
    """Address of the network interface to use."""
    local_bind_port: int = element("local-bind-port", _PORT, ANY_PORT)
    """Port to bind there; -1 any."""
    group_address: str | None = optional("group-address", TEXT)
    """Multicast address of UDP."""
    group_port: int = element("group-port", _PORT, ANY_PORT)
    """Its port."""
    broadcast_period_ms: int = element("broadcast-period", _GT_0, 2000)
    """How often it tells."""
    # Its own connector; behind it, that of its backup.
    connector_refs: tuple[str, ...] = repeated("connector-ref", _NAME)
    """Connector that it tells of: its own, then its backup's."""
    jgroups_file: str | None = optional("jgroups-file", TEXT)
    """Of JGroups, which is refused here: use UDP or `endpoint`."""
    jgroups_channel: str | None = optional("jgroups-channel", TEXT)
    """Of JGroups, likewise."""
    endpoint: EndpointConfig | None = custom("endpoint", _endpoint, None)
    """What is used in place of UDP: `dns`, `shared-folder` or one that is installed (ours)."""
    where: str = line()

    def __post_init__(self) -> None:
        """As `_check`.

        Raises:
            ValueError: also an endpoint that has no broadcasts.
        """
        _check(self)
        if self.endpoint is not None and not self.endpoint.broadcasts:
            raise ValueError(
                f"endpoint {self.endpoint.name} has no broadcasts: brokers are made known by other "
                "means; it is for discovery groups"
            )

    def open_with(self, environment: Environment) -> Endpoint:
        """Make what it sends by; nothing is opened yet."""
        if self.endpoint is not None:
            return self.endpoint.open_with(environment)
        return _udp(self, environment)


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscoveryGroup:
    """Hears who the others are."""

    name: str = attribute("name", _NAME)
    """Of the group."""
    local_bind_address: str | None = optional("local-bind-address", TEXT)
    """Address of the network interface to use."""
    local_bind_port: int = element("local-bind-port", _PORT, ANY_PORT)
    """Port to bind there; -1 any."""
    group_address: str | None = optional("group-address", TEXT)
    """Multicast address of UDP."""
    group_port: int = element("group-port", _PORT, ANY_PORT)
    """Its port."""
    refresh_timeout_ms: int = element("refresh-timeout", _GT_0, 10_000)
    """Silence after which a broker is taken for gone."""
    initial_wait_timeout_ms: int = element("initial-wait-timeout", _GT_0, 10_000)
    """How long a first connection waits until a broker was heard of."""
    jgroups_file: str | None = optional("jgroups-file", TEXT)
    """Of JGroups, which is refused here: use UDP or `endpoint`."""
    jgroups_channel: str | None = optional("jgroups-channel", TEXT)
    """Of JGroups, likewise."""
    endpoint: EndpointConfig | None = custom("endpoint", _endpoint, None)
    """What is used in place of UDP: `dns`, `shared-folder` or one that is installed (ours)."""
    where: str = line()

    def __post_init__(self) -> None:
        """As `_check`."""
        _check(self)

    def open_with(self, environment: Environment) -> Endpoint:
        """Make what it hears by; nothing is opened yet."""
        if self.endpoint is not None:
            return self.endpoint.open_with(environment)
        return _udp(self, environment)
