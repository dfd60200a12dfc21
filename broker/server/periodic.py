"""All that an active broker does by the clock: expiry, unused queues, disks, its lock, timeouts.

Threads: the event loop's alone.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from broker.server.disk import DiskMonitor
from broker.server.scanner import AddressScanner, ExpiryScanner
from broker.server.server_dump import server_dump
from broker.server.timers import Timers
from broker.sessions.slow_consumers import SlowConsumers

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from broker.options import BrokerOptions
    from broker.server.clients import Clients
    from broker.server.composition import Parts
    from broker.server.protocols import Protocols
    from broker.server.reload import Reload
    from broker.storage.open import Stores

__all__ = ["Periodic"]

log = logging.getLogger("broker")

_LOCK_CHECK_MS: Final = 2000  # FileLockNodeManager.LOCK_MONITOR_TIMEOUT_MILLIES.
_SLOW_CONSUMER_SCAN_MS: Final = 1000  # slow-consumer-check-period is whole seconds.


class Periodic:
    """See the module's text. Runs from its making until cancel().

    Args:
        options: of the broker, periods among them, ms.
        parts: of the broker.
        clients: of the broker.
        protocols: whose connections are checked.
        stores: whose disks and lock are looked at; None without any.
        reload: what reads the configuration again; None without a file.
        loop: whose turns it takes.
        clock_ms: wall clock, ms since 1970.
        on_failure: told of an error of the storage, which ends the work that it came from.
    """

    def __init__(
        self,
        options: BrokerOptions,
        parts: Parts,
        clients: Clients,
        protocols: Protocols,
        stores: Stores | None,
        reload: Reload | None,
        *,
        loop: asyncio.AbstractEventLoop,
        clock_ms: Callable[[], int],
        on_failure: Callable[[Exception], object],
    ) -> None:
        self._options = options
        self._parts = parts
        self._clients = clients
        timers = self._timers = Timers(loop, on_failure)
        all_addresses, transactions = parts.postoffice.addresses, parts.transactions
        context = parts.storage.new_context()
        expiry = ExpiryScanner(loop, all_addresses.queues)
        addresses = AddressScanner(all_addresses, options.settings, clock_ms)
        if stores is not None:
            disk = DiskMonitor(
                stores.folders,
                all_addresses.memory,
                max_usage_percent=options.max_disk_usage,
                min_free=options.min_disk_free,
            )
            disk.look()
            timers.every(options.disk_scan_period, disk.look)
            timers.every(_LOCK_CHECK_MS, stores.check_lock)
        timers.every(options.message_expiry_scan_period, expiry.scan)
        timers.every(options.address_queue_scan_period, addresses.scan)
        self._slow = SlowConsumers(
            clock_ms,
            all_addresses.queues,
            parts.notifications,
            clients.owners,
            clients.kill,
            clients.tell_slow,
        )
        timers.every(_SLOW_CONSUMER_SCAN_MS, self._look_for_slow_consumers)
        timers.every(options.transaction_timeout_scan_period, lambda: transactions.reap(context))
        timers.every(options.connection_ttl_check_interval, protocols.check)
        timers.every(options.mqtt_session_scan_interval, protocols.scan_sessions)
        timers.every(options.server_dump_interval, self._dump)
        if reload is not None:
            timers.every(options.refresh_period, reload.look)

    def cancel(self) -> None:
        """Do none of it any more. Idempotent."""
        self._timers.cancel()

    def _dump(self) -> None:
        parts = self._parts
        memory, count = parts.postoffice.addresses.memory, len(self._clients.connections)
        log.info("AMQ221004: %s", server_dump(memory, parts.paging, count))

    def _look_for_slow_consumers(self) -> None:
        """Look at all queues only if any setting asks for it: there may be very many."""
        if any(one.slow_consumer_threshold >= 0 for _, one in self._options.settings.items()):
            self._slow.look()
