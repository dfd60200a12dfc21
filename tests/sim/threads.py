"""Code that waits in the middle of a callback, as a thread does, while the loop's clock goes on.

    callback of "a" ─▶ … event.wait(4 s) │ parked │ ─▶ goes on, at a moment of the loop's clock
                                         └▶ another thread of the system runs the loop meanwhile

So code with threads runs unchanged: a lease that renews itself, a store that waits for an answer.
What it waits for is a `SimEvent` in the place of threading.Event. Of all threads of the system one
runs at a time, the others wait for their turn; which one it is decides nothing.

A callback that waits keeps its process from doing anything else, as in production. Work of a thread
(`start_thread`, `run_in_executor`) waits beside its process. A process that is paused wakes up once
it goes on; of one that was killed nothing wakes, and what waits is ended with the loop.

A loop without `Threads` has none of this, and no cost of it.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from tests.sim.loop import Process, SimLoop


class ProcessKilledError(BaseException):
    """Ends what waits in a process that is no more; nothing of it is to be seen."""


def _turn() -> threading.Lock:
    """What one thread of the system waits for, until another one releases it."""
    made = threading.Lock()
    made.acquire()
    return made


class _Parked:
    """A callback that waits: its thread of the system goes on once `turn` is released."""

    def __init__(self, process: Process, *, is_thread: bool) -> None:
        self.process = process
        self.is_thread = is_thread
        self.is_woken = False
        self.turn = _turn()


class Threads:
    """Of one loop; see the module's text.

    Args:
        loop: that is run by them from now on.
    """

    def __init__(self, loop: SimLoop) -> None:
        self.loop = loop
        loop.threads = self
        # Threads of the system: all, and those that wait to run the loop.
        self._all: list[threading.Thread] = []
        self._idle: list[threading.Lock] = []
        self._parked: dict[_Parked, None] = {}
        # Those that do the work of a thread of a process, by the system's number.
        self._workers: set[int] = set()
        self._is_over = _turn()
        self._is_closed = False
        self._error: BaseException | None = None

    # --- running the loop ---------------------------------------------------------------------

    def run(self) -> None:
        """Run the loop until it is stopped; see SimLoop.run_forever."""
        self._run_another()
        self._is_over.acquire()
        error, self._error = self._error, None
        if error is not None:
            raise error

    def _run_another(self) -> None:
        """Let a thread that has nothing else to do run the loop."""
        if self._idle:
            self._idle.pop().release()
            return
        thread = threading.Thread(target=self._run_turns, name="simulation", daemon=True)
        self._all.append(thread)
        thread.start()

    def _run_turns(self) -> None:
        turn = _turn()
        asyncio._set_running_loop(self.loop)
        while True:
            try:
                while not (self.loop._is_stopping or self._is_closed):
                    self.loop._step()
            except BaseException as error:  # noqa: BLE001 - run() raises it.
                self._error = error
            if self._is_closed:
                self._is_over.release()
                return
            self._idle.append(turn)
            self._is_over.release()
            turn.acquire()

    def close(self) -> None:
        """End all that waits, and every thread of the system. The loop's processes are killed."""
        self._is_closed = True
        while self._parked:
            next(iter(self._parked)).turn.release()
            self._is_over.acquire()
        while self._idle:
            self._idle.pop().release()
            self._is_over.acquire()
        self._error = None
        for thread in self._all:
            thread.join()

    # --- waiting ------------------------------------------------------------------------------

    def park(self, waiting: deque[_Parked], timeout_s: float | None) -> None:
        """Wait until wake() is called, with the one that is put into `waiting`; or so long."""
        loop = self.loop
        process = loop.current_process()
        if not process.is_alive:
            raise ProcessKilledError
        me = _Parked(process, is_thread=threading.get_ident() in self._workers)
        waiting.append(me)
        self._parked[me] = None
        if timeout_s is not None:
            loop.call_in(loop.director, loop.time() + timeout_s, self.wake, me)
        task = asyncio.current_task(loop)
        if task is not None:
            asyncio.tasks._leave_task(loop, task)  # type: ignore[attr-defined]
        if me.is_thread:
            loop.make_runnable(process)
        else:
            process.is_waiting = True
        self._run_another()
        me.turn.acquire()
        del self._parked[me]
        if not process.is_alive:
            raise ProcessKilledError
        loop.current = process
        if task is not None:
            asyncio.tasks._enter_task(loop, task)  # type: ignore[attr-defined]
        if not me.is_thread:
            process.is_waiting = False
        if me in waiting:
            waiting.remove(me)

    def wake(self, parked: _Parked) -> None:
        """Continue one in the next turn of its process."""
        if not parked.is_woken:
            parked.is_woken = True
            parked.process.woken.append(parked)
            self.loop.make_runnable(parked.process)

    def go_on(self, parked: _Parked) -> None:
        """In a turn of the loop: go on with it, and with the loop when that is done."""
        turn = _turn()
        self._idle.append(turn)
        parked.turn.release()
        turn.acquire()

    # --- threads ------------------------------------------------------------------------------

    def start_thread(self, work: Callable[[], object], name: str) -> SimThread:
        """Do work beside the process that calls; see jdbcstore.environment."""
        del name
        thread = SimThread(self)
        self.loop.call_soon(self.do, thread.run, work)
        return thread

    def do(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call it as a thread of its process does: its waits do not hold the process up."""
        me = threading.get_ident()
        is_outermost = me not in self._workers
        self._workers.add(me)
        try:
            return function(*arguments)
        finally:
            if is_outermost:
                self._workers.discard(me)

    def sleep(self, seconds: float) -> None:
        """Wait so long."""
        self.park(deque(), seconds)

    def event(self) -> SimEvent:
        """Make what code waits for."""
        return SimEvent(self)

    def lock(self) -> SimLock:
        """Make what one at a time is in."""
        return SimLock(self)


class SimEvent:
    """In the place of threading.Event."""

    def __init__(self, threads: Threads) -> None:
        self._threads = threads
        self._waiting: deque[_Parked] = deque()
        self._is_set = False

    def is_set(self) -> bool:
        return self._is_set

    def set(self) -> None:
        self._is_set = True
        while self._waiting:
            self._threads.wake(self._waiting.popleft())

    def clear(self) -> None:
        self._is_set = False

    def wait(self, timeout: float | None = None) -> bool:
        if not self._is_set and (timeout is None or timeout > 0):
            self._threads.park(self._waiting, timeout)
        return self._is_set


class SimLock:
    """In the place of threading.Lock, as a context manager."""

    def __init__(self, threads: Threads) -> None:
        self._threads = threads
        self._waiting: deque[_Parked] = deque()
        self._is_held = False

    def __enter__(self) -> Self:
        while self._is_held:
            self._threads.park(self._waiting, None)
        self._is_held = True
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._is_held = False
        if self._waiting:
            self._threads.wake(self._waiting.popleft())


class SimThread:
    """See jdbcstore.environment.Thread."""

    def __init__(self, threads: Threads) -> None:
        self._ended = threads.event()
        self._ident = 0

    def run(self, work: Callable[[], object]) -> None:
        self._ident = threading.get_ident()
        try:
            work()
        finally:
            self._ident = 0
            self._ended.set()

    def join(self) -> None:
        self._ended.wait()

    def is_current(self) -> bool:
        return self._ident == threading.get_ident()
