"""Answers of `journal exec` in the order of its lines, each written once its operation is durable.

Appends return at once and are made durable in groups; their answers wait until the
operations are on disk, and come out in order, many with one write. What was written to the output
is true, whatever happens to the process next.
"""

from __future__ import annotations

import os
import select
from collections import deque
from typing import TYPE_CHECKING, Final

from journal.errors import JournalError

if TYPE_CHECKING:
    from collections.abc import Callable

    from journal.tools.stored import Store


__all__ = ["Answers", "describe", "write_all"]

PENDING_MAX: Final = 16_384  # answers that wait at most; then no line is read until some are due
WRITE_SIZE: Final = 1 << 16


class Answer:
    """One line of the output, and whether it may be written yet."""

    __slots__ = ("is_due", "text")

    def __init__(self, text: str, *, is_due: bool) -> None:
        self.text = text
        self.is_due = is_due


class Answers:
    """Keeps answers until their operations are durable, and writes them.

    Args:
        journal: loaded; its reap() is called here and nowhere else.
        write: takes the lines that are due; it must not keep them in a buffer of its own.

    Threads: one.
    """

    def __init__(self, journal: Store, write: Callable[[bytes], object]) -> None:
        self._journal = journal
        self._write = write
        self._lines: deque[Answer] = deque()  # in the order of the questions
        self._waiting: deque[Answer] = deque()  # those of them that wait for the disk
        self.failure: Exception | None = None
        self.failed_count = 0

    @property
    def is_full(self) -> bool:
        """Whether so many wait that no further line should be read."""
        return len(self._lines) >= PENDING_MAX

    @property
    def is_waiting(self) -> bool:
        """Whether any waits for the disk."""
        return bool(self._waiting)

    def give(self, text: str) -> None:
        """An answer that is true already."""
        self._lines.append(Answer(text, is_due=True))

    def refuse(self, text: str) -> None:
        """The answer to what could not be done."""
        self.failed_count += 1
        self.give(f"ERR {text}")

    def promise(self, text: str) -> None:
        """An answer that is true once the operation is durable whose `done` is `self.done`.

        Call it after the operation was accepted and before anything else is: the promises are kept
        in the order of the operations.
        """
        answer = Answer(text, is_due=False)
        self._lines.append(answer)
        self._waiting.append(answer)

    def done(self, error: Exception | None) -> None:
        """What the journal calls once an operation is durable, or never will be."""
        answer = self._waiting.popleft()
        answer.is_due = True
        if error is not None:
            self.failure = error
            self.failed_count += 1
            answer.text = f"ERR {error}"

    def flush(self) -> None:
        """Write what is due by now."""
        self._journal.on_event()
        self._write_due()

    def wait(self, timeout_ms: int | None = None) -> None:
        """Sleep until the disk has more, and write what is due then."""
        poll = select.poll()
        poll.register(self._journal.fileno(), select.POLLIN)
        poll.poll(timeout_ms)
        self.flush()

    def drain(self) -> None:
        """Write them all."""
        self.flush()
        while self._waiting:
            self.wait()
        self._write_due()

    def _write_due(self) -> None:
        due: list[str] = []
        size = 0
        while self._lines and self._lines[0].is_due:
            text = self._lines.popleft().text
            due.append(text)
            size += len(text)
            if size >= WRITE_SIZE:
                self._write_lines(due)
                size = 0
        if due:
            self._write_lines(due)

    def _write_lines(self, due: list[str]) -> None:
        self._write(("\n".join(due) + "\n").encode())
        due.clear()


def write_all(fd: int) -> Callable[[bytes], None]:
    """A function that writes bytes to a descriptor, past all buffers."""

    def write(data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(fd, view) :]

    return write


def describe(error: Exception) -> str:
    """An error as one line."""
    if isinstance(error, JournalError):
        return " ".join(str(error).split())
    return f"{type(error).__name__}: {' '.join(str(error).split())}"
