"""Work of a coroutine as an operation: the answer comes at its end."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Coroutine, Generator

__all__ = ["awaited"]

T = TypeVar("T")

# Between two looks whether it is done.
_LOOK_AGAIN_S: Final = 0.005


def awaited(
    work: Coroutine[object, None, T], timeout_s: float | None = None
) -> Generator[float, None, T]:
    """Run it in the event loop, and give its result.

    Args:
        work: not started.
        timeout_s: it is cancelled after so many seconds.

    Raises:
        TimeoutError: it took longer.
        Exception: whatever it raises.
    """
    task = asyncio.ensure_future(asyncio.wait_for(work, timeout_s))
    while not task.done():
        yield _LOOK_AGAIN_S
    return task.result()
