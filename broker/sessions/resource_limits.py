"""How many sessions and queues one user may have (resource-limit-settings)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from broker.errors import BrokerError, ErrorCode

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from broker.queues.queue import Queue

__all__ = ["ResourceLimits", "UserLimits"]


class UserLimits(NamedTuple):
    """What one user may have; -1 is without limit.

    Attributes:
        max_sessions: open at a time.
        max_queues: that the user has created and that are still there.
    """

    max_sessions: int = -1
    max_queues: int = -1


class ResourceLimits:
    """The limits of all users.

    Args:
        by_user: users without an entry have no limits.
    """

    def __init__(self, by_user: Mapping[str, UserLimits]) -> None:
        self._by_user = by_user

    def check_session(self, user: str | None, users: Iterable[str | None]) -> None:
        """Refuse a session too many.

        Args:
            user: who wants one.
            users: of the sessions that are open.

        Raises:
            BrokerError: SESSION_CREATION_REJECTED.
        """
        limit = self._of(user).max_sessions
        if limit >= 0 and sum(one == user for one in users) >= limit:
            raise BrokerError(
                ErrorCode.SESSION_CREATION_REJECTED,
                f"AMQ229110: Too many sessions for user '{user}'. Sessions allowed: {limit}.",
            )

    def check_queue(self, user: str | None, queues: Iterable[Queue]) -> None:
        """Refuse a queue too many.

        Raises:
            BrokerError: SECURITY_EXCEPTION.
        """
        limit = self._of(user).max_queues
        if limit >= 0 and sum(one.binding.user == user for one in queues) >= limit:
            raise BrokerError(
                ErrorCode.SECURITY_EXCEPTION,
                f"AMQ229111: Too many queues created by user '{user}'. Queues allowed: {limit}.",
            )

    def _of(self, user: str | None) -> UserLimits:
        return _UNLIMITED if user is None else self._by_user.get(user, _UNLIMITED)


_UNLIMITED = UserLimits()
