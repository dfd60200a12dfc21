"""Connectors: the configured ones, and those that operators added, which are recorded.

What is recorded takes the place of a configured one of the same name, after a restart too, until it
is removed (PersistedConnector).
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from broker.config.transport import TransportConfig, parse_transport
from broker.records.binding_records import Connector

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from broker.model.wire import WireRecord
    from broker.storage.manager import StorageManager

__all__ = ["StoredConnectors"]

log = logging.getLogger("broker")


class StoredConnectors:
    """See the module's text. Threads: the event loop's alone.

    Args:
        storage: where they are recorded.
        configured: those of the configuration.

    Attributes:
        by_name: all of them.
    """

    def __init__(self, storage: StorageManager, configured: Sequence[TransportConfig]) -> None:
        self._storage = storage
        self._record_ids: dict[str, int] = {}
        self._configured = {one.name for one in configured}
        self.by_name: dict[str, TransportConfig] = {one.name: one for one in configured}

    def load(self, records: Iterable[tuple[int, WireRecord]]) -> None:
        """Take what was recorded, in log order."""
        for record_id, record in records:
            if isinstance(record, Connector):
                self._record_ids[record.name] = record_id
                try:
                    self.by_name[record.name] = parse_transport(record.name, record.url)
                except ValueError as error:
                    log.warning("recorded connector %s: %s; left out", record.name, error)

    def replace_configured(self, configured: Sequence[TransportConfig]) -> None:
        """Take what the configuration says now; what is recorded stays."""
        for name in self._configured - self._record_ids.keys():
            self.by_name.pop(name, None)
        self._configured = {one.name for one in configured}
        for one in configured:
            if one.name not in self._record_ids:
                self.by_name[one.name] = one

    def add(self, name: str, url: str) -> None:
        """Add a connector, or change the one of that name.

        Raises:
            ValueError: the URL is none.
        """
        self.by_name[name] = parse_transport(name, url)
        record, old_id = Connector(name, url), self._record_ids.get(name, 0)
        if old_id:
            # At once: a crash between the two would leave neither.
            self._record_ids[name] = self._storage.replace_setting(old_id, record)
        else:
            self._record_ids[name] = self._storage.add_setting(record)

    def remove(self, name: str) -> bool:
        """Take one away, a configured one too until the next start; whether it was there."""
        record_id = self._record_ids.pop(name, 0)
        if record_id:
            self._storage.delete_setting(record_id)
        return self.by_name.pop(name, None) is not None
