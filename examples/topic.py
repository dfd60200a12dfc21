"""Each subscriber of an address gets every message, one of them by a selector.

    python examples/topic.py

A subscription is a multicast queue of the address. A durable one keeps messages while its
subscriber is away, and survives a restart of a broker that stores them.
"""

from broker.client import Client, RoutingType
from broker.embedded import EmbeddedBroker


def main() -> None:
    """Publish three messages to two subscriptions."""
    with (
        EmbeddedBroker() as broker,
        Client(f"tcp://127.0.0.1:{broker.port}") as client,
        client.session() as session,
    ):
        session.create_address("prices", RoutingType.MULTICAST)
        for queue, selector in (("all", None), ("dear", "amount > 100")):
            session.create_queue(
                queue, "prices", routing_type=RoutingType.MULTICAST, selector=selector
            )
        with session.producer("prices") as producer:
            for name, amount in (("apples", 80), ("figs", 250), ("pears", 120)):
                producer.send(name, properties={"amount": amount})
        for queue in ("all", "dear"):
            with session.consumer(queue) as subscriber:
                found = []
                while (message := subscriber.receive(0.5)) is not None:
                    found.append(f"{message.text} {message.get('amount')}")
            print(f"{queue}: {', '.join(found)}")


if __name__ == "__main__":
    main()
