"""Nodes with <colocated>, each a process of its own."""

import asyncio
import signal
import subprocess
import sys
import time
from pathlib import Path

from broker.client.aio import AsyncClient
from tests.servers import free_port
from tests.sighup import default_sighup

ROOT = Path(__file__).resolve().parents[2]
# A loaded machine starts a process slowly.
WAIT_S = 180
XML = """<core>
<name>{name}</name>
<journal-type>NIO</journal-type>
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
<request-backup>true</request-backup>
<backup-request-retry-interval>200</backup-request-retry-interval>
<backup-port-offset>{offset}</backup-port-offset>
<excludes>{refs}</excludes>{more}
</colocated></shared-store></ha-policy>
<addresses><address name="q"><anycast><queue name="q"/></anycast></address></addresses>
</core>
"""


def node_in(folder, port, others, offset, more=""):
    """A node, not started, that names others by their ports; `more` is of its policy."""
    (folder / "etc").mkdir(parents=True)
    text = XML.format(
        name=folder.name,
        port=port,
        connectors="".join(
            f'<connector name="to{one}">tcp://127.0.0.1:{one}</connector>' for one in others
        ),
        refs="".join(f"<connector-ref>to{one}</connector-ref>" for one in others),
        offset=offset,
        more=more,
    )
    (folder / "etc/broker.xml").write_text(text)
    return Node(folder, port, offset)


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

    def ensure_ended(self):
        """Whatever a test has left."""
        if self.process is not None:
            if self.process.poll() is None:
                self.process.kill()
            self.process.wait()

    def end(self, number=signal.SIGTERM):
        """Its exit status."""
        self.process.send_signal(number)
        return self.process.wait(WAIT_S)


def free_ports(count):
    """Ports, and an offset at which ports are free, too."""
    return [free_port() for _ in range(count)], free_port() % 900 + 100


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
