"""Faults of the broker's own code: the exception of a turn of the loop that no code caught."""

from __future__ import annotations

import traceback
import weakref
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

__all__ = ["exception_handler", "while_alive"]

_OURS: Final = ("broker", "journal", "jdbcstore")


def exception_handler(
    on_failure: Callable[[Exception], object],
) -> Callable[[asyncio.AbstractEventLoop, dict[str, Any]], None]:
    """Give a handler that ends the broker if a turn of the loop, or a timer, of ours raised.

    A queue's turn that ended in the middle leaves messages that are not delivered any more. As
    for a callback of the storage, the broker stops, and its next start has all that is durable.
    What a socket's transport reports, and what the loop itself raises, is only logged.

    Args:
        on_failure: a method, told of it, in the event loop.
    """
    told = while_alive(on_failure)

    def handle(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        loop.default_exception_handler(context)
        if isinstance(error, Exception) and "handle" in context and _is_ours(error):
            told(error)

    return handle


def while_alive(method: Callable[[Exception], object]) -> Callable[[Exception], None]:
    """Call a method as long as its object lives.

    A large message knows the lock of its store, or the event loop, and the collector of cycles
    knows no message: what these lead to would stay in memory.

    Raises:
        TypeError: a plain function was given.
    """
    kept = weakref.WeakMethod(method)

    def call(error: Exception) -> None:
        if (found := kept()) is not None:
            found(error)

    return call


def _is_ours(error: Exception) -> bool:
    """Whether it was raised in, or came through, code of this broker."""
    return any(
        frame.f_globals.get("__name__", "").partition(".")[0] in _OURS
        for frame, _ in traceback.walk_tb(error.__traceback__)
    )
