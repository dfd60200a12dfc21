"""A message that is sent twice is stored once.

    python examples/duplicate_ids.py

After a lost connection a producer does not know whether its last message arrived. It sends the
message again with the same duplicate id. The broker remembers the latest ids of each address
(id-cache-size) and stores them, so that it knows them after a restart, too. A repeated message is
answered and dropped; in a transaction it is the commit that fails.
"""

from broker.client import Client
from broker.embedded import EmbeddedBroker


def main() -> None:
    """Send an order twice."""
    with (
        EmbeddedBroker() as broker,
        Client(f"tcp://127.0.0.1:{broker.port}") as client,
        client.session() as session,
    ):
        session.create_queue("orders")
        with session.producer("orders") as producer:
            for attempt in (1, 2):
                producer.send("ten crates", duplicate_id="order 4711")
                print(f"attempt {attempt}: answered")
        print(f"messages in the queue: {session.query_queue('orders').message_count}")


if __name__ == "__main__":
    main()
