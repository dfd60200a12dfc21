"""Retained messages, as Artemis keeps them: the last one of each topic in a queue of its own.

PUBLISH with RETAIN ─▶ routed, and a copy in `$sys.mqtt.retain.ADDRESS`, in one transaction
SUBSCRIBE           ─▶ copies of those that match, into the queue of the subscription

Between the two of a PUBLISH, when it is routed and when its copy is there, neither the old copy nor
the new one is. A subscription that comes then gets what is there afterwards: the routing missed it.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from broker.errors import BrokerError
from broker.model.address import Matcher
from broker.model.properties import PropertyType
from broker.model.routing_type import RoutingType
from broker.protocols.mqtt.message_properties import IS_INITIAL
from broker.protocols.mqtt.topics import OWN_PREFIX
from broker.settings.queue_defaults import QueueRequest
from journal.errors import JournalError

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.model.message import Message
    from broker.sessions.session import Session
    from broker.storage.context import After

__all__ = ["RETAIN_PREFIX", "RetainedMessages"]

log = logging.getLogger("broker")

RETAIN_PREFIX: Final = f"{OWN_PREFIX}retain."


class _Arriving:
    """A message whose copy is on its way to its queue."""

    __slots__ = ("is_over", "newest", "waiting")

    def __init__(self, newest: int) -> None:
        # Id of the copy; of an empty message its own.
        self.newest = newest
        self.is_over = False
        # Queues of subscriptions that came meanwhile, and when, ms since 1970.
        self.waiting: list[tuple[str, int]] = []


class RetainedMessages:
    """Those of one broker.

    Threads: the event loop's alone.
    """

    def __init__(self) -> None:
        # The newest one for each queue of retained messages.
        self._arriving: dict[str, _Arriving] = {}

    def publish(
        self,
        session: Session,
        message: Message,
        address: str,
        send: Callable[[], object],
        done: After,
        *arguments: object,
    ) -> None:
        """Send a message that takes the place of the one that was retained; an empty one has none.

        Args:
            session: of the client.
            message: has its id.
            address: of its topic.
            send: sends it.
            done: called as `done(error, *arguments)` once both is durable.
            *arguments: for it.

        Raises:
            BrokerError: it is refused, and nothing has changed.
            JournalError: the storage has failed.
        """
        own, name = session.own_queues, f"{RETAIN_PREFIX}{address}"
        is_empty = message.large is None and not message.body
        if not is_empty:
            own.make(
                QueueRequest(
                    name=name,
                    address=name,
                    routing_type=RoutingType.MULTICAST,
                    is_auto_created=True,
                )
            )
        # Messages of one topic may be on their way to the disk: they are found once they are there.
        copy = None if is_empty else own.copy_of(message)
        one = _Arriving(message.message_id if copy is None else copy.message_id)
        with session.transactions.together(self._retained, session, name, one, done, arguments):
            send()
            own.remove(name, lambda _: True)
            if copy is not None:
                own.put(copy, name)
        if not one.is_over:
            self._arriving[name] = one

    def _retained(
        self,
        error: Exception | None,
        session: Session,
        name: str,
        one: _Arriving,
        done: After,
        arguments: tuple[object, ...],
    ) -> None:
        one.is_over = True
        if self._arriving.get(name) is one:
            del self._arriving[name]
        older = error is None and session.own_queues.remove(
            name, lambda found: found.message_id < one.newest
        )
        for queue, now_ms in one.waiting:
            try:
                _give(session, name, queue, now_ms)
            except (BrokerError, JournalError) as failure:
                log.warning("no retained message for %s: %s", queue, failure)
        if older:
            session.context.after(done, *arguments)
        else:
            done(error, *arguments)

    def give(self, session: Session, pattern: str, queue: str, now_ms: int) -> None:
        """Put copies of the retained messages that match into the queue of a new subscription.

        Args:
            session: of the client.
            pattern: address of the filter.
            queue: of the subscription.
            now_ms: ms since 1970: what has expired is left out.

        Raises:
            BrokerError: the disk is full.
            JournalError: the storage has failed.
        """
        for name in _names(session, pattern):
            one = self._arriving.get(name)
            if one is None:
                _give(session, name, queue, now_ms)
            else:
                one.waiting.append((queue, now_ms))


def _names(session: Session, pattern: str) -> list[str]:
    """Give the queues of retained messages that a filter matches."""
    wildcards = session.wildcards
    if not wildcards.is_wild(pattern):
        return [f"{RETAIN_PREFIX}{pattern}"]
    matcher = Matcher(wildcards)
    is_wild_first = pattern[0] in (wildcards.single_word, wildcards.any_words)
    return [
        name
        for name in session.own_queues.names(RETAIN_PREFIX)
        if matcher.matches(pattern, name.removeprefix(RETAIN_PREFIX))
        and not (is_wild_first and name[len(RETAIN_PREFIX)] == "$")
    ]


def _give(session: Session, name: str, queue: str, now_ms: int) -> None:
    """Put a copy of what is retained in one queue into another, if that is there yet."""
    own = session.own_queues
    # Artemis may have left an older one before it.
    found = list(own.messages(name))
    if not found or 0 < found[-1].expiration <= now_ms or queue not in own:
        return
    copy = own.copy_of(found[-1])
    copy.set(IS_INITIAL, PropertyType.NULL, None)
    own.put(copy, queue)
