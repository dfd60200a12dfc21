"""The last messages of an address, kept for queues that are created later.

    address a ─▶ divert ─▶ $.artemis.internal.a.address.retro ─▶ a ring queue a routing type
    new queue of a ◀─ copies of what is in the ring of its routing type, as far as its filter fits

An address that is created while `retroactive-message-count` holds for it gets these resources, by
Artemis's names (ResourceNames), and keeps them until it is deleted; the rings follow the setting.

Threads: the event loop's alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker.model.routing_type import RoutingType
from broker.notifications import NotificationType
from broker.records.binding_records import Divert
from broker.routing.divert import DivertBinding
from broker.routing.large_copies import await_body
from broker.settings.queue_defaults import QueueRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from broker.notifications import Notifications
    from broker.ports import Settings, Timers
    from broker.queues.filter import Filter
    from broker.queues.queue import Queue
    from broker.routing.address import Address
    from broker.routing.postoffice import PostOffice
    from broker.storage.manager import StorageManager

__all__ = ["Retroactive", "is_retroactive"]

_SUFFIX: Final = "retro"
_TYPES: Final = (RoutingType.MULTICAST, RoutingType.ANYCAST)


def is_retroactive(retroactive: Retroactive | None, name: str) -> bool:
    """Whether an address, queue or divert of this name is one of these resources."""
    return retroactive is not None and retroactive.is_resource(name)


class Retroactive:
    """See the module's text.

    Args:
        postoffice: of the broker.
        storage: where records go.
        timers: of the event loop.
        settings: of addresses.
        notifications: who tells of diverts.
        parse_filter: a selector's text to a Filter.
        prefix: of names of the broker's own (internal-naming-prefix).
        delimiter: of words in names.
    """

    def __init__(
        self,
        *,
        postoffice: PostOffice,
        storage: StorageManager,
        timers: Timers,
        settings: Settings,
        notifications: Notifications,
        parse_filter: Callable[[str], Filter | None],
        prefix: str,
        delimiter: str,
    ) -> None:
        self._postoffice = postoffice
        self._addresses = postoffice.addresses
        self._storage = storage
        self._timers = timers
        self._settings = settings
        self._notifications = notifications
        self._parse_filter = parse_filter
        self._prefix = prefix
        self._delimiter = delimiter
        self._context = storage.new_context()
        settings.on_change(self._settings_changed)

    def close(self) -> None:
        """The broker has stopped. Idempotent."""
        self._settings.off_change(self._settings_changed)

    def is_resource(self, name: str) -> bool:
        """Whether an address, queue or divert of this name is one of these resources."""
        return name.startswith(self._prefix) and name.endswith(_SUFFIX)

    def _name(self, address: str, kind: str) -> str:
        return self._prefix + self._delimiter.join((address, kind, _SUFFIX))

    def _queue_name(self, address: str, routing_type: RoutingType) -> str:
        return self._name(address, f"queue{self._delimiter}{routing_type.name.lower()}")

    # --- what happens to addresses and queues -------------------------------------------------

    def address_created(self, address: Address) -> None:
        """Make the resources of a new address that wants them."""
        count = self._settings.match(address.name).retroactive_message_count
        if count <= 0 or address.is_internal or address.is_temporary:
            return
        if self.is_resource(address.name):
            return
        addresses = self._addresses
        target = self._name(address.name, "address")
        if target not in addresses.by_name:
            addresses.create(target, _TYPES)
        for routing_type in _TYPES:
            name = self._queue_name(address.name, routing_type)
            if name not in addresses.queues:
                request = QueueRequest(
                    name=name,
                    address=target,
                    routing_type=routing_type,
                    max_consumers=0,
                    ring_size=count,
                )
                binding = request.binding(self._settings.match(target))
                addresses.create_queue(binding, is_durable=True)
        record = Divert(
            name=self._name(address.name, "divert"),
            address=address.name,
            forwarding_address=target,
            routing_name=None,
            exclusive=False,
            filter=None,
            routing_type=RoutingType.PASS,
            transformer=None,
        )
        record_id = self._storage.add_setting(record)
        divert = DivertBinding(record, record_id, parse_filter=self._parse_filter)
        addresses.bind(divert)
        self._notifications.binding(NotificationType.BINDING_ADDED, divert)

    def address_deleted(self, name: str) -> None:
        """Remove the resources of an address; its divert went with it."""
        addresses = self._addresses
        target = self._name(name, "address")
        if target in addresses.by_name:
            addresses.delete(target, force=True)

    def queue_created(self, queue: Queue) -> None:
        """Copy what the ring has to a new queue; large bodies in later turns."""
        address = queue.binding.address
        if self._settings.match(address).retroactive_message_count <= 0:
            return
        name = self._queue_name(address, RoutingType(queue.binding.routing_type))
        ring = self._addresses.queues.get(name)
        if ring is not None and ring is not queue:
            self._go_on(self._copy(ring, queue))

    def _go_on(self, copying: Generator[float, None, None]) -> None:
        for delay_s in copying:
            self._timers.call_later(delay_s, self._go_on, copying)
            return

    def _copy(self, ring: Queue, target: Queue) -> Generator[float, None, None]:
        for reference in list(ring.references()):
            message = reference.message
            if target.filter is not None and not target.filter.matches(message):
                continue
            copy = message.copy()
            copy.message_id = self._storage.new_id()
            if message.large is not None:
                copy.large = yield from await_body(
                    message.large, copy.message_id, is_durable=message.durable
                )
            copy.address = target.binding.address
            if target.is_deleted:
                self._postoffice.drop_body(copy)
                return
            # Not by its address: the divert would take it again.
            self._postoffice.enqueuer.put(copy, [target], self._context, None)

    def _settings_changed(self) -> None:
        addresses = self._addresses
        for name in addresses.by_name:
            for routing_type in _TYPES:
                ring = addresses.queues.get(self._queue_name(name, routing_type))
                if ring is None:
                    continue
                count = self._settings.match(name).retroactive_message_count
                if ring.binding.ring_size != count:
                    addresses.update_queue(ring.name, ring_size=count)
