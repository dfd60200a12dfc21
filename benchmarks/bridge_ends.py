"""What the benchmarks of bridges share: pairs of brokers, the slow link, rounds, what is printed.

A pair is two brokers of a kind, each a process with files of its own, and they stay for all rounds.
The link is a relay in a process of its own, which holds everything back for half of a round trip in
each direction: this kernel needs no part in it. Kinds take turns within a round, the first round
warms them and is not counted.
"""

from __future__ import annotations

import asyncio
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Protocol

from benchmarks.peers.brokers import BROKERS, PASSWORD, USER, Unavailable
from broker.client.aio import AsyncClient
from broker.model.routing_type import RoutingType

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from benchmarks.peers.process import Broker
    from broker.client.aio import AsyncSession

__all__ = [
    "LINK",
    "LOOPBACK",
    "POLL_S",
    "Case",
    "Pair",
    "Rates",
    "add_options",
    "count_of",
    "make_queue",
    "measured",
    "started",
    "uri_of",
    "wait_for",
]

LOOPBACK, LINK = "loopback", "link"
# Sends that wait for their answer.
WINDOW = 500
POLL_S = 0.02
RELAY = """
import sys
from benchmarks.bridge_ends import relay
relay(int(sys.argv[1]), float(sys.argv[2]))
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what each of them takes on its command line."""
    parser.add_argument("--messages", type=int, default=20_000)
    parser.add_argument("--size", type=int, default=1024, help="bytes of a body")
    parser.add_argument("--latency", type=float, default=20, help="ms of a round trip; 0: no link")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=10, help="the longest run")
    parser.add_argument("--brokers", default="ours,artemis")


# --- the link -------------------------------------------------------------------------------------


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


def relay_process(target_port: int, one_way_s: float) -> tuple[subprocess.Popen[str], int]:
    """Start a relay; give its process and its port."""
    command = [sys.executable, "-c", RELAY, str(target_port), str(one_way_s)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None, "it is a pipe"
    return process, int(process.stdout.readline())


# --- the brokers ----------------------------------------------------------------------------------


@dataclass(slots=True)
class Pair:
    """Two brokers of one kind, and a session at each.

    Attributes:
        kind: name of the kind.
        source: where messages come from.
        target: where they go to.
        source_session: of the source.
        target_session: of the target.
        ports: of the target, by LOOPBACK and LINK.
    """

    kind: str
    source: Broker
    target: Broker
    source_session: AsyncSession
    target_session: AsyncSession
    ports: dict[str, int]
    relay: subprocess.Popen[str] | None = None

    @classmethod
    async def started(
        cls, kind: str, folder: Path, latency_ms: float = 0, page_from: int | None = None
    ) -> Pair:
        """Start two brokers, connect to both.

        Args:
            kind: name of one of BROKERS.
            folder: where they keep their files.
            latency_ms: of a round trip over the link; 0 has no link.
            page_from: bytes in memory with which an address begins to page; None never does.

        Raises:
            Unavailable: there is none to be had here.
        """
        source, source_session = await started(kind, folder / kind / "source", page_from)
        target, target_session = await started(kind, folder / kind / "target", page_from)
        ports = {LOOPBACK: target.port}
        pair = cls(kind, source, target, source_session, target_session, ports)
        if latency_ms:
            pair.relay, pair.ports[LINK] = relay_process(target.port, latency_ms / 2000)
        return pair

    def stop(self) -> None:
        """End all of it."""
        if self.relay is not None:
            self.relay.kill()
        self.source.stop()
        self.target.stop()


async def started(
    kind: str, folder: Path, page_from: int | None = None
) -> tuple[Broker, AsyncSession]:
    """Start a broker, connect to it; see Pair.started()."""
    start = next(one for one in BROKERS if one.name == kind).start
    if page_from is not None:
        start = partial(start, max_size_bytes=page_from)

    def begin() -> Broker:
        folder.mkdir(parents=True)
        return start(folder, None)

    # Beside the loop, which has connections to look after: a JVM starts slowly.
    broker = await asyncio.to_thread(begin)
    client = AsyncClient(uri_of(broker.port), user=USER, password=PASSWORD)
    return broker, await client.session()


async def make_queue(session: AsyncSession, queue: str) -> None:
    """Make a queue on an address of its name."""
    await session.create_queue(queue, queue, routing_type=RoutingType.ANYCAST)


async def count_of(session: AsyncSession, queue: str) -> int:
    """How many messages a queue has."""
    return (await session.query_queue(queue)).message_count


async def wait_for(session: AsyncSession, queue: str, count: int, seconds: float) -> int:
    """Wait until a queue has so many messages, but not for longer; how many it has.

    Args:
        session: of its broker.
        queue: that messages come to.
        count: of them.
        seconds: at most.
    """
    until = time.perf_counter() + seconds
    # No event tells of another process.
    while (found := await count_of(session, queue)) < count and time.perf_counter() < until:  # noqa: ASYNC110
        await asyncio.sleep(POLL_S)
    return found


def uri_of(port: int) -> str:
    """Give how clients of this machine name a broker."""
    return f"tcp://127.0.0.1:{port}"


async def fill(session: AsyncSession, queue: str, count: int, size: int) -> None:
    """Send durable messages to a new queue, and wait until they are on the disk."""
    await make_queue(session, queue)
    producer = session.producer(queue)
    body = b"x" * size
    for first in range(0, count, WINDOW):
        answers = [
            await producer.post(body, durable=True) for _ in range(min(WINDOW, count - first))
        ]
        await asyncio.gather(*answers)


# --- runs -----------------------------------------------------------------------------------------


class Case(Protocol):
    """A kind of bridge.

    Attributes:
        name: as it is shown.
    """

    name: str

    async def start(self, pair: Pair, queue: str, target_port: int) -> None:
        """Begin to move a queue's messages to that of the same name at the target's port."""

    async def stop(self, pair: Pair, queue: str) -> None:
        """End that; nothing consumes from the source's queue when this returns."""


async def _run(pair: Pair, case: Case, link: str, queue: str, options: argparse.Namespace) -> float:
    """Messages a second, from the first one at the target to the last one or the limit."""
    source, target = pair.source_session, pair.target_session
    await fill(source, queue, options.messages, options.size)
    await make_queue(target, queue)
    began = time.perf_counter()
    await case.start(pair, queue, pair.ports[link])
    found = await wait_for(target, queue, 1, options.seconds)
    if 0 < found < options.messages:
        began = time.perf_counter()
    else:
        # Too few to tell, or none: with the time to connect.
        found = 0
    arrived = await wait_for(target, queue, options.messages, options.seconds)
    took = time.perf_counter() - began
    await case.stop(pair, queue)
    for session in (source, target):
        await session.delete_queue(queue)
    return (arrived - found) / took


@dataclass(slots=True)
class Rates:
    """Messages a second of all rounds.

    Attributes:
        latency_ms: of the link.
        found: by kind, case and link.
    """

    latency_ms: float
    found: dict[tuple[str, str, str], list[float]] = field(default_factory=dict)

    def show(self, matches: Callable[[str], str] = lambda case: case) -> None:
        """Print medians and spreads, ours over others, and the link over loopback.

        Args:
            matches: gives the case of another kind that a case of ours is compared with.
        """
        for (kind, case, link), rates in self.found.items():
            told = f"{self.latency_ms:g} ms link" if link == LINK else link
            print(
                f"{kind:10} {case:30} {told:12} {statistics.median(rates):9,.0f}/s "
                f"({min(rates):,.0f} to {max(rates):,.0f})"
            )
        others = dict.fromkeys(kind for kind, _, _ in self.found if kind != "ours")
        for (kind, case, link), rates in self.found.items():
            for other in others:
                theirs = self.found.get((other, matches(case), link))
                if kind == "ours" and theirs is not None:
                    told = f"{other} {matches(case)}".rstrip()
                    print(f"ours {case} / {told}, {link}: {ratio(rates, theirs):.2f}")
        for (kind, case, link), rates in self.found.items():
            if link == LINK:
                near = self.found[kind, case, LOOPBACK]
                print(f"{kind} {case}, link / loopback: {ratio(rates, near):.2f}")


def ratio(ones: Sequence[float], others: Sequence[float]) -> float:
    """Give the median of the ratios within each round."""
    return statistics.median(one / other for one, other in zip(ones, others, strict=True))


async def measured(
    options: argparse.Namespace, folder: Path, cases: Callable[[Pair], Sequence[Case]]
) -> Rates:
    """Run every case of every kind on every link, in rounds.

    Args:
        options: of `add_options()`.
        folder: where brokers keep their files.
        cases: gives those of a pair; called once for each.

    Raises:
        Unavailable: a case's own program is not to be had here.
    """
    rates = Rates(options.latency)
    pairs: list[Pair] = []
    try:
        of_pairs = []
        for kind in options.brokers.split(","):
            try:
                pairs.append(await Pair.started(kind, folder, options.latency))
                of_pairs.append((pairs[-1], cases(pairs[-1])))
            except Unavailable as error:
                print(f"{kind}: left out, {error}")
        for number in range(options.rounds + 1):
            for pair, its_cases in of_pairs:
                for index, case in enumerate(its_cases):
                    for link in pair.ports:
                        queue = f"q-{link}-{index}-{number}"
                        rate = await _run(pair, case, link, queue, options)
                        told = f"{pair.kind} {case.name}, {link}: {rate:,.0f}/s"
                        print(told, file=sys.stderr, flush=True)
                        if number:
                            rates.found.setdefault((pair.kind, case.name, link), []).append(rate)
    finally:
        for pair in pairs:
            pair.stop()
    return rates
