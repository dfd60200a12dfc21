"""What is in a queue, looked at and changed by operators: some references in each turn.

Everything here is a generator that yields None behind every `LOOK_COUNT` references it has looked
at; who runs it lets others in then. What comes into the queue meanwhile may be seen or not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker.dead_letters import ORIGINAL_ADDRESS, ORIGINAL_QUEUE
from broker.management.errors import ManagementError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    from broker.consumer import Filter
    from broker.core import Core
    from broker.queue import Queue
    from broker.reference import Reference

__all__ = ["LOOK_COUNT", "change_priority", "delivering", "each", "look", "retry", "select"]

LOOK_COUNT: Final = 1000


def look(queue: Queue, wanted: Callable[[Reference], bool]) -> Iterator[Reference | None]:
    """Give what waits, then what is not due yet, as far as it is wanted; None to let others in.

    The one given last may be taken out of the queue.
    """
    count = 0
    cursor = queue.waiting.cursor()
    try:
        while not queue.is_deleted:
            reference = cursor.advance()
            if reference is None:
                break
            if wanted(reference):
                yield reference
            count += 1
            if count % LOOK_COUNT == 0:
                yield None
    finally:
        cursor.close()
    for reference in list(queue.scheduled()):
        if reference.scheduled_ms and wanted(reference):
            yield reference


def delivering(queue: Queue) -> Iterator[tuple[str, list[Reference]]]:
    """Give each consumer's name, with what it was given and has not acknowledged."""
    for consumer in queue.consumers.all():
        if consumer.delivering:
            yield f"consumer {consumer.consumer_id}", list(consumer.delivering)


def select(filter: Filter | None, message_id: int | None = None) -> Callable[[Reference], bool]:
    """Give what tells whether a reference is wanted: by a selector, or by its message's id."""
    if message_id is not None:
        return lambda reference: reference.message.message_id == message_id
    if filter is not None:
        return lambda reference: filter.matches(reference.message)
    return lambda reference: True


def each(
    queue: Queue,
    wanted: Callable[[Reference], bool],
    act: Callable[[Reference], bool],
    *,
    count_max: int = -1,
) -> Generator[None, None, int]:
    """Do something to each that is wanted; how often it was done.

    Args:
        queue: whose.
        wanted: which.
        act: whether it did something.
        count_max: no more than so many; -1 all.
    """
    count = 0
    for reference in look(queue, wanted):
        if reference is None:
            yield
            continue
        if count == count_max:
            break
        if act(reference):
            count += 1
    return count


def change_priority(
    queue: Queue, wanted: Callable[[Reference], bool], priority: int
) -> Generator[None, None, int]:
    """Put what waits behind those of another priority; how many.

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
    for reference in look(queue, wanted):
        if reference is None:
            yield
        else:
            found.append(reference)
    count = 0
    for reference in found:
        if reference.level >= 0:
            queue.waiting.remove(reference)
            reference.message.priority = priority
            queue.waiting.add_tail(reference)
            count += 1
    queue.deliver()
    return count


def retry(
    core: Core, queue: Queue, wanted: Callable[[Reference], bool]
) -> Generator[None, None, int]:
    """Send messages back to the queues they came from; how many.

    What names no queue that is there stays.
    """

    def act(reference: Reference) -> bool:
        message = reference.message
        name = message.get(ORIGINAL_QUEUE)
        address = message.get(ORIGINAL_ADDRESS)
        target = core.postoffice.addresses.queues.get(name) if isinstance(name, str) else None
        if target is None or not isinstance(address, str):
            return False
        return core.dead_letters.move_to_queue(reference, target)

    return (yield from each(queue, wanted, act))
