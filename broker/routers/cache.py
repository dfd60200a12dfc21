"""The targets that keys had last, so that they get the same ones again.

Entries may be recorded: they are there after a restart then, as Artemis's are (a map of key-value
pairs, `$.BC.` and the router's name).

Threads: the event loop's alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from broker.records.binding_records import KeyValuePair

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from broker.config.connection_routers import CacheConfig
    from broker.model.wire import WireRecord

__all__ = ["ENTRY_COUNT_MAX", "RecordedPairs", "TargetCache"]

ENTRY_COUNT_MAX: Final = 100_000
"""Keys of one cache; those that were used longest ago are forgotten first. Artemis has no limit."""
_MAP_PREFIX: Final = "$.BC."


class RecordedPairs(Protocol):
    """Where entries are recorded; `broker.storage.manager.StorageManager` is one."""

    def add_setting(self, record: WireRecord) -> int:
        """Record one; the record's id."""

    def replace_setting(self, old_id: int, record: WireRecord) -> int:
        """Record one in the place of another, at once; the record's id."""

    def delete_setting(self, record_id: int) -> None:
        """Record that it no longer holds."""


class TargetCache:
    """See the module's text.

    Args:
        config: how long entries stay, and whether they are recorded.
        router: name of the router.
        storage: where they are recorded.
        monotonic_s: a clock that never falls.
        recorded: what the store has, in log order.
    """

    def __init__(
        self,
        config: CacheConfig,
        router: str,
        *,
        storage: RecordedPairs,
        monotonic_s: Callable[[], float],
        recorded: Iterable[tuple[int, WireRecord]] = (),
    ) -> None:
        self._map_id = f"{_MAP_PREFIX}{router}"
        self._timeout_s = config.timeout_ms / 1000
        self._storage = storage if config.persisted else None
        self._monotonic_s = monotonic_s
        # Node id and moment of the last use; the one that was used longest ago comes first.
        self._entries: dict[str, tuple[str, float]] = {}
        self._record_ids: dict[str, int] = {}
        if config.persisted:
            self._load(recorded)

    def _load(self, recorded: Iterable[tuple[int, WireRecord]]) -> None:
        now_s = self._monotonic_s()
        for record_id, record in recorded:
            if isinstance(record, KeyValuePair) and record.map_id == self._map_id:
                self._record_ids[record.key] = record_id
                self._entries[record.key] = (record.value, now_s)

    def __len__(self) -> int:
        """How many keys it has."""
        return len(self._entries)

    def get(self, key: str) -> str | None:
        """Give the node id of a key's last target; None where there is none, or no longer."""
        self._expire()
        found = self._entries.pop(key, None)
        if found is None:
            return None
        self._entries[key] = (found[0], self._monotonic_s())
        return found[0]

    def put(self, key: str, node_id: str) -> None:
        """Keep the target of a key."""
        self._expire()
        known = self._entries.pop(key, None)
        if known is None and len(self._entries) >= ENTRY_COUNT_MAX:
            self._forget(next(iter(self._entries)))
        self._entries[key] = (node_id, self._monotonic_s())
        if self._storage is None or (known is not None and known[0] == node_id):
            return
        record = KeyValuePair(self._map_id, key, node_id)
        old_id = self._record_ids.get(key)
        self._record_ids[key] = (
            self._storage.add_setting(record)
            if old_id is None
            else self._storage.replace_setting(old_id, record)
        )

    def _expire(self) -> None:
        if not self._timeout_s:
            return
        limit_s = self._monotonic_s() - self._timeout_s
        while self._entries:
            key, (_, used_s) = next(iter(self._entries.items()))
            if used_s > limit_s:
                return
            self._forget(key)

    def _forget(self, key: str) -> None:
        del self._entries[key]
        record_id = self._record_ids.pop(key, None)
        if record_id is not None and self._storage is not None:
            self._storage.delete_setting(record_id)
