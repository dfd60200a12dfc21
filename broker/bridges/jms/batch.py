"""The messages received and not sent yet, and when they must be. No I/O, no clock of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.bridges.jms.options import FOREVER

if TYPE_CHECKING:
    from broker.bridges.jms.message import JMSMessage

__all__ = ["Batch"]


class Batch:
    """See the module's text.

    Args:
        size_max: messages in a full one.
        time_max_ms: a batch is due so long after its first message; -1 when it is full alone.

    Attributes:
        messages: in the order in which they came; those behind a full batch are of the next ones.
    """

    def __init__(self, size_max: int, time_max_ms: int) -> None:
        self.messages: list[JMSMessage] = []
        self.size_max = size_max
        self._time_max_s = None if time_max_ms == FOREVER else time_max_ms / 1000
        self._due_s: float | None = None

    def __len__(self) -> int:
        return len(self.messages)

    def add(self, message: JMSMessage, now_s: float) -> None:
        """Take a message.

        Args:
            message: received.
            now_s: seconds of a clock that never falls.
        """
        if not self.messages and self._time_max_s is not None:
            # From the first one: later ones do not put it off, so a trickle leaves too.
            self._due_s = now_s + self._time_max_s
        self.messages.append(message)

    def is_due(self, now_s: float) -> bool:
        """Whether it is to be sent now.

        Args:
            now_s: of the same clock.
        """
        if not self.messages:
            return False
        return len(self.messages) >= self.size_max or (
            self._due_s is not None and now_s >= self._due_s
        )

    def wait_s(self, now_s: float, longest_s: float) -> float:
        """Give how long the next message may be waited for, in seconds.

        Args:
            now_s: of the same clock.
            longest_s: at most.
        """
        if self._due_s is None:
            return longest_s
        return max(0.0, min(longest_s, self._due_s - now_s))

    @property
    def room(self) -> int:
        """How many messages more there may be in it."""
        return self.size_max - len(self.messages)

    def take(self, now_s: float) -> list[JMSMessage]:
        """Give its messages; the next batch begins with those behind them.

        Args:
            now_s: of the same clock.
        """
        messages, self.messages = self.messages[: self.size_max], self.messages[self.size_max :]
        self._due_s = None
        if self.messages and self._time_max_s is not None:
            self._due_s = now_s + self._time_max_s
        return messages

    def clear(self) -> None:
        """Forget all messages: they come again."""
        for message in self.messages:
            message.close()
        self.messages.clear()
        self._due_s = None
