"""Instances with a broker.xml of their own, run in processes of their own."""

import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

from broker.cli.exit_status import run
from broker.cli.main import broker as commands
from broker.client import Client

ROOT = Path(__file__).resolve().parents[2]
END_S = 120
# A file of the journal that a test fills quickly.
FILE_SIZE = 128 * 1024


class Instance:
    """An instance; its broker can be killed and started again, and keeps its port.

    Args:
        folder: to be made.
        elements: of `core` in broker.xml, beside those that `broker create` writes.
        settings: elements of the address settings of `#`.
    """

    def __init__(self, folder, elements="", settings=""):
        self.folder = folder
        self.port = 0
        self.process = None
        words = ["create", str(folder), "--password", "p", "--allow-anonymous", "--no-web"]
        # How full the disk of this machine is must not block producers.
        words += ["--max-disk-usage", "-1"]
        assert run(commands, "broker", [*words, "--journal-type", "nio"]) == 0
        self.change("tcp://0.0.0.0:61616", "tcp://127.0.0.1:0")
        self.change(
            "<journal-file-size>10M</journal-file-size>",
            f"<journal-file-size>{FILE_SIZE}</journal-file-size>{elements}",
        )
        self.change('<address-setting match="#">', f'<address-setting match="#">{settings}')

    @property
    def data(self):
        return self.folder / "data"

    def change(self, old, new):
        """Replace what is in broker.xml once."""
        xml = self.folder / "etc" / "broker.xml"
        text = xml.read_text()
        assert text.count(old) == 1, old
        xml.write_text(text.replace(old, new))

    def start(self):
        self.process = subprocess.Popen(
            [sys.executable, "-m", "broker.cli.main", "run", str(self.folder)],
            cwd=ROOT,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        said = []
        for line in self.process.stderr:
            said.append(line)
            found = re.match(r"serving at \S+:(\d+)", line)
            if found:
                break
        else:
            self._end()
            raise AssertionError("".join(said))
        # So that it never waits for somebody to read.
        self._reader = threading.Thread(target=self.process.stderr.read, daemon=True)
        self._reader.start()
        if not self.port:
            self.port = int(found[1])
            self.change("tcp://127.0.0.1:0", f"tcp://127.0.0.1:{self.port}")
        return self

    @property
    def url(self):
        return f"tcp://127.0.0.1:{self.port}"

    def client(self):
        return Client(self.url)

    def kill(self):
        self.process.kill()
        self._end()

    def stop(self):
        """Stop it, if it runs; the exit status."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self._end()

    def _end(self):
        status = self.process.wait(END_S)
        if hasattr(self, "_reader"):
            self._reader.join()
        self.process.stderr.close()
        return status
