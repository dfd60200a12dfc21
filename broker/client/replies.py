"""A value that is not there yet; no loop, no thread. Who waits adds a callback."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


class Reply(Generic[T]):
    """The answer to one request: a value or an error, once."""

    __slots__ = ("_callbacks", "_error", "_value", "is_done")

    def __init__(self) -> None:
        self.is_done = False
        self._value: T | None = None
        self._error: Exception | None = None
        self._callbacks: list[Callable[[Reply[T]], None]] = []

    @classmethod
    def of(cls, value: T) -> Reply[T]:
        """Give one that is done."""
        reply = cls()
        reply.succeed(value)
        return reply

    @property
    def error(self) -> Exception | None:
        """What went wrong, if it is done and something did."""
        return self._error

    def result(self) -> T:
        """Give the value, or raise the error; only when done."""
        assert self.is_done
        if self._error is not None:
            raise self._error
        return self._value  # type: ignore[return-value] # done without an error has a value

    def succeed(self, value: T) -> None:
        """End it with a value; nothing happens when it is done."""
        if not self.is_done:
            self._value = value
            self._finish()

    def fail(self, error: Exception) -> None:
        """End it with an error; nothing happens when it is done."""
        if not self.is_done:
            self._error = error
            self._finish()

    def _finish(self) -> None:
        self.is_done = True
        callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback(self)

    def when_done(self, callback: Callable[[Reply[T]], None]) -> None:
        """Call this at its end, or now when it is done."""
        if self.is_done:
            callback(self)
        else:
            self._callbacks.append(callback)
