"""Address settings that operators gave at run time: in force at once, and recorded.

They take the place of what the configuration says for the same match, after a restart too, until
they are removed (PersistedAddressSettingJSON).
"""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING

from broker.records.address_settings import AddressSetting, AddressSettingJson
from broker.settings.settings import AddressSettings

if TYPE_CHECKING:
    from collections.abc import Iterable

    from broker.model.wire import WireRecord
    from broker.settings.settings_repository import SettingsRepository
    from broker.storage.manager import StorageManager

__all__ = ["StoredSettings"]

log = logging.getLogger("broker")


class StoredSettings:
    """See the module's text. Threads: the event loop's alone.

    Args:
        storage: where they are recorded.
        repository: where they are in force.
    """

    def __init__(self, storage: StorageManager, repository: SettingsRepository) -> None:
        self._storage = storage
        self._repository = repository
        self._record_ids: dict[str, int] = {}
        self._settings: dict[str, AddressSettings] = {}

    def load(self, records: Iterable[tuple[int, WireRecord]]) -> None:
        """Take what was recorded, in log order; what cannot be read is named and left out."""
        for record_id, record in records:
            if isinstance(record, AddressSettingJson):
                found = record.settings()
            elif isinstance(record, AddressSetting):
                found = dict(record.settings)
            else:
                continue
            try:
                settings = AddressSettings.from_json(found)
                self._repository.add(record.match, settings)
            except ValueError as error:
                log.warning("recorded address settings of %s: %s; left out", record.match, error)
                continue
            self._record_ids[record.match] = record_id
            self._settings[record.match] = settings

    def replace_configured(self, entries: Iterable[tuple[str, AddressSettings]]) -> None:
        """Exchange what the configuration says; what is recorded stays in force.

        Raises:
            ValueError: any-words stands elsewhere than at the end of a match; nothing has changed.
        """
        self._repository.replace_all([*entries, *self._settings.items()])

    def add(self, match: str, settings: AddressSettings) -> None:
        """Set what holds for a match.

        Raises:
            ValueError: any-words stands elsewhere than at the end of the match.
        """
        self._repository.add(match, settings)
        text = json.dumps(settings.to_json(), separators=(",", ":"))
        record, old_id = AddressSettingJson(match, text), self._record_ids.get(match, 0)
        if old_id:
            # At once: a crash between the two would leave neither.
            self._record_ids[match] = self._storage.replace_setting(old_id, record)
        else:
            self._record_ids[match] = self._storage.add_setting(record)
        self._settings[match] = settings

    def remove(self, match: str) -> bool:
        """Take a match away, a configured one too until the next start; whether it was there."""
        self._forget(match)
        return self._repository.remove(match)

    def _forget(self, match: str) -> None:
        self._settings.pop(match, None)
        record_id = self._record_ids.pop(match, 0)
        if record_id:
            self._storage.delete_setting(record_id)
