"""No security: security-enabled is false."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from broker.security.counts import SecurityCounts
from broker.settings.hierarchical_repository import HierarchicalRepository

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.security.permission import RoleTable

__all__ = ["AllowAll"]


class AllowAll:
    """Implements `broker.ports.Security`: everybody may do everything."""

    is_enabled = False
    users = None

    def __init__(self) -> None:
        self.counts = SecurityCounts()
        # Kept for a start with security.
        self.permissions: HierarchicalRepository[RoleTable] = HierarchicalRepository()

    def cached(self) -> tuple[int, int]:
        """Nothing is kept."""
        return 0, 0

    def authenticate(
        self, user: str | None, password: str | None, principal: str | None = None
    ) -> str | None:
        """Accept the name; the password is not checked."""
        return user

    def authenticate_principal(self, principal: str) -> str | None:
        """Accept the name in the certificate."""
        return principal

    def check(
        self, user: str | None, permission: str, address: str, queue: str | None
    ) -> float | None:
        """Nothing is refused."""
        return math.inf

    def roles(self, address: str) -> list[dict[str, object]]:
        """No roles are needed."""
        return []

    def roles_of(self, user: str | None) -> frozenset[str]:
        """No user has a role."""
        return frozenset()

    def forget(self) -> None:
        """Nothing is kept."""

    def on_change(self, listener: Callable[[], object]) -> None:
        """Nothing changes."""
