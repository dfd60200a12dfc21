"""What the user of one session may do. Who watches the broker hears of what was refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.errors import BrokerError

if TYPE_CHECKING:
    from broker.notifications import Notifications
    from broker.ports import Security

__all__ = ["Permissions"]


class Permissions:
    """See the module's text.

    Args:
        user: who was authenticated; None is anonymous.
        security: who may do what.
        notifications: who tells of what happens.
    """

    __slots__ = ("_notifications", "_security", "_user")

    def __init__(self, user: str | None, security: Security, notifications: Notifications) -> None:
        self._user = user
        self._security = security
        self._notifications = notifications

    def check(self, permission: str, address: str, queue: str | None) -> float | None:
        """See whether the user may do something; until when, as Security.check().

        Raises:
            BrokerError: the user may not; a notification is sent.
        """
        try:
            return self._security.check(self._user, permission, address, queue)
        except BrokerError:
            self._notifications.forbidden(self._user, permission, address)
            raise
