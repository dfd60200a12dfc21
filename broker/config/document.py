"""A configuration file as a tree of elements that know their file and line.

Read by lxml without entities, document types or network. `xi:include` is followed only inside of
the folder of the first file; `${name:default}` is replaced after the parser is done, so that what
is put in is text and never markup.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from broker.config.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

__all__ = ["Element", "read_document"]

XINCLUDE: Final = "{http://www.w3.org/2001/XInclude}"
PROPERTY: Final = re.compile(r"\$\{([^}:]+)(?::([^}]*))?\}")
# A file that includes itself ends here.
INCLUDE_DEPTH_MAX: Final = 16
FILE_SIZE_MAX: Final = 16 << 20


@dataclass(frozen=True, slots=True)
class Element:
    """One element of a configuration.

    Attributes:
        name: without its namespace.
        attributes: by name, those with a namespace left out.
        text: what stands in it before its first child, without space around.
        children: elements in it, in order.
        file: that it stands in.
        line: of its start tag, from 1.
    """

    name: str
    attributes: Mapping[str, str]
    text: str
    children: tuple[Element, ...]
    file: Path
    line: int

    def wrong(self, what: str) -> ConfigError:
        """An error at this element."""
        return ConfigError(f"{self.file}:{self.line}: {what}")


def read_document(path: Path, properties: Mapping[str, str]) -> Element:
    """The root element of a file, includes and properties replaced.

    Args:
        path: of the file.
        properties: what `${name}` stands for.

    Raises:
        ConfigError: no such file, no XML, an include that is not to be had, an unknown property.
    """
    return _Reader(path.resolve().parent, properties).read(path, 0)


class _Reader:
    def __init__(self, folder: Path, properties: Mapping[str, str]) -> None:
        self.folder = folder
        self.properties = properties

    def read(self, path: Path, depth: int) -> Element:
        from lxml import etree

        parser = etree.XMLParser(
            resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False
        )
        try:
            if path.stat().st_size > FILE_SIZE_MAX:
                raise ConfigError(f"{path}: more than {FILE_SIZE_MAX} bytes")
            root = etree.fromstring(path.read_bytes(), parser)
        except OSError as error:
            raise ConfigError(f"{path}: {error.strerror}") from None
        except etree.XMLSyntaxError as error:
            raise ConfigError(f"{path}:{error.lineno}: no XML: {error.msg}") from None
        if root.getroottree().docinfo.doctype:
            raise ConfigError(f"{path}: a document type is not allowed")
        return self.element(root, path, depth)

    def element(self, node: Any, path: Path, depth: int) -> Element:  # noqa: ANN401 - lxml's.
        place = Element("", {}, "", (), path, node.sourceline)
        children: list[Element] = []
        texts = [node.text or ""]
        for child in node:
            texts.append(child.tail or "")
            if not isinstance(child.tag, str):
                continue  # A comment, or a processing instruction.
            if child.tag == f"{XINCLUDE}include":
                children += self.included(child, path, depth)
            else:
                children.append(self.element(child, path, depth))
        text = "".join(texts).strip()
        return Element(
            node.tag.rpartition("}")[2],
            {
                name: self.replaced(value, place)
                for name, value in node.attrib.items()
                if not name.startswith("{")
            },
            self.replaced(text, place),
            tuple(children),
            path,
            node.sourceline,
        )

    def included(self, node: Any, path: Path, depth: int) -> list[Element]:  # noqa: ANN401
        place = Element("xi:include", {}, "", (), path, node.sourceline)
        href = self.replaced(node.get("href", ""), place).removeprefix("file:")
        if not href or node.get("parse", "xml") != "xml" or "://" in href:
            raise place.wrong("xi:include takes the href of an XML file in the instance's folder")
        if depth >= INCLUDE_DEPTH_MAX:
            raise place.wrong(f"xi:include more than {INCLUDE_DEPTH_MAX} deep")
        target = path.parent / href
        if not target.resolve().is_relative_to(self.folder):
            raise place.wrong(f"xi:include of {href}, which is outside of {self.folder}")
        fallback = node.find(f"{XINCLUDE}fallback")
        if not target.exists() and fallback is not None:
            return [
                self.element(child, path, depth) for child in fallback if isinstance(child.tag, str)
            ]
        if not target.is_file():
            raise place.wrong(f"xi:include of {href}: no such file")
        return [self.read(target, depth + 1)]

    def replaced(self, text: str, place: Element) -> str:
        def value(match: re.Match[str]) -> str:
            found = self.properties.get(match[1], match[2])
            if found is None:
                raise place.wrong(f"${{{match[1]}}} is not set and has no default")
            return found

        return PROPERTY.sub(value, text)
