"""Receiving in asyncio: one at a time, by `async for`, or by a listener."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
from typing import TYPE_CHECKING

from broker.client.aio.received import AsyncReceived
from broker.client.aio.waiting import settled
from broker.client.blocks import AsyncBlock
from broker.client.errors import BrokerRefused, CallInterrupted, ClientError, ClosedError
from broker.client.session_state import AckMode
from broker.protocols.core.packet_connection import NullResponse
from broker.protocols.core.packet_session import CloseConsumer, Expired

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from broker.client.aio.calls import Calls
    from broker.client.deliveries import ConsumerState
    from broker.protocols.core.packet_message import Acknowledge

# Who acknowledges by himself what is handed over.
_AUTOMATIC = (AckMode.AUTO, AckMode.DUPS_OK, AckMode.TRANSACTED, AckMode.XA)


class AsyncConsumer(AsyncBlock):
    """Receives the messages of one queue. Made by `AsyncSession.consumer()`.

    In the modes where the client acknowledges, it does so when `receive` returns a message, when
    `async for` asks for the next one, and when a listener has returned without an error.

    Attributes:
        on_error: called with what a listener raised; the message is not acknowledged, and the
            listener is not called again.
    """

    def __init__(
        self,
        calls: Calls,
        state: ConsumerState,
        listener: Callable[[AsyncReceived], object] | None,
        on_closed: Callable[[AsyncConsumer], object],
    ) -> None:
        self._calls = calls
        self._state = state
        self._on_closed = on_closed
        self._mode = calls.state.mode
        self._arrived = asyncio.Event()
        self._is_closed = False
        self._is_ending = False
        # How many messages were handed over, and up to which of them they are acknowledged.
        self._handed_over = 0
        self._acknowledged = 0
        # The last message handed over and not acknowledged, and bytes of those before it.
        self._unacknowledged: AsyncReceived | None = None
        self._unacknowledged_bytes = 0
        self.on_error: Callable[[Exception], None] = self._log
        state.on_change = self._arrived.set
        self._listening: asyncio.Task[None] | None = None
        if listener is not None:
            self._listening = asyncio.ensure_future(self._listen(listener))

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
        if received is not None and self._mode in _AUTOMATIC:
            await self._acknowledge_automatically(received)
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
        while len(found) < count_max and (received := self._take()) is not None:
            found.append(received)
        if self._mode in _AUTOMATIC:
            # One says so for all.
            self._unacknowledged_bytes += sum(received.size for received in found[:-1])
            await self._acknowledge_automatically(found[-1])
        return found

    async def receive_now(self) -> AsyncReceived | None:
        """Give the next message if the broker has one now, None if not."""
        return await self.receive(0)

    async def _next(self, timeout_s: float | None) -> AsyncReceived | None:
        found = self._take()
        if found is not None:
            return found
        self._state.ask()
        self.flush_acknowledgements()
        try:
            if timeout_s is None or timeout_s > 0:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(timeout_s):
                        return await self._wait()
            return await self._forced()
        finally:
            self._state.stop_asking()

    async def _wait(self) -> AsyncReceived:
        while True:
            self._arrived.clear()
            found = self._take()
            if found is not None:
                return found
            self._state.ask()
            await self._arrived.wait()

    async def _forced(self) -> AsyncReceived | None:
        """Ask the broker for what it has; nothing is here until its mark comes."""
        while True:
            await self._calls.ready()
            try:
                await settled(
                    self._state.force(), self._calls.state.options.call_timeout_s, "a delivery"
                )
            except CallInterrupted:
                # A new session: ask it again.
                continue
            return self._take()

    def _take(self) -> AsyncReceived | None:
        if self._is_closed or self._is_ending:
            raise ClosedError("the consumer is closed")
        while (delivery := self._state.take()) is not None:
            state = self._state
            received = AsyncReceived(self, delivery, self._handed_over + 1, state.generation)
            if not self._is_expired(received):
                self._handed_over += 1
                # Of a transaction, though its acknowledgement may still be collected here.
                self._calls.state.has_work = True
                return received
            message_id = received.message_id
            self._calls.state.channel.post(Expired(self._state.consumer_id, message_id))
            received.discard_body()
        return None

    def _is_expired(self, received: AsyncReceived) -> bool:
        expiration = received.message.expiration
        if expiration == 0 or self._state.request.browse_only:
            return False
        return expiration <= self._calls.now_ms()

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

    async def done_with(self, received: AsyncReceived) -> None:
        """Acknowledge a message in the modes where the client does.

        Args:
            received: what `next_unacknowledged` gave.
        """
        if self._mode in _AUTOMATIC and not self._is_closed:
            await self._acknowledge_automatically(received)

    def wake_up(self) -> None:
        """Hand out nothing more; calls that wait for a message raise ClosedError."""
        self._is_ending = True
        self._arrived.set()

    # Listening.

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
            {"message": f"the listener of {self._state.request.queue!r} ended", "exception": error}
        )

    async def stop_listening(self) -> None:
        """End the listener, after the message it has now."""
        task, self._listening = self._listening, None
        if task is None or task is asyncio.current_task():
            return
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task

    # Acknowledging.

    async def acknowledge(self, received: AsyncReceived) -> None:
        """Acknowledge: in mode INDIVIDUAL this message alone, else all up to it.

        Nothing is done where it was acknowledged before, as it is behind `receive()` in the modes
        where the client acknowledges. A message whose session was lost is delivered again: it is
        not acknowledged, and where acknowledging waits for the broker, that is an error.

        Args:
            received: of this consumer.

        Raises:
            BrokerRefused: the broker refused it.
            CallInterrupted: its session was lost, before or meanwhile.
        """
        if self._state.request.browse_only or self._mode is AckMode.PRE:
            return
        received.discard_body()
        if self._mode is AckMode.INDIVIDUAL:
            if received.is_acknowledged:
                return
            received.is_acknowledged = True
            try:
                await self._send_acknowledgement(received, individual=True)
            except BaseException:
                # It was refused, or the call was interrupted: the caller may try again.
                received.is_acknowledged = False
                raise
        else:
            await self._count(received, self._calls.state.options.ack_batch_size)

    def acknowledge_ahead(self, received: AsyncReceived) -> None:
        """Acknowledge all up to it without waiting; a refusal shows where the transaction ends.

        Nothing is done where it was acknowledged before, or where its session was lost.

        Args:
            received: of this consumer, in a session with a transaction.
        """
        if received.number > self._acknowledged:
            received.discard_body()
            self._acknowledged = received.number
            self._unacknowledged = received
            self.flush_acknowledgements()

    async def _acknowledge_automatically(self, received: AsyncReceived) -> None:
        if self._state.request.browse_only:
            return
        # A body that comes in parts is still to be read; acknowledging does not cut it off, the
        # broker has sent it to its end.
        batch = 0 if self._mode is AckMode.AUTO else self._calls.state.options.ack_batch_size
        await self._count(received, batch)

    async def _count(self, received: AsyncReceived, batch_size: int) -> None:
        # Artemis takes a second acknowledgement of a message for one of all it has sent since, then
        # looks for the message, finds none and gives them back.
        if received.number <= self._acknowledged:
            return
        before, self._acknowledged = self._acknowledged, received.number
        self._unacknowledged = received
        self._unacknowledged_bytes += received.size
        if self._unacknowledged_bytes >= batch_size:
            self._unacknowledged = None
            self._unacknowledged_bytes = 0
            try:
                await self._send_acknowledgement(received, individual=False)
            except ClientError as error:
                # Else the broker may have taken it, see above.
                if isinstance(error, BrokerRefused) or self._is_lost(received):
                    self._acknowledged = before
                raise

    async def _send_acknowledgement(self, received: AsyncReceived, *, individual: bool) -> None:
        if not self._calls.state.options.block_on_acknowledge:
            self._post_acknowledgement(received, individual=individual)
            return
        await self._calls.ready()
        if self._is_lost(received):
            raise CallInterrupted(
                f"message {received.message_id} was delivered by a session that was lost since; "
                "it is delivered again"
            )
        packet = self._acknowledgement(received, individual=individual, blocking=True)
        await self._calls.call(packet, NullResponse)

    def _post_acknowledgement(self, received: AsyncReceived, *, individual: bool) -> None:
        if not self._is_lost(received):
            packet = self._acknowledgement(received, individual=individual, blocking=False)
            self._calls.state.channel.post(packet)

    def _acknowledgement(
        self, received: AsyncReceived, *, individual: bool, blocking: bool
    ) -> Acknowledge:
        return self._calls.state.acknowledge(
            self._state.consumer_id, received.message_id, individual=individual, blocking=blocking
        )

    def _is_lost(self, received: AsyncReceived) -> bool:
        """Whether its session was lost: the broker delivers it again, and keeps it until then."""
        return received.generation != self._state.generation

    def flush_acknowledgements(self) -> None:
        """Send what was collected, before a commit or when nothing is left to receive."""
        received, self._unacknowledged = self._unacknowledged, None
        self._unacknowledged_bytes = 0
        if received is not None:
            self._post_acknowledgement(received, individual=False)

    # Closing.

    async def close(self) -> None:
        """Stop consuming; what was not acknowledged goes back to the queue."""
        if self._is_closed:
            return
        await self.stop_listening()
        self._is_closed = True
        self.flush_acknowledgements()
        self._on_closed(self)
        try:
            if self._state.error is None:
                await self._calls.call(CloseConsumer(self._state.consumer_id), NullResponse)
        except BrokerRefused as error:
            # A broker that no longer knows the consumer has closed it.
            self._calls.state.on_error(error)
        finally:
            self._calls.state.remove_consumer(self._state)
            self._state.close()

    def __repr__(self) -> str:
        """Its queue, its selector, and how many messages it has at hand."""
        request = self._state.request
        where = repr(request.queue)
        if request.filter is not None:
            where += f" where {request.filter}"
        state = "closed"
        if not self._is_closed and self._state.error is None:
            kind = "browsing" if request.browse_only else "open"
            state = f"{kind}, {self._state.buffered} messages at hand"
        return f"<AsyncConsumer {where}: {state}>"
