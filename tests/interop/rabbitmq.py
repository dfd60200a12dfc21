"""RabbitMQ of the system, in a process of its own, on ports of ours; with STOMP and AMQP 1.0."""

import os
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

from tests.interop.fetched import PeerUnavailableError
from tests.servers import free_port

# Debian's; the one on PATH changes to a user of its own.
SERVER = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
START_S = 120


class RabbitMq:
    """A node, started and killed.

    Attributes:
        stomp_port: where it speaks STOMP, on 127.0.0.1; user and password are guest.
        amqp_port: where it speaks AMQP 1.0, likewise.
    """

    def __init__(self, folder):
        if not SERVER.exists() or shutil.which("erl") is None:
            raise PeerUnavailableError(f"no RabbitMQ at {SERVER}")
        self.stomp_port = free_port()
        self.amqp_port = free_port()
        # Of epmd, which the node starts and leaves running.
        self._names_port = str(free_port())
        (folder / "plugins").write_text("[rabbitmq_stomp,rabbitmq_amqp1_0].\n")
        (folder / "rabbitmq.conf").write_text(
            f"stomp.listeners.tcp.1 = 127.0.0.1:{self.stomp_port}\n"
        )
        name = f"bridge{self.stomp_port}@localhost"
        environment = os.environ | {
            "HOME": str(folder),
            "RABBITMQ_NODENAME": name,
            "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODE_PORT": str(self.amqp_port),
            "RABBITMQ_DIST_PORT": str(free_port()),
            "RABBITMQ_MNESIA_BASE": str(folder),
            "RABBITMQ_LOG_BASE": str(folder),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "plugins"),
            "RABBITMQ_CONFIG_FILE": str(folder / "rabbitmq.conf"),
            "ERL_EPMD_PORT": self._names_port,
        }
        with (folder / "out").open("wb") as out:
            self._process = subprocess.Popen(
                [str(SERVER)],
                env=environment,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )
        end_s = time.monotonic() + START_S
        while time.monotonic() < end_s and self._process.poll() is None:
            if _listens(self.stomp_port) and _listens(self.amqp_port):
                return
            time.sleep(0.2)
        self.kill()
        raise PeerUnavailableError(f"RabbitMQ: {(folder / 'out').read_text()[-500:]}")

    def kill(self):
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        epmd = shutil.which("epmd")
        if epmd is not None:
            command = [epmd, "-port", self._names_port, "-kill"]
            subprocess.run(command, capture_output=True, timeout=START_S, check=False)


def _listens(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
