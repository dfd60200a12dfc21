"""All packets by their numbers, and the one place where a frame becomes a packet."""

from __future__ import annotations

import struct
from typing import Final

from broker.model.encoding import RecordFormatError
from broker.protocols.core import (
    packet_cluster,
    packet_connection,
    packet_message,
    packet_queue,
    packet_session,
    packet_xa,
)
from broker.protocols.core.errors import PacketFormatError
from broker.protocols.core.packet import Packet
from broker.protocols.core.packet_connection import NullResponse


def _collect() -> dict[int, type[Packet]]:
    found: dict[int, type[Packet]] = {}
    modules = (
        *(packet_cluster, packet_connection, packet_message),
        *(packet_queue, packet_session, packet_xa),
    )
    for module in modules:
        for kind in vars(module).values():
            if not (isinstance(kind, type) and issubclass(kind, Packet)) or kind is Packet:
                continue
            if kind.__module__ != module.__name__:
                continue
            for _, number in kind.types:
                assert number not in found, f"two packets of number {number}"
                found[number] = kind
    return found


PACKETS: Final = _collect()
"""The class of each number; replication's are missing, they are not packets of a session."""


_NULL_RESPONSE: Final = NullResponse.types[0][1]
_LONG: Final = struct.Struct(">q")


def decode_packet(kind: int, body: memoryview, version: int) -> Packet:
    """Give the packet of a frame.

    Args:
        kind: the frame's type.
        body: what follows the frame's header; nothing keeps it.
        version: that of the connection, 0 while it is not known.

    Raises:
        PacketFormatError: no such packet, or these bytes are none; close the connection.
    """
    if kind == _NULL_RESPONSE and len(body) == _LONG.size:
        # The answer to nearly every message.
        return NullResponse(_LONG.unpack(body)[0])
    found = PACKETS.get(kind)
    if found is None:
        raise PacketFormatError(f"packet of the unknown type {kind}")
    try:
        return found.decode(body, version, kind)
    except (RecordFormatError, struct.error) as error:
        raise PacketFormatError(f"{found.__name__}: {error}") from error
