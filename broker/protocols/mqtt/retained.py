"""Retained messages, as Artemis keeps them: the last one of each topic in a queue of its own.

PUBLISH with RETAIN ─▶ routed, and a copy in `$sys.mqtt.retain.ADDRESS`, in one transaction
SUBSCRIBE           ─▶ copies of those that match, into the queue of the subscription
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker.model.address import Matcher
from broker.model.properties import PropertyType
from broker.model.routing_type import RoutingType
from broker.protocols.mqtt.message_properties import IS_INITIAL
from broker.protocols.mqtt.topics import OWN_PREFIX
from broker.settings.queue_defaults import QueueRequest

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.model.message import Message
    from broker.sessions.session import Session
    from broker.storage.context import After

__all__ = ["RETAIN_PREFIX", "give_retained", "publish_retained"]

RETAIN_PREFIX: Final = f"{OWN_PREFIX}retain."


def publish_retained(
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
                name=name, address=name, routing_type=RoutingType.MULTICAST, is_auto_created=True
            )
        )
    # Messages of one topic may be on their way to the disk: they are found once they are there.
    newest = message.message_id
    copy = None if is_empty else own.copy_of(message)
    if copy is not None:
        newest = copy.message_id
    with session.transactions.together(_retained, session, name, newest, done, arguments):
        send()
        own.remove(name, lambda _: True)
        if copy is not None:
            own.put(copy, name)


def _retained(
    error: Exception | None,
    session: Session,
    name: str,
    newest: int,
    done: After,
    arguments: tuple[object, ...],
) -> None:
    if error is None and session.own_queues.remove(name, lambda one: one.message_id < newest):
        session.context.after(done, *arguments)
    else:
        done(error, *arguments)


def give_retained(session: Session, pattern: str, queue: str, now_ms: int) -> None:
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
    own, wildcards = session.own_queues, session.wildcards
    if wildcards.is_wild(pattern):
        matcher = Matcher(wildcards)
        is_wild_first = pattern[0] in (wildcards.single_word, wildcards.any_words)
        names = [
            name
            for name in own.names(RETAIN_PREFIX)
            if matcher.matches(pattern, name.removeprefix(RETAIN_PREFIX))
            and not (is_wild_first and name[len(RETAIN_PREFIX)] == "$")
        ]
    else:
        names = [f"{RETAIN_PREFIX}{pattern}"]
    for name in names:
        # Artemis may have left an older one before it.
        found = list(own.messages(name))
        if not found or 0 < found[-1].expiration <= now_ms:
            continue
        copy = own.copy_of(found[-1])
        copy.set(IS_INITIAL, PropertyType.NULL, None)
        own.put(copy, queue)
