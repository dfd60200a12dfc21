"""What Qpid Proton's engine takes of an AMQP message, without a broker around it.

    python -m benchmarks.bench_amqp_engine [--messages 20000] [--size 1024] [--window 64]
        [--rounds 3]

A peer sends so many messages, `--window` at a time. Our side takes each, accepts and settles it,
and sends it on to the peer, which accepts and settles it as well. The calls of the engine, and the
objects around them, are those of `broker/protocols/amqp`; no session, no queue, no socket. Counted
is the processor's time of our side alone, by the thread's own clock. Prints us a message for both
ways: the median, the lowest and highest round. Beside it stands what a whole message costs the
broker, which `bench_protocols --protocol amqp --only "64 in flight each"` prints: the framing is
Proton's as long as it takes less than half of that.
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import TYPE_CHECKING

from cproton import pn_delivery, pn_event_delivery
from proton import Collector, Connection, Delivery, Event, Transport

from broker.protocols.amqp.deliveries import EngineDelivery
from broker.protocols.amqp.engine import Engine

if TYPE_CHECKING:
    from proton import Link

ADDRESS = "q"


class Peer:
    """The client's side, whose time does not count."""

    def __init__(self, window: int) -> None:
        self._transport = Transport(Transport.CLIENT)
        self.connection = Connection()
        self.collector = Collector()
        self.connection.collect(self.collector)
        self._transport.bind(self.connection)
        self.connection.container = "peer"
        self.connection.open()
        session = self.connection.session()
        session.open()
        self.sender = session.sender("to")
        self.sender.target.address = ADDRESS
        self.sender.open()
        self.receiver = session.receiver("from")
        self.receiver.source.address = ADDRESS
        self.receiver.open()
        self.receiver.flow(window)
        self._window = window
        self._tags = 0

    def send(self, body: bytes) -> None:
        """As many as are on their way at once."""
        for _ in range(self._window):
            self._tags += 1
            self.sender.delivery(str(self._tags))
            self.sender.stream(body)
            self.sender.advance()

    def push(self, data: bytes) -> None:
        """Take what our side wrote."""
        while data:
            room = min(len(data), self._transport.capacity())
            self._transport.push(data[:room])
            data = data[room:]
            self._handle()

    def _handle(self) -> None:
        while (event := self.collector.peek()) is not None:
            if event.type == Event.DELIVERY:
                delivery = event.delivery
                if delivery.link.is_receiver:
                    delivery.link.recv(delivery.pending)
                    delivery.link.advance()
                    delivery.update(Delivery.ACCEPTED)
                    self.receiver.flow(1)
                delivery.settle()
            self.collector.pop()

    def output(self) -> bytes:
        """What it wrote."""
        written = []
        while (size := self._transport.pending()) > 0:
            written.append(bytes(self._transport.peek(size)))
            self._transport.pop(len(written[-1]))
        return b"".join(written)


class Ours:
    """Our side, with nothing but the engine's calls.

    Attributes:
        sent_count: messages that were sent on.
        settled_count: of those the peer has settled.
    """

    def __init__(self, window: int) -> None:
        self._engine = Engine(frame_size_max=128 * 1024, idle_timeout_ms=0)
        self._window = window
        self._sender: Link | None = None
        self._receiver: Link | None = None
        self._bodies: list[bytes] = []
        self._settled: list[EngineDelivery] = []
        self.sent_count = self.settled_count = 0

    def open(self) -> None:
        """Answer what the peer has opened; its links were pushed before."""
        connection = self._engine.connection
        connection.container = "ours"
        connection.open()
        session = connection.session_head(0)
        session.open()
        link = connection.link_head(0)
        while link is not None:
            link.source.copy(link.remote_source)
            link.target.copy(link.remote_target)
            link.open()
            if link.is_receiver:
                self._receiver = link
                link.flow(self._window)
            else:
                self._sender = link
            link = link.next(0)

    def push(self, data: bytes) -> None:
        """Take bytes, and answer them."""
        for _ in self._engine.push(data):
            for kind, handle in self._engine.events():
                if kind == Event.DELIVERY.number:
                    self._updated(EngineDelivery(pn_event_delivery(handle)))
        self._answer()

    def _updated(self, delivery: EngineDelivery) -> None:
        if delivery.readable and not delivery.aborted:
            assert self._receiver is not None, "it was opened"
            self._bodies.append(bytes(self._receiver.recv(delivery.pending)))
            if not delivery.partial:
                self._receiver.advance()
                self._settled.append(delivery)
            return
        if delivery.remote_state == Delivery.ACCEPTED:
            if not delivery.settled:
                delivery.update(Delivery.ACCEPTED)
            delivery.settle()
            self.settled_count += 1

    def _answer(self) -> None:
        """Behind each other, as when a sync has made them all durable."""
        settled, self._settled = self._settled, []
        bodies, self._bodies = self._bodies, []
        assert self._receiver is not None, "it was opened"
        assert self._sender is not None, "it was opened"
        for delivery in settled:
            delivery.update(Delivery.ACCEPTED)
            delivery.settle()
        if settled:
            self._receiver.flow(len(settled))
        for body in bodies:
            self.sent_count += 1
            pn_delivery(self._sender._impl, str(self.sent_count))
            self._sender.stream(body)
            self._sender.advance()

    def output(self) -> bytes:
        """What it wrote."""
        return b"".join(self._engine.output())


def measured(messages: int, size: int, window: int) -> float:
    """Seconds of the processor for each message."""
    peer, ours = Peer(window), Ours(window)
    for _ in ours._engine.push(peer.output()):
        for _ in ours._engine.events():
            pass
    ours.open()
    peer.push(ours.output())
    body = b"\x00" * size
    used_s = 0.0
    while ours.settled_count < messages:
        if ours.sent_count < messages:
            peer.send(body)
        data = peer.output()
        began_s = time.thread_time()
        ours.push(data)
        data = ours.output()
        used_s += time.thread_time() - began_s
        peer.push(data)
    return used_s / ours.settled_count


def main() -> None:
    """Read the command line."""
    made = argparse.ArgumentParser(prog="python -m benchmarks.bench_amqp_engine")
    made.add_argument("--messages", type=int, default=20_000)
    made.add_argument("--size", type=int, default=1024, help="bytes of a message")
    made.add_argument("--window", type=int, default=64, help="messages on their way at once")
    made.add_argument("--rounds", type=int, default=3)
    options = made.parse_args()
    found = [
        measured(options.messages, options.size, options.window) * 1e6
        for _ in range(options.rounds)
    ]
    print(
        f"engine {statistics.median(found):.1f} us a message ({min(found):.1f} to {max(found):.1f})"
    )


if __name__ == "__main__":
    main()
