"""Messages to many consumers with selectors: ours beside Artemis, and the cost of more consumers.

    python -m benchmarks.bench_selectors [--messages 50000] [--rounds 3] [--folder DIR]
        [--consumers 100,1000,10000] [--no-artemis]

One queue; each consumer wants one value of a property (`color = 'c7'`), and has credits without
limit. They share ten sessions, each with a connection of its own, that acknowledge before delivery
and are read by this process, which looks at nothing but the frames' headers. Messages are not
durable, of 100 bytes, and sent in one piece by another connection. Shown are messages a second from
the first one sent to the last one received, medians of the rounds, and the ratio to Artemis within
each round. Of ours also the microseconds of a processor that its process has had for each message,
which other work on the machine changes least. And the bytes that its memory has grown by for each
consumer, with a share of the connections.

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
from typing import TYPE_CHECKING, Final, NamedTuple

from benchmarks.bench_broker_start import cpu_of, memory_of
from benchmarks.peers.brokers import PASSWORD, USER, Unavailable, artemis, ours
from benchmarks.peers.process import Process
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

    from benchmarks.peers.process import Broker
    from broker.protocols.core.packet import Packet

CHANNEL: Final = 10
QUEUE: Final = "selectors"
WARM: Final = "warm"
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


class Figures(NamedTuple):
    """Of one run: messages a second; of ours us of a processor a message, bytes a consumer."""

    rate: float
    processor_us: float
    memory: float


def subscribe(port: int, queue: str, consumer_count: int) -> list[Wire]:
    """Make a queue and its consumers; what reads for them."""
    wires = []
    for first in range(CONNECTIONS):
        wire = Wire(port, f"{queue}-{first}")
        if first == 0:
            wire.ask(queues.CreateQueue(queue, queue, routing_type=RoutingType.ANYCAST))
        numbers = range(first, consumer_count, CONNECTIONS)
        for number in numbers:
            wire.put(sessions.CreateConsumer(number, queue, f"color = '{color(number)}'"))
            wire.put(sessions.ConsumerCredits(number, -1))
        wire.put(sessions.Start())
        wire.wait(len(numbers))
        wires.append(wire)
    return wires


def run(port: int, queue: str, wires: list[Wire], message_count: int, consumer_count: int) -> float:
    """Give the seconds from the first message sent to the last one received."""
    sender = Wire(port, f"{queue}-sender")
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
    return took


def _frame(queue: str, number: int) -> bytes:
    message = Message(queue, BODY)
    message.set("color", PropertyType.STRING, color(number))
    return messages.Send(message, requires_response=False).frame(CHANNEL, versions.CURRENT)


def measure(
    begin: Callable[[Path, None], Broker], arguments: argparse.Namespace, consumer_count: int
) -> Figures:
    """Give a broker's figures in a new folder."""
    folder = Path(tempfile.mkdtemp(dir=arguments.folder))
    count: int = arguments.messages
    try:
        broker = begin(folder, None)
        try:
            pid = broker.pid if isinstance(broker, Process) else None
            # Before any message: the memory of those that went would be used again.
            memory = 0 if pid is None else memory_of(pid, "VmRSS")
            wires = subscribe(broker.port, QUEUE, consumer_count)
            memory = 0 if pid is None else memory_of(pid, "VmRSS") - memory
            run(broker.port, WARM, subscribe(broker.port, WARM, 1), count, 1)
            used_s = 0.0 if pid is None else cpu_of(pid)
            took_s = run(broker.port, QUEUE, wires, count, consumer_count)
            used_s = 0.0 if pid is None else cpu_of(pid) - used_s
            return Figures(count / took_s, used_s / count * 1e6, memory / consumer_count)
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
    print("consumers  us of ours  bytes      ours   Artemis  messages a second")
    for count in map(int, arguments.consumers.split(",")):
        mine: list[Figures] = []
        theirs: list[Figures] = []
        for _ in range(arguments.rounds):
            mine.append(measure(ours, arguments, count))
            if not arguments.no_artemis:
                try:
                    theirs.append(measure(artemis, arguments, count))
                except Unavailable as reason:
                    print(f"Artemis is left out: {reason}")
                    arguments.no_artemis = True
        rate, processor_us, memory = map(statistics.median, zip(*mine, strict=True))
        line = f"{count:>9,}{processor_us:>12.2f}{memory:>7,.0f}{rate:>10,.0f}"
        if theirs:
            ratio = statistics.median(
                one.rate / other.rate for one, other in zip(mine, theirs, strict=True)
            )
            line += f"{statistics.median(one.rate for one in theirs):>10,.0f}{ratio:>8.2f}"
            line += f" (target {TARGET})" + ("  MISSED" if ratio < TARGET else "")
        print(line, flush=True)


if __name__ == "__main__":
    main()
