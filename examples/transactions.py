"""Several messages arrive together or not at all; what was taken goes back if that fails.

python examples/transactions.py
"""

from broker.client import AckMode, Client, Session
from broker.embedded import EmbeddedBroker


class OutOfStockError(Exception):
    """What goes wrong in the middle."""


def count(session: Session, queue: str) -> int:
    """Messages in a queue."""
    return session.query_queue(queue).message_count


def main() -> None:
    """Take an order, send two messages for it, and fail between the two at first."""
    with (
        EmbeddedBroker() as broker,
        Client(f"tcp://127.0.0.1:{broker.port}") as client,
        client.session(AckMode.TRANSACTED) as session,
    ):
        for queue in ("orders", "invoices", "parcels"):
            session.create_queue(queue)
        with session.producer() as producer, session.consumer("orders") as orders:
            with session.transaction():
                producer.send("ten crates", address="orders")
            for is_in_stock in (False, True):
                try:
                    with session.transaction():
                        order = orders.receive(10)
                        assert order is not None
                        producer.send(f"invoice: {order.text}", address="invoices")
                        if not is_in_stock:
                            raise OutOfStockError
                        producer.send(f"parcel: {order.text}", address="parcels")
                    print("committed:")
                except OutOfStockError:
                    print("rolled back:")
                for queue in ("orders", "invoices", "parcels"):
                    print(f"  {queue}: {count(session, queue)}")


if __name__ == "__main__":
    main()
