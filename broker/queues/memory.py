"""How much memory the messages of one address take, and of the whole broker.

A message counts once for its address however many queues have it, by `Message.memory_size`,
Artemis's own estimate. When a limit is reached, flow_control.py acts on producers, paging/ on
messages.

    size ─┬─ in queues ────────── limits of BLOCK
          └─ of transactions that may still send ─┘ of all others, and of the broker

A producer that waits for room waits for consumers. What is not committed has none: a transaction
larger than its address would wait for room that only its own commit makes.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from broker.settings.policies import AddressFullPolicy, DiskFullPolicy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from broker.model.message import Message
    from broker.ports import Settings

__all__ = ["AddressMemory", "GlobalMemory"]


class GlobalMemory:
    """What all addresses together hold.

    Args:
        size_max: bytes (global-max-size); -1 without limit.
        count_max: messages (global-max-messages); -1 without limit.

    Attributes:
        is_disk_full: a disk is fuller than it may be; see disk.py.
        disk_usage: share of the fullest disk that cannot be written any more, 0 to 1.
    """

    __slots__ = (
        "count",
        "count_max",
        "disk_usage",
        "is_disk_full",
        "on_unused",
        "size",
        "size_max",
        "waiting",
    )

    def __init__(self, size_max: int = -1, count_max: int = -1) -> None:
        self.size = 0
        self.count = 0
        self.size_max = size_max
        self.count_max = count_max
        self.is_disk_full = False
        self.disk_usage = 0.0
        # Called with a large message that no queue has any more.
        self.on_unused: Callable[[Message], object] | None = None
        # Addresses where a caller waits for room.
        self.waiting: dict[AddressMemory, None] = {}

    @property
    def is_full(self) -> bool:
        """Whether a limit is reached."""
        return (0 < self.size_max <= self.size) or (0 < self.count_max <= self.count)

    def set_disk_full(self, *, is_full: bool) -> None:
        """A disk has reached its limit, or all are within theirs again."""
        self.is_disk_full = is_full
        if not is_full:
            self.wake()

    def wake(self) -> None:
        """There is room again: resume those that wait for addresses without a reached limit."""
        for address in list(self.waiting):
            address.wake()

    def close(self, addresses: Iterable[AddressMemory]) -> None:
        """Forget all that waits: messages refer to this, and the collector does not track them.

        Args:
            addresses: all there are.
        """
        self.on_unused = None
        self.waiting.clear()
        for address in addresses:
            address.close()


class AddressMemory:
    """What the messages of one address hold, and who waits for room.

    Args:
        address: its name.
        settings: where its limits stand.
        broker: of all addresses.

    Attributes:
        size, count: bytes and messages that it holds, those of open transactions too.
        uncommitted_size, uncommitted_count: those alone.
    """

    __slots__ = (
        "_settings",
        "_waiting",
        "address",
        "broker",
        "count",
        "is_blocked",
        "size",
        "uncommitted_count",
        "uncommitted_size",
    )

    def __init__(self, address: str, settings: Settings, broker: GlobalMemory) -> None:
        self.address = address
        self.broker = broker
        self.size = 0
        self.count = 0
        self.uncommitted_size = 0
        self.uncommitted_count = 0
        # An operator lets producers wait, whatever the limits.
        self.is_blocked = False
        self._settings = settings
        self._waiting: deque[Callable[[], object]] = deque()

    @property
    def is_full(self) -> bool:
        """Whether a limit of the address, or of the broker, is reached; 0 always is."""
        return self._is_full_with(self.size, self.count)

    def _is_full_with(self, size: int, count: int) -> bool:
        if self.broker.is_full:
            return True
        settings = self._settings.match(self.address)
        return (0 <= settings.max_size_bytes <= size) or (0 <= settings.max_size_messages <= count)

    @property
    def is_blocking(self) -> bool:
        """Whether producers wait: for memory (BLOCK), or for the disk unless it says otherwise."""
        if self.is_blocked:
            return True
        settings = self._settings.match(self.address)
        if self.broker.is_disk_full and settings.disk_full_policy in (None, DiskFullPolicy.BLOCK):
            return True
        return settings.address_full_policy is AddressFullPolicy.BLOCK and self._is_full_with(
            self.size - self.uncommitted_size, self.count - self.uncommitted_count
        )

    @property
    def is_failing(self) -> bool:
        """Whether producers are refused: for memory, or for the disk."""
        settings = self._settings.match(self.address)
        if self.broker.is_disk_full:
            return settings.disk_full_policy is DiskFullPolicy.FAIL
        return settings.address_full_policy is AddressFullPolicy.FAIL and self.is_full

    def has_room(self, bytes_max: int, count_max: int) -> bool:
        """Whether nothing is full: neither the address, by these limits, nor broker nor disk."""
        broker = self.broker
        return not (
            broker.is_disk_full
            or (0 < broker.size_max <= broker.size)
            or (0 < broker.count_max <= broker.count)
            or (0 <= bytes_max <= self.size)
            or (0 <= count_max <= self.count)
        )

    def add(self, message: Message) -> None:
        """One more queue has the message, which was sent to this address."""
        message.owner = self
        message.references += 1
        if message.references == 1:
            size, broker = message.memory_size, self.broker
            self.size += size
            self.count += 1
            broker.size += size
            broker.count += 1

    def remove(self, message: Message) -> None:
        """One queue less has a message of this address."""
        message.references -= 1
        if message.references == 0:
            size, broker = message.memory_size, self.broker
            self.size -= size
            self.count -= 1
            broker.size -= size
            broker.count -= 1
            if message.is_large and broker.on_unused is not None:
                broker.on_unused(message)
            if broker.waiting:
                broker.wake()

    def add_uncommitted(self, size: int, count: int) -> None:
        """So much of what it holds is of a transaction that may still send; negative: no more."""
        self.uncommitted_size += size
        self.uncommitted_count += count

    def hold(self, size: int) -> None:
        """A message of a page is in memory; it belongs to one queue alone."""
        self.size += size
        self.count += 1
        self.broker.size += size
        self.broker.count += 1

    def free(self, size: int) -> None:
        """It is no more."""
        self.size -= size
        self.count -= 1
        self.broker.size -= size
        self.broker.count -= 1
        if self.broker.waiting:
            self.broker.wake()

    def when_there_is_room(self, callback: Callable[[], object]) -> None:
        """Call it once the address does not block, in the order of the calls."""
        self._waiting.append(callback)
        self.broker.waiting[self] = None

    def close(self) -> None:
        """Forget all that waits."""
        self._waiting.clear()

    def wake(self) -> None:
        """Resume those that wait, in order, as long as nothing blocks them."""
        waiting = self._waiting
        while waiting and not self.is_blocking:
            waiting.popleft()()
        if not waiting:
            self.broker.waiting.pop(self, None)
