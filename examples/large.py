"""A body of 64 MB, sent and received in parts: neither side has all of it in memory.

python examples/large.py
"""

import hashlib
import tempfile

from broker.client import Client
from broker.embedded import EmbeddedBroker

SIZE = 64 << 20


class Numbers:
    """A stream of so many bytes, which are made when they are read."""

    def __init__(self, size: int) -> None:
        self.left = size
        self.digest = hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        """Give at most so many bytes; none at the end."""
        part = (b"0123456789abcdef" * 4096)[: min(size if size >= 0 else self.left, self.left)]
        self.left -= len(part)
        self.digest.update(part)
        return part


def main() -> None:
    """Send it and compare what arrives."""
    with (
        tempfile.TemporaryDirectory() as folder,
        EmbeddedBroker.in_folder(folder) as broker,
        Client(f"tcp://127.0.0.1:{broker.port}") as client,
        client.session() as session,
    ):
        session.create_queue("films")
        numbers = Numbers(SIZE)
        with session.producer("films") as producer:
            producer.send_stream(numbers)
        print(f"sent: {SIZE >> 20} MB")
        with session.consumer("films") as consumer:
            message = consumer.receive(10)
            assert message is not None
            digest, size, parts = hashlib.sha256(), 0, 0
            for part in message.chunks():
                digest.update(part)
                size += len(part)
                parts += 1
        print(f"received: {size >> 20} MB")
        print(f"the same bytes: {digest.digest() == numbers.digest.digest()}")
        print(f"in many parts: {parts > 100}")


if __name__ == "__main__":
    main()
