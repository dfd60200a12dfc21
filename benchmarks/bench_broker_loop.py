"""What a message costs the broker's event loop: sent, delivered and acknowledged, without a socket.

    python -m benchmarks.bench_broker_loop [--rounds 60] [--chunk 64] [--folder /dev/shm]

Two connections of the Core protocol within this process: one is handed frames of sends, the other
one takes what is delivered and acknowledges the last of each chunk. Bodies are of 1 KiB, the
journal lies in a folder of memory. Shown are microseconds of the loop's thread a message, turns
of the loop included, without those that this script needs to read what comes: the least, the first
quartile and the median of the rounds.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import uvloop

from benchmarks.bench_broker_start import options_of
from broker.model.message import Message
from broker.model.routing_type import RoutingType
from broker.options import AcceptorOptions
from broker.protocols.core import packet_message as messages
from broker.protocols.core import packet_queue as queues
from broker.protocols.core import packet_session as sessions
from broker.protocols.core.packets import decode_packet
from broker.server.server import Broker
from tests.broker.protocols.core.peer import CHANNEL, VERSION, Peer

BODY_SIZE = 1024
QUEUE = "loop"
CHUNKS = 40


async def measure(folder: Path, rounds: int, chunk: int, *, durable: bool) -> list[float]:
    """Give the microseconds a message, of each round."""
    options = replace(
        options_of(folder),
        acceptors=(AcceptorOptions(name="core", port=0),),
    )
    broker = Broker(options)
    await broker.start()
    producer, consumer = Peer(broker.acceptors[0]), Peer(broker.acceptors[0])
    producer.begin("producer", 1024 * 1024)
    consumer.begin("consumer", -1)
    consumer.send(queues.CreateQueue(QUEUE, QUEUE, routing_type=RoutingType.ANYCAST))
    await asyncio.sleep(0.1)
    consumer.send(sessions.CreateConsumer(0, QUEUE))
    consumer.send(sessions.Start())
    consumer.send(sessions.ConsumerCredits(0, -1))
    await asyncio.sleep(0.1)
    consumer.take()
    message = Message(QUEUE, bytes(BODY_SIZE), durable=durable)
    message.routing_type = RoutingType.ANYCAST
    sends = b"".join(
        messages.Send(message, requires_response=True, correlation_id=number).frame(
            CHANNEL, VERSION
        )
        for number in range(chunk)
    )
    found = []
    for _ in range(rounds):
        begun_s, ours_s = time.thread_time(), 0.0
        for _ in range(CHUNKS):
            producer.put(sends)
            count, last = 0, 0
            while count < chunk:
                await asyncio.sleep(0)
                at_s = time.thread_time()
                for kind, body in consumer.take():
                    packet = decode_packet(kind, body, VERSION)
                    if isinstance(packet, messages.ReceiveMessage):
                        count += 1
                        last = packet.message.message_id
                ours_s += time.thread_time() - at_s
            consumer.send(messages.Acknowledge(0, last, requires_response=False))
            producer.wire.written.clear()
        used_s = time.thread_time() - begun_s - ours_s
        found.append(used_s / (CHUNKS * chunk) * 1e6)
    await broker.stop()
    return found


def main() -> None:
    """Measure both kinds of messages."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--chunk", type=int, default=64)
    parser.add_argument("--folder", type=Path, default=Path("/dev/shm"))
    asked = parser.parse_args()
    print("us a message    least  quartile  median")
    for durable in (True, False):
        with (
            tempfile.TemporaryDirectory(dir=asked.folder) as folder,
            asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
        ):
            work = measure(Path(folder), asked.rounds, asked.chunk, durable=durable)
            found = sorted(runner.run(work))
        title = "durable" if durable else "not durable"
        figures = (found[0], found[len(found) // 4], statistics.median(found))
        print(f"{title:14}" + "".join(f"{one:8.2f}" for one in figures))


if __name__ == "__main__":
    main()
