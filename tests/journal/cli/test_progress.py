"""Bars: on a terminal for what lasts, and nowhere else."""

import os
import pty
import subprocess
import sys

import pytest

from journal.commands.progress import TELL_EVERY_S, Progress
from tests.journal.golden import scenarios

SCENARIO = next(s for s in scenarios() if "load_error" not in s.expected["load"])


def on_a_terminal(script):
    """What a program writes to a terminal that is its standard error."""
    ours, its = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", script], stderr=its, stdout=subprocess.PIPE
    ) as run:
        os.close(its)
        seen = b""
        while True:
            try:
                seen += (part := os.read(ours, 65536))
            except OSError:  # Linux's end of a terminal.
                break
            if not part:
                break
        out = run.stdout.read()
    os.close(ours)
    assert run.returncode == 0
    return seen.decode(), out.decode()


@pytest.mark.parametrize(("size", "shown"), [(1000, "100%"), (0, "900")])
def test_a_terminal_sees_how_far_it_is(size, shown):
    seen, _ = on_a_terminal(
        "import time\n"
        "from journal.commands.progress import Progress\n"
        "with Progress('loading') as progress:\n"
        f"    for done in sorted({{100, 500, 900, {size} or 900}}):\n"
        f"        progress(0, 1, done, {size})\n"
        f"        time.sleep({TELL_EVERY_S * 1.5})\n"
    )

    assert "loading" in seen
    assert shown in seen


def test_a_command_says_the_same_on_standard_output_with_and_without_a_bar(tmp_path):
    source = SCENARIO.unpack(tmp_path)
    script = (
        "from journal.cli.main import journal\n"
        f"journal(['print-data', {str(source)!r}, '--format', 'jsonl'], standalone_mode=False)\n"
    )

    _, out = on_a_terminal(script)

    piped = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert out == piped.stdout
    assert "\r" not in piped.stderr


def test_nothing_is_shown_where_it_is_not_wanted(capsys):
    with Progress("loading", is_wanted=False) as progress:
        progress(1, 1, 10, 10)

    assert capsys.readouterr() == ("", "")
