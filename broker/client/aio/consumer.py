"""A consumer in asyncio: what it takes of its queue, and how that is acknowledged."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.client.aio.received import AsyncReceived
from broker.client.aio.receiving import Receiving
from broker.client.aio.waiting import settled
from broker.client.errors import BrokerRefused, CallInterrupted, ClientError
from broker.client.session_state import AckMode
from broker.protocols.core.packet_connection import NullResponse
from broker.protocols.core.packet_session import CloseConsumer, Expired

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.client.aio.calls import Calls
    from broker.client.deliveries import ConsumerState
    from broker.protocols.core.packet_message import Acknowledge

# Who acknowledges by himself what is handed over.
_AUTOMATIC = (AckMode.AUTO, AckMode.DUPS_OK, AckMode.TRANSACTED, AckMode.XA)


class AsyncConsumer(Receiving):
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
        super().__init__(state.request.queue)
        self._calls = calls
        self._state = state
        self._on_closed = on_closed
        self._mode = calls.state.mode
        # How many messages were handed over, and up to which of them they are acknowledged.
        self._handed_over = 0
        self._acknowledged = 0
        # The last message handed over and not acknowledged, and bytes of those before it.
        self._unacknowledged: AsyncReceived | None = None
        self._unacknowledged_bytes = 0
        self.watch(self._arrived.set)
        if listener is not None:
            self.listen(listener)

    # Receiving.

    def watch(self, changed: Callable[[], None]) -> None:
        """Have another one told when a message arrives, or when the consumer has ended.

        Args:
            changed: called then; `error` says why it has ended.
        """
        self._state.on_change = changed

    @property
    def error(self) -> ClientError | None:
        """Why it has ended; None as long as it has not."""
        return self._state.error

    def take(self) -> AsyncReceived | None:
        """Give the next message if one is here; it is not acknowledged by that.

        Raises:
            ClosedError: the consumer was closed, here or by the broker.
            ClientError: the connection is lost for good.
        """
        self._check_open()
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

    def ask(self) -> None:
        """Let a message come, where it waits to be asked for; send what was acknowledged."""
        self._state.ask()
        self.flush_acknowledgements()

    def stop_asking(self) -> None:
        """No call waits for a message any more."""
        self._state.stop_asking()

    async def force(self) -> None:
        """Wait until what the broker has now is here.

        Raises:
            ClientError: the connection is lost for good, or the answer did not come.
        """
        while True:
            await self._calls.ready()
            try:
                await self.force_once()
            except CallInterrupted:
                # A new session: ask it again.
                continue
            return

    async def force_once(self) -> None:
        """Wait until what the broker has now is here, by the connection that there is now.

        Raises:
            CallInterrupted: that connection was lost.
            ClientError: the answer did not come.
        """
        await settled(self._state.force(), self._calls.state.options.call_timeout_s, "a delivery")

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

    async def done_with(self, received: AsyncReceived) -> None:
        """Acknowledge a message in the modes where the client does.

        Args:
            received: what `next_unacknowledged` gave.
        """
        if self._mode in _AUTOMATIC and not self._is_closed:
            await self._acknowledge_automatically(received)

    async def done_with_all(self, found: list[AsyncReceived]) -> None:
        """Acknowledge messages in the modes where the client does.

        Args:
            found: one at least, in the order in which they were handed over.
        """
        if self._mode in _AUTOMATIC:
            # One says so for all.
            self._unacknowledged_bytes += sum(received.size for received in found[:-1])
            await self._acknowledge_automatically(found[-1])

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
