"""A core bridge between two brokers of a kind: messages a second, on loopback and a slow link.

    python -m benchmarks.bench_bridge [--messages 20000] [--size 1024] [--latency 20] [--rounds 3]
        [--brokers ours,artemis] [--folder DIR]

Two brokers, each a process with files of its own. So many durable messages wait in a queue of the
first. Then a bridge is made by management, with everything by default. The time is taken until the
second has all of them on its disk. `--latency` adds a pass in which the bridge goes through a
relay, a process of its own. It holds everything back for half of so many milliseconds in each
direction: a user-space link with that round trip. Kinds take turns within a round; brokers and
queues of a kind stay. Prints a line a kind and link: the median, the slowest and fastest round, and
ours over each other kind. The claim: at least 1.5 of Artemis on loopback; over the link not below
0.8 of the own figure on loopback.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.peers.brokers import BROKERS, PASSWORD, USER, Unavailable
from broker.client.aio import AsyncClient
from broker.model.routing_type import RoutingType

if TYPE_CHECKING:
    from benchmarks.peers.process import Broker
    from broker.client.aio import AsyncSession

# Sends that wait for their answer.
WINDOW = 500
POLL_S = 0.02
TIMEOUT_S = 600.0
RELAY = """
import sys
from benchmarks.bench_bridge import relay
relay(int(sys.argv[1]), float(sys.argv[2]))
"""


def relay(target_port: int, one_way_s: float) -> None:
    """Relay to a port, with everything held back for so long; prints its own port, never ends."""
    asyncio.run(_relay(target_port, one_way_s))


async def _relay(target_port: int, one_way_s: float) -> None:
    loop = asyncio.get_running_loop()

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(1 << 18):
            loop.call_later(one_way_s, writer.write, data)
        loop.call_later(one_way_s, writer.close)

    async def accept(near: asyncio.StreamReader, out: asyncio.StreamWriter) -> None:
        far, into = await asyncio.open_connection("127.0.0.1", target_port)
        await asyncio.gather(pump(near, into), pump(far, out))

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


@dataclass(slots=True)
class Pair:
    """Two brokers of one kind, and a session at each."""

    name: str
    source: Broker
    target: Broker
    source_session: AsyncSession
    target_session: AsyncSession
    relay: subprocess.Popen[str] | None = None
    relay_port: int = 0


async def started(kind_name: str, folder: Path, one_way_s: float) -> Pair:
    """Start two brokers, connect to both.

    Raises:
        Unavailable: there is none to be had here.
    """
    kind = next(one for one in BROKERS if one.name == kind_name)
    brokers, sessions = [], []
    for role in ("source", "target"):
        place = folder / kind_name / role
        place.mkdir(parents=True)
        # Beside the loop, which has connections to look after: a JVM starts slowly.
        broker = await asyncio.to_thread(kind.start, place, None)
        brokers.append(broker)
        client = AsyncClient(f"tcp://127.0.0.1:{broker.port}", user=USER, password=PASSWORD)
        sessions.append(await client.session())
    pair = Pair(kind_name, *brokers, *sessions)
    if one_way_s:
        pair.relay, pair.relay_port = relay_process(pair.target.port, one_way_s)
    return pair


def relay_process(target_port: int, one_way_s: float) -> tuple[subprocess.Popen[str], int]:
    """Start a relay; give its process and its port."""
    command = [sys.executable, "-c", RELAY, str(target_port), str(one_way_s)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None, "it is a pipe"
    return process, int(process.stdout.readline())


async def fill(session: AsyncSession, queue: str, count: int, size: int) -> None:
    """Send messages, and wait until they are on the disk."""
    await session.create_queue(queue, queue, routing_type=RoutingType.ANYCAST)
    producer = session.producer(queue)
    body = b"x" * size
    for first in range(0, count, WINDOW):
        answers = [
            await producer.post(body, durable=True) for _ in range(min(WINDOW, count - first))
        ]
        await asyncio.gather(*answers)


async def bridged(pair: Pair, name: str, port: int, count: int, size: int) -> float:
    """Messages a second, from the making of the bridge to the last message."""
    source, target = pair.source_session, pair.target_session
    await fill(source, name, count, size)
    await target.create_queue(name, name, routing_type=RoutingType.ANYCAST)
    await source.manage("broker", "addConnector", name, f"tcp://127.0.0.1:{port}")
    made = {
        "name": name,
        "queue-name": name,
        "forwarding-address": name,
        "static-connectors": [name],
        "user": USER,
        "password": PASSWORD,
    }
    began = time.perf_counter()
    await source.manage("broker", "createBridge", json.dumps(made))
    while (await target.query_queue(name)).message_count < count:
        await asyncio.sleep(POLL_S)
        if time.perf_counter() - began > TIMEOUT_S:
            raise SystemExit(f"{pair.name}: not over within {TIMEOUT_S:.0f} s")
    took = time.perf_counter() - began
    while (await source.query_queue(name)).message_count:  # noqa: ASYNC110 - of another process.
        await asyncio.sleep(POLL_S)
    await source.manage("broker", "destroyBridge", name)
    for session in (source, target):
        await session.delete_queue(name)
    return count / took


async def run(options: argparse.Namespace, folder: Path) -> None:
    """Run all, and print what came of it."""
    pairs = []
    one_way_s = options.latency / 2000
    for name in options.brokers.split(","):
        try:
            pairs.append(await started(name, folder, one_way_s))
        except Unavailable as error:
            print(f"{name}: left out, {error}")
    links = ["loopback", *(["link"] if options.latency else [])]
    rates: dict[tuple[str, str], list[float]] = {}
    try:
        # The first of each warms it.
        for number in range(options.rounds + 1):
            for pair in pairs:
                for link in links:
                    port = pair.target.port if link == "loopback" else pair.relay_port
                    name = f"{link}-{number}"
                    rate = await bridged(pair, name, port, options.messages, options.size)
                    print(f"{pair.name}, {link}: {rate:,.0f}/s", file=sys.stderr, flush=True)
                    if number:
                        rates.setdefault((pair.name, link), []).append(rate)
    finally:
        for pair in pairs:
            if pair.relay is not None:
                pair.relay.kill()
            pair.source.stop()
            pair.target.stop()
    for (name, link), found in rates.items():
        told = f"{options.latency} ms link" if link == "link" else link
        print(
            f"{name:14} {told:12} {statistics.median(found):9,.0f}/s "
            f"({min(found):,.0f} to {max(found):,.0f})"
        )
    for (name, link), found in rates.items():
        ours = rates.get(("ours", link))
        if name != "ours" and ours:
            ratios = [one / other for one, other in zip(ours, found, strict=True)]
            print(f"ours / {name}, {link}: {statistics.median(ratios):.2f}")
    for name in dict.fromkeys(name for name, _ in rates):
        if len(links) > 1:
            pairs_of = zip(rates[name, "link"], rates[name, "loopback"], strict=True)
            ratio = statistics.median(slow / fast for slow, fast in pairs_of)
            print(f"{name}, link / loopback: {ratio:.2f}")


def main() -> None:
    """Read the command line."""
    made = argparse.ArgumentParser(prog="python -m benchmarks.bench_bridge")
    made.add_argument("--messages", type=int, default=20_000)
    made.add_argument("--size", type=int, default=1024, help="bytes of a body")
    made.add_argument("--latency", type=float, default=20, help="ms of a round trip; 0: no link")
    made.add_argument("--rounds", type=int, default=3)
    made.add_argument("--brokers", default="ours,artemis")
    made.add_argument("--folder", type=Path, help="where the brokers keep their files")
    options = made.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        asyncio.run(run(options, Path(folder)))


if __name__ == "__main__":
    main()
