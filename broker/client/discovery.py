"""URIs of clients that discover their brokers: udp:// and discovery://."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl, urlsplit

from broker.client.options import check_parameters, is_option
from broker.discovery.endpoints import (
    JGROUPS_REFUSED,
    endpoint_named,
    installed_endpoints,
    read_endpoint_parameters,
)
from broker.discovery.group import DiscoveryGroup
from broker.discovery.udp import ANY_PORT, UdpEndpoint, check_group_address
from broker.errors import BrokerError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from broker.client.options import ClientOptions
    from broker.discovery.endpoints import Endpoint
    from broker.environment import Environment

__all__ = ["DISCOVERY_SCHEMES", "Discovery", "parse_discovery"]

DISCOVERY_SCHEMES: Final = ("udp", "discovery", "jgroups")
# As the manual calls it, and as Artemis's code does (DiscoveryGroupConfiguration).
_ALIASES: Final = {"discoveryInitialWaitTimeout": "initialWaitTimeout"}
_OF_UDP: Final = ("localBindAddress", "localBindPort")


@dataclass(frozen=True, slots=True)
class Discovery:
    """What is listened to.

    Attributes:
        text: the URI without its parameters.
        endpoint: `udp`, or the name of an entry point.
        values: its parameters.
    """

    text: str
    endpoint: str
    values: Mapping[str, Any]

    def group(self, options: ClientOptions, environment: Environment) -> DiscoveryGroup:
        """Make the discovery group; nothing is opened yet."""
        return DiscoveryGroup(
            self.text,
            self._open_with(environment),
            refresh_timeout_ms=options.refresh_timeout,
            monotonic_s=environment.clock.monotonic_s,
        )

    def _open_with(self, environment: Environment) -> Endpoint:
        if self.endpoint == "udp":
            return UdpEndpoint(environment=environment, **self.values)
        return endpoint_named(self.endpoint).endpoint(self.values, environment)


def parse_discovery(scheme: str, rest: str) -> tuple[Discovery, dict[str, str]]:
    """Read a URI behind its scheme; gives the client's own parameters, too.

    Raises:
        ValueError: it is wrong, with what is wrong about it.
    """
    text = f"{scheme}://{rest.partition('?')[0]}"
    parts = urlsplit(f"{scheme}://{rest.replace(';', '&')}")
    given = {
        _ALIASES.get(name, name): value
        for name, value in parse_qsl(parts.query, keep_blank_values=True)
    }
    own = {name: value for name, value in given.items() if is_option(name)}
    others = {name: value for name, value in given.items() if name not in own}
    try:
        if scheme == "jgroups":
            names = ", ".join(f"discovery://{one}" for one in installed_endpoints())
            raise ValueError(f"{JGROUPS_REFUSED}; take udp://GROUP:PORT, or one of {names}")
        if scheme == "udp":
            return Discovery(text, "udp", _udp(parts.hostname, parts.port, others)), own
        name = parts.hostname or ""
        values = read_endpoint_parameters(endpoint_named(name), others)
    except BrokerError as error:
        raise ValueError(f"{text}: {error.text}") from error
    except ValueError as error:
        raise ValueError(f"{text}: {error}") from error
    return Discovery(text, name, values), own


def _udp(group: str | None, port: int | None, others: dict[str, str]) -> dict[str, object]:
    if group is None or port is None:
        raise ValueError("it is udp://GROUP:PORT")
    check_group_address(group)
    check_parameters(others, *_OF_UDP, *_ALIASES)
    address = others.get("localBindAddress")
    bind_port = int(others.get("localBindPort", ANY_PORT))
    if bind_port != ANY_PORT and address is None:
        raise ValueError("localBindPort goes with localBindAddress")
    return {
        "group_address": group,
        "group_port": port,
        "local_bind_address": address,
        "local_bind_port": bind_port,
    }
