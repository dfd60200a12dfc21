"""A session for threads."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Self, Unpack

from broker.client.blocking.consumer import Consumer, Received
from broker.client.blocking.producer import Producer
from broker.client.blocks import Block
from broker.client.errors import ClientError
from broker.model.routing_type import RoutingType

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from broker.client.aio.administration import QueueSettings, SharedQueueSettings
    from broker.client.aio.session import AsyncSession
    from broker.client.blocking.runner import Runner
    from broker.client.content import Content, MessageHeaders
    from broker.model.message import Message
    from broker.model.xid import Xid
    from broker.protocols.core.packet_queue import BindingQueryResponse, QueueQueryResponse


class Session(Block):
    """A session: producers, consumers, queues, transactions. Made by `Client.session()`.

    For one thread at a time, as a transaction is; calls return when the broker has answered.
    """

    def __init__(self, runner: Runner, session: AsyncSession) -> None:
        self._runner = runner
        self._session = session

    # Producers and consumers.

    def producer(self, address: str | None = None) -> Producer:
        """Give a producer.

        Args:
            address: where it sends; None to say so with every message.

        Raises:
            ClosedError: the session is closed.
        """
        return Producer(self._runner, self._runner.call(lambda: self._session.producer(address)))

    def consumer(
        self,
        queue: str,
        selector: str | None = None,
        *,
        browse: bool = False,
        priority: int = 0,
        listener: Callable[[Received], object] | None = None,
    ) -> Consumer:
        """Begin to consume from a queue.

        Args:
            queue: its name, or `address::queue`.
            selector: only messages for which this holds; JMS names are understood.
            browse: look at the messages and leave them there.
            priority: consumers of a higher one are served first.
            listener: called with each message, in a thread of the consumer's own.

        Raises:
            QueueMissing: the queue does not exist.
            BrokerRefused: such as for a wrong selector.
        """
        work = self._session.consumer(queue, selector, browse=browse, priority=priority)
        return Consumer(self._runner, self._runner.wait(work), listener)

    def browse(self, queue: str, selector: str | None = None) -> Iterator[Received]:
        """Give the messages that are in a queue now, without taking them.

        Args:
            queue: its name, or `address::queue`.
            selector: only messages for which this holds.

        Raises:
            QueueMissing: the queue does not exist.
        """
        with self.consumer(queue, selector, browse=True) as consumer:
            while (message := consumer.receive_now()) is not None:
                yield message

    # Delivery on and off.

    def start(self) -> None:
        """Begin delivery: messages come from now on."""
        self._runner.call(self._session.start)

    def stop(self) -> None:
        """Stop delivery: no message comes after this; those that the client has stay."""
        self._runner.wait(self._session.stop())

    # Local transactions.

    def commit(self) -> None:
        """Make what was sent and received since the last commit count.

        Raises:
            TransactionRolledBack: something failed, now or before; nothing of it counts.
            TransactionOutcomeUnknown: the connection was lost meanwhile.
        """
        self._runner.wait(self._session.commit())

    def rollback(self, *, consider_last_as_delivered: bool = False) -> None:
        """Undo what was sent and received since the last commit; messages come again, in order.

        Args:
            consider_last_as_delivered: leave the delivery count of the last message raised.
        """
        work = self._session.rollback(consider_last_as_delivered=consider_last_as_delivered)
        self._runner.wait(work)

    @contextlib.contextmanager
    def transaction(self) -> Iterator[Self]:
        """Give a block that commits at its end, and rolls back when it raises.

            with session.transaction():
                ...

        Raises:
            ValueError: the session was not created with AckMode.TRANSACTED.
        """
        self._session.check_transacted()
        try:
            yield self
        except BaseException:
            # The error of the block is what the caller must see.
            with contextlib.suppress(ClientError):
                self.rollback()
            raise
        self.commit()

    # Distributed transactions.

    def xa_start(self, xid: Xid) -> None:
        """Begin a branch of a distributed transaction; what follows belongs to it.

        Args:
            xid: of the transaction.

        Raises:
            XaRefused: the broker refuses, with the code of the XA standard.
        """
        self._runner.wait(self._session.xa_start(xid))

    def xa_join(self, xid: Xid) -> None:
        """Join a branch that another session has begun.

        Args:
            xid: of the transaction.

        Raises:
            XaRefused: the broker refuses, with the code of the XA standard.
        """
        self._runner.wait(self._session.xa_join(xid))

    def xa_end(self, xid: Xid, *, failed: bool = False) -> None:
        """Stop working for the branch.

        Args:
            xid: of the transaction.
            failed: it can only be rolled back.

        Raises:
            XaRefused: the broker refuses, with the code of the XA standard.
        """
        self._runner.wait(self._session.xa_end(xid, failed=failed))

    def xa_suspend(self) -> None:
        """Leave the branch for now.

        Raises:
            XaRefused: the broker refuses, with the code of the XA standard.
        """
        self._runner.wait(self._session.xa_suspend())

    def xa_resume(self, xid: Xid) -> None:
        """Come back to a branch that was suspended.

        Args:
            xid: of the transaction.

        Raises:
            XaRefused: the broker refuses, with the code of the XA standard.
        """
        self._runner.wait(self._session.xa_resume(xid))

    def xa_prepare(self, xid: Xid) -> None:
        """Prepare the branch: it survives a restart of the broker until its end.

        Args:
            xid: of the transaction.

        Raises:
            XaRefused: the broker refuses, with the code of the XA standard.
        """
        self._runner.wait(self._session.xa_prepare(xid))

    def xa_commit(self, xid: Xid, *, one_phase: bool = False) -> None:
        """Commit the branch.

        Args:
            xid: of the transaction.
            one_phase: without a prepare before.

        Raises:
            XaRefused: the broker refuses, with the code of the XA standard.
        """
        self._runner.wait(self._session.xa_commit(xid, one_phase=one_phase))

    def xa_rollback(self, xid: Xid) -> None:
        """Roll the branch back; what was received in it comes again, in order.

        Args:
            xid: of the transaction.

        Raises:
            XaRefused: the broker refuses, with the code of the XA standard.
        """
        self._runner.wait(self._session.xa_rollback(xid))

    def xa_forget(self, xid: Xid) -> None:
        """Let the broker forget a branch that an operator ended.

        Args:
            xid: of the transaction.

        Raises:
            XaRefused: the broker refuses, with the code of the XA standard.
        """
        self._runner.wait(self._session.xa_forget(xid))

    def xa_recover(self) -> tuple[Xid, ...]:
        """Give the branches that are prepared."""
        return self._runner.wait(self._session.xa_recover())

    def xa_set_timeout(self, timeout_s: int) -> bool:
        """Set after how long the broker rolls a branch back; whether it takes that.

        Args:
            timeout_s: seconds; 0 for the broker's own.
        """
        return self._runner.wait(self._session.xa_set_timeout(timeout_s))

    def xa_get_timeout(self) -> int:
        """Give the seconds after which the broker rolls a branch back."""
        return self._runner.wait(self._session.xa_get_timeout())

    # Questions and answers.

    @property
    def answers_prefix(self) -> str:
        """How the names of the temporary queues begin that `request` has its answers come by."""
        return self._session.answers_prefix

    def request(
        self,
        address: str,
        content: Content | Message,
        *,
        timeout_s: float | None = 30.0,
        **headers: Unpack[MessageHeaders],
    ) -> Received:
        """Send a question and give its answer, which comes by a temporary queue.

        Args:
            address: where the question goes.
            content: as for a producer.
            timeout_s: seconds that the answer may take; None for ever.
            **headers: group_id, reply_to, properties …: see `make_message`.

        Raises:
            AnswerTimeout: the answer did not come in time.
        """
        work = self._session.request(address, content, timeout_s=timeout_s, **headers)
        return Received(self._runner, self._runner.wait(work))

    def reply(
        self, question: Received, content: Content | Message, **headers: Unpack[MessageHeaders]
    ) -> None:
        """Send the answer to a question, to where it asked for.

        Args:
            question: as a consumer received it.
            content: as for a producer.
            **headers: group_id, reply_to, properties …: see `make_message`.

        Raises:
            ValueError: the question has no JMSReplyTo.
        """
        self._runner.wait(self._session.reply(question.asynchronous, content, **headers))

    # Queues and addresses.

    def create_address(
        self, address: str, *routing_types: RoutingType, auto_created: bool = False
    ) -> None:
        """Create an address.

        Args:
            address: its name.
            *routing_types: how it hands on messages; ANYCAST where nothing is said.
            auto_created: whether the broker may delete it when it is not used any more.

        Raises:
            BrokerRefused: ADDRESS_EXISTS, or the user may not.
        """
        work = self._session.create_address(address, *routing_types, auto_created=auto_created)
        self._runner.wait(work)

    def create_queue(
        self,
        queue: str,
        address: str | None = None,
        *,
        routing_type: RoutingType = RoutingType.ANYCAST,
        selector: str | None = None,
        durable: bool = True,
        temporary: bool = False,
        **settings: Unpack[QueueSettings],
    ) -> None:
        """Create a queue.

        Args:
            queue: its name.
            address: what it is bound to; its own name where nothing is said.
            routing_type: how the address hands messages to it.
            selector: only messages for which this holds.
            durable: survives a restart of the broker.
            temporary: ends with the connection.
            **settings: further ones, such as `exclusive` or `ring_size`: see `QueueSettings`.

        Raises:
            QueueExists: a queue of this name exists.
            BrokerRefused: the user may not, or the settings do not go together.
        """
        work = self._session.create_queue(
            queue,
            address,
            routing_type=routing_type,
            selector=selector,
            durable=durable,
            temporary=temporary,
            **settings,
        )
        self._runner.wait(work)

    def create_shared_queue(
        self,
        queue: str,
        address: str,
        *,
        routing_type: RoutingType = RoutingType.MULTICAST,
        selector: str | None = None,
        durable: bool = True,
        **settings: Unpack[SharedQueueSettings],
    ) -> None:
        """Create a queue, or find the same one; for subscriptions that several consumers share.

        Args:
            queue: its name.
            address: what it is bound to.
            routing_type: how the address hands messages to it.
            selector: only messages for which this holds.
            durable: survives a restart of the broker.
            **settings: further ones, such as `max_consumers`: see `SharedQueueSettings`.

        Raises:
            QueueExists: a queue of this name has another address or selector.
        """
        work = self._session.create_shared_queue(
            queue,
            address,
            routing_type=routing_type,
            selector=selector,
            durable=durable,
            **settings,
        )
        self._runner.wait(work)

    def delete_queue(self, queue: str) -> None:
        """Delete a queue with its messages.

        Args:
            queue: its name.

        Raises:
            QueueMissing: the queue does not exist.
            BrokerRefused: it has consumers, or the user may not.
        """
        self._runner.wait(self._session.delete_queue(queue))

    def query_queue(self, queue: str) -> QueueQueryResponse:
        """Ask about a queue; `exists` of the answer says whether it is there.

        Args:
            queue: its name.
        """
        return self._runner.wait(self._session.query_queue(queue))

    def query_address(self, address: str) -> BindingQueryResponse:
        """Ask about an address; `exists` of the answer says whether it is there.

        Args:
            address: its name.
        """
        return self._runner.wait(self._session.query_address(address))

    def manage(
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
        return self._runner.wait(
            self._session.manage(resource, operation, *arguments, timeout_s=timeout_s)
        )

    def attribute(self, resource: str, name: str) -> Any:  # noqa: ANN401 - whatever it is
        """Read an attribute of the broker's management, such as `messageCount` of `queue.NAME`.

        Args:
            resource: `broker`, `queue.NAME`, `address.NAME`, ...
            name: of the attribute, as in Artemis's controls.

        Raises:
            BrokerRefused: the resource or the attribute does not exist.
        """
        return self._runner.wait(self._session.attribute(resource, name))

    def add_metadata(self, key: str, data: str, *, unique: bool = False) -> None:
        """Label the session, for operators.

        Args:
            key: of the label, such as `jms-client-id`.
            data: its text.
            unique: refuse what another session has as well.

        Raises:
            BrokerRefused: DUPLICATE_METADATA, where `unique` and another session has the same.
        """
        self._runner.wait(self._session.add_metadata(key, data, unique=unique))

    # Endings.

    def close(self) -> None:
        """Close consumers and session; what was not committed or acknowledged is undone."""
        self._runner.wait(self._session.close())

    def __repr__(self) -> str:
        return "<" + repr(self._session).removeprefix("<Async")
