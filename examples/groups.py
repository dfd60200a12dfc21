"""Messages of one group go to one consumer, in order, while other groups go to others.

python examples/groups.py
"""

from broker.client import Client
from broker.embedded import EmbeddedBroker

CUSTOMERS = ("ann", "bob", "cleo")


def main() -> None:
    """Send three steps of each customer's order to two consumers."""
    with (
        EmbeddedBroker() as broker,
        Client(f"tcp://127.0.0.1:{broker.port}") as client,
        client.session() as session,
    ):
        session.create_queue("steps")
        with session.consumer("steps") as first, session.consumer("steps") as second:
            with session.producer("steps") as producer:
                for step in ("ordered", "paid", "sent"):
                    for customer in CUSTOMERS:
                        producer.send(f"{customer} {step}", group_id=customer)
            for name, consumer in (("first", first), ("second", second)):
                found = []
                while (message := consumer.receive(0.5)) is not None:
                    found.append(message.text)
                print(f"{name}: {', '.join(found)}")


if __name__ == "__main__":
    main()
