"""Feeds lines from a descriptor to `journal exec`, while answers go out as they become due."""

from __future__ import annotations

import os
import select
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from journal.tools.answers import Answers
    from journal.tools.stored import Store

__all__ = ["feed_lines"]

READ_SIZE: Final = 1 << 16
READABLE: Final = select.POLLIN | select.POLLHUP | select.POLLERR | select.POLLNVAL


def feed_lines(
    source: int,
    journal: Store,
    answers: Answers,
    on_line: Callable[[bytes], object],
    *,
    line_size_max: int,
) -> None:
    """Call `on_line` for every line until the end, then wait for all answers.

    Nothing is waited for while there is something to read, so that lines which come fast share
    their syncs; a single line is answered as soon as the disk has it.

    Args:
        source: descriptor of a pipe, terminal or file.
        journal: what the lines are about.
        answers: of that journal.
        on_line: takes a line without its end.
        line_size_max: bytes; a longer line is refused and skipped.

    Raises:
        OSError: reading or writing failed.
    """
    lines = _Lines(answers, on_line, line_size_max)
    poll = select.poll()
    poll.register(source, select.POLLIN)
    poll.register(journal.fileno(), select.POLLIN)
    while True:
        for fd, event in poll.poll():
            if fd != source:
                answers.flush()
            elif event & READABLE:
                data = os.read(source, READ_SIZE)
                if not data:
                    lines.end()
                    answers.drain()
                    return
                lines.take(data)


class _Lines:
    """Cuts what was read into lines."""

    def __init__(self, answers: Answers, on_line: Callable[[bytes], object], size_max: int) -> None:
        self._answers = answers
        self._on_line = on_line
        self._size_max = size_max
        self._parts: list[bytes] = []
        self._size = 0

    def take(self, data: bytes) -> None:
        first, *rest = data.split(b"\n")
        self._keep(first)
        for part in rest:
            self.end(is_whole=True)
            self._keep(part)
        self._answers.flush()

    def end(self, *, is_whole: bool = False) -> None:
        """The line ends here; at the end of all, an empty one is none."""
        line, size = b"".join(self._parts), self._size
        self._parts.clear()
        self._size = 0
        if size > self._size_max:
            self._answers.refuse(f"a line of {size} bytes; at most {self._size_max}")
        elif line or is_whole:
            self._on_line(line)
        while self._answers.is_full:
            self._answers.wait()

    def _keep(self, part: bytes) -> None:
        self._size += len(part)
        if self._size <= self._size_max:
            self._parts.append(part)
        else:
            self._parts.clear()
