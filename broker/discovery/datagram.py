"""The datagram of a broadcast group: who a broker is, and how to reach it.

    STR   node id
    STR   unique id: of the broadcast group, anew with each start
    int   count
    ...   so many connectors (TransportConfiguration)

It has neither magic number nor version nor checksum (BroadcastGroupImpl, DiscoveryGroup).
Older versions of it send the whole buffer: zeros behind the last connector are passed over.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from broker.model.encoding import STR, BodyReader, BodyWriter
from broker.model.transport_configuration import TRANSPORT, TransportConfiguration

__all__ = ["DATAGRAM_SIZE_MAX", "Broadcast", "decode_broadcast", "encode_broadcast"]

DATAGRAM_SIZE_MAX: Final = 65507
"""Bytes that a datagram over IPv4 can have: 65535 without its two headers."""

# Two empty texts and a count.
_CONNECTOR_SIZE_MIN: Final = 12


@dataclass(frozen=True, slots=True)
class Broadcast:
    """What a broadcast group says.

    Attributes:
        node_id: of the broker, UUID as text.
        unique_id: of the broadcast group, UUID as text; tells two brokers of one node id apart.
        connectors: how the broker is reached; its backup's come behind its own.
    """

    node_id: str
    unique_id: str
    connectors: tuple[TransportConfiguration, ...]


def encode_broadcast(broadcast: Broadcast) -> bytes:
    """Give the datagram.

    Raises:
        ValueError: it is larger than `DATAGRAM_SIZE_MAX`.
    """
    writer = BodyWriter()
    STR.write(writer, broadcast.node_id)
    STR.write(writer, broadcast.unique_id)
    writer.write_int(len(broadcast.connectors))
    for connector in broadcast.connectors:
        TRANSPORT.write(writer, connector)
    data = writer.getvalue()
    if len(data) > DATAGRAM_SIZE_MAX:
        raise ValueError(
            f"{len(broadcast.connectors)} connectors take {len(data)} bytes; "
            f"a datagram has {DATAGRAM_SIZE_MAX} at most"
        )
    return data


def decode_broadcast(data: bytes) -> Broadcast:
    """Read a datagram; bytes behind the last connector are passed over.

    Raises:
        RecordFormatError: it is none of a broadcast group.
    """
    reader = BodyReader(data)
    node_id, unique_id = STR.read(reader), STR.read(reader)
    count = reader.read_count(item_size_min=_CONNECTOR_SIZE_MIN)
    return Broadcast(node_id, unique_id, tuple(TRANSPORT.read(reader) for _ in range(count)))
