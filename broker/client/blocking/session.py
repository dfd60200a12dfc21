"""A session for threads."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Self, Unpack

from broker.client.blocking.consumer import Consumer, Received
from broker.client.blocking.producer import Producer
from broker.client.errors import ClientError
from broker.storage.binding_records import RoutingType

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import TracebackType

    from broker.client.aio.administration import QueueSettings, SharedQueueSettings
    from broker.client.aio.session import AsyncSession
    from broker.client.blocking.runner import Runner
    from broker.client.content import Content, MessageHeaders
    from broker.message import Message
    from broker.protocols.core.packet_queue import BindingQueryResponse, QueueQueryResponse
    from broker.storage.message_records import Xid


class Session:
    """One session. Made by `Client.session()`; methods are those of `AsyncSession`."""

    def __init__(self, runner: Runner, session: AsyncSession) -> None:
        self._runner = runner
        self._session = session

    # Producers and consumers.

    def producer(self, address: str | None = None) -> Producer:
        """Give a producer; without an address every message says where it goes."""
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
        """Begin to consume from a queue; a listener is called in a thread of its own."""
        work = self._session.consumer(queue, selector, browse=browse, priority=priority)
        return Consumer(self._runner, self._runner.wait(work), listener)

    def browse(self, queue: str, selector: str | None = None) -> Iterator[Received]:
        """Give the messages that are in a queue now, without taking them."""
        with self.consumer(queue, selector, browse=True) as consumer:
            while (message := consumer.receive_now()) is not None:
                yield message

    # Delivery on and off.

    def start(self) -> None:
        """Let messages come."""
        self._runner.call(self._session.start)

    def stop(self) -> None:
        """Let no message come behind this."""
        self._runner.wait(self._session.stop())

    # Local transactions.

    def commit(self) -> None:
        """Make what was sent and received since the last commit count."""
        self._runner.wait(self._session.commit())

    def rollback(self, *, consider_last_as_delivered: bool = False) -> None:
        """Undo what was sent and received since the last commit."""
        work = self._session.rollback(consider_last_as_delivered=consider_last_as_delivered)
        self._runner.wait(work)

    @contextlib.contextmanager
    def transaction(self) -> Iterator[Self]:
        """A block that is committed at its end, and rolled back when it raises."""
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
        """Work for this transaction from now on."""
        self._runner.wait(self._session.xa_start(xid))

    def xa_join(self, xid: Xid) -> None:
        """Work for a transaction that another session works for."""
        self._runner.wait(self._session.xa_join(xid))

    def xa_end(self, xid: Xid, *, failed: bool = False) -> None:
        """Stop working for it."""
        self._runner.wait(self._session.xa_end(xid, failed=failed))

    def xa_suspend(self) -> None:
        """Leave the transaction for now."""
        self._runner.wait(self._session.xa_suspend())

    def xa_resume(self, xid: Xid) -> None:
        """Come back to it."""
        self._runner.wait(self._session.xa_resume(xid))

    def xa_prepare(self, xid: Xid) -> None:
        """Make it survive anything until its end."""
        self._runner.wait(self._session.xa_prepare(xid))

    def xa_commit(self, xid: Xid, *, one_phase: bool = False) -> None:
        """Commit it."""
        self._runner.wait(self._session.xa_commit(xid, one_phase=one_phase))

    def xa_rollback(self, xid: Xid) -> None:
        """Undo it."""
        self._runner.wait(self._session.xa_rollback(xid))

    def xa_forget(self, xid: Xid) -> None:
        """Let the broker forget one that an operator ended."""
        self._runner.wait(self._session.xa_forget(xid))

    def xa_recover(self) -> tuple[Xid, ...]:
        """Give the prepared transactions."""
        return self._runner.wait(self._session.xa_recover())

    def xa_set_timeout(self, timeout_s: int) -> bool:
        """Set the seconds after which a transaction is rolled back."""
        return self._runner.wait(self._session.xa_set_timeout(timeout_s))

    def xa_get_timeout(self) -> int:
        """Give that timeout, in seconds."""
        return self._runner.wait(self._session.xa_get_timeout())

    # Questions and answers.

    def request(
        self,
        address: str,
        content: Content | Message,
        *,
        timeout_s: float | None = 30.0,
        **headers: Unpack[MessageHeaders],
    ) -> Received:
        """Send a question and give its answer."""
        work = self._session.request(address, content, timeout_s=timeout_s, **headers)
        return Received(self._runner, self._runner.wait(work))

    def reply(
        self, question: Received, content: Content | Message, **headers: Unpack[MessageHeaders]
    ) -> None:
        """Send the answer to a question, to where it asked for."""
        self._runner.wait(self._session.reply(question.asynchronous, content, **headers))

    # Queues and addresses.

    def create_address(
        self, address: str, *routing_types: RoutingType, auto_created: bool = False
    ) -> None:
        """Create an address."""
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
        """Create a queue."""
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
        """Create a queue, or find the same one."""
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
        """Delete a queue with its messages."""
        self._runner.wait(self._session.delete_queue(queue))

    def query_queue(self, queue: str) -> QueueQueryResponse:
        """Ask about a queue."""
        return self._runner.wait(self._session.query_queue(queue))

    def query_address(self, address: str) -> BindingQueryResponse:
        """Ask about an address."""
        return self._runner.wait(self._session.query_address(address))

    def manage(
        self,
        resource: str,
        operation: str,
        *arguments: object,
        timeout_s: float | None = 30.0,
    ) -> Any:  # noqa: ANN401 - what it gives
        """Have the broker do something with one of its parts; the result, as JSON has it."""
        return self._runner.wait(
            self._session.manage(resource, operation, *arguments, timeout_s=timeout_s)
        )

    def attribute(self, resource: str, name: str) -> Any:  # noqa: ANN401 - whatever it is
        """Read an attribute of a part of the broker."""
        return self._runner.wait(self._session.attribute(resource, name))

    def add_metadata(self, key: str, data: str, *, unique: bool = False) -> None:
        """Name the session, for operators."""
        self._runner.wait(self._session.add_metadata(key, data, unique=unique))

    # Endings.

    def close(self) -> None:
        """Close consumers and session; what was not committed or acknowledged is undone."""
        self._runner.wait(self._session.close())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            self.close()
            return
        # The error of the block is what the caller must see.
        with contextlib.suppress(ClientError):
            self.close()
