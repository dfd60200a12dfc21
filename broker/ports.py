"""Protocols of what several rooms need, and rooms above them have.

What one room alone needs stands in that room. `broker.server.server` hands in what fulfils it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.model.message import Message
    from broker.security.counts import SecurityCounts
    from broker.security.permission import RoleTable
    from broker.security.users import Users
    from broker.settings.hierarchical_repository import HierarchicalRepository
    from broker.settings.settings import AddressSettings

__all__ = ["Management", "Security", "Settings", "Timer", "Timers"]


class Timer(Protocol):
    """Something that will happen."""

    def cancel(self) -> None:
        """It will not."""


class Timers(Protocol):
    """Of an event loop what the broker's objects need; tests pass one with a clock of their own."""

    def call_soon(self, callback: Callable[..., object], *arguments: object) -> Timer:
        """Call it in the next turn."""

    def call_later(
        self, delay_s: float, callback: Callable[..., object], *arguments: object
    ) -> Timer:
        """Call it in so many seconds."""


class Settings(Protocol):
    """Where the effective settings of an address are looked up: `broker.settings.settings`."""

    def match(self, address: str) -> AddressSettings:
        """Give them; the same object until one changes."""

    def on_change(self, listener: Callable[[], object]) -> None:
        """Call `listener` after every change from now on."""

    def off_change(self, listener: Callable[[], object]) -> None:
        """Call it no more. Idempotent."""


class Security(Protocol):
    """Who may do what; `broker.security`."""

    is_enabled: bool
    """Whether anything is refused at all."""
    counts: SecurityCounts
    """How often it was asked, and with what result."""
    permissions: HierarchicalRepository[RoleTable]
    """Roles by match; changes are reported to listeners."""

    @property
    def users(self) -> Users | None:
        """Whose files operators may change; None where there are none."""

    def cached(self) -> tuple[int, int]:
        """How many logins and how many permissions are kept."""

    def authenticate(
        self, user: str | None, password: str | None, principal: str | None = None
    ) -> str | None:
        """Give the name of a user that shows the right password; None for an anonymous one.

        Args:
            user: as the client says; None without one.
            password: likewise.
            principal: see authenticate_principal(); it counts where the password does not.

        Raises:
            BrokerError: no user has that name and password, or that certificate.
        """

    def authenticate_principal(self, principal: str) -> str | None:
        """Give the name of the user that a certificate is for.

        Args:
            principal: distinguished name of its subject, as Java writes it.

        Raises:
            BrokerError: no user has that certificate.
        """

    def check(
        self, user: str | None, permission: str, address: str, queue: str | None
    ) -> float | None:
        """See whether a user may do something at an address, or a queue of it.

        Args:
            user: from authenticate().
            permission: as in `security-setting`: send, consume, createAddress and so on.
            address: without prefixes.
            queue: None for the address as a whole.

        Returns:
            Until when the answer holds unless on_change() tells of a change before, by
            `Clock.monotonic_s()`; None: this time only.

        Raises:
            BrokerError: the user may not.
        """

    def roles(self, address: str) -> list[dict[str, object]]:
        """Give the roles named for an address, each with what it may do there."""

    def roles_of(self, user: str | None) -> frozenset[str]:
        """Give the roles of a user at the last login; none for one who has not logged in."""

    def forget(self) -> None:
        """Ask for users and permissions anew."""

    def on_change(self, listener: Callable[[], object]) -> None:
        """Call `listener` whenever answers may be others from now on."""


class Management(Protocol):
    """What answers messages that are sent to the management address."""

    address: str

    def handle(self, user: str | None, message: Message) -> None:
        """Do what a user's message asks for, and send an answer where it wants one.

        What takes long goes on in later turns; the answer comes at its end.

        Raises:
            BrokerError: the user may not send to where the answer is to go; nothing was done.
        """
