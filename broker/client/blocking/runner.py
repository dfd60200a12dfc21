"""A thread with an event loop, for callers that have none.

Everything of the client belongs to that loop; a caller hands a coroutine over and waits. So
a client may be used by many threads, and pings go out while the application computes.
"""

from __future__ import annotations

import asyncio
import os
import threading
from typing import TYPE_CHECKING, TypeVar

from broker.client.errors import ClosedError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from concurrent.futures import Future
    from typing import Any

T = TypeVar("T")


class Runner:
    """One loop in one daemon thread."""

    def __init__(self, name: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._is_closed = False
        self._pid = os.getpid()
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
        finally:
            self._loop.close()

    @property
    def is_own_process(self) -> bool:
        """Whether the loop runs here: a forked child has the object and not the thread."""
        return os.getpid() == self._pid

    @property
    def is_own_thread(self) -> bool:
        """Whether the caller is the loop itself, which must not wait for itself."""
        return threading.current_thread() is self._thread

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Let the loop run a coroutine; give its future.

        Raises:
            ClosedError: the client is closed, or its parent's in a forked process.
        """
        if self._is_closed or not self.is_own_process:
            work.close()
            if self.is_own_process:
                raise ClosedError("the client is closed")
            raise ClosedError(
                f"the client belongs to process {self._pid}: make one in this process"
            )
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """Let the loop run a coroutine and give its result; an interrupt cancels it.

        Raises:
            ClosedError: the client is closed.
            RuntimeError: called by the loop's own thread, such as in a callback.
        """
        if self.is_own_thread:
            work.close()
            raise RuntimeError("a call that waits, in the client's own thread, would wait for ever")
        future = self.submit(work)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def call(self, work: Callable[[], T]) -> T:
        """Let the loop call a function, and give what it gives."""

        async def run() -> T:
            return work()

        return self.wait(run())

    def close(self) -> None:
        """End the loop and its thread."""
        if self._is_closed:
            return
        self._is_closed = True
        if not self.is_own_process:
            return

        async def last() -> None:
            tasks = asyncio.all_tasks() - {asyncio.current_task()}
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

        asyncio.run_coroutine_threadsafe(last(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
