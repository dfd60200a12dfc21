"""A discovery group: an endpoint that is listened to, and what was heard there.

    endpoint ─▶ datagram ─▶ DiscoveryEntries ─▶ listeners, who waits for the first broadcast
                               ▲ timer: silence ends an entry

Belongs to one event loop.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from broker.discovery.datagram import decode_broadcast
from broker.discovery.entries import ENTRY_COUNT_MAX, DiscoveryEntries, Heard
from broker.model.encoding import RecordFormatError

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.discovery.endpoints import Endpoint, Receiver
    from broker.discovery.entries import DiscoveryEntry

__all__ = ["DiscoveryGroup"]

log = logging.getLogger("broker")

# A timer may end a little early.
_LATE_S: Final = 0.001


class DiscoveryGroup:
    """See the module's text.

    Args:
        name: for logs.
        endpoint: what is listened to.
        refresh_timeout_ms: ms of silence that end an entry.
        own_node_id: whose broadcasts make no entry; empty for clients.
        monotonic_s: a clock that never falls.

    Attributes:
        name: as given.
    """

    def __init__(
        self,
        name: str,
        endpoint: Endpoint,
        *,
        refresh_timeout_ms: int,
        monotonic_s: Callable[[], float],
        own_node_id: str = "",
    ) -> None:
        self.name = name
        self._endpoint = endpoint
        self._monotonic_s = monotonic_s
        self._entries = DiscoveryEntries(own_node_id, refresh_timeout_ms / 1000)
        self._listeners: list[Callable[[tuple[DiscoveryEntry, ...]], object]] = []
        self._receiver: Receiver | None = None
        self._expiry: asyncio.TimerHandle | None = None
        self._received = asyncio.Event()
        self._has_refused = False
        self._is_starting = False

    @property
    def is_started(self) -> bool:
        """Whether it listens."""
        return self._receiver is not None

    @property
    def entries(self) -> tuple[DiscoveryEntry, ...]:
        """The brokers that were heard and are not silent for too long."""
        return self._entries.entries

    async def start(self) -> None:
        """Listen. Does nothing where it does so already.

        Raises:
            OSError: that is not possible on this machine.
        """
        if self.is_started or self._is_starting:
            return
        self._is_starting = True
        try:
            self._receiver = await self._endpoint.open_receiver(self._receive)
        finally:
            self._is_starting = False

    def stop(self) -> None:
        """Listen no more, and forget what was heard. Idempotent."""
        receiver, self._receiver = self._receiver, None
        if receiver is not None:
            receiver.close()
        if self._expiry is not None:
            self._expiry.cancel()
            self._expiry = None
        self._entries.clear()
        self._received.clear()

    def listen(self, listener: Callable[[tuple[DiscoveryEntry, ...]], object]) -> None:
        """Have all entries told whenever a broker comes or goes; at once where there are any."""
        self._listeners.append(listener)
        if self.entries:
            listener(self.entries)

    def unlisten(self, listener: Callable[[tuple[DiscoveryEntry, ...]], object]) -> None:
        """Have it told no more. Idempotent."""
        if listener in self._listeners:
            self._listeners.remove(listener)

    async def wait_for_broadcast(self, timeout_ms: int) -> bool:
        """Wait until a broker was heard; whether there was one.

        Args:
            timeout_ms: ms at most.
        """
        if self.entries:
            return True
        self._received.clear()
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                await self._received.wait()
        except TimeoutError:
            return False
        return True

    def _receive(self, data: bytes) -> None:
        try:
            broadcast = decode_broadcast(data)
        except RecordFormatError as error:
            # Anybody may send to the group: once is enough to tell.
            level = logging.DEBUG if self._has_refused else logging.WARNING
            self._has_refused = True
            log.log(level, "discovery group %s: a datagram was refused: %s", self.name, error)
            return
        heard = self._entries.receive(broadcast, self._monotonic_s())
        if Heard.DUPLICATE_NODE in heard:
            log.warning(
                "AMQ212034: There are more than one servers on the network broadcasting the same "
                "node id. If a node was restarted, this is logged once and can be ignored. If it "
                "is logged again and again, two brokers are active with the same node id: a backup "
                "beside its primary, or a broker on a copy of another one's data. nodeID=%s",
                broadcast.node_id,
            )
        if Heard.TOO_MANY in heard:
            log.warning(
                "discovery group %s: more than %d brokers are heard; the others are left out",
                self.name,
                ENTRY_COUNT_MAX,
            )
        self._settle(heard)
        if self.entries:
            self._received.set()

    def _settle(self, heard: Heard) -> None:
        self._time_expiry()
        if Heard.CHANGED in heard:
            entries = self.entries
            for listener in tuple(self._listeners):
                listener(entries)

    def _time_expiry(self) -> None:
        """Have one timer, for the entry that is silent for longest."""
        if self._expiry is None:
            next_s = self._entries.next_expiry_s
            if next_s is not None:
                delay_s = max(0.0, next_s - self._monotonic_s()) + _LATE_S
                self._expiry = asyncio.get_running_loop().call_later(delay_s, self._expire)

    def _expire(self) -> None:
        self._expiry = None
        self._settle(self._entries.expire(self._monotonic_s()))
