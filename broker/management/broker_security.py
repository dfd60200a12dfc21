"""Users, roles and permissions, looked at and changed by operators."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from broker.management.broker_part import BrokerPart
from broker.management.errors import ManagementError
from broker.management.invocation import BOOLEAN, NAME, TEXT, operation
from broker.management.json_texts import json_text
from broker.management.roles import PERMISSIONS, role_arrays
from broker.security.users import UserError

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.management.invocation import Getters
    from broker.security.users import Users

__all__ = ["BrokerSecurity"]


def _names(text: str | None) -> list[str]:
    return [name.strip() for name in (text or "").split(",") if name.strip()]


class BrokerSecurity(BrokerPart):
    """See the module's text."""

    getters: ClassVar[Getters] = {
        "isSecurityEnabled": lambda self: self._broker.parts.security.is_enabled,
        "getAuthenticationSuccessCount": lambda self: (
            self._broker.parts.security.counts.authenticated
        ),
        "getAuthenticationFailureCount": lambda self: (
            self._broker.parts.security.counts.unauthenticated
        ),
        "getAuthorizationSuccessCount": lambda self: self._broker.parts.security.counts.authorized,
        "getAuthorizationFailureCount": lambda self: (
            self._broker.parts.security.counts.unauthorized
        ),
        "getAuthenticationCacheSize": lambda self: self._broker.parts.security.cached()[0],
        "getAuthorizationCacheSize": lambda self: self._broker.parts.security.cached()[1],
    }

    # --- users --------------------------------------------------------------------------------

    @property
    def _users(self) -> Users:
        users = self._broker.parts.security.users
        if users is None:
            raise ManagementError("this broker has no files of users: security is off")
        return users

    @operation("addUser", NAME, NAME, TEXT, BOOLEAN)
    def add_user(self, name: str, password: str, roles: str | None, plaintext: bool) -> None:
        """Add a user; his password is kept as a salted hash unless it is to be in the clear."""
        self._change(lambda: self._users.add(name, password, _names(roles), plaintext=plaintext))

    def _change(self, change: Callable[[], None]) -> None:
        try:
            change()
        except UserError as error:
            raise ManagementError(error.text) from None
        except OSError as error:
            raise ManagementError(f"the files of users: {error}") from error
        # What was found out before holds no more.
        self._broker.parts.security.forget()

    @operation("listUser", TEXT)
    def list_user(self, name: str | None) -> str:
        """Give one user with his roles, or without a name all."""
        try:
            users = self._users.list()
        except OSError as error:
            raise ManagementError(f"the files of users: {error}") from error
        return json_text(
            [
                {"username": one.name, "roles": sorted(one.roles)}
                for one in users
                if not name or one.name == name
            ]
        )

    @operation("resetUser", NAME, TEXT, TEXT)
    def reset_user_in_the_clear(self, name: str, password: str | None, roles: str | None) -> None:
        """Change a user as the form with four arguments does, the password kept in the clear."""
        self.reset_user(name, password, roles, plaintext=True)

    @operation("resetUser", NAME, TEXT, TEXT, BOOLEAN)
    def reset_user(
        self, name: str, password: str | None, roles: str | None, plaintext: bool
    ) -> None:
        """Change a user's password, his roles, or both: null leaves each, so does no password."""
        self._change(
            lambda: self._users.reset(
                name,
                password=password or None,
                roles=None if roles is None else _names(roles),
                plaintext=plaintext,
            )
        )

    @operation("removeUser", NAME)
    def remove_user(self, name: str) -> None:
        """Remove a user; sessions of his that are open go on until they end."""
        self._change(lambda: self._users.remove(name))

    # --- permissions --------------------------------------------------------------------------

    @operation("addSecuritySettings", NAME, *(TEXT,) * 7)
    @operation("addSecuritySettings", NAME, *(TEXT,) * 8)
    @operation("addSecuritySettings", NAME, *(TEXT,) * 10)
    @operation("addSecuritySettings", NAME, *(TEXT,) * 12)
    def add_security_settings(self, match: str, *roles: str | None) -> None:
        """Set the roles, names joined by commas, that may do each thing at a match."""
        try:
            self._broker.parts.stored_permissions.add(
                match, dict(zip(PERMISSIONS, roles, strict=False))
            )
        except ValueError as error:
            raise ManagementError(str(error)) from None

    @operation("removeSecuritySettings", NAME)
    def remove_security_settings(self, match: str) -> None:
        """Take a match away; a configured one is there again after a restart."""
        self._broker.parts.stored_permissions.remove(match)

    @operation("getRoles", NAME)
    def roles(self, address: str) -> list[list[object]]:
        """Give each role of an address as an array: its name, then what it may do."""
        return role_arrays(self._broker.parts.security, address)

    @operation("getRolesAsJSON", NAME)
    def roles_as_json(self, address: str) -> str:
        """Give who may do what at an address."""
        return json_text(self._broker.parts.security.roles(address))

    @operation("clearAuthenticationCache")
    @operation("clearAuthorizationCache")
    def clear_caches(self) -> None:
        """Ask for users and permissions anew."""
        self._broker.parts.security.forget()
