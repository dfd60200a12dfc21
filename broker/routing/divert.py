"""Messages to one address go, or go as well, to others.

The copy has an id of its own and says where it came from; its expiration stays. Without a routing
type of its own (STRIP) it goes to both kinds of queues; PASS keeps the sender's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.errors import BrokerError, ErrorCode
from broker.model.routing_type import RoutingType
from broker.routing.bindings import Binding, BindingType
from broker.routing.message_copies import mark_original
from broker.routing.queue_ids import ROUTE_TO
from broker.routing.transformers import make_transformer, transformed

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.model.message import Message
    from broker.queues.filter import Filter
    from broker.records.binding_records import Divert
    from broker.routing.bindings import RoutingContext
    from broker.routing.transformers import Transformer

__all__ = ["DivertBinding"]


class DivertBinding(Binding):
    """See the module's text.

    Args:
        record: as configured or loaded; its forwarding address may be a list, joined by commas.
        binding_id: of its record; 0 where it stands in the configuration alone.
        parse_filter: a selector's text to a Filter.

    Attributes:
        record: as given.
        targets: where its copies go.

    Raises:
        BrokerError: its filter cannot be read; its transformer is not installed.
    """

    __slots__ = ("_transformer", "record", "targets")

    def __init__(
        self,
        record: Divert,
        binding_id: int = 0,
        *,
        parse_filter: Callable[[str], Filter | None],
    ) -> None:
        super().__init__(
            BindingType.DIVERT,
            address=record.address or "",
            # `_AMQ_ORIG_QUEUE` of its copies says it.
            unique_name=record.name or record.routing_name or f"divert-{binding_id}",
            routing_name=record.routing_name,
            routing_type=record.routing_type,
            binding_id=binding_id,
            filter=parse_filter(record.filter) if record.filter else None,
            is_exclusive=record.exclusive,
        )
        self.record = record
        self._transformer: Transformer | None = None
        wanted = record.transformer
        if wanted is not None and wanted.class_name:
            properties = {key or "": value or "" for key, value in wanted.properties}
            try:
                self._transformer = make_transformer(wanted.class_name, properties)
            except ValueError as error:
                raise BrokerError(
                    ErrorCode.ILLEGAL_STATE, f"divert {self.unique_name}: {error}"
                ) from None
        targets = (record.forwarding_address or "").split(",")
        self.targets = [target.strip() for target in targets if target.strip()]

    def route(self, message: Message, routing: RoutingContext) -> None:
        """Send a copy on to each of its addresses but the one the message came from.

        Each is made when the one before it has been routed.

        Raises:
            BrokerError: its transformer failed; the message is refused.
        """
        for target in self.targets:
            if target != message.address:
                copy = routing.copy_of(message)
                self._address(copy, message, target)
                if self._transformer is not None:
                    copy = self._transformed(self._transformer, copy)
                routing.forward(copy)

    def _transformed(self, transformer: Transformer, copy: Message) -> Message:
        try:
            made = transformed(transformer, copy)
        except Exception as error:
            raise BrokerError(
                ErrorCode.ILLEGAL_STATE,
                f"divert {self.unique_name}: its transformer failed: "
                f"{type(error).__name__}: {error}",
            ) from error
        made.message_id = copy.message_id
        return made

    def describe(self) -> str:
        """Give it as lists of management show it."""
        return f"Divert [name={self.unique_name}]"

    def _address(self, copy: Message, message: Message, target: str) -> None:
        expiration = message.expiration
        # A bridge's list is for the address it was sent to.
        copy.remove(ROUTE_TO)
        mark_original(copy, message, self.unique_name)
        copy.expiration = expiration
        copy.address = target
        if self.routing_type == RoutingType.STRIP:
            copy.routing_type = None
        elif self.routing_type != RoutingType.PASS:
            copy.routing_type = self.routing_type
