"""A start that waits for another broker, or reads its data; any thread may interrupt it."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from journal.errors import JournalClosed

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["StartWait"]


class StartWait:
    """One start that may have to wait for a lock, or a database's lease.

    Threads: any.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._is_interrupted = threading.Event()
        self._calls: list[Callable[[], object]] = []
        self._on_waiting: Callable[[str], object] | None = None

    def on_interrupt(self, call: Callable[[], object]) -> None:
        """Have interrupt() call this; if it was called before, call it now."""
        with self._lock:
            self._calls.append(call)
            is_late = self._is_interrupted.is_set()
        if is_late:
            call()

    def interrupt(self) -> None:
        """End the wait, or the reading, with JournalClosed, now or when it begins."""
        with self._lock:
            self._is_interrupted.set()
            calls = list(self._calls)
        for call in calls:
            call()

    def on_waiting(self, call: Callable[[str], object]) -> None:
        """Have this called, once, from the thread that waits: for another broker of the same node.

        Args:
            call: gets the node's id.
        """
        self._on_waiting = call

    def waits(self, node_id: str | None) -> None:
        """Say that another broker is waited for; None where its node has no id yet."""
        if node_id is not None:
            call, self._on_waiting = self._on_waiting, None
            if call is not None:
                call(node_id)

    def sleep(self, seconds: float) -> None:
        """Wait that long.

        Raises:
            JournalClosed: interrupt() was called.
        """
        if self._is_interrupted.wait(seconds):
            raise JournalClosed("the wait for another broker was interrupted")

    def check(self) -> None:
        """See whether to go on.

        Raises:
            JournalClosed: interrupt() was called.
        """
        if self._is_interrupted.is_set():
            raise JournalClosed("the start was interrupted")
