"""Messages delivered too often, too late, or again after a while.

    given back    count < max-delivery-attempts ─▶ the head of its queue, at once or later
                  else ─▶ the dead letter address
    expired       ─▶ the expiry address

How it is moved: message_mover.py. Without an address, or with one that has no queue, it is dropped.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from broker.errors import BrokerError, ErrorCode
from broker.model.properties import PropertyType
from broker.model.routing_type import RoutingType
from broker.notifications import NotificationType
from broker.records.binding_records import QueueBinding
from broker.routing.message_copies import ORIGINAL_ADDRESS
from broker.routing.message_mover import MessageMover

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.model.message import Message
    from broker.notifications import Notifications
    from broker.ports import Settings, Timers
    from broker.queues.counters import Counters
    from broker.queues.reference import Reference
    from broker.routing.message_copies import MessageCopies
    from broker.routing.postoffice import PostOffice
    from broker.settings.settings import AddressSettings
    from broker.storage.large_bodies import LargeBodies
    from broker.storage.manager import StorageManager
    from broker.transactions.xa import XaTransactions

__all__ = ["DeadLetters"]

log = logging.getLogger("broker")

ACTUAL_EXPIRY: Final = "_AMQ_ACTUAL_EXPIRY"


class DeadLetters(MessageMover):
    """See the module's text.

    Args:
        postoffice: where copies go.
        transactions: where those begin that move something.
        copies: makes them.
        storage: where records go.
        timers: of the event loop.
        clock_ms: wall clock, ms since 1970.
        settings: of addresses.
        counters: for metrics.
        notifications: who tells of expired messages.
        large: bodies of large messages; None without storage for them.
        random_number: 0 … 1, for redelivery-collision-avoidance-factor.
    """

    def __init__(
        self,
        *,
        postoffice: PostOffice,
        transactions: XaTransactions,
        copies: MessageCopies,
        storage: StorageManager,
        timers: Timers,
        clock_ms: Callable[[], int],
        settings: Settings,
        counters: Counters,
        notifications: Notifications,
        random_number: Callable[[], float],
        large: LargeBodies | None = None,
    ) -> None:
        super().__init__(
            postoffice=postoffice,
            transactions=transactions,
            copies=copies,
            storage=storage,
            timers=timers,
            large=large,
        )
        self._clock_ms = clock_ms
        self._settings = settings
        self._counters = counters
        self._notifications = notifications
        self._random = random_number

    # --- redelivery ---------------------------------------------------------------------------

    def is_redelivered(self, reference: Reference, *, is_delayed: bool = True) -> bool:
        """Decide about a reference that comes back: whether its queue keeps it.

        It has a `scheduled_ms` then if it has to wait.

        Args:
            reference: that comes back.
            is_delayed: the redelivery delay applies.
        """
        queue, message = reference.queue, reference.message
        is_recorded = reference.is_recorded
        count = reference.delivery_count
        if is_recorded and count != reference.persisted_count:
            self._storage.update_delivery_count(queue.queue_id, message.message_id, count)
            reference.persisted_count = count
        settings = queue.settings
        if queue.binding.internal:
            return True
        if 0 < settings.max_delivery_attempts <= count:
            self.kill(reference)
            return False
        delay_ms = self._redelivery_delay_ms(settings, count) if is_delayed else 0
        if delay_ms > 0:
            reference.scheduled_ms = self._clock_ms() + delay_ms
            if is_recorded:
                self._storage.update_scheduled_time(
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
        if not self._create_resources(
            reference,
            target,
            self.kill,
            is_wanted=settings.auto_create_dead_letter_resources,
            prefix=settings.dead_letter_queue_prefix,
            suffix=settings.dead_letter_queue_suffix,
        ):
            return
        queue.killed_count += 1
        self._counters.killed += 1
        self._tell_of(reference, target)
        self._leave(reference, target)

    def _tell_of(self, reference: Reference, target: str | None) -> None:
        """Log that a message leaves its queue undelivered, and where it goes."""
        if not target:
            code, end = "AMQ222150", "is dropped, for dead-letter-address is not set"
        elif not self._postoffice.has_queues(target):
            code, end = "AMQ222148", f"is dropped, for dead letter address {target} has no queue"
        else:
            code, end = "AMQ222149", f"goes to dead letter address {target}"
        log.warning(
            "%s: message %d of %s, delivered %d times, %s",
            code,
            reference.message.message_id,
            reference.queue.name,
            reference.delivery_count,
            end,
        )

    def expire(self, reference: Reference) -> None:
        """Move a reference, which waits or is being delivered, to the expiry address."""
        queue = reference.queue
        settings = queue.settings
        target = settings.expiry_address
        if not self._create_resources(
            reference,
            target,
            self.expire,
            is_wanted=settings.auto_create_expiry_resources,
            prefix=settings.expiry_queue_prefix,
            suffix=settings.expiry_queue_suffix,
        ):
            return
        queue.expired_count += 1
        self._counters.expired += 1
        self._notifications.message(
            NotificationType.MESSAGE_EXPIRED, reference.message, queue, reference.consumer
        )
        self._leave(reference, target, expired_ms=self._clock_ms())

    def _leave(
        self, reference: Reference, target: str | None, *, expired_ms: int | None = None
    ) -> None:
        """Move a reference to an address; the message is dropped where that has no queue."""
        if not target or not self._postoffice.has_queues(target):
            self._drop(reference)
            return

        def mark(copy: Message) -> None:
            self._mark(copy, reference, target)
            if expired_ms is not None:
                copy.set(ACTUAL_EXPIRY, PropertyType.LONG, expired_ms)

        self._send_on(reference, mark)

    def _create_resources(
        self,
        reference: Reference,
        target: str | None,
        again: Callable[[Reference], None],
        *,
        is_wanted: bool,
        prefix: str,
        suffix: str,
    ) -> bool:
        """Make a queue at the target that takes what came from this address alone.

        Returns:
            Whether it is there, or not wanted. Else the disk is full: `again` is called after a
            while.
        """
        source = reference.queue.binding.address
        addresses = self._postoffice.addresses
        name = f"{prefix}{source}{suffix}"
        if not target or not is_wanted or source == target or name in addresses.queues:
            return True
        routing_type = RoutingType(self._settings.match(target).default_queue_routing_type)
        quoted = source.replace("'", "''")
        binding = QueueBinding(
            name=name,
            address=target,
            filter=f"{ORIGINAL_ADDRESS} = '{quoted}'",
            metadata="",
            auto_created=True,
            routing_type=routing_type,
            auto_delete=True,
        )
        address = addresses.by_name.get(target)
        try:
            if address is None:
                addresses.create(target, [routing_type], is_auto_created=True)
            elif routing_type not in address.routing_types:
                addresses.update(target, [*address.routing_types, routing_type])
            addresses.create_queue(binding, is_durable=True)
        except BrokerError as error:
            if error.code is not ErrorCode.ADDRESS_FULL:
                raise
            self._try_later(reference, lambda: again(reference))
            return False
        return True
