"""The address settings of a broker by match, merged for each address."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker.model.address import DEFAULT_WILDCARDS, WildcardConfiguration, split_fqqn
from broker.settings.hierarchical_repository import CACHE_SIZE_MAX, HierarchicalRepository
from broker.settings.settings import AddressSettings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

__all__ = ["SettingsRepository"]


class SettingsRepository:
    """The address settings of a broker by match; what holds for an address is their merge.

    Not safe for threads: the event loop's.
    """

    def __init__(
        self,
        wildcards: WildcardConfiguration = DEFAULT_WILDCARDS,
        literal_markers: str | None = None,
        uuid_namespace: str = "",
    ) -> None:
        self._entries: HierarchicalRepository[AddressSettings] = HierarchicalRepository(
            wildcards, literal_markers, uuid_namespace
        )
        # Keyed by the candidates: ten thousand addresses below one match share one object.
        self._merged: dict[tuple[int, ...], AddressSettings] = {}
        # What match() gave: it is asked several times for each message.
        self._found: dict[str, AddressSettings] = {}
        self._entries.on_change(self._forget)

    def _forget(self) -> None:
        self._merged.clear()
        self._found.clear()

    def add(self, match: str, settings: AddressSettings) -> None:
        """Set the settings of a match, replacing earlier ones.

        Raises:
            ValueError: any-words stands elsewhere than at the end of the match.
        """
        self._entries.add(match, settings)

    def remove(self, match: str) -> bool:
        """Take a match away; whether it was there."""
        return self._entries.remove(match)

    def replace_all(self, entries: Iterable[tuple[str, AddressSettings]]) -> None:
        """Exchange everything at once; ValueError as `add`, then nothing has changed."""
        self._entries.replace_all(entries)

    def on_change(self, listener: Callable[[], object]) -> None:
        """Call `listener` after every change from now on."""
        self._entries.on_change(listener)

    def off_change(self, listener: Callable[[], object]) -> None:
        """Call it no more. Idempotent."""
        self._entries.off_change(listener)

    def match(self, address: str) -> AddressSettings:
        """What holds for an address; of a fully qualified name the address counts."""
        found = self._found.get(address)
        if found is None:
            found = self._match(address)
            if len(self._found) >= CACHE_SIZE_MAX:
                self._found.clear()
            self._found[address] = found
        return found

    def _match(self, address: str) -> AddressSettings:
        candidates = self._entries.candidates(split_fqqn(address)[0])
        if not candidates:
            return _NOTHING_GIVEN
        if len(candidates) == 1:
            return candidates[0]
        key = tuple(map(id, candidates))
        merged = self._merged.get(key)
        if merged is None:
            merged = self._merged[key] = candidates[0].merged(*candidates[1:])
        return merged

    def items(self) -> Iterator[tuple[str, AddressSettings]]:
        """Every match and what was given for it, unmerged."""
        return self._entries.items()


_NOTHING_GIVEN: Final = AddressSettings()
