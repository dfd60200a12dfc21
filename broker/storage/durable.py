"""A wait until what was recorded is on the disk."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from broker.storage.context import OperationContext

__all__ = ["durable"]


async def durable(context: OperationContext) -> None:
    """Return once all that was recorded so far is durable.

    Raises:
        JournalError: the storage has failed.
    """
    done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def tell(error: Exception | None) -> None:
        if done.done():
            # Who waited was cancelled.
            return
        if error is None:
            done.set_result(None)
        else:
            done.set_exception(error)

    context.note()
    context.after(tell)
    await done
