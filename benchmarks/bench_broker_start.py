"""A broker that starts with very many stored messages, and one that drains pages: time and memory.

    python -m benchmarks.bench_broker_start [--messages 1000000] [--sent 1000000] [--paged 100000]
        [--rounds 3] [--artemis] [--folder DIR]

Start: a folder is filled through our storage with so many durable messages of 1 KiB in one queue,
as JMS clients send them. The broker starts on it in a process of its own. Shown are seconds from
the start of the process until it listens, and seconds of processors for that. Then the memory it
had at most (VmHWM) and has then (VmRSS), and what each waiting message costs, against a start with
none. With `--artemis` Artemis starts on a copy of it.

Sent: as many are sent to a broker within a process of its own, without a consumer; shown is what
its memory has grown by beyond their bytes.

Drain: so many messages in pages, taken by one consumer of ours within the broker's process and
acknowledged by the hundred; seconds from the start of the consumer to the last acknowledgement.
With `--artemis` they are also sent and taken by its Core client (peers/java/CoreDrain.java), from
ours and from Artemis's broker in turn: a JVM that shares the processors with the broker.

Files are in the page cache, as after a restart of the process. Prints a line a figure.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import NamedTuple

from benchmarks.peers.brokers import Kind, artemis, ours
from broker.model.message import Message
from broker.model.properties import Property, PropertyType
from broker.model.routing_type import RoutingType
from broker.options import AcceptorOptions, BrokerOptions
from broker.server.server import Broker
from broker.sessions.session import Session, SessionOptions
from broker.settings.queue_defaults import QueueRequest
from broker.settings.settings import AddressSettings
from broker.settings.settings_repository import SettingsRepository
from broker.storage.open import FileStoreOptions, bindings_options, messages_options

BODY_SIZE = 1024
QUEUE = "waiting"
# Messages that are recorded before they are waited for.
SYNCED_TOGETHER = 10_000
ACKNOWLEDGED_TOGETHER = 100
# What an address may have in memory before it pages, where a client fills it.
MEMORY_SIZE = 100 * 1024
# Of a client, in one broker: the first one warms both.
CLIENT_ROUNDS = 4
START_TIMEOUT_S = 600
# The broker's process: it says when it listens, and stays until its input ends.
SERVE = """
import asyncio, sys
from benchmarks.bench_broker_start import options_of
from broker.transport.event_loop import loop_factory
from broker.server.server import Broker
async def main():
    broker = Broker(options_of(sys.argv[1]))
    await broker.start()
    print("READY", flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    await broker.stop()
with asyncio.Runner(loop_factory=loop_factory()) as runner:
    runner.run(main())
"""


SEND = """
import asyncio, sys
from pathlib import Path
from benchmarks.bench_broker_start import send
print(asyncio.run(send(Path(sys.argv[1]), int(sys.argv[2]))))
"""


def options_of(folder: Path | str, **settings: object) -> BrokerOptions:
    """Give the options of a broker on a data folder; it pages nothing unless told so."""
    repository = SettingsRepository()
    repository.add("#", AddressSettings(**{"max_size_bytes": -1, **settings}))  # type: ignore[arg-type]
    return BrokerOptions(
        store=FileStoreOptions(
            bindings=bindings_options(Path(folder) / "bindings"),
            messages=messages_options(Path(folder) / "journal"),
        ),
        acceptors=(AcceptorOptions(port=0),),
        settings=repository,
        global_max_size=-1,
    )


def message(number: int) -> Message:
    """Give one as JMS clients make them."""
    return Message(
        QUEUE,
        number.to_bytes(8, "big") * (BODY_SIZE // 8),
        type=4,
        durable=True,
        timestamp=1_700_000_000_000 + number,
        user_id=number.to_bytes(16, "big"),
        properties=[
            Property("__AMQ_CID", PropertyType.STRING, "client"),
            Property("_AMQ_ROUTING_TYPE", PropertyType.BYTE, int(RoutingType.ANYCAST)),
            Property("number", PropertyType.INT, number),
        ],
    )


async def fill(place: Path | BrokerOptions, count: int) -> None:
    """Store messages for one queue, without sending them, in a folder or as options say."""
    broker = Broker(place if isinstance(place, BrokerOptions) else options_of(place))
    await broker.start()
    queue = broker.parts.administration.create_queue(
        QueueRequest(name=QUEUE, address=QUEUE, routing_type=RoutingType.ANYCAST)
    )
    storage = broker.parts.storage
    for number in range(count):
        one = message(number)
        one.message_id = storage.new_id()
        storage.store_message(one, None)
        is_last = number % SYNCED_TOGETHER == SYNCED_TOGETHER - 1 or number == count - 1
        storage.store_reference(queue.queue_id, one.message_id, None, is_last)
        if is_last:
            await asyncio.to_thread(broker._activation.stores.messages.sync)  # type: ignore[union-attr]
            await asyncio.sleep(0)
    await broker.stop()


async def send(folder: Path, count: int) -> float:
    """Send messages without a consumer; return the bytes that each costs beyond its own."""
    broker = Broker(options_of(folder))
    await broker.start()
    session = broker.clients.create_session("session", None, SessionOptions(), set())
    broker.parts.administration.create_queue(
        QueueRequest(name=QUEUE, address=QUEUE, routing_type=RoutingType.ANYCAST)
    )
    size = 0
    before = memory_of(os.getpid(), "VmRSS")
    for first in range(0, count, SYNCED_TOGETHER):
        last = min(first + SYNCED_TOGETHER, count)
        recorded = asyncio.get_running_loop().create_future()

        def told(error: Exception | None, number: int, last: int, recorded: object) -> None:
            if number == last - 1:
                recorded.set_result(error)  # type: ignore[attr-defined]

        for number in range(first, last):
            # As it comes from a client: bytes.
            data = message(number).encode()
            size += len(data)
            session.send(Message.decode(data), told, number, last, recorded)
        error = await recorded
        if error is not None:
            raise error
    cost = (memory_of(os.getpid(), "VmRSS") - before - size) / count
    await broker.stop()
    return cost


class Figures(NamedTuple):
    """Of one start: seconds, of them those of a processor, and bytes."""

    seconds: float
    cpu: float
    memory_max: int
    memory: int


def memory_of(pid: int, name: str) -> int:
    """Give a figure of /proc/PID/status, in bytes."""
    text = Path(f"/proc/{pid}/status").read_text()
    return int(text.split(f"{name}:")[1].split()[0]) * 1024


def figures_of(seconds: float, pids: list[int]) -> Figures:
    """Give what a start has cost; of several processes one is the broker."""
    return Figures(
        seconds,
        sum(cpu_of(pid) for pid in pids),
        max(memory_of(pid, "VmHWM") for pid in pids),
        max(memory_of(pid, "VmRSS") for pid in pids),
    )


def cpu_of(pid: int) -> float:
    """Give the seconds of a processor that a process has had, of user and kernel."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def start(folder: Path) -> Figures:
    """Start our broker on a folder."""
    began_s = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-c", SERVE, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    line = process.stdout.readline()
    seconds = time.perf_counter() - began_s
    if line != "READY\n":
        raise SystemExit(f"our broker did not start: {line}")
    found = figures_of(seconds, [process.pid])
    process.stdin.close()
    process.wait(START_TIMEOUT_S)
    process.stdout.close()
    return found


def start_artemis(data: Path, folder: Path) -> Figures:
    """Start Artemis's broker on a copy of the folder."""
    from tests.interop.artemis_broker import ArtemisBroker

    broker = ArtemisBroker(folder, memory_mb=5000)
    shutil.copytree(data, folder / "broker" / "data", dirs_exist_ok=True)
    began_s = time.perf_counter()
    broker.start()
    seconds = time.perf_counter() - began_s
    group = broker._process.pid  # type: ignore[union-attr]
    pids = [int(one) for one in os.listdir("/proc") if one.isdigit() and _group(one) == group]
    found = figures_of(seconds, pids)
    broker.kill()
    return found


def _group(pid: str) -> int:
    try:
        return os.getpgid(int(pid))
    except ProcessLookupError:
        return -1


class Taker:
    """A consumer that acknowledges by the hundred.

    Attributes:
        done: all have come, and the last acknowledgement is durable.
    """

    def __init__(self, session: Session, count: int) -> None:
        self._session = session
        self._left = count
        self.done = asyncio.get_running_loop().create_future()

    def deliver(self, consumer: object, message: Message, delivery_count: int) -> int:
        """See Sink."""
        message.encode()
        self._left -= 1
        if self._left % ACKNOWLEDGED_TOGETHER == 0:
            asyncio.get_running_loop().call_soon(self._acknowledge, message.message_id, self._left)
        return 0

    def _acknowledge(self, message_id: int, left: int) -> None:
        self._session.acknowledge(0, message_id, self._acknowledged, left)

    def _acknowledged(self, error: Exception | None, left: int) -> None:
        if left == 0:
            self.done.set_result(None)

    def disconnected(self, consumer: object) -> None:
        """See Sink."""


async def drain(folder: Path, count: int) -> float:
    """Page messages, then take them; seconds of the latter."""
    broker = Broker(options_of(folder, max_size_messages=100))
    await broker.start()
    session = broker.clients.create_session("session", None, SessionOptions(), set())
    broker.parts.administration.create_queue(
        QueueRequest(name=QUEUE, address=QUEUE, routing_type=RoutingType.ANYCAST)
    )
    sent = asyncio.get_running_loop().create_future()

    def told(error: Exception | None, number: int) -> None:
        if number == count - 1:
            sent.set_result(None)

    for number in range(count):
        session.send(message(number), told, number)
        if number % SYNCED_TOGETHER == 0:
            await asyncio.sleep(0)
    await sent
    taker = Taker(session, count)
    consumer = session.create_consumer(0, QUEUE, taker)
    began_s = time.perf_counter()
    consumer.receive_credits(-1)
    session.start()
    await taker.done
    seconds = time.perf_counter() - began_s
    await broker.stop()
    return seconds


def drain_by_client(kind: Kind, folder: Path, count: int) -> float:
    """Let Artemis's client fill and drain a broker; seconds of the latter, warm."""
    folder.mkdir()
    broker = kind.start(folder, None)
    try:
        done = subprocess.run(
            [*kind.command(broker.port), str(count), str(BODY_SIZE), str(CLIENT_ROUNDS)],
            capture_output=True,
            text=True,
        )
        if done.returncode:
            raise SystemExit(f"the client of {kind.name}: {done.stderr[-500:]}")
    finally:
        broker.stop()
        shutil.rmtree(folder)
    seconds = [float(json.loads(line)["drain_s"]) for line in done.stdout.splitlines()]
    return statistics.median(seconds[1:])


def show_drains_by_client(folder: Path, count: int, rounds: int) -> None:
    """Print a line for each broker, and the ratios of the rounds."""
    kinds = [
        Kind(start.__name__, partial(start, max_size_bytes=MEMORY_SIZE), "CoreDrain")
        for start in (ours, artemis)
    ]
    found = [
        [drain_by_client(kind, folder / kind.name, count) for kind in kinds] for _ in range(rounds)
    ]
    for kind, seconds in zip(kinds, zip(*found, strict=True), strict=True):
        print(f"  by the Core client, {kind.name:9} {statistics.median(seconds):7.2f} s")
    ratio = statistics.median(theirs / mine for mine, theirs in found)
    print(f"  ours over it {ratio:.2f}{'' if ratio >= 2 else '  MISSED'}", flush=True)


def show(title: str, found: list[Figures], count: int, empty: Figures | None = None) -> None:
    """Print medians."""
    seconds = statistics.median(one.seconds for one in found)
    cpu = statistics.median(one.cpu for one in found)
    most = statistics.median(one.memory_max for one in found)
    left = statistics.median(one.memory for one in found)
    each = ""
    if empty is not None and count:
        cost = (left - empty.memory) / count
        each = f"{cost:7.0f} bytes a message"
    memory = f"{most / 1e6:9.0f} MB most{left / 1e6:9.0f} MB then"
    print(f"{title:24}{seconds:7.2f} s{cpu:7.2f} s CPU{memory}{each}", flush=True)


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--messages", type=int, default=1_000_000)
    parser.add_argument("--sent", type=int, default=1_000_000)
    parser.add_argument("--paged", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--artemis", action="store_true", help="beside Artemis's broker")
    parser.add_argument("--folder", type=Path, default=Path("build/bench"))
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(dir=arguments.folder))
    try:
        if arguments.messages:
            asyncio.run(fill(folder / "none", 0))
            asyncio.run(fill(folder / "data", arguments.messages))
            empty = start(folder / "none")
            show("start with none", [empty], 0)
            found = [start(folder / "data") for _ in range(arguments.rounds)]
            show(f"start with {arguments.messages:,}", found, arguments.messages, empty)
            if arguments.artemis:
                theirs = [start_artemis(folder / "data", folder / "artemis")]
                show("Artemis", theirs, arguments.messages)
        if arguments.sent:
            command = [sys.executable, "-c", SEND, str(folder / "sent"), str(arguments.sent)]
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
            print(f"sent {arguments.sent:,} that wait: {float(done.stdout):.0f} bytes a message")
        if arguments.paged:
            times = [
                asyncio.run(drain(folder / f"paged{number}", arguments.paged))
                for number in range(arguments.rounds)
            ]
            print(
                f"drain of {arguments.paged:,} paged {statistics.median(times):7.2f} s", flush=True
            )
            if arguments.artemis:
                show_drains_by_client(folder, arguments.paged, arguments.rounds)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
