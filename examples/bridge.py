"""A bridge takes messages to another broker, and keeps them while that one is away.

    python examples/bridge.py

A message stays in the queue of the source until the target has it on its disk. What is repeated
after a failure has the same duplicate id, so each message arrives once.
"""

import json
import tempfile
from pathlib import Path

from broker.client import Client, Session
from broker.embedded import EmbeddedBroker

MESSAGES = 5


def send(session: Session, what: str) -> None:
    """Send some to the source."""
    with session.producer("orders") as producer:
        for number in range(MESSAGES):
            producer.send(f"{what} {number}")


def receive(url: str) -> str:
    """Take as many from the target."""
    with Client(url) as client, client.session() as session, session.consumer("orders") as orders:
        found = [orders.receive(30) for _ in range(MESSAGES)]
        return ", ".join("nothing" if one is None else one.text for one in found)


def main() -> None:
    """Send while the target is there, and while it is not."""
    with tempfile.TemporaryDirectory() as name, EmbeddedBroker() as source:
        target_folder = Path(name) / "target"
        with (
            Client(f"tcp://127.0.0.1:{source.port}") as client,
            client.session() as session,
        ):
            session.create_queue("orders")
            with EmbeddedBroker.in_folder(target_folder) as target:
                port = target.port
                url = f"tcp://127.0.0.1:{port}"
                with Client(url) as administrator, administrator.session() as administration:
                    administration.create_queue("orders")
                bridge = {
                    "name": "to-target",
                    "queue-name": "orders",
                    "static-connectors": ["target"],
                    "retry-interval": 100,
                    "max-retry-interval": 100,
                }
                session.manage("broker", "addConnector", "target", url)
                session.manage("broker", "createBridge", json.dumps(bridge))
                send(session, "early")
                print(f"received from the target: {receive(url)}")
            print("the target has stopped")
            send(session, "late")
            waiting = session.query_queue("orders").message_count
            print(f"waiting at the source: {waiting} messages")
            with EmbeddedBroker.in_folder(target_folder, port=port):
                print("the target is back")
                print(f"received from the target: {receive(url)}")


if __name__ == "__main__":
    main()
