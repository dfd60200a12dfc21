"""What waits in a store-and-forward queue, returned to other queues or sent on to another node.

    never sent to the node              goes
    sent, and the node never answered   stays; or goes with a property, `_QUIVER_SENT_TO_` and the
                                        node's id: the duplicate id by which that node knows it

Everything here is a generator, as in contents.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from broker.management.contents import each
from broker.model.routing_type import RoutingType

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable

    from broker.cluster.peer_bindings import PeerBindings
    from broker.cluster.unanswered import Unanswered
    from broker.model.message import Message
    from broker.queues.queue import Queue
    from broker.queues.reference import Reference
    from broker.routing.message_mover import MessageMover, Moving
    from broker.routing.remote_bindings import RemoteQueueBinding

__all__ = ["Moved", "move_all", "return_all"]


class Moved(NamedTuple):
    """What became of them.

    Attributes:
        moved: messages that went.
        uncertain: of the others, those that the node may have.
    """

    moved: int
    uncertain: int


def return_all(
    queue: Queue,
    unanswered: Unanswered,
    mover: MessageMover,
    *,
    known: PeerBindings | None,
    uncertain: bool,
    mark: str | None = None,
    was_there: Callable[[str, bytes], bool] | None = None,
) -> Generator[float | None, None, Moved]:
    """Let other queues take what waits for a node, here or in another one.

    That is any anycast queue of the address, or the subscription of the same name: other ones had
    their copies. What has no other queue stays.

    Args:
        queue: store-and-forward queue of the node.
        unanswered: of the queue.
        mover: of the broker.
        known: what is known of the node's queues; None where it was not seen since the start.
        uncertain: what the node may have goes too, marked.
        mark: name of the property; None says that the node may have it.
        was_there: tells of an address and a duplicate id whether the node had it: then it is
            removed here, and else it goes without a mark.
    """

    def act(reference: Reference, marks: Iterable[tuple[str, bytes]]) -> bool | Moving:
        for _, one in () if was_there is None else marks:
            assert was_there is not None, "of the loop's condition"
            if was_there(reference.message.address or "", one):
                queue.remove(reference)
                return True
        named = None if known is None else known.named(reference.message, queue.name)
        return mover.return_message(reference, named, marks if was_there is None else ())

    return (yield from _all(queue, unanswered, act, uncertain=uncertain, mark=mark))


def move_all(
    queue: Queue,
    unanswered: Unanswered,
    mover: MessageMover,
    *,
    known: PeerBindings | None,
    target: PeerBindings,
    uncertain: bool,
    mark: str | None = None,
) -> Generator[float | None, None, Moved]:
    """Let what waits for a node wait for another one, which has queues for it.

    Args:
        queue: store-and-forward queue of the node.
        unanswered: of the queue.
        mover: of the broker.
        known: what is known of the node's queues; None where it was not seen since the start.
        target: likewise of the other node.
        uncertain: what the node may have goes too, marked.
        mark: name of the property; None says that the node may have it. Another node that has the
            duplicate ids of that one is named in its place.
    """

    def act(reference: Reference, marks: Iterable[tuple[str, bytes]]) -> bool | Moving:
        found = _queues_there(reference.message, queue.name, known, target)
        return mover.forward(reference, found, marks) if found else False

    return (yield from _all(queue, unanswered, act, uncertain=uncertain, mark=mark))


def _all(
    queue: Queue,
    unanswered: Unanswered,
    act: Callable[[Reference, Iterable[tuple[str, bytes]]], bool | Moving],
    *,
    uncertain: bool,
    mark: str | None = None,
) -> Generator[float | None, None, Moved]:
    kept = 0

    def one(reference: Reference) -> bool | Moving:
        nonlocal kept
        message = reference.message
        if not unanswered.may_be_there(message):
            return act(reference, ())
        if uncertain:
            return act(reference, ((mark or unanswered.property, unanswered.id_of(message)),))
        kept += 1
        return False

    count = yield from each(queue, lambda reference: True, one)
    return Moved(count, kept)


def _queues_there(
    message: Message, name: str, known: PeerBindings | None, target: PeerBindings
) -> list[RemoteQueueBinding]:
    """Give the queues of the other node with the names that the message is for.

    Where these are not known any more, an anycast one that its address leads to there; none for one
    that may be for a subscription, since another one had its own copy.
    """
    there = [one for one in target.by_name.values() if one.is_connected]
    wanted = None if known is None else known.names_in(message, name)
    if wanted is not None:
        return [one for one in there if (one.address, one.queue_name) in wanted]
    found = [one for one in there if one.address == message.address and one.takes(message)]
    if message.routing_type is not RoutingType.ANYCAST and any(
        one.routing_type is RoutingType.MULTICAST for one in found
    ):
        return []
    return [one for one in found if one.routing_type is RoutingType.ANYCAST][:1]
