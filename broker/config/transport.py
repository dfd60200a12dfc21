"""Acceptors and connectors: `scheme://host:port?parameter=value;parameter=value`.

Parameters stay texts here; which there are stands in acceptors.py and connectors.py. Several URIs
in one connector, separated by commas in brackets, are for clients and not for configurations.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import unquote

from broker.config.xml_fields import Context, check_names
from journal.nearest import nearest

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from broker.config.document import Element

__all__ = ["TransportConfig", "parse_transport", "transports"]

log = logging.getLogger("broker.config")

PORT_MAX = 65535
# Parameters that a file may mask.
SECRETS = ("keyStorePassword", "trustStorePassword", "proxyPassword", "activemqPassword")


@dataclass(frozen=True, slots=True, kw_only=True)
class TransportConfig:
    """Where to listen, or to connect to.

    Attributes:
        name: of the acceptor or connector.
        scheme: tcp, vm, ...
        host: name or address, without brackets.
        port: 0 where the URI has none.
        parameters: of the transport, passwords in the clear; repr() leaves them out.
        where: `FILE:LINE`.
    """

    name: str
    scheme: str
    host: str
    port: int
    parameters: Mapping[str, str] = field(default_factory=dict, repr=False)
    where: str = ""


def parse_transport(name: str, uri: str, *, where: str = "") -> TransportConfig:
    """A transport from its URI.

    Raises:
        ValueError: it is none.

    >>> parse_transport("a", "tcp://0.0.0.0:61616?protocols=CORE,AMQP;useEpoll=true").port
    61616
    >>> parse_transport("a", "tcp://[::1]:5672").host
    '::1'
    """
    scheme, separator, rest = uri.strip().partition("://")
    if not separator or not scheme.isalnum():
        raise ValueError(f"{uri!r} is not a URI; write tcp://HOST:PORT?NAME=VALUE;NAME=VALUE")
    place, _, query = rest.partition("?")
    if place.startswith("["):
        host, _, port = place[1:].partition("]")
        port = port.removeprefix(":")
    else:
        host, _, port = place.partition(":")
    if port and not (port.isascii() and port.isdigit() and int(port) <= PORT_MAX):
        raise ValueError(f"{uri!r} has the port {port!r}, which is not a number up to {PORT_MAX}")
    parameters: dict[str, str] = {}
    for item in filter(None, query.replace("&", ";").split(";")):
        key, equals, value = item.strip().partition("=")
        if not key or not equals:
            raise ValueError(f"{item!r} in {uri!r} is not NAME=VALUE")
        parameters[key] = unquote(value)
    return TransportConfig(
        name=name,
        scheme=scheme,
        host=host,
        port=int(port or 0),
        parameters=parameters,
        where=where,
    )


def transports(
    parent: Element, context: Context, known: Collection[str]
) -> tuple[TransportConfig, ...]:
    """What stands in <acceptors> or <connectors>; names are unique.

    Of two connectors of one name the first one counts, as in Artemis, which stops at two acceptors.

    Args:
        parent: the element.
        context: of the file.
        known: parameters; any other one is refused with the nearest of them.
    """
    single = parent.name.removesuffix("s")
    check_names(parent, (single,), (), context)
    found: dict[str, TransportConfig] = {}
    for child in parent.children:
        if child.name != single:
            continue
        check_names(child, (), ("name",), context)
        name = child.attributes.get("name", "")
        if not name and single == "connector":
            raise child.wrong("<connector> needs a name")
        where = f"{child.file}:{child.line}"
        name = name or f"{single}-{len(found)}"
        if name in found:
            error = child.wrong(f"{single} {name!r} is there already, {found[name].where}")
            if single == "acceptor":
                raise error
            log.warning("%s", error)
            continue
        try:
            transport = parse_transport(name, child.text, where=where)
            for secret in SECRETS:
                if secret in transport.parameters:
                    plain = context.unmask(transport.parameters[secret])
                    transport = _with_parameter(transport, secret, plain)
        except ValueError as error:
            raise child.wrong(str(error)) from None
        for key in transport.parameters:
            if key not in known:
                near = nearest(key, known, "{}")
                context.unknown(child, f"{single} {name!r} has no parameter {key}{near}")
        found[name] = transport
    return tuple(found.values())


def _with_parameter(transport: TransportConfig, name: str, value: str) -> TransportConfig:
    return TransportConfig(
        name=transport.name,
        scheme=transport.scheme,
        host=transport.host,
        port=transport.port,
        parameters={**transport.parameters, name: value},
        where=transport.where,
    )
