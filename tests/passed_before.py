"""Tests that passed in one run are left out of another: `--passed-to FILE`, `--not-again FILE`.

`.ci/run` runs the quick tests on a fresh machine first, then all others on this one.
"""

from pathlib import Path

import pytest


def add_options(parser):
    """The two options."""
    parser.addoption("--passed-to", type=Path, help="write the ids of the tests that passed")
    parser.addoption("--not-again", type=Path, help="leave out tests whose ids are in this file")


class PassedTests:
    """A plugin that writes down which tests passed, setup and teardown included.

    Args:
        path: the file, one id a line.
    """

    def __init__(self, path):
        self._path = path
        self._passed = set()
        self._failed = set()

    def pytest_runtest_logreport(self, report):
        if report.when == "call" and report.passed:
            self._passed.add(report.nodeid)
        if report.failed:
            self._failed.add(report.nodeid)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self):
        names = sorted(self._passed - self._failed)
        self._path.write_text("".join(f"{name}\n" for name in names))


def leave_out(config, items):
    """Deselect what has passed before."""
    path = config.getoption("--not-again")
    if path is None:
        return
    passed = set(path.read_text().splitlines())
    gone = [item for item in items if item.nodeid in passed]
    items[:] = [item for item in items if item.nodeid not in passed]
    config.hook.pytest_deselected(items=gone)
