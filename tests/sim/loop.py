"""An event loop with a clock of its own: it jumps to the next timer, and a seed decides the order.

    process "node-1"  ready: a b c ┐
    process "client"  ready: d     ├─▶ the seed picks a process ─▶ one turn of it: a, then b, then c
    timers            12.5 s: e    ┘        nothing ready ─▶ the clock jumps to 12.5 s

Many processes share the loop; each is what one event loop is in production. Within a process the
order is asyncio's: callbacks run in the order in which they were registered, timers in the order
of their times. What asyncio leaves open the seed decides: which process goes next, which of two
timers of the same moment, and what comes first from several sockets (network.py). It decides how
long a thread takes, too: `run_in_executor` is a step of the loop. A process that is paused runs
nothing; its timers are late. One that was killed never runs again.

A callback belongs to the process in whose context it was registered, as tasks and futures keep it.

`note()` adds an event to the trace; two runs of a seed have one `trace_hash`.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
import gc
import hashlib
import heapq
import inspect
import logging
import struct
import sys
import threading
import warnings
import weakref
from collections import deque
from typing import TYPE_CHECKING, Any

from tests.sim.handles import Handle, TimerHandle

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Coroutine

    from tests.sim.threads import Threads, _Parked

# A turn takes some time, or code that waits by turns would wait for ever.
TURN_S = 2e-6
THREAD_S = 0.002
TURNS_MAX = 5_000_000
_EVENT = struct.Struct("<d")
_TURN = struct.Struct("<dHI")
# Of the trace, bytes that are hashed at once.
_NOTES_SIZE = 1 << 16

_PROCESS: contextvars.ContextVar[Process] = contextvars.ContextVar("process")


# Tasks of loops that are closed: to collect garbage takes as long as a short simulation.
_buried: list[list[asyncio.Task[Any]]] = []
BURIED_MAX = 20


def keep_buried() -> None:
    """Free nothing any more: this process is about to end."""
    global BURIED_MAX
    BURIED_MAX = sys.maxsize


def free_buried() -> None:
    """Free what loops that are closed have left; what the ends of its blocks say is not heard."""
    hook, sys.unraisablehook = sys.unraisablehook, lambda _: None
    level = logging.root.manager.disable
    logging.disable()
    try:
        with warnings.catch_warnings(action="ignore"):
            _buried.clear()
            gc.collect()
    finally:
        logging.disable(level)
        sys.unraisablehook = hook


class DeadlockError(Exception):
    """Nothing is ready, no timer runs, and the work is not done."""


class LivelockError(Exception):
    """So many turns, and the work is not done."""


class Process:
    """What one event loop is in production; see the module's text.

    Attributes:
        name: for the trace.
        host: of the network it is on; None is on none.
        is_alive: it was not killed.
        is_paused: it runs nothing for now.
        is_waiting: a callback of it waits in its middle, see threads.py.
        woken: what waited, and may go on.
    """

    def __init__(self, loop: SimLoop, name: str, host: Any = None) -> None:
        self.loop = loop
        self.name = name
        self.host = host
        self.number = len(loop._processes)
        self.is_alive = True
        self.is_paused = False
        self.ready: deque[asyncio.Handle] = deque()
        self.is_runnable = False
        self.is_waiting = False
        self.woken: deque[_Parked] = deque()
        self.exception_handler: Callable[[Any, dict[str, Any]], object] | None = None
        self.tasks: weakref.WeakSet[asyncio.Task[Any]] = weakref.WeakSet()
        self.context = contextvars.Context()
        self.context.run(_PROCESS.set, self)
        loop._processes.append(self)

    def spawn(self, work: Coroutine[Any, Any, Any], name: str | None = None) -> asyncio.Task[Any]:
        """Run it as a task of this process."""
        context = self.context.copy()
        return context.run(self.loop.create_task, work, name=name)

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call it now, as this process would."""
        return self.context.copy().run(function, *arguments)

    def pause(self) -> None:
        """Run nothing, until go_on()."""
        self.is_paused = True

    def go_on(self) -> None:
        """Run what has become due."""
        self.is_paused = False
        self.loop.make_runnable(self)

    def kill(self) -> None:
        """Run nothing more, not even what is to be done at an end."""
        self.is_alive = False
        # First: what is ready may be all that holds a task.
        self.loop.graveyard.extend(self.tasks)
        for task in self.tasks:
            # That is not their fault.
            task._log_destroy_pending = False
            coroutine = task.get_coro()
            if inspect.getcoroutinestate(coroutine) == inspect.CORO_CREATED:
                # Nothing of it has run, and Python would warn of that.
                coroutine.close()
        self.tasks.clear()
        self.ready.clear()
        self.woken.clear()

    def __repr__(self) -> str:
        return f"<process {self.name}>"


class SimLoop(asyncio.AbstractEventLoop):
    """See the module's text.

    Args:
        seeded: decides what asyncio leaves open.
        turns_max: more are a livelock.

    Attributes:
        network: what sockets are made of; set by `Network`.
        graveyard: tasks of processes that were killed, kept until the loop is closed.
        turns: so far.
        problems: what exception handlers of processes without their own were told.
        threads: what runs it, where code may wait in the middle of a callback; else None.
    """

    def __init__(self, seeded: random.Random, turns_max: int = TURNS_MAX) -> None:
        self.seeded = seeded
        self.network: Any = None
        self.threads: Threads | None = None
        self.graveyard: list[asyncio.Task[Any]] = []
        self.turns = 0
        self.problems: list[tuple[str, BaseException | None]] = []
        self._turns_max = turns_max
        self._random = seeded.random
        self._now = 1000.0
        self._runnable: list[Process] = []
        # (moment, chance, number, handle, process)
        self._timers: list[tuple[float, float, int, asyncio.Handle, Process]] = []
        self._timer_count = 0
        self._trace = hashlib.blake2b(digest_size=16)
        self._notes = bytearray()
        self._is_running = False
        self._is_stopping = False
        self._is_closed = False
        self._thread = threading.get_ident()
        self._processes: list[Process] = []
        self.director = Process(self, "director")
        self.current = self.director

    # --- trace --------------------------------------------------------------------------------

    def note(self, label: bytes) -> None:
        """Add an event of this moment to the trace."""
        self._notes += _EVENT.pack(self._now)
        self._notes += label

    @property
    def trace_hash(self) -> str:
        """Of all events so far."""
        self._hash_notes()
        return self._trace.hexdigest()

    def _hash_notes(self) -> None:
        self._trace.update(self._notes)
        self._notes.clear()

    # --- callbacks ----------------------------------------------------------------------------

    def time(self) -> float:
        """Virtual seconds."""
        return self._now

    def process(self, name: str, host: Any = None) -> Process:
        """Make a process."""
        return Process(self, name, host)

    def current_process(self) -> Process:
        """The process that runs, by its context."""
        return _PROCESS.get(self.director)

    def _owner(self, context: contextvars.Context | None) -> Process:
        if context is None:
            return _PROCESS.get(self.director)
        return context.get(_PROCESS, self.director)

    def call_soon(
        self, callback: Callable[..., object], *args: Any, context: Any = None
    ) -> asyncio.Handle:
        if context is None:
            context = contextvars.copy_context()
        handle = Handle(callback, args, self, context)
        process = context.get(_PROCESS, self.director)
        if process.is_alive:
            process.ready.append(handle)
            if not process.is_runnable and not process.is_paused:
                process.is_runnable = True
                self._runnable.append(process)
        return handle

    def call_soon_threadsafe(
        self, callback: Callable[..., object], *args: Any, context: Any = None
    ) -> asyncio.Handle:
        if self.threads is None and threading.get_ident() != self._thread:
            raise RuntimeError(f"a thread calls {callback}: a simulation has none")
        return self.call_soon(callback, *args, context=context)

    def call_later(
        self, delay: float, callback: Callable[..., object], *args: Any, context: Any = None
    ) -> asyncio.TimerHandle:
        return self.call_at(self._now + delay, callback, *args, context=context)

    def call_at(
        self, when: float, callback: Callable[..., object], *args: Any, context: Any = None
    ) -> asyncio.TimerHandle:
        if context is None:
            context = contextvars.copy_context()
        handle = TimerHandle(when, callback, args, self, context)
        self._push(when, handle, context.get(_PROCESS, self.director))
        return handle

    def call_in(
        self, process: Process, when: float, callback: Callable[..., object], *args: Any
    ) -> None:
        """Call it at a moment, as something that comes to a process from outside."""
        self._push(when, Handle(callback, args, self, process.context.copy()), process)

    def _push(self, when: float, handle: asyncio.Handle, process: Process) -> None:
        self._timer_count += 1
        heapq.heappush(self._timers, (when, self._random(), self._timer_count, handle, process))

    def make_runnable(self, process: Process) -> None:
        """A process that was paused goes on."""
        is_due = process.ready or process.woken
        if is_due and process.is_alive and not process.is_runnable:
            process.is_runnable = True
            self._runnable.append(process)

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """It is dropped when its time comes."""

    # --- running ------------------------------------------------------------------------------

    def run_forever(self) -> None:
        if self._is_running:
            raise RuntimeError("the loop runs already")
        self._is_running = True
        asyncio._set_running_loop(self)
        try:
            if self.threads is not None:
                self.threads.run()
            while not self._is_stopping:
                self._step()
        finally:
            self._is_stopping = self._is_running = False
            asyncio._set_running_loop(None)

    def run_until_complete(self, future: Any) -> Any:
        task = asyncio.ensure_future(future, loop=self)
        task.add_done_callback(self._stop_with)
        try:
            self.run_forever()
        finally:
            task.remove_done_callback(self._stop_with)
            if not task.done():
                self.director.kill()
                task._log_destroy_pending = False
        return task.result()

    def _stop_with(self, future: Any) -> None:
        self.stop()

    def stop(self) -> None:
        self._is_stopping = True

    def _step(self) -> None:
        timers, runnable = self._timers, self._runnable
        if not runnable:
            self._jump()
        now = self._now
        while timers and timers[0][0] <= now:
            _, _, _, handle, process = heapq.heappop(timers)
            if not handle._cancelled and process.is_alive:
                process.ready.append(handle)
                if not process.is_runnable and not process.is_paused:
                    process.is_runnable = True
                    runnable.append(process)
        if not runnable:
            return
        index = int(self._random() * len(runnable))
        process = runnable[index]
        runnable[index] = runnable[-1]
        runnable.pop()
        process.is_runnable = False
        if process.is_alive and not process.is_paused:
            self._turn(process)

    def _jump(self) -> None:
        timers = self._timers
        while timers and (timers[0][3]._cancelled or not timers[0][4].is_alive):
            heapq.heappop(timers)
        if not timers:
            raise DeadlockError("nothing is ready, and no timer runs")
        if timers[0][0] > self._now:
            self._now = timers[0][0]

    def _turn(self, process: Process) -> None:
        """What is ready now; what that makes ready is of the next turn."""
        self.turns += 1
        if self.turns > self._turns_max:
            raise LivelockError(f"{self.turns} turns, at {self._now:.3f} s, in {process.name}")
        self._now += TURN_S
        if process.woken and self.threads is not None:
            self.note(b"%b goes on" % process.name.encode())
            parked = process.woken.popleft()
            self.make_runnable(process)
            self.threads.go_on(parked)
            return
        if process.is_waiting:
            return
        self.current = process
        ready = process.ready
        count = len(ready)
        self._notes += _TURN.pack(self._now, process.number, count)
        if len(self._notes) > _NOTES_SIZE:
            self._hash_notes()
        while count and ready:
            count -= 1
            handle = ready.popleft()
            if not handle._cancelled:
                try:
                    handle._context.run(handle._callback, *handle._args)
                except (SystemExit, KeyboardInterrupt):
                    raise
                except BaseException as error:  # noqa: BLE001 - as asyncio does.
                    if process.is_alive:  # Killed, it comes upon what is no more.
                        self._told_of(handle, error)
            if process.is_paused:
                break
        self.current = self.director
        if ready and not process.is_runnable and not process.is_paused:
            process.is_runnable = True
            self._runnable.append(process)

    def _told_of(self, handle: asyncio.Handle, error: BaseException) -> None:
        callback = handle._callback
        name = getattr(callback, "__qualname__", type(callback).__name__)
        context = {"message": f"Exception in callback {name}", "exception": error, "handle": handle}
        self.call_exception_handler(context)

    # --- tasks, futures, threads --------------------------------------------------------------

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def create_task(self, coro: Any, *, name: str | None = None, context: Any = None) -> Any:
        task = asyncio.Task(coro, loop=self, name=name, context=context)
        process = self._owner(context)
        process.tasks.add(task)
        if not process.is_alive:
            task._log_destroy_pending = False
        return task

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> Any:
        """Do it in a step of its own, later; it may be given up while the work waits."""
        future = self.create_future()
        self.call_later(self._random() * THREAD_S, self._work, future, func, args)
        return future

    def _work(self, future: Any, function: Callable[..., Any], arguments: Any) -> None:
        if future.cancelled():
            return
        try:
            if self.threads is None:
                result = function(*arguments)
            else:
                result = self.threads.do(function, *arguments)
        except Exception as error:  # noqa: BLE001 - the caller that asked gets it.
            future.done() or future.set_exception(error)
        else:
            future.done() or future.set_result(result)

    async def shutdown_asyncgens(self) -> None:
        """Nothing: they end where they are used."""

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:  # noqa: ASYNC109 - asyncio's.
        """Nothing: it has no threads."""

    # --- exceptions, ends ---------------------------------------------------------------------

    def set_exception_handler(self, handler: Any) -> None:
        """For the process that calls."""
        self.current_process().exception_handler = handler

    def get_exception_handler(self) -> Any:
        return self.current_process().exception_handler

    def default_exception_handler(self, context: dict[str, Any]) -> None:
        self.problems.append((str(context.get("message")), context.get("exception")))

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        if self._is_closed:
            return
        handler = self.current.exception_handler
        if handler is None:
            self.default_exception_handler(context)
        else:
            handler(self, context)

    def get_debug(self) -> bool:
        return False

    def set_debug(self, enabled: bool) -> None:
        """Nothing: order and time are known as it is."""

    def is_running(self) -> bool:
        return self._is_running

    def is_closed(self) -> bool:
        return self._is_closed

    def close(self) -> None:
        """Let nothing run any more, and free all there is, now or with later loops.

        What was killed is freed then, and never before: the ends of its blocks run there, where
        nothing comes of them.
        """
        self._is_closed = True
        for process in self._processes:
            process.kill()
        if self.threads is not None:
            self.threads.close()
        if self.network is not None:
            self.network.close()
        self._timers.clear()
        self._runnable.clear()
        # Behind them: this loop is still in use by who closes it, and so is what it has left.
        if len(_buried) >= BURIED_MAX:
            free_buried()
        _buried.append(self.graveyard)

    # --- sockets ------------------------------------------------------------------------------

    def _of_network(name: str) -> Any:
        @functools.wraps(getattr(asyncio.AbstractEventLoop, name))
        async def method(self: SimLoop, *args: Any, **options: Any) -> Any:
            return await getattr(self.network, name)(*args, **options)

        return method

    create_server = _of_network("create_server")
    create_connection = _of_network("create_connection")
    create_datagram_endpoint = _of_network("create_datagram_endpoint")
    getaddrinfo = _of_network("getaddrinfo")
    getnameinfo = _of_network("getnameinfo")
