"""etc/bootstrap.xml: where an instance serves metrics and health over HTTP.

    <broker> <web> <binding uri="http://localhost:8161"/> </web> </broker>

Of Artemis's file the web bindings alone count here, in its newer form and the older one with
the attribute `bind`; applications, paths and the rest are the JVM's. Without the file, or without
`web`, no web server is started.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from broker.config.document import read_document

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from broker.config.document import Element

__all__ = ["BOOTSTRAP_XML", "read_web_bindings", "render_bootstrap_xml"]

BOOTSTRAP_XML: Final = "bootstrap.xml"
_PORT_DEFAULT: Final = 80


def read_web_bindings(etc: Path, properties: Mapping[str, str]) -> list[tuple[str, int]]:
    """Host and port of each web binding of an instance.

    Args:
        etc: the folder.
        properties: what `${name}` stands for.

    Raises:
        ConfigError: the file cannot be read, or has a binding that is no `http://HOST:PORT`.
    """
    file = etc / BOOTSTRAP_XML
    if not file.is_file():
        return []
    # The rest of Artemis's file names places of its installation, which are not used.
    root = read_document(file, _Known(properties))
    return [_place(element, text) for element, text in _bindings(root)]


class _Known(dict[str, str]):
    """Properties, of which those that are not set are empty."""

    def get(self, name: str, default: str | None = None) -> str:  # type: ignore[override] # always a text
        """Give one."""
        found = super().get(name, default)
        return "" if found is None else found


def _bindings(root: Element) -> Iterator[tuple[Element, str]]:
    for web in root.children:
        if web.name != "web":
            continue
        if "bind" in web.attributes:
            yield web, web.attributes["bind"]
        for binding in web.children:
            if binding.name == "binding":
                yield binding, binding.attributes.get("uri", "")


def _place(element: Element, text: str) -> tuple[str, int]:
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError as error:
        raise element.wrong(f"web binding {text!r}: {error}") from None
    if parts.scheme != "http" or not parts.hostname:
        raise element.wrong(f"web binding {text!r} is not http://HOST:PORT")
    return parts.hostname, _PORT_DEFAULT if port is None else port


def render_bootstrap_xml(host: str, port: int) -> str:
    """The text of etc/bootstrap.xml.

    Args:
        host: name or address, without brackets or with them.
        port: to listen on.
    """
    if ":" in host and not host.startswith("["):
        host = f"[{host}]"
    return f"""<?xml version="1.0" encoding="UTF-8"?>
<!-- Metrics at /metrics, health at /livez and /readyz. No password is required: clients that
     reach this address may read them. Without the web element nothing is served over HTTP. -->
<broker xmlns="http://activemq.apache.org/schema">
  <web path="web">
    <binding name="artemis" uri="http://{host}:{port}"/>
  </web>
</broker>
"""
