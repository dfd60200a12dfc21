"""Permissions, and the roles that have each."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["DEPRECATED_PERMISSIONS", "Permission", "RoleTable"]


class Permission(Enum):
    """A kind of action; the value is its name in security-setting (CheckType)."""

    SEND = "send"
    CONSUME = "consume"
    CREATE_ADDRESS = "createAddress"
    DELETE_ADDRESS = "deleteAddress"
    CREATE_DURABLE_QUEUE = "createDurableQueue"
    DELETE_DURABLE_QUEUE = "deleteDurableQueue"
    CREATE_NON_DURABLE_QUEUE = "createNonDurableQueue"
    DELETE_NON_DURABLE_QUEUE = "deleteNonDurableQueue"
    MANAGE = "manage"
    BROWSE = "browse"
    VIEW = "view"
    EDIT = "edit"

    # It is a key of what was answered, looked for with every message; Enum's own hashes its name.
    __hash__ = object.__hash__


DEPRECATED_PERMISSIONS: Final = {
    "createTempQueue": Permission.CREATE_NON_DURABLE_QUEUE,
    "deleteTempQueue": Permission.DELETE_NON_DURABLE_QUEUE,
}


@dataclass(frozen=True, slots=True)
class RoleTable:
    """The roles that have each permission, at one match."""

    roles: Mapping[Permission, frozenset[str]] = field(default_factory=dict)

    def allows(self, permission: Permission, roles: frozenset[str]) -> bool:
        """Whether one of these roles has the permission; one without roles is denied to all."""
        return not roles.isdisjoint(self.roles.get(permission, frozenset()))
