"""What all that receive in asyncio have: one at a time, by `async for`, or by a listener."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
from abc import abstractmethod
from typing import TYPE_CHECKING

from broker.client.blocks import AsyncBlock
from broker.client.errors import ClientError, ClosedError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from broker.client.aio.received import AsyncReceived


class Receiving(AsyncBlock):
    """Hands messages over as they come. What they come by, and who acknowledges, is a subclass's.

    Attributes:
        on_error: called with what a listener raised; the message is not acknowledged, and the
            listener is not called again.
    """

    def __init__(self, queue: str) -> None:
        self._queue = queue
        self._arrived = asyncio.Event()
        self._is_closed = False
        self._is_ending = False
        self.on_error: Callable[[Exception], None] = self._log
        self._listening: asyncio.Task[None] | None = None

    @abstractmethod
    def take(self) -> AsyncReceived | None:
        """Give the next message if one is here; it is not acknowledged by that.

        Raises:
            ClosedError: the consumer was closed, here or by the broker.
            ClientError: the connection is lost for good.
        """

    @abstractmethod
    def ask(self) -> None:
        """Let a message come, where it waits to be asked for; send what was acknowledged."""

    @abstractmethod
    def stop_asking(self) -> None:
        """No call waits for a message any more."""

    @abstractmethod
    async def force(self) -> None:
        """Wait until what the broker has now is here."""

    @abstractmethod
    async def done_with(self, received: AsyncReceived) -> None:
        """Acknowledge a message in the modes where the client does.

        Args:
            received: what `next_unacknowledged` gave.
        """

    @abstractmethod
    async def done_with_all(self, found: list[AsyncReceived]) -> None:
        """Acknowledge messages in the modes where the client does.

        Args:
            found: one at least, in the order in which they were handed over.
        """

    # Receiving.

    async def receive(self, timeout_s: float | None = None) -> AsyncReceived | None:
        """Give the next message, None when none came in time.

        None also says that the broker had none to give. In the modes where the client acknowledges,
        the message is acknowledged when this returns.

        Args:
            timeout_s: seconds to wait for one; None for ever.

        Raises:
            ClosedError: the consumer was closed, here or by the broker.
            ClientError: the connection is lost for good.
        """
        received = await self._next(timeout_s)
        if received is not None:
            await self.done_with(received)
        return received

    async def receive_many(
        self, count_max: int, timeout_s: float | None = None
    ) -> list[AsyncReceived]:
        """Give the next message, and those behind it that are here already.

        In the modes where the client acknowledges, all are acknowledged when this returns.

        Args:
            count_max: how many at most.
            timeout_s: seconds to wait for the first one, None for ever; [] if none came in time.

        Raises:
            ClosedError: the consumer was closed, here or by the broker.
            ClientError: the connection is lost for good.
        """
        first = await self._next(timeout_s)
        if first is None:
            return []
        found = [first]
        while len(found) < count_max and (received := self.take()) is not None:
            found.append(received)
        await self.done_with_all(found)
        return found

    async def receive_now(self) -> AsyncReceived | None:
        """Give the next message if the broker has one now, None if not."""
        return await self.receive(0)

    async def _next(self, timeout_s: float | None) -> AsyncReceived | None:
        found = self.take()
        if found is not None:
            return found
        self.ask()
        try:
            if timeout_s is None or timeout_s > 0:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(timeout_s):
                        return await self._wait()
            # Nothing is here until the broker's mark comes.
            await self.force()
            return self.take()
        finally:
            self.stop_asking()

    async def _wait(self) -> AsyncReceived:
        while True:
            self._arrived.clear()
            found = self.take()
            if found is not None:
                return found
            self.ask()
            await self._arrived.wait()

    async def __aiter__(self) -> AsyncIterator[AsyncReceived]:
        """Give messages until the consumer is closed; each is acknowledged before the next."""
        while not self._is_closed:
            try:
                received = await self.next_unacknowledged()
            except ClosedError:
                return
            yield received
            await self.done_with(received)

    async def next_unacknowledged(self) -> AsyncReceived:
        """Give the next message, and leave it to `done_with` to acknowledge it.

        Raises:
            ClosedError: the consumer was closed, or woken up by `wake_up`.
        """
        received = await self._next(None)
        assert received is not None
        return received

    def wake_up(self) -> None:
        """Hand out nothing more; calls that wait for a message raise ClosedError."""
        self._is_ending = True
        self._arrived.set()

    def _check_open(self) -> None:
        if self._is_closed or self._is_ending:
            raise ClosedError("the consumer is closed")

    # Listening.

    def listen(self, listener: Callable[[AsyncReceived], object]) -> None:
        """Hand each message to a function from now on.

        Args:
            listener: called with each message; a coroutine function is awaited.
        """
        self._listening = asyncio.ensure_future(self._listen(listener))

    async def _listen(self, listener: Callable[[AsyncReceived], object]) -> None:
        while True:
            try:
                received = await self.next_unacknowledged()
            except ClientError as error:
                if not self._is_closed:
                    self.on_error(error)
                return
            try:
                outcome = listener(received)
                if inspect.isawaitable(outcome):
                    await outcome
                await self.done_with(received)
            except Exception as error:  # noqa: BLE001 - a listener may raise anything
                self.on_error(error)
                return

    def _log(self, error: Exception) -> None:
        asyncio.get_running_loop().call_exception_handler(
            {"message": f"the listener of {self._queue!r} ended", "exception": error}
        )

    async def stop_listening(self) -> None:
        """End the listener, after the message it has now."""
        task, self._listening = self._listening, None
        if task is None or task is asyncio.current_task():
            return
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
