"""Messages to one address go, or go as well, to others.

The copy has an id of its own and says where it came from; its expiration stays. Without a routing
type of its own (STRIP) it goes to both kinds of queues; PASS keeps the sender's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.model.routing_type import RoutingType
from broker.routing.message_copies import mark_original

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from broker.model.message import Message
    from broker.queues.filter import Filter
    from broker.records.binding_records import Divert as DivertRecord

__all__ = ["Divert"]


class Divert:
    """See the module's text.

    Args:
        record: as configured or loaded; its forwarding address may be a list, joined by commas.
        record_id: of its record; 0 where it stands in the configuration alone.
        parse_filter: a selector's text to a Filter.

    Attributes:
        targets: where its copies go.

    Raises:
        BrokerError: its filter cannot be read.
    """

    __slots__ = ("_filter", "is_exclusive", "record", "record_id", "targets")

    def __init__(
        self,
        record: DivertRecord,
        record_id: int = 0,
        *,
        parse_filter: Callable[[str], Filter | None],
    ) -> None:
        self.record = record
        self.record_id = record_id
        self.is_exclusive = record.exclusive
        self._filter: Filter | None = parse_filter(record.filter) if record.filter else None
        targets = (record.forwarding_address or "").split(",")
        self.targets = [target.strip() for target in targets if target.strip()]

    @property
    def unique_name(self) -> str:
        """What `_AMQ_ORIG_QUEUE` of its copies says."""
        return self.record.name or self.record.routing_name or f"divert-{self.record_id}"

    def takes(self, message: Message) -> bool:
        """Whether it forwards this message."""
        return self._filter is None or self._filter.matches(message)

    def copies(self, message: Message, copy_of: Callable[[Message], Message]) -> Iterator[Message]:
        """Give a copy for each of its addresses but the one the message came from.

        Each is made when it is asked for: the one before it is on its way then.

        Args:
            message: that it takes.
            copy_of: makes the copies.
        """
        for target in self.targets:
            if target != message.address:
                copy = copy_of(message)
                self._address(copy, message, target)
                yield copy

    def _address(self, copy: Message, message: Message, target: str) -> None:
        expiration = message.expiration
        # A bridge's list is for the address it was sent to.
        copy.remove("_AMQ_ROUTE_TO")
        mark_original(copy, message, self.unique_name)
        copy.expiration = expiration
        copy.address = target
        kind = self.record.routing_type
        if kind == RoutingType.STRIP:
            copy.routing_type = None
        elif kind != RoutingType.PASS:
            copy.routing_type = kind
