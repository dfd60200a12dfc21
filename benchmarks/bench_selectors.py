"""Messages to many consumers with selectors: ours beside Artemis, and the cost of more consumers.

    python -m benchmarks.bench_selectors [--messages 50000] [--rounds 3] [--folder DIR]
        [--consumers 100,1000,10000] [--no-artemis]

One queue; each consumer wants one value of a property (`color = 'c7'`), and has credits without
limit. They share ten sessions, each with a connection of its own, that acknowledge before delivery
and are read by this process, which looks at nothing but the frames' headers. Messages are not
durable, of 100 bytes, and sent in one piece by another connection. Shown are messages a second from
the first one sent to the last one received, medians of the rounds, and the ratio to Artemis within
each round.

Asks: are 50,000 messages delivered to 100 consumers with selectors at 2 x Artemis's rate, and what
does a message cost with 10,000 of them?
"""

from __future__ import annotations

import argparse
import selectors
import shutil
import socket
import statistics
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from benchmarks.peers.brokers import PASSWORD, USER, Unavailable, artemis, ours
from broker.model.message import Message
from broker.model.properties import PropertyType
from broker.model.routing_type import RoutingType
from broker.protocols.core import packet_connection as connections
from broker.protocols.core import packet_message as messages
from broker.protocols.core import packet_queue as queues
from broker.protocols.core import packet_session as sessions
from broker.protocols.core import versions
from broker.protocols.core.frames import MAGIC, FrameReader

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.protocols.core.packet import Packet

CHANNEL: Final = 10
QUEUE: Final = "selectors"
CONNECTIONS: Final = 10
BODY: Final = bytes(100)
WAIT_S: Final = 300
RECEIVED: Final = messages.ReceiveMessage.types[0][1]
TARGET: Final = 2.0


class Wire:
    """A connection with one session, which counts frames by their kind."""

    def __init__(self, port: int, name: str) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), WAIT_S)
        self._frames = FrameReader()
        self.received = 0
        self.others = self._answers_awaited = 0
        self.socket.sendall(MAGIC)
        self.ask(connections.Ping(60_000), 0)
        self.ask(
            connections.CreateSession(
                name,
                CHANNEL,
                versions.CURRENT,
                USER,
                PASSWORD,
                102400,
                xa=False,
                auto_commit_sends=True,
                auto_commit_acks=True,
                window_size=-1,
                pre_acknowledge=True,
                default_address=None,
            ),
            connections.SESSION_CHANNEL,
        )

    def put(self, packet: Packet, channel: int = CHANNEL) -> None:
        """Send a packet."""
        self.socket.sendall(packet.frame(channel, versions.CURRENT))

    def ask(self, packet: Packet, channel: int = CHANNEL) -> None:
        """Send a packet and wait for its answer."""
        self.put(packet, channel)
        self.wait(1)

    def wait(self, count: int) -> None:
        """Wait for so many answers."""
        self._answers_awaited += count
        while self.others < self._answers_awaited:
            self.read()

    def read(self) -> None:
        """Count what has come."""
        data = self.socket.recv(1 << 20)
        if not data:
            raise ConnectionError("the broker has closed the connection")
        for kind, _, _ in self._frames.feed(data):
            if kind == RECEIVED:
                self.received += 1
            else:
                self.others += 1


def color(number: int) -> str:
    """Give the value that a consumer wants."""
    return f"c{number}"


def run(port: int, message_count: int, consumer_count: int) -> float:
    """Give messages a second, from the first one sent to the last one received."""
    sender = Wire(port, "sender")
    queue = f"{QUEUE}-{consumer_count}"
    sender.ask(queues.CreateQueue(queue, queue, routing_type=RoutingType.ANYCAST))
    wires = []
    for first in range(CONNECTIONS):
        wire = Wire(port, f"consumers-{first}")
        numbers = range(first, consumer_count, CONNECTIONS)
        for number in numbers:
            wire.put(sessions.CreateConsumer(number, queue, f"color = '{color(number)}'"))
            wire.put(sessions.ConsumerCredits(number, -1))
        wire.put(sessions.Start())
        wire.wait(len(numbers))
        wires.append(wire)
    frames = b"".join(_frame(queue, number % consumer_count) for number in range(message_count))
    watching = selectors.DefaultSelector()
    for wire in wires:
        watching.register(wire.socket, selectors.EVENT_READ, wire)

    began = time.perf_counter()
    sending = threading.Thread(target=sender.socket.sendall, args=(frames,))
    sending.start()
    received = 0
    while received < message_count:
        ready = watching.select(WAIT_S)
        if not ready:
            raise TimeoutError(f"{received} of {message_count} messages came")
        for key, _ in ready:
            before = key.data.received
            key.data.read()
            received += key.data.received - before
    took = time.perf_counter() - began
    sending.join()
    for wire in (sender, *wires):
        wire.socket.close()
    return message_count / took


def _frame(queue: str, number: int) -> bytes:
    message = Message(queue, BODY)
    message.set("color", PropertyType.STRING, color(number))
    return messages.Send(message, requires_response=False).frame(CHANNEL, versions.CURRENT)


def measure(
    begin: Callable[[Path, None], object], arguments: argparse.Namespace, consumer_count: int
) -> float:
    """Give a broker's rate in a new folder."""
    folder = Path(tempfile.mkdtemp(dir=arguments.folder))
    try:
        broker = begin(folder, None)
        try:
            run(broker.port, arguments.messages, 1)
            return run(broker.port, arguments.messages, consumer_count)
        finally:
            broker.stop()
    finally:
        shutil.rmtree(folder)


def main() -> None:
    """Measure what was asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--messages", type=int, default=50_000, help="how many")
    parser.add_argument("--consumers", default="100,1000,10000", help="how many, by commas")
    parser.add_argument("--rounds", type=int, default=3, help="of each figure")
    parser.add_argument("--folder", default=None, help="where brokers keep their data")
    parser.add_argument("--no-artemis", action="store_true", help="ours alone")
    arguments = parser.parse_args()
    print("consumers      ours   Artemis  messages a second")
    for count in map(int, arguments.consumers.split(",")):
        found: list[tuple[float, float | None]] = []
        for _ in range(arguments.rounds):
            mine = measure(ours, arguments, count)
            theirs = None
            if not arguments.no_artemis:
                try:
                    theirs = measure(artemis, arguments, count)
                except Unavailable as reason:
                    print(f"Artemis is left out: {reason}")
                    arguments.no_artemis = True
            found.append((mine, theirs))
        line = f"{count:>9,}{statistics.median(mine for mine, _ in found):>10,.0f}"
        pairs = [(mine, theirs) for mine, theirs in found if theirs is not None]
        if pairs:
            ratio = statistics.median(mine / theirs for mine, theirs in pairs)
            line += f"{statistics.median(theirs for _, theirs in pairs):>10,.0f}{ratio:>8.2f}"
            line += f" (target {TARGET})" + ("  MISSED" if ratio < TARGET else "")
        print(line, flush=True)


if __name__ == "__main__":
    main()
