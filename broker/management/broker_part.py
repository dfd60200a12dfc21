"""What every group of operations on a broker has: the broker and what is looked up most."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from broker.management.invocation import Control
from broker.management.lists import Rows
from broker.model.address import Matcher

if TYPE_CHECKING:
    from broker.management.access import ManagedBroker
    from broker.queues.queue import Queue
    from broker.routing.addresses import Addresses
    from broker.storage.context import OperationContext

__all__ = ["BrokerPart"]


class BrokerPart(Control):
    """See the module's text.

    Args:
        broker: to manage.
    """

    def __init__(self, broker: ManagedBroker) -> None:
        self._broker = broker
        self._rows = Rows(broker)

    # On first use: what a broker says of itself needs no addresses, which it has once it is loaded.

    @cached_property
    def _addresses(self) -> Addresses:
        return self._broker.parts.postoffice.addresses

    @cached_property
    def _matcher(self) -> Matcher:
        return Matcher(self._addresses.wildcards)

    @cached_property
    def _context(self) -> OperationContext:
        return self._broker.parts.storage.new_context()

    @property
    def _queues(self) -> list[Queue]:
        return self._rows.queues()
