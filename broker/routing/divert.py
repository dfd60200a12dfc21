"""Messages to one address go, or go as well, to others.

The copy has an id of its own and says where it came from; its expiration stays. Without a routing
type of its own (STRIP) it goes to both kinds of queues; PASS keeps the sender's.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from broker.model.routing_type import RoutingType

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker.core import Core
    from broker.model.message import Message
    from broker.queues.consumer import Filter
    from broker.records.binding_records import Divert as DivertRecord
    from broker.storage.context import OperationContext
    from broker.transactions.transaction import Transaction

__all__ = ["Divert"]


class Divert:
    """See the module's text.

    Args:
        core: of the broker.
        record: as configured or loaded; its forwarding address may be a list, joined by commas.
        record_id: of its record; 0 where it stands in the configuration alone.

    Raises:
        BrokerError: its filter cannot be read.
    """

    __slots__ = ("_core", "_filter", "_targets", "is_exclusive", "record", "record_id")

    def __init__(self, core: Core, record: DivertRecord, record_id: int = 0) -> None:
        self._core = core
        self.record = record
        self.record_id = record_id
        self.is_exclusive = record.exclusive
        self._filter: Filter | None = core.parse_filter(record.filter) if record.filter else None
        targets = (record.forwarding_address or "").split(",")
        self._targets = [target.strip() for target in targets if target.strip()]

    @property
    def unique_name(self) -> str:
        """What `_AMQ_ORIG_QUEUE` of its copies says."""
        return self.record.name or self.record.routing_name or str(uuid.uuid4())

    def takes(self, message: Message) -> bool:
        """Whether it forwards this message."""
        return self._filter is None or self._filter.matches(message)

    def forward(
        self, message: Message, context: OperationContext, tx: Transaction | None, depth: int
    ) -> None:
        """Send a copy to each of its addresses but the one it came from."""
        for target in self._targets:
            if target == message.address:
                continue
            copy = self._core.dead_letters.copy_of(message)
            self._address(copy, message, target)
            self._core.postoffice.route(copy, context, tx, rejects_duplicates=False, depth=depth)

    def copies(self, message: Message) -> Iterator[Message]:
        """Give what forward() would send, without ids and bodies: for those who look ahead."""
        for target in self._targets:
            if target != message.address:
                copy = message.copy()
                self._address(copy, message, target)
                yield copy

    def _address(self, copy: Message, message: Message, target: str) -> None:
        expiration = message.expiration
        # A bridge's list is for the address it was sent to.
        copy.remove("_AMQ_ROUTE_TO")
        self._core.dead_letters.mark_original(copy, message, self.unique_name)
        copy.expiration = expiration
        copy.address = target
        kind = self.record.routing_type
        if kind == RoutingType.STRIP:
            copy.routing_type = None
        elif kind != RoutingType.PASS:
            copy.routing_type = kind
