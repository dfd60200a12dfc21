"""Makes the queues of a broker: what all of them share is handed in once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.queues.queue import Queue

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.ports import Settings, Timers
    from broker.queues.contents import DeadLetterHandler
    from broker.queues.filter import Filter
    from broker.records.binding_records import QueueBinding
    from broker.storage.manager import StorageManager

__all__ = ["QueueFactory"]


class QueueFactory:
    """See the module's text.

    Args:
        storage: where records go.
        timers: turns and timers.
        clock_ms: wall clock, ms since 1970.
        clock_s: the same in seconds, for consumers.
        settings: of addresses.
        parse_filter: a selector's text to a Filter, None for a blank one; raises BrokerError 103.
        records_deliveries: a delivery count is recorded before the message is written
            (persist-delivery-count-before-delivery).

    Attributes:
        dead_letters: where queues send what they cannot deliver. Set once, by the composition
            root, before the first queue is made: it routes, and routes lead to queues.
    """

    dead_letters: DeadLetterHandler

    def __init__(
        self,
        *,
        storage: StorageManager,
        timers: Timers,
        clock_ms: Callable[[], int],
        clock_s: Callable[[], float],
        settings: Settings,
        parse_filter: Callable[[str], Filter | None],
        records_deliveries: bool = False,
    ) -> None:
        self._storage = storage
        self._timers = timers
        self._clock_ms = clock_ms
        self._clock_s = clock_s
        self._settings = settings
        self._parse_filter = parse_filter
        self._records_deliveries = records_deliveries

    def make(
        self,
        queue_id: int,
        binding: QueueBinding,
        *,
        is_durable: bool,
        is_temporary: bool,
        auto_delete: Callable[[str], object],
    ) -> Queue:
        """Make a queue.

        Args:
            queue_id: of its record.
            binding: name, address and attributes.
            is_durable: it has a record.
            is_temporary: it goes with the connection that made it.
            auto_delete: called with its name when it is empty and unused, if it is to go then.

        Raises:
            BrokerError: its filter cannot be read.
        """
        return Queue(
            queue_id,
            binding,
            storage=self._storage,
            timers=self._timers,
            clock_ms=self._clock_ms,
            clock_s=self._clock_s,
            settings=self._settings,
            parse_filter=self._parse_filter,
            dead_letters=self.dead_letters,
            auto_delete=auto_delete,
            is_durable=is_durable,
            is_temporary=is_temporary,
            records_deliveries=self._records_deliveries,
        )
