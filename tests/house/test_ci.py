"""`.ci/`: its files are checked as all others are; its run names what failed."""

import os
import shutil
import subprocess
import sys
import tomllib

import pytest

from tests.ci_files import FOLDER

ROOT = FOLDER.parent

OUTPUT = """\
ERROR    asyncio:base.py:1 a line of a log that a test caught
=========================== short test summary info ============================
FAILED tests/{suite}/test_a.py::test_one - AssertionError: {long}
ERROR tests/{suite}/test_b.py
SKIPPED [1] tests/{suite}/test_c.py:3: not here
============ 1 failed, 3 passed, 1 skipped, 1 error in 2.00s ============
"""


def script(path, text):
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def test_its_run_names_what_failed_before_its_closing_lines(tmp_path):
    (tmp_path / ".ci").mkdir()
    shutil.copy(FOLDER / "run", tmp_path / ".ci/run")
    for suite in ("test", "test-all"):
        (tmp_path / suite).write_text(OUTPUT.format(suite=suite, long="x" * 200))
    commands = tmp_path / "commands"
    commands.mkdir()
    # A machine that has all packages, and cannot make a root.
    script(commands / "dpkg", "exit 0")
    script(commands / "make", 'cat "$1"; exit 1')
    script(tmp_path / ".ci/fresh", "exit 77")

    done = subprocess.run(
        ["bash", ".ci/run"],
        cwd=tmp_path,
        env={**os.environ, "PATH": f"{commands}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 1
    closing = "============ 1 failed, 3 passed, 1 skipped, 1 error in 2.00s ============"
    named = [
        line
        for suite in ("test", "test-all")
        for line in (
            f"FAILED tests/{suite}/test_a.py::test_one - AssertionError: {'x' * 200}"[:160],
            f"ERROR tests/{suite}/test_b.py",
        )
    ]
    assert done.stdout.splitlines()[-6:] == [
        *named,
        f"make test: {closing}",
        f"make test-all, without what passed before: {closing}",
    ]


def test_mypy_checks_its_files():
    found = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["mypy"]["files"]

    assert {name for name in found if name.startswith(".ci/")} == {
        f".ci/{path.name}" for path in FOLDER.glob("*.py")
    }


def test_ruff_checks_its_files():
    pytest.importorskip("ruff", reason="ruff is not installed: quiver-mq[dev] brings it")
    shown = subprocess.run(
        [sys.executable, "-m", "ruff", "check", "--show-files"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()

    assert {str(path) for path in FOLDER.glob("*.py")} <= set(shown)
