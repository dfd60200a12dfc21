"""Threads of a bridge: one for a call that may never return, one for all calls of a connection.

They are daemons, and not those of the event loop's executor: a factory that hangs must delay
neither other work of the loop nor the end of the process.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["OneCallEach", "Worker", "call_in_own_thread", "call_side_by_side"]

T = TypeVar("T")


async def call_in_own_thread(work: Callable[[], T]) -> T:
    """Call a function in a new thread; give what it gives.

    A cancelled call leaves the thread to its function, and drops the result.

    Args:
        work: may block.
    """
    worker = Worker(f"bridge-call-{getattr(work, '__name__', 'factory')}")
    try:
        return await worker.call(work)
    finally:
        worker.end()


def call_side_by_side(works: Sequence[Callable[[], object]]) -> None:
    """Call functions at the same time, each in a thread of its own; return once all have.

    Args:
        works: may block; none raises.
    """
    threads = [threading.Thread(target=work, name="bridge-side-by-side") for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


class OneCallEach:
    """Calls functions in threads of their own, and none again while a call of it hangs.

    Who calls it then waits for that call, and gets what it gives. Belongs to one event loop.
    """

    def __init__(self) -> None:
        # By the function's identity: it need not be hashable.
        self._calls: dict[int, tuple[object, asyncio.Task[Any]]] = {}

    async def __call__(self, work: Callable[[], T]) -> T:
        """Call it, or wait for the call there is; a cancelled one leaves the call behind.

        Args:
            work: may block.
        """
        key = id(work)
        if key not in self._calls:
            task = asyncio.ensure_future(call_in_own_thread(work))
            self._calls[key] = work, task
            task.add_done_callback(partial(self._ended, key))
        made: T = await asyncio.shield(self._calls[key][1])
        return made

    def _ended(self, key: int, task: asyncio.Task[Any]) -> None:
        del self._calls[key]
        if not task.cancelled():
            # Raised where it is waited for, if it still is.
            task.exception()


class Worker:
    """A thread that does one call after the other, in their order.

    Args:
        name: of the thread.
    """

    def __init__(self, name: str) -> None:
        self._calls: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while (call := self._calls.get()) is not None:
            call()

    async def call(self, work: Callable[[], T]) -> T:
        """Call a function in the thread, behind those before it; give what it gives.

        Args:
            work: may block; a cancelled call is made all the same.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()

        def settle(value: T | None, error: BaseException | None) -> None:
            if future.done():
                return
            if error is None:
                future.set_result(value)  # type: ignore[arg-type] # what `work` gave.
            else:
                future.set_exception(error)

        def run() -> None:
            value: T | None = None
            failure: BaseException | None = None
            try:
                value = work()
            except StopIteration as error:
                # A future cannot raise it.
                failure = RuntimeError(f"{work!r} raised {error!r}")
            except BaseException as error:  # noqa: BLE001 - raised where it was called.
                failure = error
            try:
                loop.call_soon_threadsafe(settle, value, failure)
            except RuntimeError:
                # The loop has ended, and its waiters with it.
                return

        self._calls.put(run)
        return await future

    @property
    def is_alive(self) -> bool:
        """Whether it has not ended: a call hangs, or may still come."""
        return self._thread.is_alive()

    def end(self) -> None:
        """End the thread, behind the calls that it has."""
        self._calls.put(None)
