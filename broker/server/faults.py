"""Faults of the broker's own code: the exception of a turn of the loop that no code caught."""

from __future__ import annotations

import traceback
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

__all__ = ["exception_handler"]

_OURS: Final = ("broker", "journal", "jdbcstore")


def exception_handler(
    on_failure: Callable[[Exception], object],
) -> Callable[[asyncio.AbstractEventLoop, dict[str, Any]], None]:
    """Give a handler that ends the broker if a turn of the loop, or a timer, of ours raised.

    A queue's turn that ended in the middle leaves messages that are not delivered any more. As
    for a callback of the storage, the broker stops, and its next start has all that is durable.
    What a socket's transport reports, and what the loop itself raises, is only logged.

    Args:
        on_failure: told of it, in the event loop.
    """

    def handle(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        loop.default_exception_handler(context)
        if isinstance(error, Exception) and "handle" in context and _is_ours(error):
            on_failure(error)

    return handle


def _is_ours(error: Exception) -> bool:
    """Whether it was raised in, or came through, code of this broker."""
    return any(
        frame.f_globals.get("__name__", "").partition(".")[0] in _OURS
        for frame, _ in traceback.walk_tb(error.__traceback__)
    )
