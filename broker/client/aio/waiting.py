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
    if timeout_s is None:
        return await future
    text = f"{what}: no answer in {timeout_s} s"
    # One timer: asyncio.timeout() would make three objects for each call.
    timer = asyncio.get_running_loop().call_later(timeout_s, _expire, future, text)
    try:
        return await future
    finally:
        timer.cancel()


def _expire(future: asyncio.Future[T], text: str) -> None:
    if not future.done():
        future.set_exception(CallTimeout(text))
