"""Types the code blocks of README's sections, in order and literally, as a reader does.

    python3 .ci/readme.py "Two commands" "Five minutes"

A block is what is indented by four spaces. One that begins with an import is Python: it is run by
the terminal's `python`. Of any other one each line is typed into the terminal. A line that runs a
broker keeps its terminal; what follows is typed in a new one as soon as the broker serves.

Exit status 1: a line failed; the last line of the output says which.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ROOT = Path(__file__).resolve().parents[1]
SERVING = b"serving at"
STAYS = re.compile(r"\bbroker run\b")
START_TIMEOUT_S = 120
STOP_TIMEOUT_S = 60


class LineFailedError(Exception):
    """A line of README does not do what it says; the message names it."""


@dataclass(frozen=True)
class Block:
    """A code block.

    Attributes:
        section: the heading above it.
        line: number of its first line.
        lines: of code, without the indent.
    """

    section: str
    line: int
    lines: tuple[str, ...]

    @property
    def is_python(self) -> bool:
        """Whether it is typed at Python's prompt."""
        return self.lines[0].startswith(("from ", "import "))


def blocks(text: str) -> Iterator[Block]:
    r"""The code blocks of a document.

    >>> [block.lines for block in blocks("## A\n\n    x\n\n    y\n\nz\n")]
    [('x', '', 'y')]
    """
    section, start, lines = "", 0, list[str]()
    for number, line in enumerate([*text.splitlines(), "## end"], 1):
        if line.startswith("    ") or (not line and lines):
            start = start or number
            lines.append(line[4:])
            continue
        if lines:
            yield Block(section, start, tuple("\n".join(lines).rstrip("\n").split("\n")))
        start, lines = 0, []
        if line.startswith("## "):
            section = line[3:]


class Terminal:
    """A shell that lines are typed into; its output is shown, and searched for what is awaited.

    Args:
        folder: where it stands.
        environment: of the shell.
    """

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        read_end, write_end = os.pipe()
        self._typed = Path(tempfile.mkdtemp(prefix="readme-"))
        self._shell = subprocess.Popen(
            ["bash", "--norc"],
            cwd=folder,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            pass_fds=[write_end],
            start_new_session=True,
        )
        self._answer = write_end
        self._serves = threading.Event()
        self._statuses = os.fdopen(read_end)
        os.close(write_end)
        self._shower = threading.Thread(target=self._show, daemon=True)
        self._shower.start()

    def _show(self) -> None:
        assert self._shell.stdout is not None
        for line in self._shell.stdout:
            sys.stdout.buffer.write(line)
            sys.stdout.flush()
            if line.startswith(SERVING):
                self._serves.set()

    def type(self, line: str) -> int:
        """Type a line, and wait until it ends; its exit status."""
        self._send(line)
        return int(self._statuses.readline() or -1)

    def type_and_leave(self, line: str) -> bool:
        """Type a line that runs a broker; whether that serves."""
        self._send(line)
        return self._serves.wait(START_TIMEOUT_S)

    def _send(self, line: str) -> None:
        file = self._typed / "line"
        file.write_text(line + "\n")
        assert self._shell.stdin is not None
        # From a file: a command that reads its standard input would take the lines to come.
        words = f". {file} </dev/null; echo $? >&{self._answer}\n"
        self._shell.stdin.write(words.encode())
        self._shell.stdin.flush()

    def interrupt(self) -> None:
        """Ctrl-C, then close it."""
        if self._shell.poll() is None:
            os.killpg(self._shell.pid, signal.SIGINT)
        assert self._shell.stdin is not None
        # A broker that stops in order leaves its shell at the prompt.
        self._shell.stdin.close()
        try:
            self._shell.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            os.killpg(self._shell.pid, signal.SIGKILL)
            raise LineFailedError("the broker did not stop at Ctrl-C") from None
        finally:
            self._shower.join(STOP_TIMEOUT_S)
            assert self._shell.stdout is not None
            self._shell.stdout.close()
            self._statuses.close()
            shutil.rmtree(self._typed)


def type_blocks(
    found: list[Block],
    folder: Path,
    *,
    environment: Mapping[str, str] = os.environ,
    replaced: Mapping[str, str] | None = None,
) -> None:
    """Type blocks into terminals.

    Args:
        found: the blocks.
        folder: where the first terminal stands, and each other one.
        environment: of the terminals.
        replaced: text in lines that stands for another one, such as a host's name.

    Raises:
        LineFailedError: a line ended with another status than 0.
    """
    terminals = [Terminal(folder, environment)]
    try:
        for block in found:
            for number, line in _commands(block):
                for theirs, ours in (replaced or {}).items():
                    line = line.replace(theirs, ours)
                print(f"\n$ {line}", flush=True)
                if STAYS.search(line):
                    is_fine = terminals[-1].type_and_leave(line)
                    terminals.append(Terminal(folder, environment))
                else:
                    is_fine = terminals[-1].type(line) == 0
                if not is_fine:
                    raise LineFailedError(f"README.md:{number}: failed: {line}")
    finally:
        for terminal in reversed(terminals):
            terminal.interrupt()


def _commands(block: Block) -> Iterator[tuple[int, str]]:
    if block.is_python:
        code = "\n".join(block.lines)
        yield block.line, f"python - <<'END'\n{code}\nEND"
        return
    for number, line in enumerate(block.lines, block.line):
        if line.strip():
            yield number, line


def main(*sections: str) -> None:
    """Type the blocks of these sections."""
    found = [
        block for block in blocks((ROOT / "README.md").read_text()) if block.section in sections
    ]
    missing = set(sections) - {block.section for block in found}
    if missing:
        sys.exit(f"README.md has no code below {', '.join(sorted(missing))}")
    # A shell starts what it sends to the background with SIGINT ignored, and so would be the broker
    # that Ctrl-C is to stop.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        type_blocks(found, ROOT)
    except LineFailedError as error:
        sys.exit(str(error))
    print(f"\n{len(found)} blocks of README.md work")


if __name__ == "__main__":
    main(*sys.argv[1:])
