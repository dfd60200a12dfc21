"""Waiting, in asyncio, for what the client's state machines answer."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

from broker.client.errors import CallTimeout

if TYPE_CHECKING:
    from broker.client.replies import Reply

T = TypeVar("T")


def future_of(reply: Reply[T]) -> asyncio.Future[T]:
    """Give a future that ends as the reply does, to be waited for or not.

    Cancelling it does not undo the request.
    """
    future: asyncio.Future[T] = asyncio.get_running_loop().create_future()

    def finish(done: Reply[T]) -> None:
        if future.done():
            return
        if done.error is not None:
            _fail(future, done.error)
        else:
            future.set_result(done.result())

    reply.when_done(finish)
    return future


async def settled(reply: Reply[T], timeout_s: float | None, what: object) -> T:
    """Wait for a reply.

    Args:
        reply: to a request.
        timeout_s: seconds that it may take; None for ever.
        what: the request was, for the error's text.

    Raises:
        CallTimeout: none came in time.
        ClientError: what the reply failed with.
    """
    if reply.is_done:
        return reply.result()
    future = future_of(reply)
    if timeout_s is None:
        return await future
    # One timer: asyncio.timeout() would make three objects for each call.
    timer = asyncio.get_running_loop().call_later(timeout_s, _expire, future, timeout_s, what)
    try:
        return await future
    finally:
        timer.cancel()


def _expire(future: asyncio.Future[T], timeout_s: float, what: object) -> None:
    if not future.done():
        _fail(future, CallTimeout(f"{what}: no answer in {timeout_s} s"))


def _fail(future: asyncio.Future[T], error: Exception) -> None:
    future.set_exception(error)
    # Else asyncio reports it as one that nobody has seen, where the wait was given up.
    future.exception()
