"""Sections that are kept unparsed, for the parts of the broker that read them themselves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from broker.config.xml_fields import Context, custom

if TYPE_CHECKING:
    from collections.abc import Mapping

    from broker.config.document import Element

__all__ = ["Section", "SectionsConfig"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """An element with all that is in it, not validated.

    Attributes:
        name: of the element.
        attributes: as written.
        text: as written, without space around.
        children: in order.
        where: `FILE:LINE`.
    """

    name: str
    attributes: Mapping[str, str]
    text: str
    children: tuple[Section, ...]
    where: str


def _section(element: Element, context: Context) -> Section:
    return Section(
        name=element.name,
        attributes=element.attributes,
        text=element.text,
        children=tuple(_section(child, context) for child in element.children),
        where=f"{element.file}:{element.line}",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SectionsConfig:
    """One field a section; None where the file has none."""

    federations: Section | None = custom("federations", _section, None)
    """Addresses and queues shared with other clusters."""
    broker_connections: Section | None = custom("broker-connections", _section, None)
    """Connections by AMQP to other brokers, such as mirrors."""
    metrics: Section | None = custom("metrics", _section, None)
    """Which metrics of a process `/metrics` has."""
    metrics_plugin: Section | None = custom("metrics-plugin", _section, None)
    """Older form of `metrics`."""
    broker_plugins: Section | None = custom("broker-plugins", _section, None)
    """Java classes that Artemis calls; that of notifications is built in."""
    connector_services: Section | None = custom("connector-services", _section, None)
    """Java classes that connect Artemis to others."""
    remoting_interceptors: Section | None = custom("remoting-interceptors", _section, None)
    """Java classes that see each packet."""
    remoting_incoming_interceptors: Section | None = custom(
        "remoting-incoming-interceptors", _section, None
    )
    """Likewise those that come in."""
    remoting_outgoing_interceptors: Section | None = custom(
        "remoting-outgoing-interceptors", _section, None
    )
    """Likewise those that go out."""
    lock_coordinators: Section | None = custom("lock-coordinators", _section, None)
    """Locks that acceptors start with."""
