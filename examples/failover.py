"""The primary of a pair is killed, the backup serves in its place, and the primary comes back.

    python examples/failover.py

Both brokers are processes with one folder. The client names both, and sends on all the time. What
had no answer is sent again with the same duplicate id, so each message is there once.
"""

import contextlib
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from broker.client import Client, ClientError, Producer

BROKER = (sys.executable, "-m", "broker.cli.main")
USER, PASSWORD = "admin", "secret"
MESSAGES = 300
# Seconds between two attempts.
PAUSE_S = 0.05


class Node:
    """One of the two brokers, made by `broker create` and run by `broker run`."""

    def __init__(self, folder: Path, name: str, *role: str) -> None:
        self.name = name
        self.port = free_port()
        self._instance, self._log = folder / name, folder / f"{name}.log"
        self._process: subprocess.Popen[bytes] | None = None
        place = ("--host", "127.0.0.1", "--port", str(self.port), "--no-web")
        login = ("--user", USER, "--password", PASSWORD)
        pair = ("--shared-store", *role, "--failover-on-shutdown", "--data", str(folder / "data"))
        command = (*BROKER, "create", str(self._instance), *place, *login, *pair)
        subprocess.run(command, check=True, capture_output=True)

    def start(self, says: str) -> None:
        """Start it, and wait until it says this."""
        with self._log.open("wb") as log:
            command = (*BROKER, "run", str(self._instance))
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
        while says not in self._log.read_text():
            if self._process.poll() is not None:
                raise SystemExit(self._log.read_text())
            time.sleep(PAUSE_S)

    def kill(self) -> None:
        """End it as a crash does. Idempotent."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()


def free_port() -> int:
    """Give a free port."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def send(producer: Producer, number: int) -> None:
    """Send a message until the broker that serves has confirmed it."""
    while True:
        try:
            producer.send(str(number), duplicate_id=f"order {number}")
        except ClientError:
            time.sleep(PAUSE_S)
        else:
            return


def send_some(producer: Producer, first: int) -> float:
    """Send a third of the messages; seconds that the slowest one took."""
    slowest_s = 0.0
    for number in range(first, first + MESSAGES // 3):
        began_s = time.monotonic()
        send(producer, number)
        slowest_s = max(slowest_s, time.monotonic() - began_s)
    return slowest_s


def main() -> None:
    """Send before the failure, through it, and through the failback."""
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        folder = Path(name)
        primary, backup = Node(folder, "primary"), Node(folder, "backup", "--backup")
        stack.callback(primary.kill)
        stack.callback(backup.kill)
        primary.start("serving at")
        backup.start("waiting for the lock")
        print("the primary serves, the backup waits")

        names = {primary.port: primary.name, backup.port: backup.name}
        places = ",".join(f"tcp://127.0.0.1:{port}" for port in names)
        uri = f"({places})?reconnectAttempts=-1&initialConnectAttempts=-1&retryInterval=50"
        client = stack.enter_context(Client(uri, user=USER, password=PASSWORD))
        connection = client.connect()
        session = connection.session()
        session.create_queue("orders")
        producer = session.producer("orders")

        send_some(producer, 0)
        print(f"sent a third; connected to the {names[connection.port]}")
        primary.kill()
        print("the primary is killed")
        slowest_s = send_some(producer, MESSAGES // 3)
        print(f"sent a third; connected to the {names[connection.port]}")
        primary.start("serving at")
        print("the primary is back, and has its place again")
        send_some(producer, 2 * MESSAGES // 3)
        print(f"sent a third; connected to the {names[connection.port]}")

        consumer = session.consumer("orders")
        found = []
        while (message := consumer.receive(1)) is not None:
            found.append(int(message.text))
        is_right = found == list(range(MESSAGES))
        print(f"received: {len(found)} messages, each once and in order: {is_right}")
        print(f"the slowest send of the failover took {slowest_s:.1f} s")


if __name__ == "__main__":
    main()
