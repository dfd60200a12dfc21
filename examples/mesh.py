"""Three brokers are one cluster: messages without a consumer go to the node that has one.

    python examples/mesh.py

Each node has a queue of the same name, and a bridge to each other node. `redistribution-delay` is
how long messages wait for a consumer of their own node. `examples/mesh.yaml` is the same cluster in
containers.
"""

import contextlib
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from broker.client import Client, Session
from broker.embedded import EmbeddedBroker

NAMES = ("a", "b", "c")
PASSWORD = "secret"
MESSAGES = 6
TIMEOUT_S = 60
# What `broker create` writes for a cluster, in ms, and what is better to watch.
DELAY = "<redistribution-delay>{}</redistribution-delay>"


def free_ports() -> list[int]:
    """Give a free port for each node."""
    with contextlib.ExitStack() as stack:
        servers = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in NAMES]
        return [int(one.getsockname()[1]) for one in servers]


def create(folder: Path, port: int, others: list[int]) -> Path:
    """Make an instance that knows where the others are; its broker.xml."""
    static = ",".join(f"tcp://127.0.0.1:{one}" for one in others)
    place = ("--host", "127.0.0.1", "--port", str(port), "--no-web", "--queues", "orders")
    cluster = ("--static-cluster", static, "--cluster-user", "mesh", "--cluster-password", "mesh-1")
    command = (*("-m", "broker.cli.main", "create", str(folder)), *place, *cluster)
    subprocess.run(
        (sys.executable, *command, "--password", PASSWORD), check=True, capture_output=True
    )
    file = folder / "etc" / "broker.xml"
    file.write_text(file.read_text().replace(DELAY.format(5000), DELAY.format(0)))
    return file


def show_waiting(sessions: dict[str, Session]) -> None:
    """Print how many messages each node has."""
    found = (f"{name} {one.query_queue('orders').message_count}" for name, one in sessions.items())
    print(f"waiting: {', '.join(found)}")


def take_all(session: Session) -> str:
    """Receive all messages at a node, wherever they were sent to."""
    with session.consumer("orders") as consumer:
        found = []
        while len(found) < MESSAGES:
            message = consumer.receive(TIMEOUT_S)
            assert message is not None
            found.append(message.text)
    return " ".join(found)


def wait_until_taken(sessions: dict[str, Session]) -> None:
    """Return once no node has a message: the last acknowledgements may be on their way."""
    deadline_s = time.monotonic() + TIMEOUT_S
    while any(one.query_queue("orders").message_count for one in sessions.values()):
        assert time.monotonic() < deadline_s
        time.sleep(0.05)


def main() -> None:
    """Send to one node, receive from another."""
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        ports = free_ports()
        sessions = {}
        for node, port in zip(NAMES, ports, strict=True):
            others = [one for one in ports if one != port]
            stack.enter_context(EmbeddedBroker.from_xml(create(Path(name) / node, port, others)))
            url = f"tcp://127.0.0.1:{port}"
            client = stack.enter_context(Client(url, user="admin", password=PASSWORD))
            sessions[node] = stack.enter_context(client.session())
        print(f"three nodes: {', '.join(NAMES)}")
        for sent_to, taken_from in (("a", "c"), ("b", "a")):
            with sessions[sent_to].producer("orders") as producer:
                for number in range(MESSAGES):
                    producer.send(f"{sent_to}{number}")
            print(f"sent to {sent_to}: {MESSAGES} messages")
            show_waiting(sessions)
            print(f"received from {taken_from}: {take_all(sessions[taken_from])}")
            wait_until_taken(sessions)
            show_waiting(sessions)


if __name__ == "__main__":
    main()
