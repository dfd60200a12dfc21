"""What waits in a store-and-forward queue, sent back to its addresses or on to another node.

    never sent to the node              goes
    sent, and the node never answered   stays; or goes with a property, `_QUIVER_SENT_TO_` and the
                                        node's id: the duplicate id by which that node knows it

Everything here is a generator, as in contents.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from broker.management.contents import each

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
    uncertain: bool,
    mark: str | None = None,
    was_there: Callable[[str, bytes], bool] | None = None,
) -> Generator[float | None, None, Moved]:
    """Route what waits for a node by its addresses again.

    Args:
        queue: store-and-forward queue of the node.
        unanswered: of the queue.
        mover: of the broker.
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
        return mover.return_to_address(reference, marks if was_there is None else ())

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

    Where these are not known any more, those that its address leads to there: each multicast one,
    and an anycast one.
    """
    there = [one for one in target.by_name.values() if one.is_connected]
    wanted = None if known is None else known.names_in(message, name)
    if wanted is not None:
        return [one for one in there if (one.address, one.queue_name) in wanted]
    found: dict[str, RemoteQueueBinding] = {}
    for one in there:
        if one.address == message.address and one.takes(message):
            found.setdefault(one.routing_name or one.queue_name, one)
    return list(found.values())
