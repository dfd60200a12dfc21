"""The record of a session's subscriptions, as Artemis keeps it (MQTTStateManager).

    byte 0, int n, n × { STR filter, int qos, boolean noLocal, boolean retainAsPublished,
                         int retainHandling, nullable int identifier }

It is the body of a message in `$sys.mqtt.sessions`, by its client id as last value. The session's
expiry stands in a property of it, which Artemis does not look at: there, sessions that were stored
never expire.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker.model.encoding import BodyReader, BodyWriter, RecordFormatError
from broker.protocols.mqtt.packets import Filter

if TYPE_CHECKING:
    from collections.abc import Iterable

    from broker.model.encoding import Body

__all__ = ["read_subscriptions", "write_subscriptions"]

_VERSION: Final = 0
_ITEM_SIZE_MIN: Final = 4 + 4 + 1 + 1 + 4 + 1
_HANDLING_MAX: Final = 2
_QOS_MAX: Final = 2


def write_subscriptions(subscriptions: Iterable[tuple[Filter, int | None]]) -> bytes:
    """Give the body of a record: of each subscription its filter, and its identifier."""
    found = list(subscriptions)
    writer = BodyWriter()
    writer.write_byte(_VERSION)
    writer.write_int(len(found))
    for filter, identifier in found:
        writer.write_string(filter.text)
        writer.write_int(filter.qos)
        writer.write_boolean(filter.no_local)
        writer.write_boolean(filter.retain_as_published)
        writer.write_int(filter.retain_handling)
        writer.write_nullable(BodyWriter.write_int, identifier)
    return writer.getvalue()


def read_subscriptions(body: Body) -> list[tuple[Filter, int | None]]:
    """Read the body of a record.

    Raises:
        RecordFormatError: it is none, or of a later version.
    """
    reader = BodyReader(body)
    version = reader.read_byte()
    if version != _VERSION:
        raise RecordFormatError(f"a session's record of version {version}")
    found: list[tuple[Filter, int | None]] = []
    for _ in range(reader.read_count(item_size_min=_ITEM_SIZE_MIN)):
        text, qos = reader.read_string(), reader.read_int()
        no_local, as_published = reader.read_boolean(), reader.read_boolean()
        handling = reader.read_int()
        identifier = reader.read_nullable(BodyReader.read_int)
        if not (0 <= qos <= _QOS_MAX and 0 <= handling <= _HANDLING_MAX):
            raise reader.fail(f"a subscription with QoS {qos}, retain handling {handling}")
        found.append((Filter(text, qos, no_local, as_published, handling), identifier))
    return found
