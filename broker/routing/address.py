"""One address: its name, its routing types, and what is bound to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from broker.errors import BrokerError, broker_error
from broker.records.binding_records import AddressBinding
from broker.routing.bindings import BindingType, LocalQueueBinding
from broker.routing.divert import DivertBinding

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from broker.model.routing_type import RoutingType
    from broker.queues.memory import AddressMemory
    from broker.queues.queue import Queue
    from broker.routing.bindings import Binding

__all__ = ["Address", "AddressListener", "queue_exists"]


def queue_exists(queue: Queue) -> BrokerError:
    """Give the error for a name that a queue has already."""
    return broker_error(
        "queue_exists",
        f"Queue {queue.name} already exists on address {queue.binding.address}",
    )


class Address:
    """See the module's text.

    Args:
        name: of it.
        address_id: of its record.
        routing_types: that its queues may have.
        memory: what its messages take.
        is_auto_created: it is deleted when it is unused.
        is_temporary: it goes with the connection that made it, and has no record.
        is_internal: of the broker's own.

    Attributes:
        queues: of this broker that are bound to it, by name, in the order they were made.
        diverts: likewise.
        is_paused: its queues deliver nothing.
    """

    __slots__ = (
        "_bindings",
        "address_id",
        "diverts",
        "is_auto_created",
        "is_internal",
        "is_paused",
        "is_temporary",
        "memory",
        "name",
        "queues",
        "routed_count",
        "routing_types",
        "status_record_id",
        "unrouted_count",
        "unused_since_ms",
        "was_used",
    )

    def __init__(
        self,
        name: str,
        address_id: int,
        routing_types: Iterable[RoutingType],
        memory: AddressMemory,
        *,
        is_auto_created: bool = False,
        is_temporary: bool = False,
        is_internal: bool = False,
    ) -> None:
        self.name = name
        self.address_id = address_id
        self.routing_types = set(routing_types)
        self.memory = memory
        self.is_auto_created = is_auto_created
        self.is_temporary = is_temporary
        self.is_internal = is_internal
        self._bindings: dict[tuple[BindingType, str], Binding] = {}
        self.queues: dict[str, Queue] = {}
        self.diverts: dict[str, DivertBinding] = {}
        self.is_paused = False
        self.status_record_id = 0
        self.routed_count = 0
        self.unrouted_count = 0
        self.was_used = False
        self.unused_since_ms = 0

    @property
    def bindings(self) -> Collection[Binding]:
        """All that is bound to it, in the order in which it was."""
        return self._bindings.values()

    def bind(self, binding: Binding) -> None:
        """Bind something; in the place of what had its name, if that was of its kind."""
        self._bindings[binding.binding_type, binding.unique_name] = binding
        if isinstance(binding, LocalQueueBinding):
            self.queues[binding.unique_name] = binding.queue
        elif isinstance(binding, DivertBinding):
            self.diverts[binding.unique_name] = binding

    def unbind(self, binding_type: BindingType, name: str) -> Binding:
        """Undo it; what was bound.

        Raises:
            KeyError: nothing of this kind and name is bound.
        """
        binding = self._bindings.pop((binding_type, name))
        if binding_type is BindingType.LOCAL_QUEUE:
            del self.queues[name]
        elif binding_type is BindingType.DIVERT:
            del self.diverts[name]
        return binding

    def binding(self) -> AddressBinding:
        """Give its record."""
        return AddressBinding(
            name=self.name,
            # In the order of EnumSet, by number.
            routing_types=tuple(sorted(self.routing_types)),
            auto_created=self.is_auto_created,
            internal=self.is_internal,
        )


class AddressListener(Protocol):
    """Who follows addresses and queues; `broker.routing.retroactive` does."""

    def address_created(self, address: Address) -> None:
        """A new address has its record."""

    def address_deleted(self, name: str) -> None:
        """An address is gone, with its queues and diverts."""

    def queue_created(self, queue: Queue) -> None:
        """A new queue has its record."""
