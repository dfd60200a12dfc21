"""Our broker as an instance of its own, in a process of its own, as `broker create` makes it."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# A loaded machine starts a process slowly.
START_TIMEOUT_S = 120


class OurBroker:
    """What `ArtemisBroker` is for Artemis.

    Args:
        folder: where the instance and its log are put.
        changes: texts of broker.xml, and what they are replaced by.
        options: more of `broker create`.
        starts: it is started when it is made.
        environment: variables of its processes, beside those of this one.
        version: root of a tree of ours, built; another one than this makes the instance.
        machine: of tests/machines.py, where it runs; None is this one.

    Attributes:
        version: as given; a change counts from the next start on.
        folder: of the instance.
        host: where it listens.
        port: the same.
        process: that was started last.
    """

    USER = "admin"
    PASSWORD = "secret"

    def __init__(
        self,
        folder,
        *changes,
        options=(),
        starts=True,
        environment=None,
        version=ROOT,
        machine=None,
    ):
        self._environment = environment or {}
        self._launcher = () if machine is None else machine.launcher
        self.host = "127.0.0.1" if machine is None else machine.address
        self.version = version
        self.folder = folder / "ours"
        self._log = folder / "ours.log"
        command = ["create", self.folder, "--user", self.USER, "--password", self.PASSWORD]
        command += ["--max-disk-usage", "-1"]
        ports = ["--host", self.host, "--port", "0", "--http-port", "0"]
        created = self._broker(*command, *ports, *options)
        assert created.wait(START_TIMEOUT_S) == 0, self.log()
        self.change_configuration(*changes)
        self.process = None
        if starts:
            self.start()

    def _broker(self, *words):
        with self._log.open("ab") as log:
            return subprocess.Popen(
                [*self._launcher, sys.executable, "-m", "broker.cli.main", *map(str, words)],
                cwd=self.folder.parent,
                env={**os.environ, "PYTHONPATH": str(self.version), **self._environment},
                stdout=log,
                stderr=log,
            )

    def change_configuration(self, *changes):
        """Replace text of broker.xml, before a start."""
        path = self.folder / "etc" / "broker.xml"
        text = path.read_text()
        for old, new in changes:
            assert old in text, f"broker.xml has no {old!r}"
            text = text.replace(old, new)
        path.write_text(text)

    @property
    def uri(self):
        return f"tcp://{self.host}:{self.port}"

    def start(self):
        """Start it and wait until it serves."""
        before = len(self.log())
        serving = re.compile(rf"^serving at {re.escape(self.host)}:(\d+)", re.MULTILINE)
        self.process = self._broker("run", self.folder)
        deadline = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < deadline and self.process.poll() is None:
            found = serving.search(self.log(), before)
            if found:
                self.port = int(found[1])
                return
            time.sleep(0.05)
        raise AssertionError(f"no start: {self.log()[-2000:]}")

    def log(self):
        return self._log.read_text(errors="replace") if self._log.exists() else ""

    def end(self, how=signal.SIGTERM):
        """Tell it to end; the exit status."""
        self.process.send_signal(how)
        return self.process.wait(START_TIMEOUT_S)

    def start_and_kill(self, after_s):
        """Start it and end it as a crash does, wherever it is then."""
        self.process = self._broker("run", self.folder)
        time.sleep(after_s)
        self.end(signal.SIGKILL)

    def ensure_ended(self):
        """Whatever a test has left."""
        if self.process is not None and self.process.poll() is None:
            self.end(signal.SIGKILL)
