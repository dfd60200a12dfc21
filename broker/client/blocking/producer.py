"""Sending, for threads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

from broker.client.blocks import Block

if TYPE_CHECKING:
    from concurrent.futures import Future

    from broker.client.aio.producer import AsyncProducer, Readable
    from broker.client.blocking.runner import Runner
    from broker.client.content import Content, MessageHeaders
    from broker.model.message import Message


class Producer(Block):
    """Sends messages, to one address or to any. Made by `Session.producer()`."""

    def __init__(self, runner: Runner, producer: AsyncProducer) -> None:
        self._runner = runner
        self._producer = producer

    def send(
        self,
        content: Content | Message,
        *,
        address: str | None = None,
        **headers: Unpack[MessageHeaders],
    ) -> None:
        """Send a message; a durable one is on the broker's disk when this returns.

        In a transaction, and where the options say that sends of its kind do not block, it
        returns as soon as the message may leave. An error then shows at the commit, or not at all.

        Args:
            content: text, bytes, a mapping, a sequence or None; or a message that is made.
            address: where to, for a producer without an address of its own.
            **headers: durable, priority, time_to_live_ms, deliver_in_ms, group_id, duplicate_id,
                correlation_id, reply_to, user_id, properties: see `make_message`.

        Raises:
            AddressFull: the address is full, and its policy is to fail.
            BrokerRefused: the broker refused it; such as SecurityRefused.
            CallInterrupted: the connection was lost before the answer.
        """
        self._runner.wait(self._producer.send(content, address=address, **headers))

    def post(
        self,
        content: Content | Message,
        *,
        address: str | None = None,
        **headers: Unpack[MessageHeaders],
    ) -> Future[None]:
        """Send a message and give its confirmation, to be waited for or not, in any order.

        Many messages on their way are many times faster than one at a time.

        Args:
            content: text, bytes, a mapping, a sequence or None; or a message that is made.
            address: where to, for a producer without an address of its own.
            **headers: durable, priority, time_to_live_ms, deliver_in_ms, group_id, duplicate_id,
                correlation_id, reply_to, user_id, properties: see `make_message`.

        Raises:
            ClosedError: the producer is closed. The confirmation raises what `send` does.
        """

        async def confirmed() -> None:
            await (await self._producer.post(content, address=address, **headers))

        return self._runner.submit(confirmed())

    def send_stream(
        self,
        stream: Readable,
        message: Message | None = None,
        *,
        address: str | None = None,
        **headers: Unpack[MessageHeaders],
    ) -> None:
        """Send a message whose body is read from `stream`, a part at a time.

        Args:
            stream: read by the client's thread; a file is fast enough, a pipe may not be.
            message: headers and properties; a bytes message is made where there is none.
            address: where to, for a producer without an address of its own.
            **headers: durable, priority, time_to_live_ms, deliver_in_ms, group_id, duplicate_id,
                correlation_id, reply_to, user_id, properties: see `make_message`.

        Raises:
            AddressFull: the address is full, and its policy is to fail.
            BrokerRefused: the broker refused it; such as SecurityRefused.
            CallInterrupted: the connection was lost before the answer.
        """
        work = self._producer.send_stream(stream, message, address=address, **headers)
        self._runner.wait(work)

    def close(self) -> None:
        """Close the producer; the broker forgets it."""
        self._runner.wait(self._producer.close())

    def __repr__(self) -> str:
        return "<" + repr(self._producer).removeprefix("<Async")
