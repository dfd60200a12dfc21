"""What becomes of a message on its way over a bridge: the copy that the target gets.

    copy ─▶ forwarding address ─▶ routing type ─▶ transformer ─▶ _AMQ_BRIDGE_DUP

The duplicate id is that of Artemis (BridgeImpl.getDuplicateBytes): the UUID of this node and the id
of the message in its queue. Both stay over restarts, so every further attempt has the same one.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

from broker.model.routing_type import RoutingType
from broker.routing.transformers import transformed

if TYPE_CHECKING:
    from uuid import UUID

    from broker.config.cluster import BridgeConfig
    from broker.model.message import Message
    from broker.routing.transformers import Transformer

__all__ = ["BRIDGE_ID", "OutgoingMessages", "TransformFailed"]

BRIDGE_ID: Final = "_AMQ_BRIDGE_DUP"
_LONG: Final = struct.Struct(">q")


class TransformFailed(Exception):
    """The transformer raised, or gave no message; its text says what."""


class OutgoingMessages:
    """Makes them.

    Args:
        config: of the bridge.
        node_id: of this broker.
        transformer: None leaves messages as they are.
    """

    __slots__ = ("_address", "_node", "_routing_type", "_transformer", "_uses_detection")

    def __init__(
        self, config: BridgeConfig, node_id: UUID, transformer: Transformer | None
    ) -> None:
        self._address = config.forwarding_address or None
        self._node = node_id.bytes
        self._routing_type = RoutingType[config.routing_type.name]
        self._transformer = transformer
        self._uses_detection = config.use_duplicate_detection

    def make(self, message: Message) -> Message:
        """Give the copy that the target gets; a large one has the same body.

        Args:
            message: as the queue has it.

        Raises:
            TransformFailed: the transformer raised, or gave no message.
        """
        copy = message.copy()
        if self._address is not None:
            copy.address = self._address
        kind = self._routing_type
        if kind is RoutingType.STRIP:
            copy.routing_type = None
        elif kind is not RoutingType.PASS:
            copy.routing_type = kind
        if self._transformer is not None:
            try:
                copy = transformed(self._transformer, copy)
            except Exception as error:
                raise TransformFailed(f"transformer: {type(error).__name__}: {error}") from error
        if self._uses_detection:
            # Last: a transformer may have made a message of its own.
            copy.set_bytes(BRIDGE_ID, self.duplicate_id(message.message_id))
        return copy

    def duplicate_id(self, message_id: int) -> bytes:
        """Give the duplicate id of a message.

        Args:
            message_id: in this broker.
        """
        return self._node + _LONG.pack(message_id)
