"""Ids that an address has seen, and will not accept again.

    property _AMQ_DUPL_ID      a string or bytes, unique, set by the sender
    property _AMQ_BRIDGE_DUP   the same between brokers: 16 bytes of the node, 8 of the message id

Each address has a cache of its own, a circle of `id-cache-size` ids: one more overwrites the
oldest, in memory and on disk. A string counts as its UTF-16 units, low byte
first, as Artemis has it.

A send alone becomes a transaction of its own, so that id and message are recorded together: after
a crash either both are there or neither. In a transaction an id counts from the commit on; there
all messages may carry the same one, since what is accepted or refused is the whole of it.

Two transactions that are open at the same time may carry one id: whichever commits, or prepares,
first has it, and the other is rolled back. Artemis looks only when the message arrives, and
lets both through.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from broker.model.message import Message
    from broker.model.properties import PropertyValue
    from broker.ports import Settings
    from broker.storage.manager import StorageManager

__all__ = [
    "BRIDGE_ID",
    "BRIDGE_PREFIX",
    "DUPLICATE_ID",
    "KEPT_PREFIX",
    "SCALED_DOWN_NODES",
    "DuplicateCache",
    "DuplicateCaches",
    "KeptNames",
    "id_bytes",
]

DUPLICATE_ID: Final = "_AMQ_DUPL_ID"
BRIDGE_ID: Final = "_AMQ_BRIDGE_DUP"
# Bridges have a cache of their own beside that of the address (PostOfficeImpl.BRIDGE_CACHE_STR).
BRIDGE_PREFIX: Final = "BRIDGE."
# What the broker itself has to know behind a restart: never too many, recorded in any case.
KEPT_PREFIX: Final = "KEPT."
SCALED_DOWN_NODES: Final = "scaled-down-nodes"
"""Nodes that have stopped for good, and whose messages are here (KeptNames)."""
_UNLIMITED: Final = 2**31 - 1
ID_CACHE_SIZE_DEFAULT: Final = 20_000  # id-cache-size


def id_bytes(value: PropertyValue) -> bytes | None:
    r"""Give the bytes that count for a property's value; None for one that is not an id.

    >>> id_bytes("a"), id_bytes(b"a"), id_bytes(7)
    (b'a\x00', b'a', None)
    """
    if isinstance(value, str):
        return value.encode("utf-16-le", "surrogatepass")
    return value if isinstance(value, bytes) else None


class DuplicateCache:
    """The ids of one address.

    Args:
        storage: where records go.
        address: as it stands in the records.
        size: ids at most; 0 remembers none.
        is_persistent: they are recorded.

    Attributes:
        rejected_count: how many sends were refused.
    """

    __slots__ = (
        "_circle",
        "_ids",
        "_is_persistent",
        "_position",
        "_storage",
        "address",
        "rejected_count",
        "size",
    )

    def __init__(
        self, storage: StorageManager, address: str, size: int, *, is_persistent: bool
    ) -> None:
        self._storage = storage
        self.address = address
        self.size = size
        self._is_persistent = is_persistent
        self._circle: list[tuple[bytes, int]] = []
        self._position = 0
        self._ids: set[bytes] = set()
        self.rejected_count = 0

    def __len__(self) -> int:
        return len(self._circle)

    def __contains__(self, duplicate_id: bytes) -> bool:
        return duplicate_id in self._ids

    def ids(self) -> list[bytes]:
        """Give all of them, the oldest first."""
        in_order = self._circle[self._position :] + self._circle[: self._position]
        return [duplicate_id for duplicate_id, _ in in_order]

    def record(self, duplicate_id: bytes, tx_id: int | None, message_id: int = 0) -> int:
        """Record an id, which counts from the commit on; the record's id, 0 without one.

        Args:
            duplicate_id: that was seen.
            tx_id: of the transaction that it is part of.
            message_id: of the message that had it.
        """
        if not self._is_persistent or self.size == 0:
            return 0
        record_id = self._storage.new_id()
        self._storage.store_duplicate_id(record_id, self.address, duplicate_id, message_id, tx_id)
        return record_id

    def add(self, duplicate_id: bytes, record_id: int) -> None:
        """Remember an id from now on, in the place of the oldest where the circle is full."""
        if self.size == 0 or duplicate_id in self._ids:
            return
        self._ids.add(duplicate_id)
        if len(self._circle) < self.size:
            self._circle.append((duplicate_id, record_id))
            return
        old, old_record_id = self._circle[self._position]
        self._ids.discard(old)
        if old_record_id:
            self._storage.delete_duplicate_id(old_record_id)
        self._circle[self._position] = (duplicate_id, record_id)
        self._position = (self._position + 1) % self.size

    def load(self, stored: Sequence[tuple[bytes, int]]) -> None:
        """Take ids from the journal, the oldest first; the newest `size` are kept."""
        surplus = max(0, len(stored) - self.size)
        for _, record_id in stored[:surplus]:
            self._storage.delete_duplicate_id(record_id)
        for duplicate_id, record_id in stored[surplus:]:
            if duplicate_id in self._ids:
                self._storage.delete_duplicate_id(record_id)
            else:
                self._ids.add(duplicate_id)
                self._circle.append((duplicate_id, record_id))

    def remove(self, duplicate_id: bytes) -> bool:
        """Forget one id, for an operator; whether it was there."""
        for item, record_id in self._circle:
            if item == duplicate_id and record_id:
                self._storage.delete_duplicate_id(record_id)
        return self.forget(duplicate_id)

    def forget(self, duplicate_id: bytes) -> bool:
        """Forget one id whose record is gone; whether it was there."""
        if duplicate_id not in self._ids:
            return False
        in_order = self._circle[self._position :] + self._circle[: self._position]
        self._circle = [pair for pair in in_order if pair[0] != duplicate_id]
        self._position = 0
        self._ids.discard(duplicate_id)
        return True

    def clear(self) -> int:
        """Forget all; how many."""
        count = len(self._circle)
        for _, record_id in self._circle:
            if record_id:
                self._storage.delete_duplicate_id(record_id)
        self._circle.clear()
        self._ids.clear()
        self._position = 0
        return count


class DuplicateCaches:
    """The caches of all addresses, made when a first id is sent to one.

    Args:
        storage: where records go.
        settings: of addresses.
        size: of those whose settings say nothing (id-cache-size).
        is_persistent: they survive a restart (persist-id-cache).
    """

    __slots__ = ("_caches", "_settings", "_storage", "is_persistent", "size")

    def __init__(
        self,
        storage: StorageManager,
        settings: Settings,
        *,
        size: int = ID_CACHE_SIZE_DEFAULT,
        is_persistent: bool = True,
    ) -> None:
        self._storage = storage
        self._settings = settings
        self.size = size
        self.is_persistent = is_persistent
        self._caches: dict[str, DuplicateCache] = {}

    def of(self, address: str) -> DuplicateCache:
        """Give the cache of an address, or of `BRIDGE.` and an address."""
        found = self._caches.get(address)
        if found is None:
            is_kept = address.startswith(KEPT_PREFIX)
            found = self._caches[address] = DuplicateCache(
                self._storage,
                address,
                _UNLIMITED if is_kept else self.size_of(address.removeprefix(BRIDGE_PREFIX)),
                is_persistent=is_kept or self.is_persistent,
            )
        return found

    def size_of(self, address: str) -> int:
        """Give how many ids an address remembers."""
        size = self._settings.match(address).id_cache_size
        return self.size if size is None or size < 0 else size

    def all(self) -> list[DuplicateCache]:
        """Give the caches of addresses and of bridges, those that the broker keeps left out."""
        return [one for name, one in self._caches.items() if not name.startswith(KEPT_PREFIX)]

    def of_bridges(self, address: str) -> DuplicateCache:
        """Give the cache of what bridges send to an address."""
        return self.of(BRIDGE_PREFIX + address)

    def find(self, address: str) -> DuplicateCache | None:
        """Give the cache of an address that has one."""
        return self._caches.get(address)

    def drop(self, address: str) -> None:
        """The address is gone, and so are its ids."""
        for name in (address, BRIDGE_PREFIX + address, KEPT_PREFIX + address):
            cache = self._caches.pop(name, None)
            if cache is not None:
                cache.clear()

    def ids_of(self, message: Message, address: str) -> list[tuple[DuplicateCache, bytes]]:
        """Give the ids that a message carries, each with the cache it belongs to.

        Where a bridge brought it, the bridge's alone, as in Artemis: its sender's counted at the
        broker that it was sent to, and two copies of one message may come by two bridges.
        """
        found = []
        bridge_id = message.get(BRIDGE_ID)
        if isinstance(bridge_id, bytes):
            return [(self.of_bridges(address), bridge_id)]
        own = id_bytes(message.get(DUPLICATE_ID))
        if own is not None:
            found.append((self.of(address), own))
        return found


class KeptNames:
    """Names that the broker keeps over restarts, as duplicate ids of `KEPT.` and what they are.

    Args:
        caches: of the broker.
        what: they are.
    """

    __slots__ = ("_cache",)

    def __init__(self, caches: DuplicateCaches, what: str) -> None:
        self._cache = caches.of(KEPT_PREFIX + what)

    def __contains__(self, name: str) -> bool:
        return name.encode("utf-8", "surrogatepass") in self._cache

    def add(self, name: str) -> None:
        """Keep one. Idempotent."""
        one = name.encode("utf-8", "surrogatepass")
        if one not in self._cache:
            self._cache.add(one, self._cache.record(one, None))

    def names(self) -> list[str]:
        """Give all of them, the oldest first."""
        return [one.decode("utf-8", "surrogatepass") for one in self._cache.ids()]

    def discard(self, name: str) -> None:
        """Keep it no more. Idempotent."""
        self._cache.remove(name.encode("utf-8", "surrogatepass"))
