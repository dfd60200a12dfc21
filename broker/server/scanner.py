"""What has to be looked for from time to time: expired messages, queues that are not needed.

A queue or address is deleted only if two looks in a row found it unneeded, so that one that is just
being used is spared (PostOfficeImpl.reapAddresses).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from broker.ports import Settings, Timers
    from broker.queues.queue import Queue
    from broker.routing.address import Address
    from broker.routing.addresses import Addresses

__all__ = ["AddressScanner", "ExpiryScanner"]

# References looked at in one turn of the event loop.
_LOOK_COUNT: Final = 1000


class ExpiryScanner:
    """Moves expired messages to their expiry addresses, some in each turn of the loop.

    Args:
        timers: turns of the event loop.
        queues: all there are, by name.
    """

    def __init__(self, timers: Timers, queues: Mapping[str, Queue]) -> None:
        self._timers = timers
        self._all_queues = queues
        self._work: Iterator[None] | None = None

    def scan(self) -> None:
        """Begin a scan of all queues, unless one is under way."""
        if self._work is None:
            self._work = self._steps()
            self._go_on()

    def _go_on(self) -> None:
        if self._work is None:
            return
        for _ in self._work:
            self._timers.call_soon(self._go_on)
            return
        self._work = None

    def _steps(self) -> Iterator[None]:
        for queue in list(self._all_queues.values()):
            if queue.pages is not None and queue.waiting.count == 0:
                # What expires in pages is found as it comes into memory.
                queue.pages.look_ahead(_LOOK_COUNT)
            if not queue.has_expiring:
                continue
            cursor = queue.waiting.cursor()
            try:
                count = 0
                while not queue.is_deleted:
                    reference = cursor.advance_made()
                    if reference is None:
                        break
                    if reference.message.expiration:
                        queue.expire_if_due(reference)
                    count += 1
                    if count % _LOOK_COUNT == 0:
                        yield
            finally:
                cursor.close()


class AddressScanner:
    """Deletes auto-created queues and addresses that are not needed.

    Args:
        addresses: all there are, with their queues.
        settings: of addresses.
        clock_ms: wall clock, ms since 1970.
    """

    def __init__(
        self, addresses: Addresses, settings: Settings, clock_ms: Callable[[], int]
    ) -> None:
        self._all_addresses = addresses
        self._settings = settings
        self._clock_ms = clock_ms
        self._queues: set[Queue] = set()
        self._addresses: set[Address] = set()

    def scan(self, *, at_once: bool = False) -> int:
        """Delete what was unneeded the last time too; with `at_once` without a second look.

        At the start of a broker empty auto-created queues go at once.
        """
        addresses = self._all_addresses
        unneeded = {
            queue for queue in addresses.queues.values() if self._is_unneeded(queue, at_once)
        }
        doomed = unneeded if at_once else unneeded & self._queues
        for queue in doomed:
            addresses.delete_queue(queue.name)
        self._queues = unneeded - doomed
        unused = {
            address
            for address in addresses.by_name.values()
            if self._is_unused(address, at_once=at_once)
        }
        gone = unused if at_once else unused & self._addresses
        for address in gone:
            # What was sent here may be sent again by who has not heard of it.
            addresses.delete(address.name, keeps_ids=True)
        self._addresses = unused - gone
        return len(doomed) + len(gone)

    def _is_unneeded(self, queue: Queue, at_start: bool) -> bool:
        binding = queue.binding
        if not binding.auto_delete or queue.consumer_count or queue.is_temporary:
            return False
        most = binding.auto_delete_message_count
        if most >= 0 and (queue.has_undecided or not queue.has_at_most(most)):
            return False
        settings = queue.settings
        if at_start:
            return binding.auto_created and queue.has_at_most(0)
        if not queue.was_used and not settings.auto_delete_queues_skip_usage_check:
            return False
        idle_ms = self._clock_ms() - queue.last_consumer_left_ms
        return idle_ms >= binding.auto_delete_delay

    def _is_unused(self, address: Address, *, at_once: bool) -> bool:
        settings = self._settings.match(address.name)
        if not address.is_auto_created or address.is_temporary or address.bindings:
            return False
        if not settings.auto_delete_addresses:
            return False
        if at_once:
            return True
        if not address.was_used and not settings.auto_delete_addresses_skip_usage_check:
            return False
        idle_ms = self._clock_ms() - address.unused_since_ms
        return idle_ms >= settings.auto_delete_addresses_delay_ms
