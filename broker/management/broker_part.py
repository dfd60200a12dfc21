"""What every group of operations on a broker has: the broker and what is looked up most."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.management.invocation import Control
from broker.management.lists import Rows
from broker.model.address import Matcher

if TYPE_CHECKING:
    from broker.management.access import ManagedBroker
    from broker.queues.queue import Queue
    from broker.routing.addresses import Address
    from broker.routing.divert import Divert

__all__ = ["BrokerPart"]


class BrokerPart(Control):
    """See the module's text.

    Args:
        broker: to manage.
    """

    def __init__(self, broker: ManagedBroker) -> None:
        self._broker = broker
        self._addresses = broker.postoffice.addresses
        self._matcher = Matcher(self._addresses.wildcards)
        self._context = broker.storage.new_context()
        self._rows = Rows(broker)

    @property
    def _queues(self) -> list[Queue]:
        return self._rows.queues()

    def find_divert(self, name: str) -> tuple[Address, Divert] | None:
        """Give a divert and its address."""
        for address in self._addresses.by_name.values():
            divert = address.diverts.get(name)
            if divert is not None:
                return address, divert
        return None
