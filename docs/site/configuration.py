"""The pages of broker.xml and of URL parameters."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, Final

from broker.client.options import ClientOptions
from broker.config import acceptors, cluster_uri
from broker.config.cluster_connections import ClusterConnection, StaticConnectors
from broker.config.transport_parameters import ACCEPTOR_PARAMETERS, CLIENT_PARAMETERS
from broker.discovery.endpoints import installed_endpoints
from broker.model.connector_parameters import CONNECTOR_PARAMETERS, OF_CLIENTS
from broker.protocols.registry import installed_protocols
from docs.site.attribute_docs import attribute_docs
from docs.site.elements import GROUPS, Row, default_text, rows_of, type_text, unit_of
from docs.site.tables import table

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["broker_xml", "url_parameters"]

_NONE: Final = "–"
_BROKER_XML: Final = """# broker.xml

Every element and attribute that the reader knows, made from the classes that read it. Paths are
below `<core>`; `@` is an attribute. Names, defaults and units are Artemis's; what says *ours*
Artemis does not have. A name that is not here is refused at the start, with its line;
`broker run --lenient` logs it and goes on.

**reload**: a change holds without a restart. **effect** *none*: read, so that a file of Artemis can
be used as it is, and without effect in this version.
"""
_URL_PARAMETERS: Final = """# Parameters of URLs

`tcp://HOST:PORT?NAME=VALUE;NAME=VALUE`: `;` and `&` separate. A name that is not known is refused,
with the nearest one that is.
"""
_WITHOUT_EFFECT: Final = """
Taken, so that a file of Artemis can be used as it is. `broker run` names those in bold that are
set: something is missing without them. The others tune a JVM or a protocol that is not installed.
"""
_PARAMETER: Final = ("parameter", "type", "default", "meaning")


def broker_xml() -> str:
    """Every element."""
    parts = [_BROKER_XML]
    for title, cls in GROUPS:
        parts.append(f"## {title}\n")
        parts.append(_rows(rows_of(cls)))
    return "\n".join(parts)


def _rows(rows: Iterable[Row]) -> str:
    return table(
        ("element", "type", "default", "unit", "reload", "effect", "meaning"),
        (
            (
                f"`{row.path}`",
                f"{row.type}; {row.range}" if row.range else row.type,
                f"`{row.default}`" if row.default else _NONE,
                row.unit or _NONE,
                "yes" if row.is_reloadable else "no",
                "yes" if row.has_effect else "none",
                row.meaning,
            )
            for row in rows
        ),
    )


def url_parameters() -> str:
    """Every parameter of an acceptor, a connector, a cluster connection, a client, an endpoint."""
    parts = [
        _URL_PARAMETERS,
        "## Acceptors\n",
        table(_PARAMETER, ((f"`{one.name}`", *one[1:]) for one in ACCEPTOR_PARAMETERS)),
    ]
    own: set[str] = {one.name for one in ACCEPTOR_PARAMETERS}
    for name, factory in sorted(installed_protocols().items()):
        parts.append(f"### Of protocol {name}\n")
        parts.append(table(_PARAMETER, _of_protocol(factory.parameters)))
        own |= set(factory.parameters)
    # What has an effect and has no row yet is not told to have none.
    others = sorted(acceptors._EFFECTIVE - own)
    if others:
        parts.append("Others: " + ", ".join(f"`{one}`" for one in others) + ": see the guides.\n")
    without = sorted((acceptors._KNOWN - own - set(others)) | acceptors.MISSED)
    parts += [
        "### Without effect\n",
        _WITHOUT_EFFECT,
        ", ".join(f"**`{one}`**" if one in acceptors.MISSED else f"`{one}`" for one in without),
        "",
        "## Connectors\n",
        (
            "What a parameter does, the one who connects decides: a client, a bridge, another "
            "broker. Besides those of clients (below) there are:\n"
        ),
        ", ".join(f"`{one}`" for one in sorted(CONNECTOR_PARAMETERS - OF_CLIENTS)),
        "",
        "Parameters of Artemis's clients that the Python client does not have are taken, too: "
        + ", ".join(f"`{one}`" for one in sorted(OF_CLIENTS - _client_names()))
        + ".\n",
        "## Cluster connections\n",
        (
            "Of `<cluster-connection-uri>`. The element that a parameter stands for says what it "
            "does.\n"
        ),
        table(_PARAMETER, _of_cluster()),
        "## Clients\n",
        "Of `broker.client`, by the names that Artemis's clients have.\n",
        table(_PARAMETER, _of_clients()),
        "### TLS of clients\n",
        "Of each host of a client's URL.\n",
        table(
            _PARAMETER,
            (
                (
                    f"`{name}`",
                    kind,
                    f"`{default}`" if default in ("true", "false") else default or _NONE,
                    meaning,
                )
                for name, kind, default, meaning in CLIENT_PARAMETERS
            ),
        ),
    ]
    for name, endpoint in sorted(installed_endpoints().items()):
        parts.append(f"## Endpoint {name}\n")
        rows = (
            (
                f"`{one}`",
                type_text(parameter.kind),
                "required" if parameter.is_required else default_text(parameter.default) or _NONE,
                f'See [discovery](../guide/discovery.md); `{one}` of `<endpoint name="{name}">`.',
            )
            for one, parameter in endpoint.parameters.items()
        )
        parts.append(table(_PARAMETER, rows))
    return "\n".join(parts)


def _of_protocol(parameters: Any) -> list[tuple[str, str, str, str]]:  # noqa: ANN401 - a mapping.
    return [
        (
            f"`{name}`",
            f"{type_text(one.kind)}{'; ' if one.kind.range else ''}{one.kind.range}",
            f"`{default_text(one.default)}`" if default_text(one.default) else _NONE,
            one.meaning,
        )
        for name, one in parameters.items()
    ]


def _of_cluster() -> list[tuple[str, str, str, str]]:
    texts = attribute_docs(ClusterConnection)
    fields = {field.name: field for field in dataclasses.fields(ClusterConnection)}
    rows = []
    for name, (attribute, kind) in cluster_uri._PARAMETERS.items():
        default = fields[attribute].default
        shown = "" if default is dataclasses.MISSING else default_text(default, unit_of(attribute))
        rows.append((f"`{name}`", type_text(kind), shown or _NONE, texts.get(attribute, "")))
    meaning = attribute_docs(StaticConnectors).get("allow_direct_connections_only", "")
    rows.append((f"`{cluster_uri._DIRECT_ONLY}`", "true or false", "false", meaning))
    return rows


def _client_names() -> set[str]:
    return {field.metadata["parameter"] for field in dataclasses.fields(ClientOptions)}


def _of_clients() -> list[tuple[str, str, str, str]]:
    texts = attribute_docs(ClientOptions)
    rows = []
    for field in dataclasses.fields(ClientOptions):
        kind = str(field.type).removesuffix(" | None")
        shown = default_text(field.default)
        text = texts.get(field.name, "")
        rows.append(
            (
                f"`{field.metadata['parameter']}`",
                {"int": "integer", "bool": "true or false", "str": "text"}.get(kind, "number"),
                f"`{shown}`" if shown else _NONE,
                text[:1].upper() + text[1:],
            )
        )
    return rows
