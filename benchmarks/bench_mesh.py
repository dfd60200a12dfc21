"""A mesh of brokers of one kind: what a hop costs, how fast messages follow a consumer, memory.

    python -m benchmarks.bench_mesh [--messages 20000] [--size 1024] [--rounds 3]
        [--bindings 2000] [--brokers ours,artemis] [--folder DIR]

Three brokers, each a process with files of its own, know each other by static connectors; messages
go where consumers are (ON_DEMAND), and are redistributed without delay. One client, of ours, drives
all: it sends durable messages to the first broker, with `WINDOW` unanswered, and takes them

    here            from the first broker
    hop             from the second
    others          from the second and the third, half from each
    redistributed   from the second, where all of them waited at the first before

Shown are messages a second, from the first one that is taken to the last; the median of the rounds,
the slowest and the fastest. Kinds take turns within a round; the first round warms them and is not
counted. `late` is how long a message waits for a consumer that another broker gets: milliseconds,
of 20 each round. `binding` is what a queue of another broker costs this one, in bytes of VmRSS. It
is of ours alone: a JVM takes memory in advance.

The claim: ours is at least 1.5 of Artemis. The client takes one of the processors: what both kinds
lose to it brings the ratio nearer to 1.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from benchmarks.bench_broker_start import memory_of
from benchmarks.bridge_ends import POLL_S, fill, make_queue, ratio, uri_of
from benchmarks.peers.brokers import PASSWORD, USER, Unavailable
from benchmarks.peers.process import Process
from broker.client.aio import AsyncClient
from broker.client.session_state import AckMode
from tests.interop.artemis_broker import ArtemisBroker
from tests.servers import free_port

if TYPE_CHECKING:
    from broker.client.aio import AsyncSession

NODES = 3
# Sends that wait for their answer; messages that are taken at once.
WINDOW = 500
TAKEN_MAX = 500
LATE = 20
TIMEOUT_S = 120
CLUSTER = ("--cluster-user", USER, "--cluster-password", PASSWORD)
# Of the others, until their ports are known.
PLACES = [f"tcp://127.0.0.1:{number}" for number in range(1, NODES)]
DELAY = "<redistribution-delay>0</redistribution-delay>"


class Node(Protocol):
    """A broker of a mesh."""

    port: int

    def join(self, others: list[int]) -> None:
        """Start it, where the others listen at these ports, or will."""

    def end(self) -> None:
        """End it."""


class Ours:
    """See Node."""

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self._instance = folder / "node"
        self._log = folder / "log"
        self._process: Process | None = None
        self._broker = [sys.executable, "-m", "broker.cli.main"]
        command = [*self._broker, "create", str(self._instance), "--user", USER]
        command += ["--password", PASSWORD, "--port", str(self.port), "--no-web"]
        command += ["--max-disk-usage", "-1", *CLUSTER, "--static-cluster", ",".join(PLACES)]
        subprocess.run(command, check=True, capture_output=True)

    @property
    def pid(self) -> int:
        """Of its process."""
        assert self._process is not None, "it runs"
        return self._process.pid

    def join(self, others: list[int]) -> None:
        """Start it."""
        file = self._instance / "etc" / "broker.xml"
        text = file.read_text()
        for place, port in zip(PLACES, others, strict=True):
            assert text.count(f"{place}<") == 1, f"broker.xml has no {place}"
            text = text.replace(f"{place}<", f"{uri_of(port)}<")
        text, count = re.subn(r"<redistribution-delay>\d+</redistribution-delay>", DELAY, text)
        assert count, "broker.xml has no redistribution-delay"
        file.write_text(text)
        self._process = Process(
            [*self._broker, "run", str(self._instance)],
            self.port,
            self._log,
            hello=b"AMQP\0\1\0\0",
            greeting=b"AMQP",
        )

    def end(self) -> None:
        """End it."""
        if self._process is not None:
            self._process.kill()


class Theirs:
    """See Node; of Artemis."""

    def __init__(self, folder: Path) -> None:
        options = ("--aio", "--clustered", *CLUSTER, "--static-cluster", ",".join(PLACES))
        self._broker = ArtemisBroker(folder, options, memory_mb=1024)
        self.port = self._broker.port

    def join(self, others: list[int]) -> None:
        """Start it."""
        changes = [
            (f"{place}<", f"{uri_of(port)}<") for place, port in zip(PLACES, others, strict=True)
        ]
        # Of all addresses.
        changes.append(("<auto-create-queues>", f"{DELAY}<auto-create-queues>"))
        self._broker.change_configuration(*changes)
        self._broker.start()

    def end(self) -> None:
        """End it."""
        self._broker.kill()


KINDS = {"ours": Ours, "artemis": Theirs}


class Mesh:
    """Brokers of one kind that know each other, and a session at each.

    Attributes:
        kind: name of it.
        sessions: of the brokers, in order.
    """

    def __init__(self, kind: str, nodes: list[Node], sessions: list[AsyncSession]) -> None:
        self.kind = kind
        self.nodes = nodes
        self.sessions = sessions

    @classmethod
    async def started(cls, kind: str, folder: Path) -> Mesh:
        """Start them, and wait until each knows all.

        Raises:
            Unavailable: there is none to be had here.
        """
        nodes: list[Node] = []
        for number in range(NODES):
            place = folder / f"{kind}-{number}"
            place.mkdir(parents=True)
            nodes.append(await asyncio.to_thread(KINDS[kind], place))
        made = cls(kind, nodes, [])
        try:
            ports = [node.port for node in nodes]
            await asyncio.gather(
                *(
                    asyncio.to_thread(node.join, [port for port in ports if port != node.port])
                    for node in nodes
                )
            )
            for port in ports:
                client = AsyncClient(uri_of(port), user=USER, password=PASSWORD)
                made.sessions.append(await client.session(AckMode.DUPS_OK))
            async with asyncio.timeout(TIMEOUT_S):
                for session in made.sessions:
                    while await _members(session) < NODES:  # noqa: ASYNC110 - of another process.
                        await asyncio.sleep(POLL_S)
        except BaseException:
            made.end()
            raise
        return made

    def end(self) -> None:
        """End all of them."""
        for node in self.nodes:
            node.end()


async def _members(session: AsyncSession) -> int:
    return len(json.loads(await session.manage("broker", "listNetworkTopology")))


# --- messages -------------------------------------------------------------------------------------


async def send(session: AsyncSession, queue: str, count: int, size: int) -> None:
    """Send durable messages, and wait until all are on the disk."""
    producer = session.producer(queue)
    body = b"x" * size
    limit = asyncio.Semaphore(WINDOW)
    answers = []
    for _ in range(count):
        await limit.acquire()
        answer = await producer.post(body, durable=True)
        answer.add_done_callback(lambda _: limit.release())
        answers.append(answer)
    await asyncio.gather(*answers)


class Taking:
    """Takes messages of a queue from some brokers, and knows when the first and the last came."""

    def __init__(self, count: int) -> None:
        self._left = count
        self._first_s: float | None = None
        self.rate = 0.0
        self._count = count

    async def take(self, session: AsyncSession, queue: str) -> None:
        """Take until all have come, here or elsewhere."""
        async with await session.consumer(queue) as consumer:
            while self._left > 0:
                found = len(await consumer.receive_many(TAKEN_MAX, 0.2))
                now_s = time.perf_counter()
                if found and self._first_s is None:
                    # The rate is of what comes behind them.
                    self._first_s = now_s
                    self._count -= found
                self._left -= found
                if found and self._left <= 0:
                    assert self._first_s is not None, "some have come"
                    self.rate = self._count / (now_s - self._first_s)


async def streamed(mesh: Mesh, takers: list[int], queue: str, options: argparse.Namespace) -> float:
    """Give messages a second, from the first broker to consumers that are there before."""
    for session in mesh.sessions:
        await make_queue(session, queue)
    taking = Taking(options.messages)
    async with asyncio.timeout(TIMEOUT_S), asyncio.TaskGroup() as group:
        for number in takers:
            group.create_task(taking.take(mesh.sessions[number], queue))
        # The first broker has to hear of them.
        await asyncio.sleep(1)
        group.create_task(send(mesh.sessions[0], queue, options.messages, options.size))
    await _delete(mesh, queue)
    return taking.rate


async def redistributed(mesh: Mesh, queue: str, options: argparse.Namespace) -> float:
    """Give messages a second that waited at the first broker, at a consumer of the second."""
    await fill(mesh.sessions[0], queue, options.messages, options.size)
    await make_queue(mesh.sessions[1], queue)
    taking = Taking(options.messages)
    async with asyncio.timeout(TIMEOUT_S):
        await taking.take(mesh.sessions[1], queue)
    await _delete(mesh, queue)
    return taking.rate


async def _delete(mesh: Mesh, queue: str) -> None:
    for session in mesh.sessions:
        if (await session.query_queue(queue)).exists:
            await session.delete_queue(queue)


async def late_ms(mesh: Mesh, queue: str) -> float:
    """Give how long a message waits for a consumer at another broker, from when it is made."""
    for session in mesh.sessions:
        await make_queue(session, queue)
    found = []
    producer = mesh.sessions[0].producer(queue)
    for _ in range(LATE):
        await producer.send(b"late", durable=True)
        began_s = time.perf_counter()
        async with await mesh.sessions[1].consumer(queue) as consumer:
            assert await consumer.receive(TIMEOUT_S) is not None, "a message is stranded"
        found.append(1000 * (time.perf_counter() - began_s))
        # The first broker has to hear that it is gone.
        await asyncio.sleep(0.2)
    await _delete(mesh, queue)
    return statistics.median(found)


async def binding_bytes(mesh: Mesh, count: int) -> float:
    """Give what the first broker keeps of each queue that the second one makes."""
    node = mesh.nodes[0]
    assert isinstance(node, Ours), "of ours alone"
    first, second = mesh.sessions[:2]
    await make_queue(second, "warm")
    before = memory_of(node.pid, "VmRSS")
    for number in range(count):
        await make_queue(second, f"many.{number:06}")
    # What goes to the last one's address comes there once its binding is known.
    async with await second.consumer(f"many.{count - 1:06}") as consumer:
        await first.producer(f"many.{count - 1:06}").send(b"known", durable=True)
        assert await consumer.receive(TIMEOUT_S) is not None, "its binding is not known"
    return (memory_of(node.pid, "VmRSS") - before) / count


# --- what is printed ------------------------------------------------------------------------------

STREAMS = {"here": [0], "hop": [1], "others": [1, 2]}


async def measured(options: argparse.Namespace, folder: Path) -> dict[tuple[str, str], list[float]]:
    """Run all, in rounds; figures by kind and what they are of."""
    found: dict[tuple[str, str], list[float]] = {}
    meshes = []
    try:
        for kind in options.brokers.split(","):
            try:
                meshes.append(await Mesh.started(kind, folder))
            except Unavailable as error:
                print(f"{kind}: left out, {error}")
        for mesh in meshes:
            # Before messages have come, whose memory would be used again.
            if mesh.kind == "ours":
                found["ours", "binding"] = [await binding_bytes(mesh, options.bindings)]
        for number in range(options.rounds + 1):
            for mesh in meshes:
                figures = {
                    name: await streamed(mesh, takers, f"{name}-{number}", options)
                    for name, takers in STREAMS.items()
                }
                figures["redistributed"] = await redistributed(mesh, f"r{number}", options)
                figures["late"] = await late_ms(mesh, f"l{number}")
                told = ", ".join(f"{name} {figure:,.0f}" for name, figure in figures.items())
                print(f"{mesh.kind}: {told}", file=sys.stderr, flush=True)
                for name, figure in figures.items():
                    if number:
                        found.setdefault((mesh.kind, name), []).append(figure)
    finally:
        for mesh in meshes:
            mesh.end()
    return found


def show(found: dict[tuple[str, str], list[float]]) -> None:
    """Print medians and spreads, and ours over each other kind."""
    units = {"late": " ms", "binding": " bytes"}
    for (kind, name), figures in found.items():
        print(
            f"{kind:8} {name:14} {statistics.median(figures):10,.0f}{units.get(name, '/s'):6} "
            f"({min(figures):,.0f} to {max(figures):,.0f})"
        )
    others = dict.fromkeys(kind for kind, _ in found if kind != "ours")
    for (kind, name), figures in found.items():
        for other in others:
            theirs = found.get((other, name))
            if kind == "ours" and theirs is not None:
                both = (theirs, figures) if name == "late" else (figures, theirs)
                told = f"{other} / ours" if name == "late" else f"ours / {other}"
                print(f"{name}: {told} {ratio(*both):.2f}")


def main() -> None:
    """Read the command line."""
    made = argparse.ArgumentParser(prog="python -m benchmarks.bench_mesh")
    made.add_argument("--messages", type=int, default=20_000)
    made.add_argument("--size", type=int, default=1024, help="bytes of a body")
    made.add_argument("--rounds", type=int, default=3)
    made.add_argument("--bindings", type=int, default=2000, help="queues of another broker")
    made.add_argument("--brokers", default="ours,artemis")
    made.add_argument("--folder", type=Path, help="where the brokers keep their files")
    options = made.parse_args()
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=options.folder)))
        show(asyncio.run(measured(options, folder)))


if __name__ == "__main__":
    main()
