"""Work on pages beside the event loop: a thread does it, the loop is told.

    loop: run(work, done) ─▶ thread: work() ─▶ loop: done(result, error)

Order: pieces of work of one `PageWork` with one thread are done, and told, in the order of the
calls; with several threads in any order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from journal.errors import JournalError

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable
    from concurrent.futures import Executor, Future

__all__ = ["Done", "Job", "PageWork", "ThreadWork"]

# done(result, error): one of them is None.
Done: TypeAlias = "Callable[[Any, Exception | None], object]"


class Job(Protocol):
    """Work under way."""

    def finish(self) -> None:
        """Wait for it, and tell of it now."""

    def wait(self) -> bool:
        """Wait for it, without a call of `done` yet; whether it was done without an error."""


class PageWork(Protocol):
    """What does work; tests have one without threads."""

    def run(self, work: Callable[[], object], done: Done) -> Job:
        """Do it soon; `done` is called by the event loop, never within this call."""

    def close(self) -> None:
        """Wait for all that is under way; its `done` is not called any more."""


class _ThreadJob:
    """One piece of work in a thread; told of once."""

    def __init__(self, done: Done) -> None:
        self._done: Done | None = done
        self.future: Future[object] | None = None

    def finish(self) -> None:
        """Wait for it, and tell of it now; nothing where that was done.

        Raises:
            Exception: what a bug in the work raised.
        """
        done, self._done = self._done, None
        # The future knows of this job, and would keep what was read until a garbage collection.
        future, self.future = self.future, None
        if done is None or future is None:
            return
        try:
            result = future.result()
        except JournalError as error:
            done(None, error)
        else:
            done(result, None)

    def wait(self) -> bool:
        """See Job; true where `done` was called already."""
        return self.future is None or self.future.exception() is None

    def drop(self) -> None:
        """Never call `done`."""
        self._done = None


class ThreadWork:
    """Does work in threads.

    Args:
        loop: that is told.
        executor: the threads, which are its own: close() ends them.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, executor: Executor) -> None:
        self._loop = loop
        self._executor = executor
        self._jobs: set[_ThreadJob] = set()

    def run(self, work: Callable[[], object], done: Done) -> Job:
        """See PageWork."""
        job = _ThreadJob(done)
        self._jobs.add(job)
        job.future = self._executor.submit(work)
        job.future.add_done_callback(lambda _: self._tell(job))
        return job

    def _tell(self, job: _ThreadJob) -> None:
        """From the thread."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._finish, job)

    def _finish(self, job: _ThreadJob) -> None:
        self._jobs.discard(job)
        job.finish()

    def close(self) -> None:
        """See PageWork."""
        for job in self._jobs:
            job.drop()
        self._executor.shutdown(wait=True)
