"""Connection URIs as Artemis writes them.

    tcp://host:port?name=value&name=value          one broker
    (tcp://a:1,tcp://b:2?name=value)?name=value    several; the outer query is for all of them
    tcp://a:1?name=value#tcp://b:2,tcp://c:3       the same, in the form Artemis turns it into
    udp://231.7.7.7:9876?name=value                the brokers that broadcast to a multicast group
    discovery://endpoint?name=value                those that dns, shared-folder or another finds

`;` separates parameters as `&` does. Names that are not options of the client belong to
the transport, or to the endpoint. One that Artemis does not have either is refused, which
Artemis's client passes over: `sslEnabld=true` would be a connection without TLS.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final
from urllib.parse import parse_qsl, urlsplit

from broker.client.discovery import DISCOVERY_SCHEMES, Discovery, parse_discovery
from broker.client.options import (
    ClientOptions,
    check_parameters,
    is_option,
    with_parameters,
)
from broker.model.transport_configuration import ParameterValue, TransportConfiguration

DEFAULT_HOST: Final = "localhost"
DEFAULT_PORT: Final = 61616
_SCHEMES: Final = ("tcp",)


@dataclass(frozen=True, slots=True)
class ConnectionUri:
    """Whom to connect to, and how.

    Attributes:
        connectors: the brokers to begin with; none if they are to be discovered.
        options: what the URI says of the client.
        discovery: how brokers are discovered; None if they are named.
    """

    connectors: tuple[TransportConfiguration, ...]
    options: ClientOptions = field(default_factory=ClientOptions)
    discovery: Discovery | None = None


def parse_uri(uri: str, options: ClientOptions | None = None) -> ConnectionUri:
    """Read a connection URI.

    Args:
        uri: as the head of this file shows; without a scheme `host:port` is taken for tcp.
        options: what holds where the URI says nothing.

    Raises:
        ValueError: not such a URI, with what is wrong about it.
    """
    scheme, _, rest = uri.strip().partition("://")
    if scheme in DISCOVERY_SCHEMES:
        discovery, own = parse_discovery(scheme, rest)
        return ConnectionUri((), with_parameters(options or ClientOptions(), own), discovery)
    members, shared = _split(uri.strip())
    if not members:
        raise ValueError(f"{uri!r} names no broker")
    chosen = dict(shared)
    connectors = []
    for member in members:
        connector, own = _parse_member(member, shared)
        connectors.append(connector)
        chosen.update(own)
    wanted = {name: value for name, value in chosen.items() if is_option(name)}
    return ConnectionUri(tuple(connectors), with_parameters(options or ClientOptions(), wanted))


def _split(uri: str) -> tuple[list[str], dict[str, str]]:
    """Give the members of a list, and the query for all of them."""
    if uri.startswith("("):
        inner, closed, rest = uri[1:].rpartition(")")
        if not closed or (rest and not rest.startswith("?")):
            raise ValueError(f"{uri!r}: a list is written (uri,uri)?name=value")
        return [item.strip() for item in inner.split(",") if item.strip()], _query(rest[1:])
    first, _, others = uri.partition("#")
    if not others:
        return [item.strip() for item in first.split(",") if item.strip()], {}
    head, _, query = first.partition("?")
    members = [head, *(item.strip() for item in others.split(",") if item.strip())]
    return members, _query(query)


def _query(text: str) -> dict[str, str]:
    return dict(parse_qsl(text.replace(";", "&"), keep_blank_values=True))


def _parse_member(
    text: str, shared: dict[str, str]
) -> tuple[TransportConfiguration, dict[str, str]]:
    if "://" not in text:
        text = f"tcp://{text}"
    parts = urlsplit(text)
    if parts.scheme not in _SCHEMES:
        raise ValueError(
            f"{text!r}: scheme {parts.scheme!r}; there are tcp, and udp and discovery alone"
        )
    try:
        port = parts.port or DEFAULT_PORT
    except ValueError as error:
        raise ValueError(f"{text!r}: {error}") from error
    own = _query(parts.query)
    parameters: dict[str, ParameterValue] = {
        name: value for name, value in (shared | own).items() if not is_option(name)
    }
    check_parameters(parameters)
    parameters["host"] = parts.hostname or DEFAULT_HOST
    parameters["port"] = str(port)
    name = f"{parameters['host']}:{port}"
    return TransportConfiguration(name, parameters=parameters), own
