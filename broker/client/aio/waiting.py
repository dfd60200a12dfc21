"""Waiting, in asyncio, for what the client's state machines answer."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

from broker.client.errors import CallTimeout

if TYPE_CHECKING:
    from broker.client.replies import Reply

T = TypeVar("T")


def future_of(reply: Reply[T]) -> asyncio.Future[T]:
    """Give a future that ends as the reply does; cancelling it does not undo the request."""
    future: asyncio.Future[T] = asyncio.get_running_loop().create_future()

    def finish(done: Reply[T]) -> None:
        if future.done():
            return
        if done.error is not None:
            future.set_exception(done.error)
        else:
            future.set_result(done.result())

    reply.when_done(finish)
    return future


async def settled(reply: Reply[T], timeout_s: float | None, what: str) -> T:
    """Wait for a reply.

    Raises:
        CallTimeout: none came in time.
        ClientError: what the reply failed with.
    """
    if reply.is_done:
        return reply.result()
    future = future_of(reply)
    try:
        async with asyncio.timeout(timeout_s):
            return await future
    except TimeoutError as error:
        # One that the reply failed with is not that of the clock.
        if future.done() and not future.cancelled():
            raise
        raise CallTimeout(f"{what}: no answer in {timeout_s} s") from error
