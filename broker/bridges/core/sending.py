"""Messages on their way over one link, in their order, as fast as credits and the socket allow.

    put() ─▶ credits of the address ─▶ Send ─▶ (the target has it on its disk) ─▶ on_answer()

Sends overlap: each has a correlation id, and its answer comes once the target has made it durable.
In a transaction none is asked for: the commit that is called behind them has one for all. A body of
more than `min-large-message-size` goes in parts, read one after the other; nothing
else goes between them.

A link to a peer holds back what its address gives no credit for, and sends the others.

Threads: the event loop's alone; nothing but the task of a large body waits.
"""

from __future__ import annotations

import asyncio
import functools
from collections import deque
from enum import Enum
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

from broker.bridges.core.bodies import BodyInMemory, StoredBody
from broker.client.aio.waiting import future_of
from broker.client.errors import AddressFull, ClientError
from broker.client.replies import Reply
from broker.protocols.core.frames import HEADER_SIZE
from broker.protocols.core.packet_message import Send, SendContinuation, SendLarge
from broker.records.embedded_messages import embedded
from journal.errors import JournalIOError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

    from broker.bridges.core.bodies import Body
    from broker.client.aio.connection import AsyncConnection
    from broker.client.aio.session import AsyncSession
    from broker.client.credits import AddressCredits
    from broker.model.message import Message
    from broker.protocols.core.packet import Packet

__all__ = ["HELD_BACK_S", "CannotSend", "Sending", "SendingLink", "Sent", "Waits"]


class CannotSend(Exception):
    """A message that cannot be sent as it is; the text says why."""


class Waits(Enum):
    """What the next message waits for."""

    NOTHING = "nothing"
    CREDIT = "credit"
    SOCKET = "socket"
    BODY = "body"
    LIMIT = "limit"


HELD_BACK_S: Final = 0.1
"""How long a message waits for credit before those for other addresses go: many round trips."""
# Asked for each message: a member's look-up by its class is a call in Python 3.11.
_NOTHING: Final = Waits.NOTHING


class Sent:
    """A message of the queue, from when the bridge was given it until it is acknowledged.

    Attributes:
        message: of the queue.
        number: which one it is of those that were sent, counted from 1.
        order: where it stands among those of its address: its first number.
        size: bytes, of its body too.
        address: of the target, once it was sent.
        is_confirmed: the target has it.
        is_done: its acknowledgement is durable.
        is_uncertain: it was sent over a link that was lost before an answer.
        is_try: others of its address are held back until it is confirmed.
    """

    __slots__ = (
        "address",
        "is_confirmed",
        "is_done",
        "is_try",
        "is_uncertain",
        "message",
        "number",
        "order",
        "size",
    )

    def __init__(self, message: Message, number: int) -> None:
        self.message = message
        self.number = self.order = number
        self.size = message.encoded_size + message.large_size
        self.address: str | None = None
        self.is_confirmed = False
        self.is_done = False
        self.is_uncertain = False
        self.is_try = False


class SendingLink(Protocol):
    """What messages go over."""

    connection: AsyncConnection
    session: AsyncSession


# Behind each other: what it is here, what the target gets, its body where that is elsewhere.
_Entry: TypeAlias = "tuple[Sent, Message, Body | None]"


class _Answer(Reply["Packet"]):
    """The answer to one message, for that message alone: one object, where there are thousands."""

    __slots__ = ("_sending", "_sent")

    def __init__(self, sending: Sending, sent: Sent) -> None:
        # What Reply keeps for those who come later is not needed.
        self.is_done = False
        self._sending = sending
        self._sent = sent

    def succeed(self, value: Packet) -> None:
        self.is_done = True
        self._sending.answered(self._sent, None)

    def fail(self, error: Exception) -> None:
        self.is_done = True
        self._sending.answered(self._sent, error)


def _size_of_headers(message: Message) -> int:
    return len(message.encode_headers()) + HEADER_SIZE


class Sending:
    """See the module's text.

    Args:
        link: to the target.
        on_answer: called with what was sent, and an error of the client or None.
        on_failed: called once, where the link is of no use any more, or refuses a message before
            it is sent.
        on_room: called when the next message may be put behind a wait.
        limit: awaited with each new address before the first message for it is sent.
        asks: whether each message is answered; False in a transaction, where an error shows at the
            commit.
        on_blocked: called with a message whose address gives no credit for `HELD_BACK_S`, or is
            full: it is not sent. None lets all that comes behind it wait.
        on_credit: called with an address that gives credit again.

    Attributes:
        waits: what the next one waits for.
        waits_for: the address whose credits it waits for.
        waits_since_s: since when, by the loop's clock.
    """

    def __init__(
        self,
        link: SendingLink,
        *,
        on_answer: Callable[[Sent, Exception | None], object],
        on_failed: Callable[[Exception], object],
        on_room: Callable[[], object],
        limit: Callable[[str], Awaitable[object]] | None = None,
        asks: bool = True,
        on_blocked: Callable[[Sent, bool], object] | None = None,
        on_credit: Callable[[str], object] = lambda address: None,
    ) -> None:
        self._limit = limit
        self._on_blocked = on_blocked
        self._on_credit = on_credit
        # Addresses that give no credit, and those that gave none a while ago.
        self._blocked: set[str] = set()
        self._slow: set[str] = set()
        # What the next message waits for credit by.
        self._awaited: Reply[None] | None = None
        self._asks = asks
        self._limited: set[str] = set()
        self._connection = link.connection
        self._state = link.session.state
        self._channel = self._state.channel
        self._number = self._state.add_producer(None)
        self._chunk_size: Final = self._state.options.min_large_message_size
        self._on_answer = on_answer
        self._on_failed = on_failed
        self._on_room = on_room
        self._queue: deque[_Entry | Callable[[], object]] = deque()
        self._credits: dict[str, AddressCredits] = {}
        self._task: asyncio.Task[None] | None = None
        self._is_closed = False
        self.waits = Waits.NOTHING
        self.waits_for = ""
        self.waits_since_s = 0.0

    @property
    def is_waiting(self) -> bool:
        """Whether what was put last may not have left."""
        return self.waits is not _NOTHING

    def put(self, sent: Sent, message: Message, body: Body | None = None) -> None:
        """Send a message behind the others.

        Args:
            sent: what it is here.
            message: what the target gets; one of AMQP as it is, inside of one of Core.
            body: of a large message, where the message does not have it; closed when it is sent.
        """
        made = embedded(message)
        if len(made.body) > self._chunk_size:
            # In parts it would be taken for one of Core.
            made = message
        self._put((sent, made, body))

    def call_behind(self, work: Callable[[], object]) -> None:
        """Call this once what was put so far has been sent, before what is put later.

        Args:
            work: such as a commit; it may close this.
        """
        self._put(work)

    def _put(self, entry: _Entry | Callable[[], object]) -> None:
        self._queue.append(entry)
        if self.waits is _NOTHING:
            self._go_on()

    def close(self) -> None:
        """Send nothing any more, and call no one. Idempotent."""
        self._is_closed = True
        self._queue.clear()
        if self._task is not None:
            self._task.cancel()

    # --- in order -----------------------------------------------------------------------------

    def _go_on(self) -> None:
        """Send as far as nothing has to be waited for."""
        queue = self._queue
        while queue and not self._is_closed:
            if not self._connection.is_writable:
                self._wait(Waits.SOCKET)
                self._spawn(self._drained)
                return
            entry = queue[0]
            if not isinstance(entry, tuple):
                queue.popleft()
                entry()
                continue
            message = entry[1]
            if self._limit is not None and (message.address or "") not in self._limited:
                self._wait(Waits.LIMIT, message.address)
                self._spawn(self._ask_limit)
                return
            credits = self._credits_of(message)
            if credits.address in self._blocked:
                self._hold_back(is_full=False)
                continue
            is_large = self._is_large(entry)
            size = _size_of_headers(message) if is_large else len(message.encode())
            if not credits.take(size):
                reply = credits.acquire(size)
                if not reply.is_done:
                    reply.when_done(functools.partial(self._credited, credits, size))
                    if credits.address in self._slow:
                        self._blocked.add(credits.address)
                        self._hold_back(is_full=False)
                        continue
                    self._await_credit(credits.address, reply)
                    return
                if reply.error is not None:
                    if self._on_blocked is None:
                        self._fail(reply.error)
                        return
                    self._hold_back(is_full=True)
                    continue
            if is_large:
                self._begin_large()
                return
            self._send()

    def _is_large(self, entry: _Entry) -> bool:
        """Whether it goes in parts."""
        _, message, body = entry
        return (
            message.is_large
            or body is not None
            or (len(message.encode()) > self._chunk_size < len(message.body))
        )

    def _begin_large(self) -> None:
        """Send the head of the queue in parts; its headers are paid for."""
        self._wait(Waits.BODY)
        self._spawn(self._send_large)

    def _credits_of(self, message: Message) -> AddressCredits:
        address = message.address or ""
        found = self._credits.get(address)
        if found is None:
            found = self._credits[address] = self._state.credits_for(address)
        return found

    def _wait(self, waits: Waits, address: str | None = None) -> None:
        self.waits = waits
        self.waits_for = address or ""
        self.waits_since_s = asyncio.get_running_loop().time()

    def _await_credit(self, address: str, reply: Reply[None]) -> None:
        self._wait(Waits.CREDIT, address)
        self._awaited = reply
        if self._on_blocked is not None:
            loop = asyncio.get_running_loop()
            loop.call_later(HELD_BACK_S, self._waited_long, address, reply)

    def _waited_long(self, address: str, reply: Reply[None]) -> None:
        """Let the others go, if it is not credited yet."""
        if self._is_closed or self._awaited is not reply:
            return
        self._awaited = None
        self._blocked.add(address)
        self._slow.add(address)
        self._hold_back(is_full=False)
        self._after_wait()

    def is_even(self, address: str) -> None:
        """Nothing is held back for an address any more: the next one may wait for credit."""
        self._slow.discard(address)

    def _hold_back(self, *, is_full: bool) -> None:
        assert self._on_blocked is not None, "else all wait"
        sent, _, body = self._head()
        self._queue.popleft()
        if body is not None:
            body.close()
        self._on_blocked(sent, is_full)

    def _credited(self, credits: AddressCredits, size: int, reply: Reply[None]) -> None:
        if self._is_closed:
            return
        if self._awaited is not reply:
            # It has let the others go.
            self._blocked.discard(credits.address)
            if reply.error is None:
                credits.give_back(size)
            if reply.error is None or isinstance(reply.error, AddressFull):
                self._on_credit(credits.address)
            return
        self._awaited = None
        if reply.error is None and self._is_large(self._head()):
            self._begin_large()
            return
        if reply.error is None:
            self._send()
        elif self._on_blocked is not None and isinstance(reply.error, AddressFull):
            self._hold_back(is_full=True)
        else:
            self._fail(reply.error)
            return
        self._after_wait()

    def _after_wait(self) -> None:
        self.waits = Waits.NOTHING
        self._go_on()
        if not self._is_closed and self.waits is Waits.NOTHING:
            self._on_room()

    def _send(self) -> None:
        sent, message, _ = self._head()
        self._queue.popleft()
        self._answer_to(sent, Send(message, sender_id=self._number))

    def _head(self) -> _Entry:
        entry = self._queue[0]
        assert isinstance(entry, tuple), "what is called does not wait"
        return entry

    def _answer_to(self, sent: Sent, packet: Send | SendContinuation) -> None:
        if self._asks:
            self._channel.call_correlated(packet, _Answer(self, sent))
        else:
            self._channel.post(packet)

    def answered(self, sent: Sent, error: Exception | None) -> None:
        """The target has answered, or the link is lost."""
        if not self._is_closed:
            self._on_answer(sent, error)

    def _fail(self, error: Exception) -> None:
        if not self._is_closed:
            self._on_failed(error)

    # --- what waits ---------------------------------------------------------------------------

    def _spawn(self, work: Callable[[], Coroutine[None, None, None]]) -> None:
        self._task = asyncio.get_running_loop().create_task(self._guarded(work))

    async def _guarded(self, work: Callable[[], Coroutine[None, None, None]]) -> None:
        try:
            await work()
        except (ClientError, JournalIOError, CannotSend) as error:
            self._fail(error)
        else:
            if not self._is_closed:
                self._after_wait()

    async def _ask_limit(self) -> None:
        address = self.waits_for
        assert self._limit is not None, "who waits for it has one"
        await self._limit(address)
        self._limited.add(address)

    async def _drained(self) -> None:
        await self._connection.drain()

    async def _send_large(self) -> None:
        """Send headers, and the body part by part; the last part is answered."""
        sent, message, given = self._head()
        headers = message.encode_headers()
        if len(headers) >= self._chunk_size:
            raise CannotSend(
                f"message {sent.message.message_id} is too large: its headers and properties have "
                f"{len(headers)} bytes, and have to be less than min-large-message-size, "
                f"{self._chunk_size} bytes"
            )
        stored = message.large
        body = given or (BodyInMemory(message.body) if stored is None else StoredBody(stored))
        try:
            self._channel.post(SendLarge(message))
            offset = 0
            while True:
                chunk = await body.read(offset, self._chunk_size)
                offset += len(chunk)
                if not chunk and offset < body.size:
                    raise CannotSend(
                        f"the body of message {sent.message.message_id} ends at byte {offset} of "
                        f"{body.size}"
                    )
                packet = SendContinuation(
                    chunk, offset < body.size, body.size, sender_id=self._number
                )
                if offset >= body.size:
                    break
                self._channel.post(packet)
                await self._charge(message, len(chunk) + HEADER_SIZE)
                await self._connection.drain()
        finally:
            body.close()
        self._queue.popleft()
        self._answer_to(sent, packet)

    async def _charge(self, message: Message, size: int) -> None:
        """Take credits for what was written already, as Artemis's client does with large parts."""
        reply = self._credits_of(message).acquire(size)
        if not reply.is_done:
            self._wait(Waits.CREDIT, message.address)
            await future_of(reply)
            self._wait(Waits.BODY)
        reply.result()
