"""Roles and what they may do, in the order of Artemis's parameters and arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker.security.permission import Permission

if TYPE_CHECKING:
    from broker.ports import Security

__all__ = ["PERMISSIONS", "role_arrays"]

# Parameters of addSecuritySettings behind the match; the shorter forms end earlier.
PERMISSIONS: Final = (
    *(Permission.SEND, Permission.CONSUME),
    *(Permission.CREATE_DURABLE_QUEUE, Permission.DELETE_DURABLE_QUEUE),
    *(Permission.CREATE_NON_DURABLE_QUEUE, Permission.DELETE_NON_DURABLE_QUEUE),
    *(Permission.MANAGE, Permission.BROWSE),
    *(Permission.CREATE_ADDRESS, Permission.DELETE_ADDRESS),
    *(Permission.VIEW, Permission.EDIT),
)


def role_arrays(security: Security, address: str) -> list[list[object]]:
    """Give each role of an address as an array: its name, then what it may do, in Artemis's order.

    The order is that of the parameters of addSecuritySettings.
    """
    return [
        [row["name"], *(row[permission.value] for permission in PERMISSIONS)]
        for row in security.roles(address)
    ]
