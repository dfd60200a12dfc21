"""`pipeline audit` and `report` over three nodes with histories and bridges: seconds, jobs, tasks.

    python -m benchmarks.bench_pipeline_jobs [--size 16M 1G] [--body 1024] [--master 'local[2]']
        [--only audit] [--folder DIR] [--conf NAME=VALUE]

For each size three brokers' data are written, that many bytes in all. They are JMS messages, each
with a user id, some in groups, a quarter in transactions; a bridge brings a third of them to
another node. Most are acknowledged, and journals are compacted at the end, so that finished
messages are in the histories alone. A known few are lost and duplicated.

Each command runs in a process of its own, with Spark's start: seconds by the clock, and of the
processor, its own, Spark's and those of its workers; and per GB of what was read. Spark's event log
says how many jobs, stages and tasks there were. An audit must find what was planted, and nothing
else, or the benchmark ends. Nothing is written where the folder has no room for it.

Claims, on two processors: 16 MB under 20 s, 1 GB under 60 s, and 10 GB ten times that of 1 GB.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import random
import resource
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from benchmarks.measure import machine_line
from broker.model.message import Message
from broker.model.properties import Property, PropertyType
from broker.model.routing_type import RoutingType
from broker.model.wire import RecordType
from broker.records.binding_records import QueueBinding
from broker.records.message_records import DuplicateId
from broker.records.records import encode_record
from broker.routing.duplicates import BRIDGE_PREFIX
from broker.storage.node_lock import NodeLock
from journal import Journal, JournalOptions
from journal.options import parse_size

NAMES = ("left", "middle", "right")
ORDERS, FORWARDS = 5, 20
NOW_MS = 1_800_000_000_000
# Of a message beside its body, with its references, acknowledgements and its end.
OVERHEAD = 460
# So that a small history has several files, and a large one those of a broker.
FILES = 16
FILE_SIZE_MIN, FILE_SIZE_MAX = 1 << 18, 10 << 20
# Of each node.
LOST, DUPLICATED = 5, 5
# prctl(2).
PR_SET_CHILD_SUBREAPER = 36
# As many messages wait, and then the oldest is taken.
WAITING = 200


class Node:
    """A broker's data, in the making.

    Args:
        folder: of them.
        file_size: of the journal, bytes.
        body: of each message.
    """

    def __init__(self, folder: Path, file_size: int, body: bytes) -> None:
        self.folder = folder
        self.body = body
        lock = NodeLock(folder / "journal")
        lock.acquire()
        lock.release()
        assert lock.node_id is not None
        self.node_id = lock.node_id
        self.bridge_id = bytes.fromhex(self.node_id.replace("-", ""))
        self.bindings = self._open("bindings", "activemq-bindings", "bindings", 1 << 20)
        self.journal = self._open("journal", "activemq-data", "amq", file_size, keeps=True)
        self.bind(ORDERS, "orders")
        self.forwards: dict[str, int] = {}
        self.next_id = 10_000
        self.waiting: list[int] = []

    def _open(
        self, part: str, prefix: str, extension: str, file_size: int, *, keeps: bool = False
    ) -> Journal:
        journal = Journal(
            JournalOptions(
                directory=self.folder / part,
                prefix=prefix,
                extension=extension,
                file_size=file_size,
                retention_directory=self.folder / "retention" if keeps else None,
                retention_period_ms=10**12 if keeps else 0,
                # What is over shall be in the history alone, at the end.
                compact_min_files=0,
                min_files=2,
                pool_files=2,
            )
        )
        journal.open()
        journal.load()
        return journal

    def bind(self, queue_id: int, name: str) -> None:
        """Bind a queue."""
        binding = QueueBinding(name, name, None, "", False, routing_type=RoutingType.ANYCAST)
        self.bindings.add(queue_id, int(RecordType.QUEUE_BINDING_RECORD), encode_record(binding))

    def send(self, number: int, queue_id: int, *, group: str = "", tx: int | None = None) -> int:
        """A message, as of the number, in a queue; its id."""
        self.next_id += 1
        properties = [
            Property("__AMQ_CID", PropertyType.STRING, "client"),
            Property("number", PropertyType.INT, number % (1 << 31)),
        ]
        if group:
            properties.append(Property("_AMQ_GROUP_ID", PropertyType.STRING, group))
        message = Message(
            "orders",
            self.body,
            type=4,
            durable=True,
            timestamp=NOW_MS - 3_000_000 + number % 2_000_000,
            user_id=number.to_bytes(16, "big"),
            message_id=self.next_id,
            properties=properties,
        )
        kind = int(RecordType.ADD_MESSAGE_PROTOCOL)
        self.journal.add(self.next_id, kind, message.record(), tx=tx, sync=False)
        self._note(self.next_id, RecordType.ADD_REF, queue_id, tx)
        return self.next_id

    def _note(self, message_id: int, kind: RecordType, queue_id: int, tx: int | None) -> None:
        self.journal.update(message_id, int(kind), struct.pack(">q", queue_id), tx=tx, sync=False)

    def done(self, message_id: int, queue_id: int) -> None:
        """It was acknowledged, and is deleted."""
        self._note(message_id, RecordType.ACKNOWLEDGE_REF, queue_id, None)
        self.journal.delete(message_id, sync=False)

    def accept(self, source: Node, message_id: int, number: int) -> int:
        """What the bridge of another node brings; its id here."""
        tx = self.journal.begin()
        self.next_id += 1
        given = source.bridge_id + struct.pack(">q", message_id)
        record = encode_record(DuplicateId(BRIDGE_PREFIX + "orders", given))
        self.journal.add(self.next_id, int(RecordType.DUPLICATE_ID), record, tx=tx)
        brought = self.send(number, ORDERS, tx=tx)
        self.journal.commit(tx, sync=False)
        return brought

    def wait(self, message_id: int) -> None:
        """It waits in its queue, and an older one is done with."""
        self.waiting.append(message_id)
        if len(self.waiting) > WAITING:
            self.done(self.waiting.pop(0), ORDERS)

    def close(self) -> None:
        """Have all that is over in the history alone."""
        self.journal.compact()
        self.journal.close()
        self.bindings.close()


def write(root: Path, size: int, body_size: int) -> int:
    """Write three nodes of so many bytes in all; how many findings an audit must have."""
    chance = random.Random(1)
    file_size = min(FILE_SIZE_MAX, max(FILE_SIZE_MIN, size // len(NAMES) // FILES >> 12 << 12))
    body = bytes(chance.randrange(256) for _ in range(body_size))
    nodes = [Node(root / name, file_size, body) for name in NAMES]
    for node in nodes:
        for number, other in enumerate(nodes):
            if other is not node:
                node.forwards[other.node_id] = FORWARDS + number
                name = f"$.artemis.internal.sf.my-cluster.{other.node_id}"
                node.bind(FORWARDS + number, name)
    number = 0
    # A third of them is there twice.
    for number in range(1, max(100, size * 3 // (5 * (body_size + OVERHEAD)))):
        node = nodes[number % 3]
        if number % 9 < 3:
            other = nodes[(number + 1) % 3]
            way = node.forwards[other.node_id]
            sent = node.send(number, way)
            other.wait(other.accept(node, sent, number))
            node.done(sent, way)
        elif number % 9 < 5:
            tx = node.journal.begin()
            sent = node.send(number, ORDERS, tx=tx)
            node.journal.commit(tx, sync=False)
            node.wait(sent)
        else:
            node.wait(node.send(number, ORDERS, group="g" if number % 9 == 5 else ""))
    for node, other in zip(nodes, (*nodes[1:], nodes[0]), strict=True):
        way = node.forwards[other.node_id]
        for _ in range(LOST):
            number += 1
            node.done(node.send(number, way), way)
        for _ in range(DUPLICATED):
            number += 1
            for _ in range(2):
                node.wait(node.send(number, ORDERS))
    for node in nodes:
        node.close()
    return len(nodes) * (LOST + 2 * DUPLICATED)


class Cost(NamedTuple):
    """What a command took.

    Attributes:
        wall_s: by the clock.
        processor_s: of all its processes.
        jobs, stages, tasks: of Spark, by its event log.
    """

    wall_s: float
    processor_s: float
    jobs: int
    stages: int
    tasks: int


def adopt_orphans() -> None:
    """Have processes that outlive their parent, as Spark's JVM does, become children of this one.

    Raises:
        OSError: this system cannot.
    """
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl")


def processor_s() -> float:
    """Of all children that have ended, and theirs; those that are left are waited for."""
    with suppress(ChildProcessError):
        while True:
            os.wait()
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run(words: list[str], root: Path, settings: list[str], place: Path) -> tuple[Cost, str]:
    """Run a command of `pipeline` over the nodes; what it took, and what it printed."""
    events = Path(tempfile.mkdtemp(dir=place))
    command = [sys.executable, "-m", "pipeline.cli.main", *words, str(root / "*")]
    command += ["--retention", str(root / "*" / "retention")]
    for setting in (
        "spark.eventLog.enabled=true",
        "spark.eventLog.compress=false",
        f"spark.eventLog.dir={events.as_uri()}",
        f"spark.local.dir={place}",
        *settings,
    ):
        command += ["--conf", setting]
    used, started = processor_s(), time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    wall = time.perf_counter() - started
    if done.returncode not in (0, 1) or "Traceback" in done.stderr:
        raise SystemExit(f"{' '.join(words)}: {done.stderr}")
    counts = dict.fromkeys(
        ("SparkListenerJobStart", "SparkListenerStageCompleted", "SparkListenerTaskEnd"), 0
    )
    for file in events.rglob("events*"):
        if file.is_file():
            with file.open() as lines:
                for line in lines:
                    name = json.loads(line)["Event"]
                    if name in counts:
                        counts[name] += 1
    return Cost(wall, processor_s() - used, *counts.values()), done.stdout


def bytes_of(root: Path) -> int:
    """All files below a folder that are read."""
    return sum(
        one.stat().st_size
        for part in ("journal", "retention")
        for one in root.glob(f"*/{part}/*.amq")
    )


def measure(size: int, place: Path, arguments: argparse.Namespace) -> None:
    """Write data of a size, run both commands, print a line for each."""
    root = place / f"nodes-{size}"
    started = time.perf_counter()
    planted = write(root, size, arguments.body)
    read = bytes_of(root)
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    print(
        f"{read / 1e6:,.0f} MB, written in {time.perf_counter() - started:.0f} s; read from the"
        f" page cache where it fits {memory / 1e9:.0f} GB of memory",
        flush=True,
    )
    commands = {
        "audit": ["audit", "--as-of", str(NOW_MS), "--json"],
        "report": ["report", "--to", str(place / "report.html")],
    }
    for name, words in commands.items():
        if arguments.only not in (None, name):
            continue
        for _ in range(arguments.rounds):
            cost, said = run([*words, "--master", arguments.master], root, arguments.conf, place)
            if name == "audit" and len(said.splitlines()) != planted:
                raise SystemExit(f"{len(said.splitlines())} findings, {planted} were planted")
            print(
                f"{name:8} {cost.wall_s:8.1f} s {cost.processor_s:8.1f} s of processor"
                f" {cost.processor_s / read * 1e9:8.0f} s/GB"
                f" {cost.jobs:6} jobs {cost.stages:6} stages {cost.tasks:6} tasks",
                flush=True,
            )
    shutil.rmtree(root)


def main() -> None:
    """As the head of this file says."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", nargs="+", type=parse_size, default=[16 << 20, 1 << 30])
    parser.add_argument("--body", type=int, default=1024)
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--only", choices=("audit", "report"))
    parser.add_argument("--folder", type=Path, default=None)
    parser.add_argument("--conf", action="append", default=[])
    arguments = parser.parse_args()
    adopt_orphans()
    print(machine_line(arguments.folder or Path(tempfile.gettempdir())))
    for size in arguments.size:
        with tempfile.TemporaryDirectory(dir=arguments.folder) as place:
            if shutil.disk_usage(place).free < 2 * size:
                raise SystemExit(f"{place} has no room for twice {size} bytes")
            measure(size, Path(place), arguments)


if __name__ == "__main__":
    main()
