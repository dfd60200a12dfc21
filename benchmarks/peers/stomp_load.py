"""A client of STOMP 1.2 that costs little: pairs of a producer and a consumer, each with a queue.

    python -m benchmarks.peers.stomp_load PORT USER PASSWORD PAIRS WINDOW SIZE KIND RATE WARM TIME

Arguments and output are those of load.py. Each SEND asks for a receipt. Consumers have `ack:auto`.
Frames are made beforehand and replies are counted, not read: what is measured is the broker.
"""

from __future__ import annotations

import sys
from collections import deque
from typing import TYPE_CHECKING

from benchmarks.peers.load import Producer, connect, parsed, received, run

if TYPE_CHECKING:
    import socket


def log_in(port: int, user: str, password: str) -> socket.socket:
    """A connection that has logged in."""
    made = connect(port)
    lines = ("CONNECT", "accept-version:1.2", "host:/", f"login:{user}", f"passcode:{password}")
    made.sendall(("\n".join(lines) + "\n\n\0").encode())
    answer = b""
    while b"\0" not in answer:
        answer += received(made)
    if not answer.startswith(b"CONNECTED"):
        raise SystemExit(answer.decode())
    return made


class Counted:
    """Bytes that come, and how often a word is in them."""

    def __init__(self, connection: socket.socket, word: bytes) -> None:
        self.connection = connection
        self._word = word
        self._rest = b""

    def read(self) -> int:
        """How many more have come."""
        data = self._rest + received(self.connection)
        if b"ERROR\n" in data:
            raise SystemExit(data[:500].decode(errors="replace"))
        count = data.count(self._word)
        # A word that is cut is counted with its rest.
        self._rest = data[-(len(self._word) - 1) :]
        return count


class Sender(Producer):
    """A producer that sends the same frame."""

    def __init__(self, connection: socket.socket, frame: bytes, window: int) -> None:
        super().__init__(connection, window)
        self._frame = frame
        # Behind the body of another frame only: no body has it.
        self._receipts = Counted(connection, b"RECEIPT\n")
        self._sent: deque[float] = deque()

    def _send(self, now: float, count: int) -> None:
        self._sent.extend([now] * count)
        self.connection.sendall(self._frame * count)

    def _confirmed(self) -> list[float]:
        return [self._sent.popleft() for _ in range(self._receipts.read())]


def main(words: list[str]) -> None:
    """Measure."""
    arguments = parsed(words)
    account = arguments.port, arguments.user, arguments.password
    kept = "persistent:true" if arguments.kind == "durable" else "volatile:true"
    producers, consumers = [], []
    for number in range(arguments.pairs):
        name = f"/queue/load-{number}"
        consumer = log_in(*account)
        consumer.sendall(
            f"SUBSCRIBE\ndestination:{name}\nsubscription-type:ANYCAST\nid:1\nack:auto\n\n\0".encode()
        )
        consumers.append(Counted(consumer, b"MESSAGE\n"))
        head = (
            f"SEND\ndestination:{name}\ndestination-type:ANYCAST\n"
            f"content-length:{arguments.size}\n{kept}\nreceipt:r\n\n"
        )
        frame = head.encode() + b"x" * arguments.size + b"\0"
        producers.append(Sender(log_in(*account), frame, arguments.window))
    run(producers, consumers, arguments)


if __name__ == "__main__":
    main(sys.argv[1:])
