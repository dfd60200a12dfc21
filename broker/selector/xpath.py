"""XPATH 'expression': a condition over the XML that a text message carries.

Text bodies only, of at most BODY_SIZE_MAX bytes, without entities and without a network: the
message is a stranger's, and the broker's one thread reads it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker.model.encoding import NSS, BodyReader, RecordFormatError
from broker.model.message_types import MessageType

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.selector.values import SupportsProperties

__all__ = ["compile_xpath"]

# Artemis has no limit; all other clients wait meanwhile.
BODY_SIZE_MAX: Final = 100 * 1024
XSL: Final = "http://www.w3.org/1999/XSL/Transform"


def compile_xpath(text: str) -> Callable[[SupportsProperties], bool]:
    """A function that says whether the expression is true of a message's body.

    A body that is not text, not XML, or too large is not matched, as in Artemis.

    Raises:
        ValueError: `text` is not an XPath expression.
    """
    # Imported here: most brokers never see an XPATH, and the library takes megabytes.
    from lxml import etree

    # Paths start at the document, above its root element: `root/a`. lxml's own XPath starts at the
    # root element; a stylesheet's one template does not. It may not open anything.
    sheet = etree.Element(f"{{{XSL}}}stylesheet", version="1.0", nsmap={"xsl": XSL})
    etree.SubElement(sheet, f"{{{XSL}}}output", method="text")
    template = etree.SubElement(sheet, f"{{{XSL}}}template", match="/")
    etree.SubElement(template, f"{{{XSL}}}value-of", select=f"boolean({text})")
    try:
        etree.XPath(text)
        is_true_of = etree.XSLT(sheet, access_control=etree.XSLTAccessControl.DENY_ALL)
    except (etree.XPathError, etree.XSLTParseError, ValueError) as error:
        raise ValueError(f"XPATH: {error}") from None
    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False
    )

    def is_true(message: SupportsProperties) -> bool:
        body = _text_body(message)
        if body is None:
            return False
        try:
            return str(is_true_of(etree.fromstring(body.encode(), parser))) == "true"
        except (etree.XMLSyntaxError, etree.XSLTApplyError, ValueError):
            return False

    return is_true


def _text_body(message: SupportsProperties) -> str | None:
    if message.type != MessageType.TEXT or not 0 < len(message.body) <= BODY_SIZE_MAX:
        return None
    try:
        return NSS.read(BodyReader(message.body))
    except RecordFormatError:
        return None
