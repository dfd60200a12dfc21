"""Sends a replay's messages, each once over all of its runs.

    found ─▶ message with a duplicate id: job, node, message id ─▶ many on their way ─▶ confirmed
                                                              ─▶ progress, every so often, on disk

By its id the broker refuses a message that it has already. The progress file makes sure that no
message is sent whose id the address may have forgotten. Between two notes of the progress no more
messages are sent than the address keeps ids. There is one connection, and the order is that of
`pipeline.replay`. If the connection is lost, unconfirmed messages are sent again over a new one, in
their order.
"""

from __future__ import annotations

import contextlib
from collections import Counter, deque
from typing import IO, TYPE_CHECKING, Final, Self

from broker.client.content import DUPLICATE_ID
from broker.client.errors import ClientError, DuplicateId
from broker.model.properties import PropertyType
from broker.records.amqp_large_message import LargeAmqpMessage
from broker.records.amqp_message import AmqpMessage
from broker.records.embedded_messages import embedded
from journal.errors import WrongUse
from pipeline.broker_connection import BrokerConnection
from pipeline.broker_sending import checked_id_cache_size
from pipeline.replay import decoded
from pipeline.replay_bodies import MissingBody

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from concurrent.futures import Future
    from types import TracebackType

    from broker.model.message import Message
    from pipeline.broker_options import BrokerOptions
    from pipeline.replay import Found
    from pipeline.replay_bodies import ReplayBodies
    from pipeline.replay_progress import ReplayProgress

__all__ = ["ReplaySender"]

# Messages that wait for their confirmation, and those confirmed between two notes of the progress.
WINDOW: Final = 1000
# Meant for the queues of the broker that it was sent to, or for whom a bridge brought it to.
_NOT_AGAIN: Final = ("_AMQ_ROUTE_TO", "_AMQ_BRIDGE_DUP")


class ReplaySender:
    """A connection to the broker that a replay goes to.

    Args:
        options: its URL, the address that messages go to, and their routing type where they do not
            say.
        job: of the duplicate ids.
        progress: of the job.

    Attributes:
        count: of messages that the broker has confirmed.
        problems: what could not be sent, and why.
        unsent: how many messages that is.

    Raises:
        WrongUse: the address is not there, keeps too few duplicate ids, or does not say how many.
        ClientError: the broker refuses, or is away for too long.
    """

    def __init__(self, options: BrokerOptions, job: str, progress: ReplayProgress) -> None:
        assert options.address, "the command line says which"
        self._address = options.address
        self._routing_type = options.routing_type
        self._job = job
        self._progress = progress
        self.count = 0
        self.problems: list[str] = []
        self.unsent = 0
        self._waiting: deque[tuple[Found, int, Message, Future[None]]] = deque()
        # By node: how many were found so far; of these, those that the runs before had come past;
        # and how many they had found then.
        self._found: Counter[str] = Counter()
        self._passed: Counter[str] = Counter()
        self._known = dict(progress.passed)
        self._unnoted = 0
        self._connection = BrokerConnection(options)
        try:
            name = self._address.partition("::")[0]
            size = self._connection.run(
                lambda session: checked_id_cache_size(session, name, options)
            )
            if size < 2:
                raise WrongUse(
                    f"address {name} keeps {size} duplicate ids (id-cache-size): with fewer than 2"
                    " nothing can be sent exactly once"
                )
            self._window = min(WINDOW, size // 2)
        except BaseException:
            self._connection.close()
            raise

    def send(
        self,
        messages: Iterable[Found],
        bodies: ReplayBodies,
        told: Callable[[int], object] = lambda count: None,
    ) -> None:
        """Send what was not yet sent; all is durable, and noted, when this returns.

        Args:
            messages: by node and message id.
            bodies: of the large ones.
            told: how many messages were looked at.

        Raises:
            ClientError: the broker refused one, or is away for too long.
            OSError: a body cannot be read, or the progress not be noted.
        """
        before = dict(self._progress.sent)
        try:
            for number, found in enumerate(messages, 1):
                node = found.node
                self._found[node] += 1
                if found.message_id > before.get(node, -1):
                    self._send(found, bodies)
                else:
                    self._passed[node] += 1
                    if found.message_id in self._progress.missing.get(node, ()):
                        self._send(found, bodies)
                    elif found.problem:
                        self._tell(found, found.problem)
                told(number)
            self._settle(0)
            for node in before:
                if count := self._unknown(node):
                    self.unsent += count
                    self.problems.append(
                        f"{node}: {count} messages that no run before has found have ids below"
                        f" {before[node]}, up to which all were sent: another --job sends all again"
                    )
        finally:
            # Also of what was confirmed before something failed.
            self._note()

    def _send(self, found: Found, bodies: ReplayBodies) -> None:
        if found.problem:
            self._tell(found, found.problem)
            return
        message = decoded(found.user_type, found.body)
        if message.is_large:
            try:
                body = bodies.open(found.node, found.message_id, message)
            except MissingBody as missing:
                self._tell(found, str(missing))
                self._progress.missing.setdefault(found.node, set()).add(found.message_id)
                return
            # Its parts would overtake what waits for credit.
            self._settle(0)
            with body:
                made = self._prepared(found, message)
                self._connection.run(lambda _: self._send_large(body, made))
            self._confirmed(found, self._found[found.node])
            return
        message = self._prepared(found, message)
        # Made anew only where nothing waits: what waits has its producer.
        producer = self._connection.run(lambda _: self._connection.producer)
        answer = producer.post(message)
        self._waiting.append((found, self._found[found.node], message, answer))
        self._settle(self._window)

    def _send_large(self, body: IO[bytes], message: Message) -> None:
        # Perhaps not the first time.
        body.seek(0)
        with contextlib.suppress(DuplicateId):
            self._connection.producer.send_stream(body, message)

    def _prepared(self, found: Found, message: Message) -> Message:
        """Give what is sent for it; one of AMQP goes as it is, inside of one of Core."""
        for name in _NOT_AGAIN:
            message.remove(name)
        message.address = self._address
        routing_type = self._routing_type if message.routing_type is None else None
        given = f"{self._job}:{found.node}:{found.message_id}"
        if isinstance(message, AmqpMessage | LargeAmqpMessage):
            message.send_again(given, routing_type)
            return embedded(message)
        if routing_type is not None:
            message.routing_type = routing_type
        message.set(DUPLICATE_ID, PropertyType.STRING, given)
        return message

    def _settle(self, left: int) -> None:
        """Wait until no more than so many wait for their confirmation."""
        while len(self._waiting) > left:
            found, number, _, answer = self._waiting[0]
            try:
                # That the broker has it: from a run that was ended before it could note that, or
                # over a connection that was lost.
                with contextlib.suppress(DuplicateId):
                    answer.result()
            except ClientError as error:
                self._send_again(error)
                continue
            self._waiting.popleft()
            self._connection.works()
            self._confirmed(found, number)

    def _send_again(self, error: ClientError) -> None:
        """Send what was not confirmed over a new connection, in its order.

        Raises:
            ClientError: the broker refuses, or is away for too long.
        """
        self._connection.lost(error)
        while True:
            try:
                producer = self._connection.producer
                self._waiting = deque(
                    [
                        (found, number, message, producer.post(message))
                        for found, number, message, _ in self._waiting
                    ]
                )
            except ClientError as again:
                self._connection.lost(again)
            else:
                return

    def _unknown(self, node: str) -> int:
        """How many are there that the runs before have come past, and had not found."""
        return max(0, self._passed[node] - self._known.get(node, 0))

    def _confirmed(self, found: Found, number: int) -> None:
        """The broker has it.

        Args:
            found: what.
            number: of it among those of its node.
        """
        self.count += 1
        node, progress = found.node, self._progress
        if found.message_id > progress.sent.get(node, -1):
            progress.sent[node] = found.message_id
            progress.passed[node] = number - self._unknown(node)
        progress.missing.get(node, set()).discard(found.message_id)
        self._unnoted += 1
        if self._unnoted >= self._window:
            self._note()

    def _note(self) -> None:
        if self._unnoted:
            self._progress.save()
            self._unnoted = 0

    def _tell(self, found: Found, problem: str) -> None:
        self.unsent += 1
        self.problems.append(f"{found.node}: message {found.message_id}: {problem}")

    def close(self) -> None:
        """Let the connection go."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
