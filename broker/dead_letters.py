"""Messages delivered too often, too late, or again after a while.

    given back    count < max-delivery-attempts ─▶ the head of its queue, at once or later
                  else ─▶ the dead letter address
    expired       ─▶ the expiry address

What is moved is a copy with an id of its own, in one transaction with the acknowledgement of the
original. Without an address, or with one that has no queue, the message is dropped.
"""

from __future__ import annotations

import logging
import random
import struct
from typing import TYPE_CHECKING, Final

from broker.large_copies import keep_as_large
from broker.notifications import NotificationType
from broker.postoffice import Routing
from broker.storage.binding_records import QueueBinding, RoutingType
from broker.storage.properties import PropertyType
from broker.transaction import Transaction
from journal.errors import RecordTooLarge

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.core import Core
    from broker.message import Message
    from broker.queue import Queue
    from broker.reference import Reference
    from broker.settings import AddressSettings

__all__ = ["ORIGINAL_ADDRESS", "ORIGINAL_QUEUE", "DeadLetters"]

log = logging.getLogger("broker")

ORIGINAL_ADDRESS: Final = "_AMQ_ORIG_ADDRESS"
ORIGINAL_QUEUE: Final = "_AMQ_ORIG_QUEUE"
ORIGINAL_ID: Final = "_AMQ_ORIG_MESSAGE_ID"
ORIGINAL_ROUTING_TYPE: Final = "_AMQ_ORIG_ROUTING_TYPE"
ACTUAL_EXPIRY: Final = "_AMQ_ACTUAL_EXPIRY"
ROUTE_TO: Final = "_AMQ_ROUTE_TO"
_QUEUE_ID: Final = struct.Struct(">q")


class DeadLetters:
    """See the module's text.

    Args:
        core: of the broker.
        random_number: 0 … 1, for redelivery-collision-avoidance-factor.
    """

    def __init__(self, core: Core, random_number: Callable[[], float] = random.random) -> None:
        self._core = core
        self._random = random_number
        self._context = core.storage.new_context()

    # --- redelivery ---------------------------------------------------------------------------

    def is_redelivered(self, reference: Reference) -> bool:
        """Decide about a reference that comes back: whether its queue keeps it.

        It has a `scheduled_ms` then if it has to wait.
        """
        queue, message = reference.queue, reference.message
        is_recorded = reference.is_recorded
        count = reference.delivery_count
        if is_recorded and count != reference.persisted_count:
            self._core.storage.update_delivery_count(queue.queue_id, message.message_id, count)
            reference.persisted_count = count
        settings = queue.settings
        if queue.binding.internal:
            return True
        if 0 < settings.max_delivery_attempts <= count:
            self.kill(reference)
            return False
        delay_ms = self._redelivery_delay_ms(settings, count)
        if delay_ms > 0:
            reference.scheduled_ms = self._core.clock_ms() + delay_ms
            if is_recorded:
                self._core.storage.update_scheduled_time(
                    queue.queue_id,
                    message.message_id,
                    reference.scheduled_ms,
                    redelivery_count=count,
                )
        return True

    def _redelivery_delay_ms(self, settings: AddressSettings, count: int) -> int:
        delay = settings.redelivery_delay_ms
        if delay <= 0:
            return 0
        wanted = delay * settings.redelivery_delay_multiplier ** max(0, count - 1)
        factor = settings.redelivery_collision_avoidance_factor
        if factor:
            wanted += wanted * factor * (self._random() * 2 - 1)
        return int(min(wanted, settings.max_redelivery_delay_ms))

    # --- moving -------------------------------------------------------------------------------

    def kill(self, reference: Reference) -> None:
        """Move a reference, which waits or is being delivered, to the dead letter address."""
        queue = reference.queue
        settings = queue.settings
        target = settings.dead_letter_address
        if target:
            self._create_resources(
                queue,
                target,
                is_wanted=settings.auto_create_dead_letter_resources,
                prefix=settings.dead_letter_queue_prefix,
                suffix=settings.dead_letter_queue_suffix,
            )
        queue.killed_count += 1
        self._core.counters.killed += 1
        if not target or not self._has_bindings(target):
            log.warning(
                "AMQ222149: message %d of %s was delivered %d times; dropped, for the dead letter "
                "address %s",
                reference.message.message_id,
                queue.name,
                reference.delivery_count,
                "is not set" if not target else f"{target} has no queue",
            )
            self._drop(reference)
            return
        self._send_on(reference, lambda: self._copy(reference, target))

    def expire(self, reference: Reference) -> None:
        """Move a reference, which waits or is being delivered, to the expiry address."""
        queue = reference.queue
        settings = queue.settings
        target = settings.expiry_address
        if target:
            self._create_resources(
                queue,
                target,
                is_wanted=settings.auto_create_expiry_resources,
                prefix=settings.expiry_queue_prefix,
                suffix=settings.expiry_queue_suffix,
            )
        queue.expired_count += 1
        self._core.counters.expired += 1
        self._core.notifications.message(
            NotificationType.MESSAGE_EXPIRED, reference.message, queue, reference.consumer
        )
        if not target or not self._has_bindings(target):
            self._drop(reference)
            return
        self._send_on(reference, lambda: self._expired_copy(reference, target))

    def _expired_copy(self, reference: Reference, target: str) -> Message:
        copy = self._copy(reference, target)
        copy.set(ACTUAL_EXPIRY, PropertyType.LONG, self._core.clock_ms())
        return copy

    def move_to_queue(
        self,
        reference: Reference,
        target: Queue,
        *,
        address: str | None = None,
        rejects_duplicates: bool = False,
    ) -> bool:
        """Move a reference that waits, or is not due yet, to another queue; whether it was moved.

        Args:
            reference: of a queue.
            target: which gets it, whatever its filter.
            address: what the message says it was sent to; None is the target's.
            rejects_duplicates: what the target's address has seen stays where it is.

        Raises:
            RecordTooLarge: the storage has no room for the copy; the reference is where it was.
        """
        if target.is_deleted:
            return False
        if rejects_duplicates:
            ids = self._core.postoffice.duplicates.ids_of(reference.message, target.binding.address)
            if any(duplicate_id in cache for cache, duplicate_id in ids):
                return False
        return self._move(
            reference,
            lambda: self._copy_for(reference, target, address),
            rejects_duplicates=rejects_duplicates,
        )

    def copy_to_queue(self, reference: Reference, target: Queue) -> bool:
        """Send a copy of a message to another queue, whatever its filter; whether it was there.

        Raises:
            RecordTooLarge: the storage has no room for the copy.
        """
        if target.is_deleted:
            return False
        tx, is_routed = self._route(lambda: self._copy_for(reference, target))
        tx.commit(self._context, self._moved)
        return is_routed

    def _copy_for(self, reference: Reference, target: Queue, address: str | None = None) -> Message:
        copy = self._copy(reference)
        copy.address = address or target.binding.address
        copy.set(ROUTE_TO, PropertyType.BYTES, _QUEUE_ID.pack(target.queue_id))
        return copy

    def _has_bindings(self, address: str) -> bool:
        return self._core.postoffice.has_queues(address)

    def _drop(self, reference: Reference) -> None:
        """Acknowledge it in its queue, whatever its kind."""
        tx = Transaction(self._core)
        self._commit_without(reference, tx)

    def _send_on(self, reference: Reference, make: Callable[[], Message]) -> None:
        """Move a reference to an address; where no queue takes it, it is gone."""
        try:
            self._move(reference, make, is_kept=False)
        except RecordTooLarge as error:
            # Left where it is it would come here again and again.
            log.error(
                "AMQ222149: message %d of %s is dropped: with what is noted in it the storage has "
                "no room for it: %s",
                reference.message.message_id,
                reference.queue.name,
                error,
            )
            self._drop(reference)

    def _move(
        self,
        reference: Reference,
        make: Callable[[], Message],
        *,
        is_kept: bool = True,
        rejects_duplicates: bool = False,
    ) -> bool:
        """Route a copy of a reference and acknowledge it, at once; whether that was done.

        Args:
            reference: that waits, is not due yet, or is being delivered.
            make: gives the copy; may be called twice.
            is_kept: where no queue takes the copy, it stays.
            rejects_duplicates: the target sees the copy's duplicate id.

        Raises:
            RecordTooLarge: the storage has no room for the copy; nothing was done.
        """
        tx, is_routed = self._route(make, rejects_duplicates=rejects_duplicates)
        if is_kept and not is_routed:
            tx.rollback(self._context)
            return False
        self._commit_without(reference, tx)
        return True

    def _commit_without(self, reference: Reference, tx: Transaction) -> None:
        if reference.level >= 0 or reference.scheduled_ms:
            # Only now: what raises before leaves it in its queue.
            reference.queue.take(reference)
        tx.acknowledge(reference)
        tx.commit(self._context, self._moved)

    def _moved(self, error: Exception | None) -> None:
        """Nobody waits for it: a storage that failed has stopped the broker."""

    def _route(
        self, make: Callable[[], Message], *, rejects_duplicates: bool = False
    ) -> tuple[Transaction, bool]:
        """Route a copy in a transaction of its own; that, and whether any queue takes it.

        What fits the storage no more with what is noted in it is kept as a large message
        (QueueImpl.makeCopy).

        Raises:
            RecordTooLarge: it does not fit as a large message either, or the store keeps none.
        """
        try:
            return self._try_to_route(make(), rejects_duplicates=rejects_duplicates)
        except RecordTooLarge:
            copy, files = make(), self._core.large
            if files is None or copy.is_large:
                self._core.postoffice.drop_body(copy)
                raise
            keep_as_large(copy, files)
            return self._try_to_route(copy, rejects_duplicates=rejects_duplicates)

    def _try_to_route(self, copy: Message, *, rejects_duplicates: bool) -> tuple[Transaction, bool]:
        tx = Transaction(self._core)
        try:
            result = self._core.postoffice.route(
                copy, self._context, tx, rejects_duplicates=rejects_duplicates
            )
        except RecordTooLarge:
            tx.rollback(self._context)
            raise
        finally:
            if copy.is_large and copy.references == 0:
                self._core.postoffice.drop_body(copy)
        return tx, result is Routing.ROUTED

    # --- the copy -----------------------------------------------------------------------------

    def copy_of(self, message: Message) -> Message:
        """Give a copy with an id of its own; a large one shares the bytes of its body."""
        copy = message.copy()
        copy.message_id = self._core.storage.new_id()
        if message.large is not None:
            copy.large = message.large.copy(copy.message_id)
        return copy

    def _copy(self, reference: Reference, address: str | None = None) -> Message:
        copy = self.copy_of(reference.message)
        # What was moved before gets the routing type back that it had at first (QueueImpl.move).
        first_type = reference.message.get(ORIGINAL_ROUTING_TYPE)
        self.mark_original(copy, reference.message, reference.queue.name)
        copy.expiration = 0
        if address is not None:
            copy.address = address
        copy.routing_type = None
        if first_type in (RoutingType.MULTICAST, RoutingType.ANYCAST):
            copy.routing_type = RoutingType(int(first_type))
        return copy

    def mark_original(self, copy: Message, original: Message, queue_name: str | None) -> None:
        """Note in a copy where it came from; it expires no more."""
        kind = original.routing_type
        # The copy may be the original: read before it is changed.
        address, message_id = original.address, original.message_id
        if queue_name is None:
            copy.set(ORIGINAL_QUEUE, PropertyType.NULL, None)
        else:
            copy.set(ORIGINAL_QUEUE, PropertyType.STRING, queue_name)
        copy.set(ORIGINAL_ADDRESS, PropertyType.STRING, address)
        copy.set(ORIGINAL_ID, PropertyType.LONG, message_id)
        if kind is not None:
            copy.set(ORIGINAL_ROUTING_TYPE, PropertyType.BYTE, int(kind))
        copy.expiration = 0

    def _create_resources(
        self, queue: Queue, target: str, *, is_wanted: bool, prefix: str, suffix: str
    ) -> None:
        """Make a queue at the target that takes what came from this address alone."""
        source = queue.binding.address
        addresses = self._core.postoffice.addresses
        name = f"{prefix}{source}{suffix}"
        if not is_wanted or source == target or name in addresses.queues:
            return
        routing_type = RoutingType(self._core.settings.match(target).default_queue_routing_type)
        address = addresses.by_name.get(target)
        if address is None:
            addresses.create(target, [routing_type], is_auto_created=True)
        elif routing_type not in address.routing_types:
            addresses.update(target, [*address.routing_types, routing_type])
        quoted = source.replace("'", "''")
        addresses.create_queue(
            QueueBinding(
                name=name,
                address=target,
                filter=f"{ORIGINAL_ADDRESS} = '{quoted}'",
                metadata="",
                auto_created=True,
                routing_type=routing_type,
                auto_delete=True,
            ),
            is_durable=True,
        )
