"""Reads a queue of a running broker for a query: each message is in exactly one batch.

A batch is the set of the ids of its messages, which the checkpoint keeps as the batch's end before
anything is read. Until the batch is done all of them stay in the queue: it is looked through, and
nothing is taken, so that a batch has the same messages however often it is read. Behind it they are
removed by their ids. Ids, and no position, since nothing orders a queue for good: a transaction
commits late what has a low id, what was scheduled comes due, a higher priority overtakes.

    plan()     the first messages in the queue that are not of the batch before: the next batch
    read()     the messages of a batch
    remove()   those of a batch that is done, before the next one is planned
    settle()   the same at a start: what a kill has left of the last one

Who plans names the batch before, which is done, so that nothing older can be left in the queue.

Consumers of the same queue, and a broker that drops messages by itself (expiry, a ring, a purge),
take them from the query. Of one that was planned, that is told.
"""

from __future__ import annotations

import contextlib
import logging
from itertools import pairwise
from typing import TYPE_CHECKING, Final, TypeAlias

from broker.client.content import REPLY_TO
from broker.client.errors import AnswerTimeout, ClientError
from broker.client.management import (
    MANAGEMENT_ADDRESS,
    attribute_request,
    operation_request,
    result_of,
)
from broker.model.properties import PropertyType
from broker.model.routing_type import RoutingType
from journal.errors import WrongUse
from pipeline.errors import DataLoss

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from broker.client import Received, Session
    from pipeline.broker_options import BrokerOptions

__all__ = ["Runs", "StreamQueue", "ids_of", "runs_of", "shares_of"]

log: Final = logging.getLogger("pipeline.broker")

Runs: TypeAlias = "list[list[int]]"
"""Ids as runs of equal steps, for a checkpoint: the first id, the step, how many."""

# Removals that wait for their answers.
WINDOW: Final = 500
ANSWER_S: Final = 60.0


def runs_of(ids: Iterable[int]) -> Runs:
    """Give ids, in any order, as runs.

    >>> runs_of([3, 1, 5, 8, 9])
    [[1, 2, 3], [8, 1, 2]]
    """
    runs: Runs = []
    for one in sorted(ids):
        if runs:
            first, step, count = runs[-1]
            if count == 1 or one == first + step * count:
                runs[-1] = [first, one - first if count == 1 else step, count + 1]
                continue
        runs.append([one, 1, 1])
    return runs


def ids_of(runs: Runs) -> set[int]:
    """Give what runs_of() was given.

    >>> sorted(ids_of([[1, 2, 3], [8, 1, 2]]))
    [1, 3, 5, 8, 9]
    """
    return {first + step * number for first, step, count in runs for number in range(count)}


def shares_of(runs: Runs, count: int) -> list[Runs]:
    """Cut ids into so many shares, nearly even ones, of ids that follow one another.

    The same ids are always cut in the same way; where there are fewer, so are the shares.

    >>> shares_of([[1, 1, 5]], 2)
    [[[1, 1, 2]], [[3, 1, 3]]]
    """
    ids = sorted(ids_of(runs))
    count = min(count, len(ids))
    ends = [len(ids) * number // count for number in range(count + 1)] if count else []
    return [runs_of(ids[first:end]) for first, end in pairwise(ends)]


class StreamQueue:
    """The queue of one query, over a session that is the caller's.

    Args:
        session: of a client, with the permissions `browse` and `manage`.
        options: of the query.
    """

    def __init__(self, session: Session, options: BrokerOptions) -> None:
        assert options.queue is not None, "the options of a stream have one"
        self._session = session
        self._options = options
        self.name = options.queue

    # --- making it --------------------------------------------------------------------------------

    def make(self) -> None:
        """See that there is the queue; with an address that what is sent there comes into it.

        Raises:
            WrongUse: there is no such queue, and no address to make it for.
            ClientError: it cannot be made.
        """
        session, address = self._session, self._options.address
        exists = session.query_queue(self.name).exists
        if address is None:
            if not exists:
                raise WrongUse(
                    f"{self._options.node}: queue {self.name!r} does not exist; with the option"
                    " address it is created, and receives what is sent to the address from then on"
                )
            return
        if not exists:
            session.create_queue(self.name, self.name, routing_type=RoutingType.ANYCAST)
        if not self._has_divert():
            # Whatever its routing type, and beside all who consume at the address. ANYCAST since
            # what would be sent to a topic finds no queue of ours.
            kind = RoutingType.ANYCAST.name
            divert = (self.name, self.name, address, self.name, False, None, None, kind)
            session.manage("broker", "createDivert", *divert)

    def check(self) -> None:
        """Check that the queue and the divert that make() created still exist.

        Raises:
            DataLoss: it is gone, and so is what was in it, and what should have come.
        """
        missing = None
        if not self._session.query_queue(self.name).exists:
            missing = "queue"
        elif self._options.address is not None and not self._has_divert():
            missing = "divert"
        if missing is None:
            return
        reason = f"the {missing} {self.name!r} of this query was removed"
        if self._options.fails_on_data_loss:
            raise DataLoss(self._options.node, [reason], "it is made again")
        log.warning("%s: %s; it is made again", self._options.node, reason)
        self.make()

    def _has_divert(self) -> bool:
        return self.name in self._session.attribute("broker", "divertNames")

    # --- batches ----------------------------------------------------------------------------------

    def newest_id(self) -> int:
        """Give an id: no message that came before this call has a greater one."""
        # Ids come from one source, that of the answer, too.
        request = attribute_request(f"queue.{self.name}", "messageCount")
        answer = self._session.request(MANAGEMENT_ADDRESS, request)
        result_of(answer.message, answer.content)
        return answer.message_id

    def plan(self, before: Collection[int], *, count_max: int, id_max: int | None) -> list[int]:
        """Give the ids of the messages that come next.

        Args:
            before: ids of the batch before, which may be in the queue still.
            count_max: at most so many.
            id_max: none above it; None: any.
        """
        # A set: where the client reconnects by itself, the look begins again.
        found = set[int]()
        with self._looking() as messages:
            for received in messages:
                message_id = received.message_id
                if message_id in before or (id_max is not None and message_id > id_max):
                    continue
                found.add(message_id)
                if len(found) >= count_max:
                    break
        return list(found)

    def depth(self) -> int:
        """Give how many messages are in the queue, those that are scheduled included."""
        return int(self._session.attribute(f"queue.{self.name}", "messageCount"))

    def read(self, ids: Collection[int]) -> Iterator[Received]:
        """Give the messages of a batch, in the order of the queue.

        Raises:
            DataLoss: some are gone, and that is asked for; the others came before.
        """
        left = set(ids)
        if not left:
            return
        with self._looking() as messages:
            for received in messages:
                if received.message_id not in left:
                    continue
                left.discard(received.message_id)
                yield received
                if not left:
                    return
        if left:
            reason = (
                f"{len(left)} messages are gone from queue {self.name!r} before they were read,"
                f" such as {min(left)}: expired, removed, or with another consumer"
            )
            if self._options.fails_on_data_loss:
                raise DataLoss(self._options.node, [reason], "the others are read")
            log.warning("%s: %s", self._options.node, reason)

    @contextlib.contextmanager
    def _looking(self) -> Iterator[Iterator[Received]]:
        """Look through the queue, as far as wanted."""
        with self._session.consumer(self.name, browse=True) as consumer:
            yield iter(consumer.receive_now, None)

    def settle(self, done: Collection[int]) -> None:
        """Remove what is left of a batch that is done, where that was not seen to."""
        left = set(done)
        found: list[int] = []
        if left:
            with self._looking() as messages:
                for received in messages:
                    if received.message_id in left:
                        left.discard(received.message_id)
                        found.append(received.message_id)
                        if not left:
                            break
        self.remove(found)

    def remove(self, ids: Collection[int]) -> None:
        """Remove messages; the removal is durable on return. Messages that are gone are ignored.

        Raises:
            ClientError: the broker refuses it, or the connection is lost.
        """
        # The order of the ids is nearly that of the queue, in which the broker looks for each.
        ordered = sorted(ids)
        if not ordered:
            return
        session = self._session
        answers = f"{self.name}.removed.{id(self)}.{ordered[0]}"
        session.create_queue(
            answers, routing_type=RoutingType.ANYCAST, durable=False, temporary=True
        )
        try:
            with session.consumer(answers) as consumer, session.producer() as producer:
                for first in range(0, len(ordered), WINDOW):
                    some = ordered[first : first + WINDOW]
                    for message_id in some:
                        request = operation_request(
                            f"queue.{self.name}", "removeMessage", (message_id,)
                        )
                        request.set(REPLY_TO, PropertyType.STRING, f"temp-queue://{answers}")
                        producer.send(request, address=MANAGEMENT_ADDRESS)
                    for _ in some:
                        answer = consumer.receive(ANSWER_S)
                        if answer is None:
                            raise AnswerTimeout(f"no answer to a removal in {ANSWER_S} s")
                        result_of(answer.message, answer.content)
        finally:
            with contextlib.suppress(ClientError):
                session.delete_queue(answers)
