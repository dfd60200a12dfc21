"""What is in a queue, looked at and changed by operators: some references in each turn.

Everything here is a generator that yields None behind every `LOOK_COUNT` references it has looked
at, or seconds to wait; who runs it lets others in then. What comes into the queue meanwhile may be
seen or not.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING, Final

from broker.management.errors import ManagementError
from broker.management.transactions import acknowledged_of
from broker.routing.message_copies import ORIGINAL_ADDRESS, ORIGINAL_QUEUE

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator

    from broker.management.access import ManagedBroker
    from broker.queues.consumer import Consumer
    from broker.queues.filter import Filter
    from broker.queues.queue import Queue
    from broker.queues.reference import Reference
    from broker.routing.message_mover import Moving

__all__ = [
    "LOOK_COUNT",
    "InPages",
    "by_id",
    "change_priority",
    "delivering",
    "each",
    "in_parts",
    "look",
    "remove_all",
    "retry",
    "select",
]

LOOK_COUNT: Final = 1000
# Messages of pages that a queue holds at most while somebody looks for some to be taken out of it;
# with so many that are not wanted before them, those behind are not found.
HELD_MAX: Final = 100_000


class InPages(Enum):
    """What becomes of messages that lie in pages."""

    SHOWN = auto()  # Looked at where they are.
    TAKEN = auto()  # Read into the queue, HELD_MAX of them at a time: they may be taken out.
    LEFT = auto()


def look(
    queue: Queue, wanted: Callable[[Reference], bool], in_pages: InPages = InPages.SHOWN
) -> Iterator[Reference | None]:
    """Give what waits, in pages too, then what is not due yet; None to let others in.

    The one given last may be taken out of the queue, but for those in pages that are only shown.
    """
    count = 0
    cursor = queue.waiting.cursor()
    try:
        while not queue.is_deleted:
            reference = cursor.advance()
            if reference is None:
                if in_pages is InPages.TAKEN and _is_more_read(queue):
                    yield None
                    continue
                break
            if wanted(reference):
                yield reference
            count += 1
            if count % LOOK_COUNT == 0:
                yield None
        if in_pages is InPages.SHOWN:
            yield from _shown_in_pages(queue, wanted)
    finally:
        cursor.close()
    for reference in in_parts(list(queue.scheduled())):
        if reference is None or (reference.scheduled_ms and wanted(reference)):
            yield reference


def _is_more_read(queue: Queue) -> bool:
    """Read more into the queue; whether some is there, or on its way."""
    pages = queue.pages
    if pages is None or not pages.unread_count:
        return False
    before = queue.waiting.count
    pages.look_ahead(min(pages.held_count + LOOK_COUNT, HELD_MAX))
    return queue.waiting.count > before or pages.is_reading


def _shown_in_pages(
    queue: Queue, wanted: Callable[[Reference], bool]
) -> Iterator[Reference | None]:
    if queue.pages is None:
        return
    browser = queue.pages.browser(_nothing)
    count = 0
    while not queue.is_deleted:
        reference = browser.next()
        if reference is None:
            if not browser.is_reading:
                return
            yield None
            continue
        if wanted(reference):
            yield reference
        count += 1
        if count % LOOK_COUNT == 0:
            yield None


def _nothing() -> None:
    """Who looks comes again in the next turn, whether anything was read or not."""


def delivering(broker: ManagedBroker, queue: Queue) -> Iterator[tuple[str, list[Reference]]]:
    """Give each consumer's name, with what it was given and has not acknowledged for good.

    What an open transaction acknowledges is its consumer's, or, once that is closed, its own.
    """
    found: dict[Consumer, list[Reference]] = {one: [] for one in queue.consumers.all()}
    others: dict[str, list[Reference]] = {}
    for name, consumer, references in acknowledged_of(broker, queue):
        if consumer in found:
            found[consumer] += references
        else:
            others.setdefault(name, []).extend(references)
    for consumer, references in found.items():
        references += [one for one in consumer.delivering if one.queue is queue]
        if references:
            yield _consumer_name(consumer, broker), references
    yield from others.items()


def _consumer_name(consumer: Consumer, broker: ManagedBroker) -> str:
    """Give what Artemis calls a consumer (ServerConsumer.toManagementString)."""
    queue, filter = consumer.queue, consumer.filter
    session = next(
        (one for one in broker.clients.sessions.values() if consumer in one.consumers.values()),
        None,
    )
    place = "" if session is None else f"{session.origin.connection_id}:{session.name}:"
    return (
        f"ServerConsumer [id={place}{consumer.consumer_id}, "
        f"filter={'null' if filter is None else filter.text}, "
        f"binding=LocalQueueBinding [address={queue.binding.address}, name={queue.name}]]"
    )


def by_id(message_id: int) -> Callable[[Reference], bool]:
    """Give what tells whether a reference is the one of a message."""
    return lambda reference: reference.message.message_id == message_id


def in_parts(references: Iterable[Reference]) -> Iterator[Reference | None]:
    """Give them, and None to let others in."""
    for count, reference in enumerate(references, 1):
        yield reference
        if count % LOOK_COUNT == 0:
            yield None


def select(filter: Filter | None) -> Callable[[Reference], bool]:
    """Give what tells whether a reference is wanted by a selector; without one each is."""
    if filter is not None:
        return lambda reference: filter.matches(reference.message)
    return lambda reference: True


def each(
    queue: Queue,
    wanted: Callable[[Reference], bool],
    act: Callable[[Reference], bool | Moving],
    *,
    count_max: int = -1,
    in_pages: InPages = InPages.TAKEN,
) -> Generator[float | None, None, int]:
    """Do something to each that is wanted and was there at the beginning; how often it was done.

    What `act` puts into the same queue is behind all others: it would come here again, for ever.

    Args:
        queue: whose.
        wanted: which.
        act: whether it did something; what takes a while is a generator.
        count_max: no more than so many; -1 all.
        in_pages: TAKEN where it takes them out of the queue.
    """
    count = 0
    if count == count_max:
        return 0
    end_id = queue.storage.new_id()
    for reference in look(queue, wanted, in_pages):
        if reference is None:
            yield None
        elif reference.message.message_id < end_id:
            done = act(reference)
            if not isinstance(done, bool):
                done = yield from done
            count += done
            if count == count_max:
                break
    return count


def remove_all(queue: Queue) -> Generator[float | None, None, int]:
    """Remove what waits, in pages too, or is not due yet; how many."""

    def remove(reference: Reference) -> bool:
        queue.remove(reference)
        return True

    count = yield from each(queue, lambda one: True, remove, in_pages=InPages.LEFT)
    # What lies in pages is promised to go; it is counted until it was read.
    return count if queue.pages is None else count + queue.pages.drop_all()


def change_priority(
    queue: Queue, wanted: Callable[[Reference], bool], priority: int
) -> Generator[None, None, int]:
    """Put what waits behind those of another priority; how many.

    What lies in pages keeps its own: it is read in the order of the pages, whatever its priority.

    Raises:
        ManagementError: there is no such priority.
    """
    if not 0 <= priority <= 9:
        raise ManagementError(
            f"AMQ229048: invalid new Priority value: {priority}. It must be between 0 and 9 "
            "(both included)"
        )
    # First found, then changed: a cursor would meet in a lower priority what it has seen.
    found = []
    for reference in look(queue, wanted, InPages.LEFT):
        if reference is None:
            yield
        else:
            found.append(reference)
    count = 0
    for reference in in_parts(found):
        if reference is None:
            yield
        elif reference.level >= 0 and not queue.is_deleted:
            queue.waiting.remove(reference)
            reference.message.priority = priority
            queue.waiting.add_tail(reference)
            count += 1
    queue.renew_index()
    queue.deliver()
    return count


def retry(
    broker: ManagedBroker, queue: Queue, wanted: Callable[[Reference], bool], *, count_max: int = -1
) -> Generator[float | None, None, int]:
    """Send messages back to the queues they came from, and the addresses; how many.

    What names no queue that is there stays (QueueImpl.retryMessages).
    """

    def act(reference: Reference) -> bool | Moving:
        message = reference.message
        name = message.get(ORIGINAL_QUEUE)
        address = message.get(ORIGINAL_ADDRESS)
        target = (
            broker.parts.postoffice.addresses.queues.get(name) if isinstance(name, str) else None
        )
        if target is None or not isinstance(address, str):
            return False
        return broker.parts.dead_letters.move_to_queue(reference, target, address=address)

    return (yield from each(queue, wanted, act, count_max=count_max))
