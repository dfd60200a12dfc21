"""A session in asyncio: producers, consumers, queues and local transactions."""

from __future__ import annotations

import contextlib
import itertools
from typing import TYPE_CHECKING, Any, Self, Unpack

from broker.client.aio.administration import Administration
from broker.client.aio.consumer import AsyncConsumer
from broker.client.aio.distributed import Distributed
from broker.client.aio.producer import AsyncProducer
from broker.client.blocks import AsyncBlock
from broker.client.content import CORRELATION_ID, REPLY_TO, Content, make_message
from broker.client.errors import (
    AnswerTimeout,
    BrokerRefused,
    CallInterrupted,
    CallTimeout,
    ClientError,
    ClosedError,
    TransactionOutcomeUnknown,
    TransactionRolledBack,
)
from broker.client.management import (
    MANAGEMENT_ADDRESS,
    attribute_request,
    operation_request,
    result_of,
)
from broker.client.selectors import translate_selector
from broker.client.session_state import AckMode
from broker.errors import ErrorCode
from broker.model.message import Message
from broker.model.properties import PropertyType
from broker.model.routing_type import RoutingType
from broker.protocols.core.packet_connection import NullResponse
from broker.protocols.core.packet_queue import QueueQueryResponse
from broker.protocols.core.packet_session import (
    AddMetadata2,
    Close,
    CloseConsumer,
    Commit,
    Rollback,
    Start,
    Stop,
    UniqueAddMetadata,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from broker.client.aio.calls import Calls
    from broker.client.aio.received import AsyncReceived
    from broker.client.content import MessageHeaders
    from broker.client.replies import Reply
    from broker.protocols.core.packet import Packet

_DESTINATION_PREFIXES = ("queue://", "topic://", "temp-queue://", "temp-topic://")


class AsyncSession(Administration, Distributed, AsyncBlock):
    """A session: producers, consumers, queues, transactions. Made by `AsyncClient.session()`.

    For one task at a time, as a transaction is.

    Attributes:
        state: what the protocol knows of it.
    """

    def __init__(self, calls: Calls, on_closed: Callable[[AsyncSession], object]) -> None:
        self._calls = calls
        self._on_closed = on_closed
        self.state = calls.state
        # In order: what is sent for all of them must not depend on addresses of memory.
        self._consumers: dict[AsyncConsumer, None] = {}
        self._answers_prefix = ""
        self._requests = itertools.count(1)

    # Producers and consumers.

    def producer(self, address: str | None = None) -> AsyncProducer:
        """Give a producer.

        Args:
            address: where it sends; None to say so with every message.

        Raises:
            ClosedError: the session is closed.
        """
        self._calls.check_open()
        return AsyncProducer(self._calls, address)

    async def consumer(
        self,
        queue: str,
        selector: str | None = None,
        *,
        browse: bool = False,
        priority: int = 0,
        listener: Callable[[AsyncReceived], object] | None = None,
    ) -> AsyncConsumer:
        """Begin to consume from a queue.

        Args:
            queue: its name, or `address::queue`.
            selector: only messages for which this holds; JMS names are understood.
            browse: look at the messages and leave them there.
            priority: consumers of a higher one are served first.
            listener: called with each message; a coroutine function is awaited.

        Raises:
            QueueMissing: the queue does not exist.
            BrokerRefused: such as for a wrong selector.
        """
        await self._calls.ready()
        wanted = translate_selector(selector) if selector is not None else None
        state = self.state.new_consumer(queue, wanted, browse_only=browse, priority=priority)
        reply = self.state.channel.call(state.request, QueueQueryResponse)
        try:
            answer = await self._calls.answered(reply, state.request)
        except BaseException:
            self.state.remove_consumer(state)
            # Who does not wait any more has asked all the same.
            reply.when_done(lambda done: self._close_unwanted(done, state.consumer_id))
            raise
        assert isinstance(answer, QueueQueryResponse)
        self.state.consumer_created(state, answer)
        consumer = AsyncConsumer(self._calls, state, listener, self._consumers.pop)
        self._consumers[consumer] = None
        return consumer

    def _close_unwanted(self, done: Reply[Packet], consumer_id: int) -> None:
        """Close a consumer that no caller waits for any more: it must not keep messages."""
        if done.error is None:
            self.state.channel.call(CloseConsumer(consumer_id))

    async def browse(self, queue: str, selector: str | None = None) -> AsyncIterator[AsyncReceived]:
        """Give the messages that are in a queue now, without taking them.

        Args:
            queue: its name, or `address::queue`.
            selector: only messages for which this holds.

        Raises:
            QueueMissing: the queue does not exist.
        """
        async with await self.consumer(queue, selector, browse=True) as consumer:
            while (message := await consumer.receive_now()) is not None:
                yield message

    # Delivery on and off.

    def start(self) -> None:
        """Begin delivery: messages come from now on."""
        self.state.is_started = True
        self.state.channel.post(Start())

    async def stop(self) -> None:
        """Stop delivery: no message comes after this; those that the client has stay."""
        self.state.is_started = False
        await self._calls.call(Stop(), NullResponse)

    @contextlib.asynccontextmanager
    async def _stopped(self) -> AsyncIterator[None]:
        """Give a block without delivery; what was started goes on behind it, however it ends."""
        was_started = self.state.is_started
        try:
            if was_started:
                await self.stop()
            yield
        finally:
            if was_started:
                self.start()

    # Local transactions.

    async def commit(self) -> None:
        """Make what was sent and received since the last commit count.

        Raises:
            TransactionRolledBack: something failed, now or before; nothing of it counts.
            TransactionOutcomeUnknown: the connection was lost meanwhile.
        """
        self._flush_acknowledgements()
        # Behind it: a session that is created again while this waits has nothing of the work.
        await self._calls.ready()
        if self.state.is_rollback_only:
            await self.rollback()
            raise TransactionRolledBack(
                ErrorCode.TRANSACTION_ROLLED_BACK,
                "the connection was lost during the transaction; it was rolled back",
            )
        reply = self.state.channel.call_correlated(Commit())
        try:
            await self._calls.answered(reply, "commit")
        except (CallInterrupted, CallTimeout) as error:
            self.state.has_work = False
            self.state.is_rollback_only = False
            raise TransactionOutcomeUnknown(
                "the connection was lost during the commit; it may have been done"
            ) from error
        self.state.has_work = False

    async def rollback(self, *, consider_last_as_delivered: bool = False) -> None:
        """Undo what was sent and received since the last commit; messages come again, in order.

        Args:
            consider_last_as_delivered: leave the delivery count of the last message raised.
        """
        self._flush_acknowledgements()
        async with self._stopped():
            for consumer in self.state.consumers:
                consumer.clear()
            await self._calls.call(Rollback(consider_last_as_delivered), NullResponse)
            self.state.has_work = False
            self.state.is_rollback_only = False

    @contextlib.asynccontextmanager
    async def transaction(self) -> AsyncIterator[Self]:
        """Give a block that commits at its end, and rolls back when it raises.

            async with session.transaction():
                ...

        Raises:
            ValueError: the session was not created with AckMode.TRANSACTED.
        """
        self.check_transacted()
        try:
            yield self
        except BaseException:
            # The error of the block is what the caller must see; a lost session rolls back anyway.
            with contextlib.suppress(ClientError):
                await self.rollback()
            raise
        await self.commit()

    def check_transacted(self) -> None:
        """Refuse a block of a transaction where there is none.

        Raises:
            ValueError: the session has no local transaction.
        """
        if self.state.mode is not AckMode.TRANSACTED:
            raise ValueError("the session is not transacted: create it with AckMode.TRANSACTED")

    def _flush_acknowledgements(self) -> None:
        for consumer in tuple(self._consumers):
            consumer.flush_acknowledgements()

    # Questions and answers.

    @property
    def answers_prefix(self) -> str:
        """How the names of the temporary queues begin that `request` has its answers come by."""
        if not self._answers_prefix:
            self._answers_prefix = f"answers.{self._calls.environment.ids.random_uuid()}."
        return self._answers_prefix

    async def request(
        self,
        address: str,
        content: Content | Message,
        *,
        timeout_s: float | None = 30.0,
        **headers: Unpack[MessageHeaders],
    ) -> AsyncReceived:
        """Send a question and give its answer, which comes by a temporary queue.

        Args:
            address: where the question goes.
            content: as for a producer.
            timeout_s: seconds that the answer may take; None for ever.
            **headers: group_id, reply_to, properties …: see `make_message`.

        Raises:
            AnswerTimeout: the answer did not come in time.
        """
        ids = self._calls.environment.ids
        answers = f"{self.answers_prefix}{next(self._requests)}"
        await self.create_queue(
            answers, routing_type=RoutingType.ANYCAST, durable=False, temporary=True
        )
        try:
            async with await self.consumer(answers) as consumer:
                message = content
                if not isinstance(message, Message):
                    message = make_message(message, now_ms=self._calls.now_ms(), **headers)
                _set_text(message, REPLY_TO, f"temp-queue://{answers}")
                if message.get(CORRELATION_ID) is None:
                    _set_text(message, CORRELATION_ID, str(ids.random_uuid()))
                async with self.producer(address) as producer:
                    await producer.send(message)
                received = await consumer.receive(timeout_s)
                if received is None:
                    raise AnswerTimeout(f"no answer from {address!r} in {timeout_s} s")
                return received
        finally:
            with contextlib.suppress(ClientError):
                await self.delete_queue(answers)

    async def reply(
        self, question: AsyncReceived, content: Content | Message, **headers: Unpack[MessageHeaders]
    ) -> None:
        """Send the answer to a question, to where it asked for.

        Args:
            question: as a consumer received it.
            content: as for a producer.
            **headers: group_id, reply_to, properties …: see `make_message`.

        Raises:
            ValueError: the question has no JMSReplyTo.
        """
        where = question.get(REPLY_TO)
        if not isinstance(where, str):
            raise ValueError("the message asks for no answer")
        message = content
        if not isinstance(message, Message):
            message = make_message(message, now_ms=self._calls.now_ms(), **headers)
        correlation = question.get(CORRELATION_ID)
        if isinstance(correlation, str):
            _set_text(message, CORRELATION_ID, correlation)
        for prefix in _DESTINATION_PREFIXES:
            where = where.removeprefix(prefix)
        async with self.producer(where) as producer:
            await producer.send(message)

    # Management.

    async def manage(
        self,
        resource: str,
        operation: str,
        *arguments: object,
        timeout_s: float | None = 30.0,
    ) -> Any:  # noqa: ANN401 - what it gives
        """Call an operation of the broker's management; its result, as JSON has it.

        Args:
            resource: `broker`, `queue.NAME`, `address.NAME`, ...
            operation: its name, as in Artemis's controls.
            *arguments: what JSON can hold.
            timeout_s: seconds that the answer may take; None for ever.

        Raises:
            BrokerRefused: it failed, and why.
            AnswerTimeout: the answer did not come in time; the operation may have run all the same.
        """
        answer = await self.request(
            MANAGEMENT_ADDRESS,
            operation_request(resource, operation, arguments, self._calls.now_ms()),
            timeout_s=timeout_s,
        )
        return result_of(answer.message, answer.content)

    async def attribute(self, resource: str, name: str) -> Any:  # noqa: ANN401 - whatever it is
        """Read an attribute of the broker's management, such as `messageCount` of `queue.NAME`.

        Args:
            resource: `broker`, `queue.NAME`, `address.NAME`, ...
            name: of the attribute, as in Artemis's controls.

        Raises:
            BrokerRefused: the resource or the attribute does not exist.
        """
        asked = attribute_request(resource, name, self._calls.now_ms())
        answer = await self.request(MANAGEMENT_ADDRESS, asked)
        return result_of(answer.message, answer.content)

    # Metadata.

    async def add_metadata(self, key: str, data: str, *, unique: bool = False) -> None:
        """Label the session, for operators.

        Args:
            key: of the label, such as `jms-client-id`.
            data: its text.
            unique: refuse what another session has as well.

        Raises:
            BrokerRefused: DUPLICATE_METADATA, where `unique` and another session has the same.
        """
        kind = UniqueAddMetadata if unique else AddMetadata2
        await self._calls.call(kind(key, data, True), NullResponse)
        self.state.metadata[key] = data

    # Endings.

    async def close(self) -> None:
        """Close consumers and session; what was not committed or acknowledged is undone."""
        if self._calls.is_closed:
            return
        for consumer in tuple(self._consumers):
            await consumer.stop_listening()
        self._flush_acknowledgements()
        try:
            await self._calls.call(Close(), NullResponse)
        except BrokerRefused as error:
            # A broker that no longer knows the session has closed it.
            self.state.on_error(error)
        finally:
            self._calls.is_closed = True
            self.state.fail(ClosedError("the session is closed"))
            self._on_closed(self)

    def ended(self, error: ClientError) -> None:
        """Take note that the connection is lost for good, or closed.

        Args:
            error: why; calls that wait raise it.
        """
        self._calls.is_closed = True
        self.state.fail(error)

    def __repr__(self) -> str:
        """Its name at the broker, who acknowledges, and whether messages come."""
        state = "closed"
        if not self._calls.is_closed:
            delivery = "started" if self.state.is_started else "stopped"
            state = f"{self.state.mode.value}, {delivery}, {len(self._consumers)} consumers"
        return f"<AsyncSession {self.state.name}: {state}>"


def _set_text(message: Message, name: str, text: str) -> None:
    message.set(name, PropertyType.STRING, text)
