"""Programs on Spark that tests start, wait for and kill."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# A start of Spark takes minutes where much else runs.
WAIT_S = 900
# Spark gives the Python of a stream's source ten seconds to import PySpark and Arrow, which a busy
# machine may exceed: docs/guide/pipeline.md, "A busy machine".
TOO_LATE = "Python worker failed to connect back"


class Program:
    """A module that runs as a program, in a process group: a kill takes Java and workers along.

    Args:
        log: what it says is added to this file.
        words: the module's name and the program's arguments.
    """

    def __init__(self, log, *words):
        self.log = log
        self._before = log.stat().st_size if log.exists() else 0
        with log.open("ab") as file:
            self._process = subprocess.Popen(
                [sys.executable, "-m", *map(str, words)],
                cwd=ROOT,
                stdout=subprocess.DEVNULL,
                stderr=file,
                start_new_session=True,
                env={**os.environ, "PYSPARK_PYTHON": sys.executable},
            )

    @property
    def is_running(self):
        return self._process.poll() is None

    @property
    def exit_status(self):
        """None while it runs."""
        return self._process.poll()

    @property
    def said(self):
        return self.log.read_bytes()[self._before :].decode()

    def wait_until(self, holds, wait_s=WAIT_S):
        """Until `holds()`; False where Spark gave up the stream's Python before."""
        end = time.monotonic() + wait_s
        while not holds():
            if not self.is_running:
                assert TOO_LATE in self.said, self.said[-8000:]
                return False
            assert time.monotonic() < end, f"nothing goes on: {self.said[-3000:]}"
            time.sleep(0.005)
        return True

    def kill(self):
        if self.is_running:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def finish(self):
        """Wait for its end; False where Spark gave up the stream's Python."""
        try:
            status = self._process.wait(WAIT_S)
        finally:
            self.kill()
        assert status == 0 or TOO_LATE in self.said, self.said[-3000:]
        return status == 0
