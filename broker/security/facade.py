"""The security of a broker, as its sessions ask: by the name of a user.

A session keeps a name. The roles that go with it are those of the last login under that name, kept
here; there are never more of them than users who logged in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.model.address import join_fqqn
from broker.security.manager import ANONYMOUS, Subject
from broker.security.permission import Permission
from broker.security.users import Users

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.security.manager import SecurityManager

__all__ = ["SecurityFacade"]

_PERMISSIONS = {permission.value: permission for permission in Permission}


class SecurityFacade:
    """Implements `broker.ports.Security`. Not safe for threads: the event loop's."""

    def __init__(self, manager: SecurityManager) -> None:
        self.manager = manager
        self._subjects: dict[str | None, Subject] = {}
        self._listeners: list[Callable[[], object]] = []
        self.is_enabled = manager.enabled
        self.counts = manager.counts
        self.permissions = manager.permissions
        manager.permissions.on_change(self._changed)

    def authenticate(
        self, user: str | None, password: str | None, principal: str | None = None
    ) -> str | None:
        """The name of who this is.

        Raises:
            BrokerError: SECURITY_EXCEPTION.
        """
        return self._logged_in(self.manager.authenticate(user, password, principal))

    def authenticate_principal(self, principal: str) -> str | None:
        """The name of the user that a certificate is for.

        Raises:
            BrokerError: SECURITY_EXCEPTION.
        """
        return self._logged_in(self.manager.authenticate_principal(principal))

    def _logged_in(self, subject: Subject) -> str | None:
        if self.manager.enabled and self._subjects.get(subject.name) != subject:
            self._subjects[subject.name] = subject
            self._changed()
        return subject.name

    def check(
        self, user: str | None, permission: str, address: str, queue: str | None
    ) -> float | None:
        """Refuse what a user may not do at an address, or a queue of it.

        Returns:
            Until when that holds, unless on_change() tells before.

        Raises:
            BrokerError: SECURITY_EXCEPTION.
        """
        subject = self._subjects.get(user, ANONYMOUS)
        return self.manager.check(subject, _PERMISSIONS[permission], join_fqqn(address, queue))

    def roles(self, address: str) -> list[dict[str, object]]:
        """The roles named for an address, each with what it may do there."""
        found = self.manager.permissions.candidates(address)
        if not found:
            return []
        table = found[0].roles
        names = sorted({role for roles in table.values() for role in roles})
        return [
            {
                "name": name,
                **{one.value: name in table.get(one, ()) for one in Permission},
            }
            for name in names
        ]

    def roles_of(self, user: str | None) -> frozenset[str]:
        """The roles of a user at the last login; none for one who has not logged in."""
        return self._subjects.get(user, ANONYMOUS).roles

    @property
    def users(self) -> Users | None:
        """Whose files operators may change; None where somebody else knows passwords."""
        users = self.manager.users
        return users if isinstance(users, Users) else None

    def cached(self) -> tuple[int, int]:
        """How many logins and how many permissions are kept."""
        return self.manager.cached()

    def forget(self) -> None:
        """Ask for users and permissions anew."""
        self.manager.invalidate()
        self._changed()

    def on_change(self, listener: Callable[[], object]) -> None:
        """Call `listener` whenever somebody's roles or permissions have changed."""
        self._listeners.append(listener)

    def _changed(self) -> None:
        for listener in self._listeners:
            listener()
