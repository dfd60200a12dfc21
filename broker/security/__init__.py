"""Authentication and authorization."""

from __future__ import annotations

from broker.security.manager import SecurityManager, Subject
from broker.security.masking import Masking
from broker.security.permission import Permission, RoleTable
from broker.security.users import UserError, Users

__all__ = [
    "Masking",
    "Permission",
    "RoleTable",
    "SecurityManager",
    "Subject",
    "UserError",
    "Users",
]
