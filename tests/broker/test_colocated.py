"""Two colocated nodes, each a process: each runs the backup of the other one."""

import asyncio
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from broker.client.aio import AsyncClient
from tests.servers import free_port
from tests.sighup import default_sighup

# Processes that start and load, six of them.
pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
# A loaded machine starts a process slowly.
WAIT_S = 180
XML = """<core>
<name>{name}</name>
<journal-type>NIO</journal-type><journal-file-size>100K</journal-file-size>
<acceptors><acceptor name="a">tcp://127.0.0.1:{port}</acceptor></acceptors>
<connectors>
<connector name="own">tcp://127.0.0.1:{port}</connector>
{connectors}
</connectors>
<cluster-user>peer</cluster-user><cluster-password>secret</cluster-password>
<security-enabled>false</security-enabled>
<cluster-connections><cluster-connection name="c">
<connector-ref>own</connector-ref><retry-interval>50</retry-interval>
<static-connectors>{refs}</static-connectors>
</cluster-connection></cluster-connections>
<ha-policy><shared-store><colocated>
<request-backup>{requests}</request-backup>
<backup-request-retry-interval>200</backup-request-retry-interval>
<max-backups>{max_backups}</max-backups>
<backup-port-offset>{offset}</backup-port-offset>
<excludes>{refs}</excludes>
{more}
</colocated></shared-store></ha-policy>
<addresses><address name="q"><anycast><queue name="q"/></anycast></address></addresses>
</core>
"""


class Node:
    """`broker run` on an instance; its log is a file beside it."""

    def __init__(self, folder, port, offset):
        self.folder, self.port, self.offset = folder, port, offset
        self.process = None

    @property
    def data(self):
        return self.folder / "data"

    @property
    def log(self):
        """What it has logged since its start."""
        return self.folder / "log"

    def start(self):
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "broker.cli.main", "run", str(self.folder)],
                cwd=ROOT,
                stdout=subprocess.DEVNULL,
                stderr=log,
                preexec_fn=default_sighup,
            )

    def says(self, text, count=1):
        """Wait until it has logged this, so often; the line."""
        deadline = time.monotonic() + WAIT_S
        while time.monotonic() < deadline:
            found = [line for line in self.log.read_text().splitlines() if text in line]
            if len(found) >= count:
                return found[count - 1]
            time.sleep(0.02)
        raise AssertionError(f"{self.folder.name}: no {text!r} in\n{self.log.read_text()}")

    def serves(self):
        self.says("AMQ221007")

    def end(self, number=signal.SIGTERM):
        """Its exit status."""
        self.process.send_signal(number)
        return self.process.wait(WAIT_S)


def ports(count):
    """Ports, and an offset at which ports are free, too."""
    return [free_port() for _ in range(count)], free_port() % 900 + 100


@pytest.fixture
def nodes(tmp_path):
    """`nodes(count)`: that many, not started, each named by all others."""
    made = []

    def make(count, *, requests=None, max_backups=1, more=""):
        found, offset = ports(count)
        for number, port in enumerate(found):
            folder = tmp_path / f"node{number}"
            (folder / "etc").mkdir(parents=True)
            others = [one for one in found if one != port]
            refs = "".join(f"<connector-ref>to{one}</connector-ref>" for one in others)
            text = XML.format(
                name=folder.name,
                port=port,
                connectors="".join(
                    f'<connector name="to{one}">tcp://127.0.0.1:{one}</connector>' for one in others
                ),
                refs=refs,
                requests=str(requests is None or number in requests).lower(),
                max_backups=max_backups,
                offset=offset,
                more=more,
            )
            (folder / "etc/broker.xml").write_text(text)
            made.append(Node(folder, port, offset))
        return made

    yield make
    for node in made:
        if node.process is not None:
            if node.process.poll() is None:
                node.process.kill()
            node.process.wait()


def exchange(port, send=(), receive=0):
    """Send texts to a broker's queue, and take some from it."""

    async def run():
        async with AsyncClient(f"tcp://127.0.0.1:{port}?initialConnectAttempts=100") as client:
            session = await client.session()
            producer = session.producer("q")
            for text in send:
                await producer.send(text, durable=True)
            if not receive:
                return []
            consumer = await session.consumer("q")
            return [(await consumer.receive(WAIT_S)).text for _ in range(receive)]

    return asyncio.run(run())


def test_a_backup_in_the_other_process_serves_until_the_primary_is_back(nodes):
    first, second = nodes(2)
    first.start()
    first.says("no backup yet")
    second.start()
    first.says("runs the backup of this one")
    second.says("runs the backup of this one")
    second.says("colocated_backup_1 of node")
    first.says("AMQ221031: backup announced")
    exchange(first.port, send=["1", "2"])

    first.end(signal.SIGKILL)

    told = second.says("colocated_backup_1 serves in place of node")
    port = second.port + second.offset
    assert f"127.0.0.1:{port}" in told
    assert exchange(port, send=["3"], receive=1) == ["1"]

    first.start()
    second.says("backup: failing-back -> waiting")
    first.serves()
    assert exchange(first.port, receive=2) == ["2", "3"]
    # The same one, which goes on: none is begun.
    first.says("runs the backup of this one")
    assert second.log.read_text().count("AMQ221050") == 1

    # And once more.
    first.end(signal.SIGKILL)
    second.says("colocated_backup_1 serves in place of node", 2)
    assert second.end() == 0
    # With its host it has stopped in good order: nobody takes over.
    assert (first.data / "journal/server.lock").read_bytes()[:1] == b"P"
