"""axe-core in a headless Chromium, spoken to by the DevTools protocol.

Tests without them skip. Nothing else needs them:

    apt-get install chromium
    npm install --prefix build axe-core
"""

import itertools
import json
import os
import re
import shutil
import subprocess
from contextlib import contextmanager
from pathlib import Path

from websockets.sync.client import connect

ROOT = Path(__file__).resolve().parents[1]
AXE = ROOT / "build/node_modules/axe-core/axe.min.js"
CHROMIUM = os.environ.get("QUIVER_CHROMIUM") or shutil.which("chromium") or ""
ANSWER_S = 200
# Of the theme: it lets a block have the focus when it is scrolled to.
LATER = "scrollable-region-focusable"
LOADED = """new Promise(done => document.readyState == "complete" ? done()
    : window.addEventListener("load", () => done()))"""
RUN = """(async () => {
  const style = document.createElement("style");
  style.textContent = "* { transition: none !important; animation: none !important; }";
  document.head.append(style);
  document.body.setAttribute("data-md-color-scheme", "%s");
  const found = (await axe.run(document, { resultTypes: ["violations"] })).violations;
  return found.flatMap(rule => rule.nodes.map(node => [rule.impact, rule.id, node.html]));
})()"""


class Page:
    """A page of a browser."""

    def __init__(self, socket):
        self._socket = socket
        self._ids = itertools.count(1)
        self._session = {}
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        made = self._call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = {"sessionId": made["sessionId"]}
        self._call("Page.enable")

    def _call(self, method, **parameters):
        asked = next(self._ids)
        message = {"id": asked, "method": method, "params": parameters, **self._session}
        self._socket.send(json.dumps(message))
        while True:
            answer = json.loads(self._socket.recv(timeout=ANSWER_S))
            if answer.get("id") == asked:
                return answer["result"]

    def faults(self, path, scheme):
        """What axe calls serious or critical: rule and element."""
        self._call("Page.navigate", url=path.as_uri())
        self._call("Runtime.evaluate", expression=LOADED, awaitPromise=True)
        self._call("Runtime.evaluate", expression=f"{AXE.read_text()};0")
        done = self._call(
            "Runtime.evaluate", expression=RUN % scheme, awaitPromise=True, returnByValue=True
        )
        found = done["result"]["value"]
        return [
            (rule, element)
            for impact, rule, element in found
            if impact in ("serious", "critical") and rule != LATER
        ]


@contextmanager
def opened(folder):
    """A page of a browser that keeps what it needs in a folder."""
    options = [
        "--headless",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--remote-debugging-port=0",
    ]
    # Chromium's sandbox does not run for root.
    options += ["--no-sandbox"] if os.geteuid() == 0 else []
    words = [CHROMIUM, *options, f"--user-data-dir={folder}", "about:blank"]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as process:
        try:
            lines = (re.search(r"ws://\S+", line) for line in process.stderr)
            with connect(next(filter(None, lines))[0], max_size=None) as socket:
                yield Page(socket)
        finally:
            process.kill()
