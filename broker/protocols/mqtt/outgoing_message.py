"""What a message is for all of its subscribers, made once for them.

The last few messages are kept, each as long as no other one takes its place: a message with many
subscribers is given to them one after another.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

from broker.model.message import Message
from broker.protocols.mqtt import message_properties as names
from broker.protocols.mqtt.encoding import publish_parts
from broker.protocols.mqtt.message_packet import own_qos, payload_of, properties_of
from broker.protocols.mqtt.properties import NO_PROPERTIES
from broker.protocols.mqtt.topics import topic_of
from broker.protocols.mqtt.versions import Version

if TYPE_CHECKING:
    from broker.model.address import WildcardConfiguration

__all__ = ["OutgoingMessage", "OutgoingMessages"]

# Messages that are kept, and up to how many bytes each: half a MiB with their payloads.
_KEPT_MAX: Final = 64
_KEPT_SIZE_MAX: Final = 4096
# Topics and sizes whose packets begin alike.
_PLAIN_MAX: Final = 1024
# Characters of a topic that is kept so: they may be 64 KiB.
_PLAIN_SIZE_MAX: Final = 512


class OutgoingMessage:
    """See the module's text.

    Args:
        message: of any protocol.
        data: its bytes.

    Attributes:
        data: as given; a message has others once it has changed.
        is_large: its payload is kept outside of it.
        payload: of a PUBLISH; empty where it is large.
        qos: its own; subscribers may have less.
        is_retained: it was published as one to be retained.
        is_initial: it is a retained message that a new subscription gets.
        expires: it has another expiry interval each time.
    """

    __slots__ = (
        "_parts",
        "data",
        "expires",
        "is_initial",
        "is_large",
        "is_retained",
        "payload",
        "qos",
    )

    def __init__(self, message: Message, data: bytes) -> None:
        self.data = data
        self.is_large = message.large is not None
        self.payload = b"" if self.is_large else payload_of(message)
        self.qos = own_qos(message)
        self.is_retained = message.get(names.IS_RETAINED) is True
        self.is_initial = self.is_retained and names.IS_INITIAL in message.properties
        self.expires = message.expiration != 0
        self._parts: dict[tuple[Version, bool], tuple[bytes, bytes]] = {}

    def parts(
        self, message: Message, wildcards: WildcardConfiguration, qos: int, version: Version
    ) -> tuple[bytes, bytes]:
        """Give publish_parts() for a subscription without identifier, and without an alias.

        For a message that does not expire.

        Raises:
            ValueError: as of publish_parts().
        """
        which = version, qos > 0
        found = self._parts.get(which)
        if found is None:
            topic = topic_of(message.address or "", wildcards)
            size = len(self.payload)
            if version is Version.V5 or len(topic) > _PLAIN_SIZE_MAX:
                properties = NO_PROPERTIES
                if version is Version.V5:
                    properties = properties_of(message, 0, None)
                found = publish_parts(topic, qos, properties, version, size)
            else:
                found = _plain_parts(topic, qos > 0, version, size)
            self._parts[which] = found
        return found


@lru_cache(_PLAIN_MAX)
def _plain_parts(topic: str, has_id: bool, version: Version, size: int) -> tuple[bytes, bytes]:
    """Give publish_parts() without properties: messages of a topic are often of one size."""
    return publish_parts(topic, int(has_id), NO_PROPERTIES, version, size)


class OutgoingMessages:
    """Those of one broker that were delivered last."""

    __slots__ = ("_kept",)

    def __init__(self) -> None:
        # Places by message id: ids that follow each other have different ones.
        self._kept: list[OutgoingMessage | None] = [None] * _KEPT_MAX

    def of(self, message: Message) -> OutgoingMessage:
        """Give what a message is for all of its subscribers."""
        if type(message) is not Message:
            # One of AMQP may change without its bytes.
            return OutgoingMessage(message, b"")
        data = message.encode()
        place = message.message_id % _KEPT_MAX
        found = self._kept[place]
        # Bytes do not change, and are there as long as they are kept: it is this message.
        if found is not None and found.data is data:
            return found
        found = OutgoingMessage(message, data)
        if message.references > 1 and not found.is_large and len(data) <= _KEPT_SIZE_MAX:
            self._kept[place] = found
        return found
