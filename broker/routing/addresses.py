"""The addresses of a broker, what is bound to them, and the records of both.

    create() ─▶ Address ◀─ bind() ─ create_queue(), diverts, queues of other brokers

A queue's name is unique in the whole broker. What is created here is in memory at once and its
record on the way to the disk: who asked for it is answered after that, by his context.

Threads: the event loop's alone; nothing here waits.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, Unpack

from broker.errors import BrokerError, ErrorCode, broker_error
from broker.model.address import AddressTree
from broker.notifications import NotificationType
from broker.queues.groups import UNLIMITED_BUCKETS
from broker.queues.memory import AddressMemory
from broker.records.binding_records import AddressStatusRecord, QueueStatus, QueueStatusRecord
from broker.routing.address import Address, queue_exists
from broker.routing.bindings import BindingType, LocalQueueBinding
from broker.routing.remote_bindings import RemoteBindings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from broker.model.address import WildcardConfiguration
    from broker.model.routing_type import RoutingType
    from broker.notifications import Notifications
    from broker.paging.paging import Paging
    from broker.ports import Settings
    from broker.queues.factory import QueueFactory
    from broker.queues.memory import GlobalMemory
    from broker.queues.queue import Queue
    from broker.records.binding_records import QueueBinding, QueueBindingChanges
    from broker.routing.address import AddressListener
    from broker.routing.bindings import Binding
    from broker.routing.divert import DivertBinding
    from broker.routing.duplicates import DuplicateCaches
    from broker.storage.manager import StorageManager

__all__ = ["Addresses"]

# More names that have changed are as good as all of them.
CHANGED_MAX: Final = 1000


class Addresses:
    """See the module's text.

    Args:
        storage: where records go.
        clock_ms: wall clock, ms since 1970.
        settings: of addresses.
        notifications: who tells of what happens.
        queue_factory: makes queues.
        duplicates: ids that addresses have seen.
        memory: of all addresses.
        wildcards: how names with wildcards are written.

    Attributes:
        by_name: all addresses.
        queues: all queues, by name.
        queues_by_id: the same, by id.
        version: rises with every change of what is bound to what, of settings, of permissions.
        changed_names: of addresses with such a change since routing has looked; None is any.
        patterns: the addresses with wildcards in their names, where these route.
        remote: queues of other brokers.
        paging: of the broker; None where nothing is kept. Set once, by the composition root,
            before the first address is made: paging needs addresses.
        listener: told of addresses and queues, if there is one. Set once, likewise.
    """

    def __init__(
        self,
        *,
        storage: StorageManager,
        clock_ms: Callable[[], int],
        settings: Settings,
        notifications: Notifications,
        queue_factory: QueueFactory,
        duplicates: DuplicateCaches,
        memory: GlobalMemory,
        wildcards: WildcardConfiguration,
    ) -> None:
        self._storage = storage
        self._clock_ms = clock_ms
        self._settings = settings
        self._notifications = notifications
        self._queue_factory = queue_factory
        self._duplicates = duplicates
        self.paging: Paging | None = None
        self.listener: AddressListener | None = None
        self.memory = memory
        self.wildcards = wildcards
        self.by_name: dict[str, Address] = {}
        self.queues: dict[str, Queue] = {}
        self.queues_by_id: dict[int, Queue] = {}
        self.version = 0
        # Those with wildcards in their names, which other addresses have to ask.
        self.patterns: AddressTree[Address] = AddressTree(wildcards)
        self.remote = RemoteBindings(wildcards, self.changed)
        self.changed_names: set[str | None] = set()

    def changed(self, name: str | None = None) -> None:
        """What is bound to an address has changed; None where more may have: of any, settings."""
        self.version += 1
        is_one = name is not None and not self.wildcards.is_wild(name)
        self.changed_names.add(name if is_one and len(self.changed_names) < CHANGED_MAX else None)

    # --- addresses ----------------------------------------------------------------------------

    def get(self, name: str) -> Address:
        """Give an address.

        Raises:
            BrokerError: there is none of that name.
        """
        found = self.by_name.get(name)
        if found is None:
            raise broker_error("no_such_address", f"Address Does Not Exist: {name}")
        return found

    def create(
        self,
        name: str,
        routing_types: Iterable[RoutingType],
        *,
        is_auto_created: bool = False,
        is_temporary: bool = False,
        is_internal: bool = False,
    ) -> Address:
        """Make an address and record it, unless it is temporary.

        Raises:
            BrokerError: there is one of that name, or the disk is full.
        """
        if name in self.by_name:
            raise broker_error("address_exists", f"Address already exists: {name}")
        address = self.load(
            name,
            self._storage.new_id(),
            routing_types,
            is_auto_created=is_auto_created,
            is_temporary=is_temporary,
            is_internal=is_internal,
        )
        if not is_temporary:
            try:
                self._storage.add_binding(address.address_id, address.binding())
            except BrokerError:
                self._forget_address(address)
                raise
        self._notifications.address(NotificationType.ADDRESS_ADDED, address)
        if self.listener is not None:
            self.listener.address_created(address)
        return address

    def load(
        self,
        name: str,
        address_id: int,
        routing_types: Iterable[RoutingType],
        *,
        is_auto_created: bool = False,
        is_temporary: bool = False,
        is_internal: bool = False,
    ) -> Address:
        """Make an address that has a record already."""
        address = Address(
            name,
            address_id,
            routing_types,
            AddressMemory(name, self._settings, self.memory),
            is_auto_created=is_auto_created,
            is_temporary=is_temporary,
            is_internal=is_internal,
        )
        address.unused_since_ms = self._clock_ms()
        self._duplicates.back(name)
        self.by_name[name] = address
        if self._routes_others(name):
            self.patterns.add(name, address)
        self.changed(name)
        return address

    def update(self, name: str, routing_types: Iterable[RoutingType]) -> Address:
        """Give an address other routing types.

        Raises:
            BrokerError: a queue has one of those that would go.
        """
        address = self.get(name)
        wanted = set(routing_types)
        for queue in address.queues.values():
            if queue.binding.routing_type not in wanted:
                raise BrokerError(
                    ErrorCode.INVALID_QUEUE_CONFIGURATION,
                    f"AMQ229209: Can't remove routing type {queue.binding.routing_type.name}, "
                    f"queues exists for address: {name}. Please delete queues before removing "
                    "this routing type.",
                )
        if wanted == address.routing_types:
            return address
        address.routing_types = wanted
        if not address.is_temporary:
            old_id, address.address_id = address.address_id, self._storage.new_id()
            self._storage.replace_binding(old_id, address.address_id, address.binding())
            if address.status_record_id:
                # It names the address by its id.
                address.status_record_id = self._storage.replace_setting(
                    address.status_record_id,
                    AddressStatusRecord(address.address_id, QueueStatus.PAUSED),
                )
        self.changed(name)
        return address

    def delete(self, name: str, *, force: bool = False, keeps_ids: bool = False) -> None:
        """Remove an address, with `force` its queues and diverts, with `keeps_ids` not its ids.

        A configured divert is there again after a restart.

        Raises:
            BrokerError: there is none, or it has queues or diverts.
        """
        address = self.get(name)
        if address.bindings and not force:
            raise broker_error(
                "address_has_bindings", f"Address {name} has bindings, and cannot be deleted"
            )
        for queue in list(address.queues.values()):
            self.delete_queue(queue.name)
        for divert in list(address.diverts.values()):
            self.delete_divert(divert)
        for binding in list(address.bindings):
            self.unbind(binding)
        self._forget_address(address)
        self._duplicates.drop(name, keeps_ids=keeps_ids)
        if self.paging is not None:
            self.paging.address_deleted(name)
        if not address.is_temporary:
            if address.status_record_id:
                self._storage.delete_setting(address.status_record_id)
            self._storage.delete_binding(address.address_id)
        self._notifications.address(NotificationType.ADDRESS_REMOVED, address)
        if self.listener is not None:
            self.listener.address_deleted(name)

    def _routes_others(self, name: str) -> bool:
        """Whether messages to other addresses go to the queues of this one, too."""
        return self.wildcards.routing_enabled and self.wildcards.is_wild(name)

    def _forget_address(self, address: Address) -> None:
        del self.by_name[address.name]
        if self._routes_others(address.name):
            self.patterns.remove(address.name, address)
        self.changed(address.name)

    def pause(self, address: Address, *, is_paused: bool, is_kept: bool = False) -> None:
        """Let all queues of an address deliver nothing, or again; `is_kept` over a restart."""
        address.is_paused = is_paused
        if address.status_record_id:
            self._storage.delete_setting(address.status_record_id)
            address.status_record_id = 0
        if is_kept and is_paused and not address.is_temporary:
            address.status_record_id = self._storage.add_setting(
                AddressStatusRecord(address.address_id, QueueStatus.PAUSED)
            )
        for queue in address.queues.values():
            if is_paused:
                queue.pause()
            else:
                # One that was paused by itself too: it would be again after a restart.
                self.pause_queue(queue, is_paused=False)

    # --- what is bound ------------------------------------------------------------------------

    def bind(self, binding: Binding) -> None:
        """Bind something to its address; in the place of what had its name there.

        Raises:
            BrokerError: there is no such address.
        """
        self.get(binding.address).bind(binding)
        self.changed(binding.address)

    def unbind(self, binding: Binding) -> None:
        """Undo it."""
        self.by_name[binding.address].unbind(binding.binding_type, binding.unique_name)
        self.changed(binding.address)

    def find_divert(self, name: str) -> DivertBinding | None:
        """Give the divert of this name, whatever its address."""
        for address in self.by_name.values():
            divert = address.diverts.get(name)
            if divert is not None:
                return divert
        return None

    def delete_divert(self, divert: DivertBinding) -> None:
        """Remove a divert, and its record."""
        self.unbind(divert)
        if divert.binding_id:
            self._storage.delete_setting(divert.binding_id)
        self._notifications.binding(NotificationType.BINDING_REMOVED, divert)

    # --- queues -------------------------------------------------------------------------------

    def queue(self, name: str) -> Queue:
        """Give a queue.

        Raises:
            BrokerError: there is none of that name.
        """
        found = self.queues.get(name)
        if found is None:
            raise broker_error("no_such_queue", f"Queue {name} does not exist")
        return found

    def create_queue(
        self, binding: QueueBinding, *, is_durable: bool, is_temporary: bool = False
    ) -> Queue:
        """Make a queue on an address that is there, and record it if it is durable.

        Raises:
            BrokerError: a queue of that name exists, the address does not or has not its routing
                type, an attribute cannot be, or the disk is full.
        """
        if binding.name in self.queues:
            raise queue_exists(self.queues[binding.name])
        address = self.get(binding.address)
        if binding.routing_type not in address.routing_types:
            supported = ", ".join(one.name for one in sorted(address.routing_types))
            raise broker_error(
                "routing_type_not_supported",
                f"Can not create queue with routing type: {binding.routing_type.name}, Supported "
                f"routing types for address: {binding.address} are [{supported}]",
            )
        if binding.group_buckets < UNLIMITED_BUCKETS:
            raise BrokerError(
                ErrorCode.INTERNAL_ERROR,
                f"queue {binding.name}: group-buckets is {binding.group_buckets}; it is -1 or more",
            )
        is_durable = is_durable and not is_temporary
        queue = self.load_queue(
            binding, self._storage.new_id(), is_durable=is_durable, is_temporary=is_temporary
        )
        if address.is_paused:
            queue.pause()
        if is_durable:
            try:
                self._storage.add_binding(queue.queue_id, binding)
            except BrokerError:
                self._forget_queue(queue)
                raise
        self._notifications.binding(NotificationType.BINDING_ADDED, LocalQueueBinding(queue))
        if self.listener is not None:
            self.listener.queue_created(queue)
        return queue

    def _forget_queue(self, queue: Queue) -> Binding:
        """Take a queue out of all lists; what bound it."""
        queue.delete()
        del self.queues[queue.name]
        del self.queues_by_id[queue.queue_id]
        address = self.by_name[queue.binding.address]
        bound = address.unbind(BindingType.LOCAL_QUEUE, queue.name)
        address.unused_since_ms = self._clock_ms()
        self.changed(address.name)
        if self.paging is not None:
            self.paging.queue_deleted(queue)
        return bound

    def load_queue(
        self, binding: QueueBinding, queue_id: int, *, is_durable: bool, is_temporary: bool = False
    ) -> Queue:
        """Make a queue that needs no new record."""
        queue = self._queue_factory.make(
            queue_id,
            binding,
            is_durable=is_durable,
            is_temporary=is_temporary,
            auto_delete=self.auto_delete,
        )
        self.queues[binding.name] = queue
        self.queues_by_id[queue_id] = queue
        address = self.by_name[binding.address]
        address.bind(LocalQueueBinding(queue))
        address.was_used = True
        self.changed(address.name)
        if self.paging is not None:
            self.paging.queue_added(queue)
        return queue

    def update_queue(self, name: str, **changes: Unpack[QueueBindingChanges]) -> Queue:
        """Change attributes of a queue and record them.

        Raises:
            BrokerError: there is none, or the change cannot be.
        """
        queue = self.queue(name)
        most = changes.get("max_consumers", -1)
        if -1 < most < queue.consumer_count:
            raise BrokerError(
                ErrorCode.INVALID_QUEUE_CONFIGURATION,
                f"AMQ229210: Can't update queue {name} with maxConsumers: {most}. Current "
                f"consumers are {queue.consumer_count}.",
            )
        kind = changes.get("routing_type")
        address = self.by_name[queue.binding.address]
        if kind is not None and kind not in address.routing_types:
            raise broker_error(
                "unexpected_routing_type",
                f"Invalid routing type for queue {name}: {address.name} does not support it",
            )
        binding = replace(queue.binding, **changes)
        if binding != queue.binding:
            queue.update(binding)
            if queue.is_durable:
                self._storage.update_queue_binding(queue.queue_id, binding)
            bound = LocalQueueBinding(queue)
            self.bind(bound)
            self._notifications.binding(NotificationType.BINDING_UPDATED, bound)
        return queue

    def delete_queue(
        self, name: str, *, check_consumers: bool = False, delete_address: bool = False
    ) -> None:
        """Remove a queue with all its messages.

        Args:
            name: of the queue.
            check_consumers: refuse while it has any; else they are closed.
            delete_address: remove its address too, where it was auto-created and has no other.

        Raises:
            BrokerError: there is none, or it has consumers.
        """
        queue = self.queue(name)
        if check_consumers and queue.consumer_count:
            raise broker_error(
                "queue_has_consumers",
                f"Cannot delete queue {name} on binding {queue.binding.address} - it has consumers"
                f" = {queue.consumer_count}",
            )
        if queue.is_durable:
            # Before its pages are deleted: these wait for all that was recorded by then.
            if queue.status_record_id:
                self._storage.delete_setting(queue.status_record_id)
            self._storage.delete_binding(queue.queue_id)
        bound = self._forget_queue(queue)
        self._notifications.binding(NotificationType.BINDING_REMOVED, bound)
        address = self.by_name[bound.address]
        if (
            delete_address
            and not address.bindings
            and (address.is_auto_created or address.is_temporary)
        ):
            self.delete(address.name, keeps_ids=not address.is_temporary)

    def auto_delete(self, name: str) -> bool:
        """Delete an unused queue at once; whether it was.

        Only where its delay is 0: other queues wait for the next scan().
        """
        queue = self.queues.get(name)
        if queue is None:
            return False
        binding = queue.binding
        if (
            not binding.auto_delete
            or binding.auto_delete_delay > 0
            or queue.consumer_count
            or not queue.was_used
            or (
                binding.auto_delete_message_count >= 0
                and (
                    queue.has_undecided or not queue.has_at_most(binding.auto_delete_message_count)
                )
            )
        ):
            return False
        self.delete_queue(name)
        return True

    def pause_queue(self, queue: Queue, *, is_paused: bool, is_kept: bool = False) -> None:
        """Let a queue deliver nothing, or again; `is_kept` over a restart."""
        if queue.status_record_id:
            self._storage.delete_setting(queue.status_record_id)
            queue.status_record_id = 0
        if is_kept and is_paused and queue.is_durable:
            queue.status_record_id = self._storage.add_setting(
                QueueStatusRecord(queue.queue_id, QueueStatus.PAUSED)
            )
        if is_paused:
            queue.pause()
        else:
            queue.resume()
