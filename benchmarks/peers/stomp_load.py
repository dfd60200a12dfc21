"""A client of STOMP 1.2 that costs little: pairs of a producer and a consumer, each with a queue.

    python -m benchmarks.peers.stomp_load PORT USER PASSWORD PAIRS WINDOW SIZE KIND RATE WARM TIME

Each SEND of SIZE bytes asks for a receipt; WINDOW of a producer may be open. KIND is `durable` or
`volatile`. RATE is that of all producers together, each message at its moment; 0 is as many as it
goes. Consumers have `ack:auto`. Prints JSON: messages a second that were confirmed and received in
TIME seconds behind the first WARM seconds, and percentiles in us. These are of the time from the
moment at which a message was to be sent to its receipt.

Frames are made beforehand and replies are counted, not read: what is measured is the broker.
"""

from __future__ import annotations

import json
import selectors
import socket
import sys
import time
from collections import deque

RECEIVE_SIZE = 256 * 1024


def connect(port: int, user: str, password: str) -> socket.socket:
    """A connection that has logged in."""
    made = socket.create_connection(("127.0.0.1", port))
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    lines = ("CONNECT", "accept-version:1.2", "host:/", f"login:{user}", f"passcode:{password}")
    made.sendall(("\n".join(lines) + "\n\n\0").encode())
    answer = b""
    while b"\0" not in answer:
        data = made.recv(RECEIVE_SIZE)
        if not data:
            raise SystemExit(f"not connected: {answer.decode()}")
        answer += data
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
        data = self.connection.recv(RECEIVE_SIZE)
        if not data:
            raise SystemExit("the broker has closed the connection")
        data = self._rest + data
        if b"ERROR\n" in data:
            raise SystemExit(data[:500].decode(errors="replace"))
        count = data.count(self._word)
        # A word that is cut is counted with its rest.
        self._rest = data[-(len(self._word) - 1) :]
        return count


class Producer(Counted):
    """One producer."""

    def __init__(self, connection: socket.socket, frame: bytes, window: int) -> None:
        # Behind the body of another frame only: no body has it.
        super().__init__(connection, b"RECEIPT\n")
        self._frame = frame
        self._window = window
        self.sent: deque[float] = deque()

    def fill(self, now: float, due: int | None = None) -> None:
        """Send as many as the window has room for, or as are due."""
        count = self._window - len(self.sent)
        if due is not None:
            count = min(count, due)
        if count > 0:
            self.sent.extend([now] * count)
            self.connection.sendall(self._frame * count)


def main(arguments: list[str]) -> None:
    """Measure."""
    port, user, password = int(arguments[0]), arguments[1], arguments[2]
    pairs, window, size = (int(one) for one in arguments[3:6])
    is_durable, rate = arguments[6] == "durable", int(arguments[7])
    warm, seconds = float(arguments[8]), float(arguments[9])
    select = selectors.DefaultSelector()
    producers, consumers = [], []
    for number in range(pairs):
        name = f"/queue/load-{number}"
        consumer = connect(port, user, password)
        consumer.sendall(
            f"SUBSCRIBE\ndestination:{name}\nsubscription-type:ANYCAST\nid:1\nack:auto\n\n\0".encode()
        )
        consumers.append(Counted(consumer, b"MESSAGE\n"))
        select.register(consumer, selectors.EVENT_READ, consumers[-1])
        head = (
            f"SEND\ndestination:{name}\ndestination-type:ANYCAST\ncontent-length:{size}\n"
            f"{'persistent:true' if is_durable else 'volatile:true'}\nreceipt:r\n\n"
        )
        frame = head.encode() + b"x" * size + b"\0"
        producers.append(Producer(connect(port, user, password), frame, window))
        select.register(producers[-1].connection, selectors.EVENT_READ, producers[-1])
    latencies: list[float] = []
    confirmed = received = 0
    began = time.perf_counter()
    start, end = began + warm, began + warm + seconds
    interval = pairs / rate if rate else 0.0
    next_at = [began + interval * number / pairs for number in range(pairs)]
    now = began
    while now < end:
        for number, producer in enumerate(producers):
            if not rate:
                producer.fill(now)
                continue
            while next_at[number] <= now and len(producer.sent) < window:
                producer.fill(next_at[number], 1)
                next_at[number] += interval
        timeout = max(0.0, min(next_at) - now) if rate else None
        for key, _ in select.select(timeout):
            counted = key.data
            count = counted.read()
            now = time.perf_counter()
            if isinstance(counted, Producer):
                sent = [counted.sent.popleft() for _ in range(count)]
                if now >= start:
                    confirmed += count
                    latencies += [now - one for one in sent]
            elif now >= start:
                received += count
        now = time.perf_counter()
    latencies.sort()
    print(
        json.dumps(
            {
                "confirmed_per_s": confirmed / seconds,
                "received_per_s": received / seconds,
                "p50_us": 1e6 * latencies[len(latencies) // 2],
                "p99_us": 1e6 * latencies[len(latencies) * 99 // 100],
            }
        )
    )


if __name__ == "__main__":
    main(sys.argv[1:])
