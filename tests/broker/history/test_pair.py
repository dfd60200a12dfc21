"""A pair on one store, each a `broker run`, that fails over and back under random clients.

Each life of the service ends in one of: a kill or a stop of who serves, a primary that stands still
past its lease and goes on, a primary that comes back. Number of lives: `effort` of 100 for each
store. QUIVER_SEED tries something else.
"""

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.broker.history.checker import problems
from tests.broker.history.test_random_service import CHANGES, SHOWN, Service
from tests.broker.history.world import ORDERED, World
from tests.interop.our_broker import ROOT, OurBroker

SEED = int(os.environ.get("QUIVER_SEED", "4"))
LIVES = 100
LEAST_LIVES = 4
WAIT_S = 120
LEASE_MS = 1500
SHORT_LEASE = (
    "</database-store>",
    (
        f"<jdbc-lock-expiration>{LEASE_MS}</jdbc-lock-expiration>"
        "<jdbc-lock-renew-period>400</jdbc-lock-renew-period></database-store>"
    ),
)
STANDS_STILL = "SIGSTOP"


class Node(OurBroker):
    """One of the pair; it may wait for long before it serves."""

    def begin(self):
        """Start its process, and wait for nothing."""
        self._before = len(self.log())
        self.process = self._broker("run", self.folder)

    def said(self):
        return self.log()[self._before :]

    def await_word(self, text):
        """Wait until it has logged this since begin(); how often it had."""
        deadline = time.monotonic() + WAIT_S
        while text not in self.said():
            assert time.monotonic() < deadline, f"{text!r} is not in {self.log()[-3000:]}"
            assert self.process.poll() is None, self.log()[-3000:]
            time.sleep(0.01)

    def serves(self):
        """Whether it has said since begin() that it serves, last of all; with its port."""
        said = self.said()
        at = said.rfind("serving at 127.0.0.1:")
        if at < 0 or said.find("-> failing-back", at) >= 0:
            return False
        self.port = int(said[at + len("serving at 127.0.0.1:") :].split("\n")[0].split(";")[0])
        return True


class Pair:
    """What `Service` wants of a broker: starts, ends, and where to find it.

    Args:
        folder: of both instances.
        options: of `broker create`, of both.
        changes: of broker.xml.

    Attributes:
        outages_ms: from the end of one until the other one serves, by what the end was.
    """

    USER, PASSWORD = OurBroker.USER, OurBroker.PASSWORD

    def __init__(self, folder, options, changes, *, has_lease, may_stand_still=False):
        self.has_lease = has_lease
        self.may_stand_still = may_stand_still
        self.primary, self.backup = (
            self._made(folder / role, role, options, changes) for role in ("primary", "backup")
        )
        self.active = None
        self.outages_ms = {}
        self.expected = 0

    def _made(self, folder, role, options, changes):
        folder.mkdir()
        role_options = ("--shared-store", *(("--backup",) if role == "backup" else ()))
        given = (*role_options, "--failover-on-shutdown", *options)
        return Node(folder, *changes, options=given, starts=False)

    @property
    def uri(self):
        """Of who serves alone: each run of the history is one node's."""
        return self.active.uri

    def log(self):
        return self.primary.log() + self.backup.log()

    def start(self):
        """Have the primary serve, and the backup wait, or wait until the one left serves."""
        if self.active is None:
            self.primary.begin()
            self._await_service(self.primary)
            self.backup.begin()
            self.backup.await_word("waiting for the lock" if not self.has_lease else "waiting as")

    def _await_service(self, node):
        deadline = time.monotonic() + WAIT_S
        while not node.serves():
            assert time.monotonic() < deadline, node.log()[-3000:]
            assert node.process.poll() is None, node.log()[-3000:]
            time.sleep(0.005)
        self.active = node

    def end(self, how):
        """Let who serves end; the other one serves afterwards."""
        if self.active is self.backup:
            return self._come_back(how)
        if how == STANDS_STILL:
            return self._stand_still()
        began_s = time.monotonic()
        status = self.primary.end(how)
        self._await_service(self.backup)
        self._note(signal.Signals(how).name, began_s)
        return status

    def _note(self, what, began_s):
        self.outages_ms.setdefault(what, []).append(round((time.monotonic() - began_s) * 1000))

    def _stand_still(self):
        """The primary stops past its lease, and goes on when the backup serves."""
        began_s = time.monotonic()
        self.primary.process.send_signal(signal.SIGSTOP)
        self._await_service(self.backup)
        self._note("SIGSTOP", began_s)
        self.primary.process.send_signal(signal.SIGCONT)
        return self.primary.process.wait(WAIT_S)

    def _come_back(self, how):
        """The primary gets its place, from a backup that serves, or that is killed meanwhile."""
        began_s = time.monotonic()
        self.primary.begin()
        status = self.backup.end(how) if how == signal.SIGKILL else 0
        self._await_service(self.primary)
        self._note("failback" if how != signal.SIGKILL else "SIGKILL", began_s)
        if how == signal.SIGKILL:
            self.backup.begin()
            self.backup.await_word("waiting for the lock" if not self.has_lease else "waiting as")
        else:
            self.backup.await_word("failing-back -> waiting")
            self.backup._before = len(self.backup.log())
        return status

    def ensure_ended(self):
        for node in (self.primary, self.backup):
            if node.process is not None and node.process.poll() is None:
                node.process.send_signal(signal.SIGCONT)
            node.ensure_ended()


class PairService(Service):
    """A service of two; each life ends with another one that serves."""

    async def end(self, how):
        world, pair = self.world, self.broker
        world.is_over = how != signal.SIGKILL
        expected = -how
        if pair.active is pair.backup:
            expected = -how if how == signal.SIGKILL else 0
        elif how == signal.SIGTERM:
            expected = 0
            if pair.may_stand_still and world.chance(0.5):
                # Found out by itself: its storage has failed.
                how, expected = STANDS_STILL, 1
        self.runs["kills" if how == signal.SIGKILL else "stops"] += 1
        status = await asyncio.to_thread(pair.end, how)
        world.is_over = True
        if status != expected:
            world.history.problems.append(f"ended: with status {status}, not {expected}")

    async def run_lives(self, lives):
        """So many lives under load, then what is left is taken; what was wrong."""
        for _ in range(lives):
            await self.live(is_whole=False)
        await self.start()
        await self.empty()
        return problems(self.world.history, ORDERED)


@pytest.fixture(params=["files", "sqlite", "postgresql", "mariadb"])
def pair(request, tmp_path, new_database):
    changes = CHANGES
    if request.param == "files":
        options = ("--data", str(tmp_path / "data"))
    else:
        database = new_database(request.param)
        options = ("--jdbc", database.jdbc_url or database.url)
        changes = (*CHANGES, SHORT_LEASE)
    # A process that stands still in the midst of a write keeps SQLite's file locked for good.
    made = Pair(
        *(tmp_path, options, changes),
        has_lease=request.param != "files",
        may_stand_still=request.param not in ("files", "sqlite"),
    )
    yield made
    made.ensure_ended()


@pytest.mark.slow
def test_a_pair_loses_and_doubles_nothing(pair, effort, figures, request):
    world = World(random.Random(SEED), has_large=not pair.has_lease)
    service = PairService(pair, world, is_kept=True)
    print(f"seed {SEED}")

    found = asyncio.run(service.run_lives(effort(LIVES, least=LEAST_LIVES)))

    kind = request.node.callspec.params["pair"]
    figures(f"pair on {kind}", **service.runs, **world.counts)
    for what, outages_ms in pair.outages_ms.items():
        figures(f"pair on {kind}, outage after {what}", outage_ms=outages_ms)
    shown = "\n".join(found[:SHOWN])
    assert not found, f"seed {SEED}; {len(found)} in all\n{shown}"
    assert world.counts["deliveries"]
    assert "Traceback" not in pair.log()


@pytest.mark.slow
def test_a_primary_on_a_folder_that_stands_still_keeps_its_place(tmp_path):
    pair = Pair(tmp_path, ("--data", str(tmp_path / "data")), (), has_lease=False)
    try:
        pair.start()
        pair.primary.process.send_signal(signal.SIGSTOP)
        time.sleep(3)
        waits = not pair.backup.serves()
        pair.primary.process.send_signal(signal.SIGCONT)
        done = subprocess.run(
            [
                *(sys.executable, "-m", "broker.cli.main", "ha", "status", "--json"),
                str(pair.backup.folder),
            ],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=WAIT_S,
        )
        found = json.loads(done.stdout)
    finally:
        pair.ensure_ended()

    assert waits
    assert found["primary"].startswith(f"process {pair.primary.process.pid}")
    assert found["backup"] == f"process {pair.backup.process.pid}"
    assert Path(found["store"]).is_dir()
