"""Sending, for threads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self, Unpack

if TYPE_CHECKING:
    from concurrent.futures import Future
    from types import TracebackType

    from broker.client.aio.producer import AsyncProducer, Readable
    from broker.client.blocking.runner import Runner
    from broker.client.content import Content, MessageHeaders
    from broker.message import Message


class Producer:
    """Sends messages. Made by `Session.producer()`; methods are those of `AsyncProducer`."""

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
        """Send a message; a durable one is on the broker's disk when this returns."""
        self._runner.wait(self._producer.send(content, address=address, **headers))

    def post(
        self,
        content: Content | Message,
        *,
        address: str | None = None,
        **headers: Unpack[MessageHeaders],
    ) -> Future[None]:
        """Send a message and give its confirmation; many may be on their way."""

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
        """Send a message whose body is read from `stream`, by the client's thread."""
        work = self._producer.send_stream(stream, message, address=address, **headers)
        self._runner.wait(work)

    def close(self) -> None:
        """The producer is not used any more."""
        self._runner.wait(self._producer.close())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
