"""Sessions and producers, made of what an active broker is made of.

Threads: the event loop's alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.notifications import IN_PROCESS
from broker.routing.duplicates import SCALED_DOWN_NODES, KeptNames
from broker.security.allow_all import AllowAll
from broker.selector.filters import parse_filter
from broker.sessions.producer import Producer
from broker.sessions.resource_limits import ResourceLimits
from broker.sessions.send_marks import SendMarks
from broker.sessions.session import Session, SessionOptions

if TYPE_CHECKING:
    from collections.abc import Iterable

    from broker.environment import Clock, Ids
    from broker.management.service import Management
    from broker.notifications import Origin
    from broker.options import BrokerOptions
    from broker.ports import Security
    from broker.server.composition import Parts

__all__ = ["SessionMaker"]


class SessionMaker:
    """See the module's text.

    Args:
        options: of the broker.
        parts: that sessions use.
        management: answers messages to the management address.
        clock: tells the time.
        ids: name producers.
    """

    def __init__(
        self, options: BrokerOptions, parts: Parts, management: Management, clock: Clock, ids: Ids
    ) -> None:
        self._parts = parts
        self._management = management
        self._clock = clock
        self._ids = ids
        self._settings = options.settings
        self._marks = SendMarks(
            populates_user=options.populate_validated_user,
            requires_user=options.reject_empty_validated_user,
        )
        self._resource_limits = ResourceLimits(options.resource_limits)

    def check(self, user: str | None, users: Iterable[str | None]) -> None:
        """See that a user may have one more session.

        Args:
            user: who asks.
            users: of the sessions that are open.

        Raises:
            BrokerError: it has as many as it may have.
        """
        self._resource_limits.check_session(user, users)

    def session(
        self,
        name: str,
        user: str | None,
        options: SessionOptions,
        temporary: set[str],
        origin: Origin,
    ) -> Session:
        """Make a session for a user who was authenticated."""
        return self._make(name, user, options, temporary, origin, self._parts.security)

    def internal_session(self, name: str) -> Session:
        """Make a session of the broker itself: without a user, and nothing is refused to it."""
        return self._make(name, None, SessionOptions(), set(), IN_PROCESS, AllowAll())

    def _make(
        self,
        name: str,
        user: str | None,
        options: SessionOptions,
        temporary: set[str],
        origin: Origin,
        security: Security,
    ) -> Session:
        parts = self._parts
        return Session(
            name,
            user,
            options,
            temporary,
            origin,
            postoffice=parts.postoffice,
            administration=parts.administration,
            dead_letters=parts.dead_letters,
            transactions=parts.transactions,
            flow_control=parts.flow_control,
            marks=self._marks,
            resource_limits=self._resource_limits,
            security=security,
            management=self._management,
            notifications=parts.notifications,
            storage=parts.storage,
            large=parts.large,
            history=parts.history,
            clock_ms=self._clock.now_ms,
            settings=self._settings,
            parse_filter=parse_filter,
        )

    def producer(self, address: str | None, number: int) -> Producer:
        """Make a producer.

        Args:
            address: that it sends to; None is several.
            number: of the broker's producers.
        """
        return Producer(address, number, self._clock.now_ms(), self._ids.time_uuid)

    def remember_scaled_down(self, node_id: str) -> None:
        """Keep that all messages of a node are here now, over restarts."""
        self._scaled_down.add(node_id)

    def has_scaled_down(self, node_id: str) -> bool:
        """Whether all messages of a node are here, since it stopped for good."""
        return node_id in self._scaled_down

    @property
    def _scaled_down(self) -> KeptNames:
        return KeptNames(self._parts.postoffice.duplicates, SCALED_DOWN_NODES)
