"""Credits: how many bytes may go to an address, and how many a consumer lets come.

The rules are Artemis's (AbstractProducerCreditsImpl, ClientConsumerImpl): a broker grants
exactly what was asked for, and the sums here decide when to ask.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from broker.client.errors import AddressFull, ClientError
from broker.client.replies import Reply
from broker.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable

UNLIMITED: Final = -1
# Into one call of the protocol fits an int; a request beyond it would be refused as malformed.
_CREDITS_MAX: Final = 2**31 - 1


class AddressCredits:
    """The bytes that producers of one session may send to one address."""

    def __init__(self, address: str, window: int, request: Callable[[int, str], None]) -> None:
        self.address = address
        self._window = window
        self._request = request
        self._balance = 0
        self._arriving = 0
        self._waiting: deque[tuple[int, Reply[None]]] = deque()
        self._is_full = False

    def acquire(self, size: int) -> Reply[None]:
        """Take `size` bytes; the answer is done once they are there, in the order of the calls.

        It fails with `AddressFull` when the broker said so since the last time.
        """
        reply: Reply[None] = Reply()
        if self._window == UNLIMITED:
            reply.succeed(None)
            return reply
        if self._is_full:
            self._is_full = False
            reply.fail(AddressFull(ErrorCode.ADDRESS_FULL, f"address {self.address!r} is full"))
            return reply
        self._waiting.append((size, reply))
        self._serve()
        return reply

    def take(self, size: int) -> bool:
        """Take `size` bytes where they are there and no call waits; else acquire() decides."""
        if self._window == UNLIMITED:
            return True
        if self._is_full or self._waiting or size > self._balance:
            return False
        self._ask(size)
        self._balance -= size
        return True

    def give_back(self, size: int) -> None:
        """Have these bytes again: what they were taken for was not sent."""
        self._balance += size
        self._serve()

    def granted(self, amount: int) -> None:
        """The broker allows so many bytes."""
        self._arriving -= amount
        self._balance += amount
        self._serve()

    def refused(self, amount: int) -> None:
        """The address is full: the first sender that waits, or the next one, gets the error."""
        self._arriving -= amount
        self._balance += amount
        if self._waiting:
            _, reply = self._waiting.popleft()
            reply.fail(AddressFull(ErrorCode.ADDRESS_FULL, f"address {self.address!r} is full"))
            self._serve()
        else:
            self._is_full = True

    def _serve(self) -> None:
        while self._waiting and self._waiting[0][0] <= self._balance:
            size, reply = self._waiting.popleft()
            self._ask(size)
            self._balance -= size
            reply.succeed(None)
        if self._waiting:
            self._ask(self._waiting[0][0])

    def _ask(self, size: int) -> None:
        """Have `size`, or half a window, here or on its way.

        If there is less, another half is asked for, whatever is left: one request serves all the
        messages of half a window.
        """
        needed = max(size, self._window // 2)
        if self._balance + self._arriving < needed:
            missing = min(needed - self._arriving, _CREDITS_MAX)
            self._arriving += missing
            self._request(missing, self.address)

    def reset(self) -> None:
        """A new session knows of no grants: ask again, for two windows at least."""
        wanted = max(2 * self._window, sum(size for size, _ in self._waiting))
        self._balance = 0
        self._arriving = min(wanted, _CREDITS_MAX)
        if self._window != UNLIMITED:
            self._request(self._arriving, self.address)

    def interrupt(self, error: ClientError) -> None:
        """Fail the senders that wait: no more credits come."""
        waiting, self._waiting = self._waiting, deque()
        for _, reply in waiting:
            reply.fail(error)


class ConsumerWindow:
    """The bytes that the broker may send to one consumer ahead of its need.

    A window of 0 asks for a message at a time. A credit of 1 lets one message come, of whatever
    size, and leaves the broker `size - 1` bytes short. They are given when the message is taken.
    """

    def __init__(self, window: int, grant: Callable[[int], None]) -> None:
        self._window = window
        self._grant = grant
        self._consumed = 0
        # With a window of 0: whether a message was asked for and has not come.
        self._is_asking = False

    @property
    def is_slow(self) -> bool:
        """Whether messages come one at a time."""
        return self._window == 0

    def open(self) -> None:
        """A consumer was created, or created again."""
        self._consumed = 0
        self._is_asking = False
        if self._window:
            self._grant(self._window)

    def ask(self) -> None:
        """Somebody waits for a message."""
        if self._window == 0 and not self._is_asking:
            self._is_asking = True
            self._grant(1)

    def stop_asking(self) -> None:
        """No caller waits any more: take back what was granted."""
        if self._window == 0 and self._is_asking:
            self._is_asking = False
            self._grant(0)

    def arrived(self) -> None:
        """A message that was asked for is here."""
        self._is_asking = False

    def taken(self, size: int, *, is_last: bool = True) -> None:
        """A packet of `size` bytes left the buffer; not the last while a large body goes on."""
        if self._window == UNLIMITED:
            return
        if self._window == 0:
            # A large message in pieces must go on coming until its end.
            self._grant(size - 1 if is_last else size)
            return
        self._consumed += size
        if self._consumed >= max(1, self._window >> 1):
            consumed, self._consumed = self._consumed, 0
            self._grant(consumed)
