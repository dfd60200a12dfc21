"""Permissions that operators gave at run time: in force at once, and recorded.

They take the place of what the configuration says for the same match, after a restart too, until
they are removed (PersistedSecuritySetting).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker.records.binding_records import SecuritySetting
from broker.security.permission import Permission, RoleTable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from broker.model.wire import WireRecord
    from broker.settings.hierarchical_repository import HierarchicalRepository
    from broker.storage.manager import StorageManager

__all__ = ["StoredPermissions"]

# Attributes of the record.
_ATTRIBUTES: Final = {
    Permission.SEND: "send",
    Permission.CONSUME: "consume",
    Permission.CREATE_DURABLE_QUEUE: "create_durable_queue",
    Permission.DELETE_DURABLE_QUEUE: "delete_durable_queue",
    Permission.CREATE_NON_DURABLE_QUEUE: "create_non_durable_queue",
    Permission.DELETE_NON_DURABLE_QUEUE: "delete_non_durable_queue",
    Permission.MANAGE: "manage",
    Permission.BROWSE: "browse",
    Permission.CREATE_ADDRESS: "create_address",
    Permission.DELETE_ADDRESS: "delete_address",
    Permission.VIEW: "view",
    Permission.EDIT: "edit",
}


def _roles(text: str | None) -> frozenset[str]:
    """Give the roles of a list.

    >>> sorted(_roles("a, b,,")), _roles(None)
    (['a', 'b'], frozenset())
    """
    return frozenset(name.strip() for name in (text or "").split(",") if name.strip())


class StoredPermissions:
    """See the module's text. Threads: the event loop's alone.

    Args:
        storage: where they are recorded.
        repository: where they are in force.
    """

    def __init__(
        self, storage: StorageManager, repository: HierarchicalRepository[RoleTable]
    ) -> None:
        self._storage = storage
        self._repository = repository
        self._records: dict[str, tuple[int, SecuritySetting]] = {}

    def load(self, records: Iterable[tuple[int, WireRecord]]) -> None:
        """Take what was recorded, in log order."""
        for record_id, record in records:
            if isinstance(record, SecuritySetting):
                self._records[record.match] = (record_id, record)
        self.apply()

    def apply(self) -> None:
        """Let all that is recorded be in force again, after the configuration was."""
        for match, (_, record) in self._records.items():
            self._repository.add(match, _table(record))

    def replace_configured(self, entries: Iterable[tuple[str, RoleTable]]) -> None:
        """Exchange what the configuration says; what is recorded stays in force.

        Raises:
            ValueError: any-words stands elsewhere than at the end of a match; nothing has changed.
        """
        stored = ((match, _table(record)) for match, (_, record) in self._records.items())
        self._repository.replace_all([*entries, *stored])

    def add(self, match: str, roles: Mapping[Permission, str | None]) -> None:
        """Set which roles may do what at a match: names, joined by commas, by permission.

        Raises:
            ValueError: any-words stands elsewhere than at the end of the match.
        """
        texts: dict[str, str | None] = {
            attribute: roles.get(permission, "") for permission, attribute in _ATTRIBUTES.items()
        }
        record = SecuritySetting(match=match, **texts)
        self._repository.add(match, _table(record))
        known = self._records.get(match)
        if known is not None:
            # At once: a crash between the two would leave neither.
            record_id = self._storage.replace_setting(known[0], record)
        else:
            record_id = self._storage.add_setting(record)
        self._records[match] = (record_id, record)

    def remove(self, match: str) -> bool:
        """Take a match away, a configured one too until the next start; whether it was there."""
        known = self._records.pop(match, None)
        if known is not None:
            self._storage.delete_setting(known[0])
        return self._repository.remove(match)


def _table(record: SecuritySetting) -> RoleTable:
    found = {
        permission: _roles(getattr(record, attribute))
        for permission, attribute in _ATTRIBUTES.items()
    }
    return RoleTable({permission: roles for permission, roles in found.items() if roles})
