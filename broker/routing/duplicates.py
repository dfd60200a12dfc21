"""Ids that an address has seen, and will not accept again.

    property _AMQ_DUPL_ID      a string or bytes, unique, set by the sender
    property _AMQ_BRIDGE_DUP   the same between brokers: 16 bytes of the node, 8 of the message id

Each address has a cache of its own, a circle of `id-cache-size` ids: one more overwrites the
oldest, in memory and on disk. A string counts as its UTF-16 units, low byte
first, as Artemis has it.

Bridges of many nodes share the circle of an address. One that was cut off sends again what had no
answer, when others may have filled the circle long ago. So of each node the newest ids stay,
as many as its bridges may have on their way, wherever they would be overwritten:

    of one node:   older … | newest in the circle      together at most `SENDER_IDS` of a node

A send alone becomes a transaction of its own, so that id and message are recorded together: after
a crash either both are there or neither. In a transaction an id counts from the commit on; there
all messages may carry the same one, since what is accepted or refused is the whole of it.

Two transactions that are open at the same time may carry one id: whichever commits, or prepares,
first has it, and the other is rolled back. Artemis looks only when the message arrives, and
lets both through.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Sequence

    from broker.model.message import Message
    from broker.model.properties import PropertyValue
    from broker.ports import Settings
    from broker.storage.manager import StorageManager

__all__ = [
    "BRIDGE_ID",
    "BRIDGE_PREFIX",
    "DUPLICATE_ID",
    "KEPT_PREFIX",
    "LEFT_IDS_MAX",
    "SCALED_DOWN_NODES",
    "SENDERS_MAX",
    "SENDER_IDS",
    "SENDER_WINDOW",
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
SENDER_WINDOW: Final = 4_000
"""Messages that a bridge has on its way at most: 50,000 a second over a link of 20 ms need so many,
with those that wait at the target."""
# Of one node: two bridges of its may send to one address, such as that of a mesh beside another.
SENDER_IDS: Final = 2 * SENDER_WINDOW
# Nodes of which older ids stay; of more, those whose ids came longest ago are forgotten.
SENDERS_MAX: Final = 256
LEFT_IDS_MAX: Final = 200_000
"""Ids of addresses that went by themselves, in all: those of ten that were full by default."""
# A bridge's id begins with that of its node.
_SENDER_SIZE: Final = 16
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
        sender_ids: of each node's newest, which stay beyond the size; 0 for ids that no node made.

    Attributes:
        rejected_count: how many sends were refused.
    """

    __slots__ = (
        "_circle",
        "_counts",
        "_ids",
        "_is_persistent",
        "_older",
        "_position",
        "_sender_ids",
        "_sender_ids_max",
        "_storage",
        "address",
        "rejected_count",
        "size",
    )

    def __init__(
        self,
        storage: StorageManager,
        address: str,
        size: int,
        *,
        is_persistent: bool,
        sender_ids: int = 0,
    ) -> None:
        self._storage = storage
        self.address = address
        self.size = size
        self._is_persistent = is_persistent
        self._circle: list[tuple[bytes, int]] = []
        self._position = 0
        self._ids: set[bytes] = set()
        self._sender_ids_max = sender_ids
        self._sender_ids = min(sender_ids, size)
        # By node: how many ids the circle has, and those that have left it and stay.
        self._counts: dict[bytes, int] = {}
        self._older: dict[bytes, deque[tuple[bytes, int]]] = {}
        self.rejected_count = 0

    def __len__(self) -> int:
        return len(self._ids)

    def __contains__(self, duplicate_id: bytes) -> bool:
        return duplicate_id in self._ids

    def ids(self) -> list[bytes]:
        """Give all of them, the oldest first."""
        return [duplicate_id for duplicate_id, _ in self._in_order()]

    def _in_order(self) -> Iterator[tuple[bytes, int]]:
        for older in self._older.values():
            yield from older
        yield from self._circle[self._position :]
        yield from self._circle[: self._position]

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
        if self._sender_ids:
            self._came(duplicate_id[:_SENDER_SIZE])
        if len(self._circle) < self.size:
            self._circle.append((duplicate_id, record_id))
            return
        old = self._circle[self._position]
        if self._sender_ids:
            self._leave(old)
        else:
            self._drop(old)
        self._circle[self._position] = (duplicate_id, record_id)
        self._position = (self._position + 1) % self.size

    def _came(self, sender: bytes) -> None:
        """One more of a node is in the circle: fewer of its older ones have to stay."""
        count = self._counts[sender] = self._counts.get(sender, 0) + 1
        older = self._older.get(sender)
        if older is None:
            return
        while older and len(older) + count > self._sender_ids:
            self._drop(older.popleft())
        if not older:
            del self._older[sender]

    def _leave(self, old: tuple[bytes, int]) -> None:
        """An id leaves the circle, and stays if it is one of the newest of its node."""
        sender = old[0][:_SENDER_SIZE]
        count = self._counts[sender] = self._counts[sender] - 1
        if not count:
            del self._counts[sender]
        if count >= self._sender_ids:
            self._drop(old)
            return
        older = self._older.pop(sender, None) or deque()
        older.append(old)
        if len(older) + count > self._sender_ids:
            self._drop(older.popleft())
        # Behind all others: the first is of the node whose ids came longest ago.
        self._older[sender] = older
        if len(self._older) > SENDERS_MAX:
            for one in self._older.pop(next(iter(self._older))):
                self._drop(one)

    def _drop(self, pair: tuple[bytes, int]) -> None:
        duplicate_id, record_id = pair
        self._ids.discard(duplicate_id)
        if record_id:
            self._storage.delete_duplicate_id(record_id)

    def load(self, stored: Sequence[tuple[bytes, int]]) -> None:
        """Take ids from the journal, the oldest first; the newest are kept."""
        for duplicate_id, record_id in stored:
            if self.size == 0 or duplicate_id in self._ids:
                self._storage.delete_duplicate_id(record_id)
            else:
                self.add(duplicate_id, record_id)

    def remove(self, duplicate_id: bytes) -> bool:
        """Forget one id, for an operator; whether it was there."""
        for item, record_id in self._in_order():
            if item == duplicate_id and record_id:
                self._storage.delete_duplicate_id(record_id)
        return self.forget(duplicate_id)

    def forget(self, duplicate_id: bytes) -> bool:
        """Forget one id whose record is gone; whether it was there."""
        if duplicate_id not in self._ids:
            return False
        kept = [pair for pair in self._in_order() if pair[0] != duplicate_id]
        self._empty()
        for kept_id, record_id in kept:
            self.add(kept_id, record_id)
        return True

    def retain(self, wanted: Container[bytes]) -> None:
        """Forget all but these, in one go.

        Args:
            wanted: that stay.
        """
        kept = []
        for pair in self._in_order():
            if pair[0] in wanted:
                kept.append(pair)
            elif pair[1]:
                self._storage.delete_duplicate_id(pair[1])
        self._empty()
        self.load(kept)

    def resize(self, size: int) -> None:
        """Remember so many from now on; the oldest go."""
        pairs = list(self._in_order())
        self._empty()
        self.size = size
        self._sender_ids = min(self._sender_ids_max, size)
        self.load(pairs)

    def clear(self) -> int:
        """Forget all; how many."""
        count = len(self._ids)
        for _, record_id in self._in_order():
            if record_id:
                self._storage.delete_duplicate_id(record_id)
        self._empty()
        return count

    def _empty(self) -> None:
        self._circle.clear()
        self._counts.clear()
        self._older.clear()
        self._ids.clear()
        self._position = 0


class DuplicateCaches:
    """The caches of all addresses, made when a first id is sent to one.

    Args:
        storage: where records go.
        settings: of addresses.
        size: of those whose settings say nothing (id-cache-size).
        is_persistent: they survive a restart (persist-id-cache).
    """

    __slots__ = (
        "_caches",
        "_left",
        "_left_count",
        "_settings",
        "_storage",
        "is_persistent",
        "size",
    )

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
        settings.on_change(self._resize)
        # Addresses that are gone and whose ids are not, each with how many; the first left first.
        self._left: dict[str, int] = {}
        self._left_count = 0

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
                sender_ids=SENDER_IDS if address.startswith(BRIDGE_PREFIX) else 0,
            )
        return found

    def _resize(self) -> None:
        """Settings have changed: a bridge may ask for the size, and goes by it."""
        for name, cache in self._caches.items():
            if not name.startswith(KEPT_PREFIX):
                size = self.size_of(name.removeprefix(BRIDGE_PREFIX))
                if size != cache.size:
                    cache.resize(size)

    def close(self) -> None:
        """Settings change nothing any more. Idempotent."""
        self._settings.off_change(self._resize)

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

    def drop(self, address: str, *, keeps_ids: bool = False) -> None:
        """The address is gone, and so are its ids.

        Args:
            address: that is gone.
            keeps_ids: its ids stay. It went by itself once it was empty, and what was taken there
                may be sent again by who has not heard of it. LEFT_IDS_MAX of all such stay.
        """
        names = address, BRIDGE_PREFIX + address
        count = sum(len(self._caches[name]) for name in names if name in self._caches)
        self._forget((KEPT_PREFIX + address,))
        if not keeps_ids or not count:
            self._forget(names)
            return
        self._left[address] = count
        self._left_count += count
        while self._left_count > LEFT_IDS_MAX and len(self._left) > 1:
            oldest = next(iter(self._left))
            self.back(oldest)
            self._forget((oldest, BRIDGE_PREFIX + oldest))

    def back(self, address: str) -> None:
        """The address is there, perhaps again: its ids are as those of any other."""
        self._left_count -= self._left.pop(address, 0)

    def leave_missing(self, addresses: Container[str]) -> None:
        """Those of addresses that are not there, at a start, are ids that were left.

        Args:
            addresses: names of those that are there.
        """
        for cache in self.all():
            address = cache.address.removeprefix(BRIDGE_PREFIX)
            if address not in addresses and address not in self._left:
                self.drop(address, keeps_ids=True)

    def _forget(self, names: Iterable[str]) -> None:
        for name in names:
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
