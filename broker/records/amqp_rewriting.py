"""What the broker changes in the sections of an AMQP message, which it keeps as they were sent.

    to a consumer        without delivery annotations, and with how often it was delivered before
    a copy elsewhere     with where it came from: dead letters, expired messages, those moved
    sent again           with the duplicate id of the second sending

Everything else stays byte by byte.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker.model.encoding import BodyReader
from broker.records.amqp_sections import HEADER_FIELDS, PROPERTIES_FIELDS, next_section
from broker.records.amqp_values import AmqpValue, encode_value, read_value, value_size

if TYPE_CHECKING:
    from collections.abc import Mapping

    from broker.model.properties import Property
    from broker.model.routing_type import RoutingType

__all__ = ["MARKS", "rewritten", "sent_again", "to_deliver", "with_priority"]

INGRESS: Final = "_AMQ_INGRESS_TIMESTAMP"
_ORIGINAL: Final = {
    "_AMQ_ORIG_ADDRESS": "x-opt-ORIG-ADDRESS",
    "_AMQ_ORIG_QUEUE": "x-opt-ORIG-QUEUE",
    "_AMQ_ORIG_MESSAGE_ID": "x-opt-ORIG-MESSAGE-ID",
    "_AMQ_ORIG_ROUTING_TYPE": "x-opt-ORIG-ROUTING-TYPE",
    "_AMQ_ACTUAL_EXPIRY": "x-opt-ACTUAL-EXPIRY",
}
MARKS: Final = frozenset({*_ORIGINAL, INGRESS})
"""Properties of the broker that its sections say as well."""

_KINDS: Final = {"_AMQ_ORIG_ROUTING_TYPE": "byte"}
_HEADER, _DELIVERY_ANNOTATIONS, _ANNOTATIONS, _PROPERTIES = 0x70, 0x71, 0x72, 0x73
_APPLICATION_PROPERTIES: Final = 0x74
_DUPLICATE_ID: Final = "_AMQ_DUPL_ID"
_ROUTING_TYPE: Final = "x-opt-routing-type"
_NULL: Final = AmqpValue("null", None)
_COUNT_MAX: Final = 2**32 - 1


def _split(encoded: bytes) -> tuple[dict[str, bytes], bytes]:
    """Give the sections before the body, and all that is behind them."""
    reader = BodyReader(encoded)
    found: dict[str, bytes] = {}
    while reader.remaining:
        name = next_section(reader)
        if name is None:
            break
        found[name] = reader.read_bytes(value_size(reader))
    return found, reader.read_rest()


def _join(sections: Mapping[str, bytes], rest: bytes) -> bytes:
    order = ("header", "message_annotations", "properties", "application_properties")
    return b"".join([*(sections[name] for name in order if name in sections), rest])


def _section(code: int, value: AmqpValue) -> bytes:
    return b"\x00\x53" + bytes([code]) + encode_value(value)


def _value(section: bytes | None) -> AmqpValue:
    """Give what a section says; null where there is none."""
    if section is None:
        return _NULL
    value: AmqpValue = read_value(BodyReader(section)).value[1]
    return value


def _fields(section: bytes | None, count: int) -> list[AmqpValue]:
    value = _value(section).value
    fields = list(value or ())
    return fields + [_NULL] * (count - len(fields))


def _listed(code: int, fields: list[AmqpValue]) -> bytes:
    while fields and fields[-1].value is None:
        fields.pop()
    return _section(code, AmqpValue("list", tuple(fields)))


def _pairs(section: bytes | None) -> list[tuple[AmqpValue, AmqpValue]]:
    return list(_value(section).value or ())


def _with(
    pairs: list[tuple[AmqpValue, AmqpValue]], key: AmqpValue, value: AmqpValue
) -> list[tuple[AmqpValue, AmqpValue]]:
    """Give the pairs of a map with another one, instead of any of that key."""
    return [*(pair for pair in pairs if pair[0].value != key.value), (key, value)]


def _mapped(code: int, pairs: list[tuple[AmqpValue, AmqpValue]]) -> bytes:
    return _section(code, AmqpValue("map", tuple(pairs)))


def to_deliver(encoded: bytes, delivery_count: int) -> bytes:
    """Give the sections for a consumer.

    Args:
        encoded: all sections, as they are kept.
        delivery_count: how often it was delivered before.
    """
    sections, rest = _split(encoded)
    sections.pop("delivery_annotations", None)
    if delivery_count > 0:
        fields = _fields(sections.get("header"), len(HEADER_FIELDS))
        fields[4] = AmqpValue("uint", min(delivery_count, _COUNT_MAX))
        sections["header"] = _listed(_HEADER, fields)
    return _join(sections, rest)


def with_priority(encoded: bytes, priority: int) -> bytes:
    """Give the sections with another priority."""
    sections, rest = _split(encoded)
    fields = _fields(sections.get("header"), len(HEADER_FIELDS))
    fields[1] = AmqpValue("ubyte", priority)
    sections["header"] = _listed(_HEADER, fields)
    return _join(sections, rest)


def rewritten(
    encoded: bytes, extra: Mapping[str, Property], address: str | None, *, expires: bool
) -> bytes:
    """Give the sections of a copy that says where it came from.

    Args:
        encoded: those of the original.
        extra: properties that the broker noted beside them, by name.
        address: where the copy is.
        expires: it still has its time to live.
    """
    sections, rest = _split(encoded)
    sections.pop("delivery_annotations", None)
    is_copy = any(name in extra for name in _ORIGINAL)
    pairs = _pairs(sections.get("message_annotations"))
    if is_copy:
        pairs = [pair for pair in pairs if not _is_of_copies(str(pair[0].value))]
    for name, item in extra.items():
        annotation = _ORIGINAL.get(name, "x-opt-ingress-time" if name == INGRESS else None)
        if annotation is not None and item.value is not None:
            kind = _KINDS.get(name, "string" if isinstance(item.value, str) else "long")
            pairs = _with(pairs, AmqpValue("symbol", annotation), AmqpValue(kind, item.value))
    if pairs:
        sections["message_annotations"] = _mapped(_ANNOTATIONS, pairs)
    else:
        sections.pop("message_annotations", None)
    if is_copy:
        _readdress(sections, address, expires=expires)
    return _join(sections, rest)


def sent_again(encoded: bytes, duplicate_id: str, routing_type: RoutingType | None) -> bytes:
    """Give the sections of a message that is sent a second time.

    Both stand where its first sender would have put them: Artemis looks nowhere else.

    Args:
        encoded: all sections, or those before the body.
        duplicate_id: of this sending, instead of any that it has.
        routing_type: to be noted; None leaves what is there.
    """
    sections, rest = _split(encoded)
    sections.pop("delivery_annotations", None)
    pairs = _with(
        _pairs(sections.get("application_properties")),
        AmqpValue("string", _DUPLICATE_ID),
        AmqpValue("string", duplicate_id),
    )
    sections["application_properties"] = _mapped(_APPLICATION_PROPERTIES, pairs)
    if routing_type is not None:
        pairs = _with(
            _pairs(sections.get("message_annotations")),
            AmqpValue("symbol", _ROUTING_TYPE),
            AmqpValue("byte", int(routing_type)),
        )
        sections["message_annotations"] = _mapped(_ANNOTATIONS, pairs)
    return _join(sections, rest)


def _is_of_copies(annotation: str) -> bool:
    return annotation.startswith("x-opt-ORIG") or annotation == "x-opt-routing-type"


def _readdress(sections: dict[str, bytes], address: str | None, *, expires: bool) -> None:
    if "properties" in sections:
        fields = _fields(sections["properties"], len(PROPERTIES_FIELDS))
        if address is not None:
            fields[2] = AmqpValue("string", address)
        if not expires:
            fields[8] = _NULL
        sections["properties"] = _listed(_PROPERTIES, fields)
    if "header" in sections and not expires:
        fields = _fields(sections["header"], len(HEADER_FIELDS))
        if fields[2].value is not None:
            fields[2] = _NULL
            sections["header"] = _listed(_HEADER, fields)
