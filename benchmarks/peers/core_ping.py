"""A compiled client of the Core protocol, one message at a time; see core_ping.c."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.peers.brokers import PASSWORD, USER, Unavailable
from broker.model.message import Message
from broker.model.routing_type import RoutingType
from broker.protocols.core import packet_connection as connections
from broker.protocols.core import packet_message as messages
from broker.protocols.core import packet_queue as queues
from broker.protocols.core import packet_session as sessions
from broker.protocols.core import versions
from broker.protocols.core.frames import MAGIC, FrameReader

if TYPE_CHECKING:
    from broker.protocols.core.packet import Packet

__all__ = ["ping"]

ROOT = Path(__file__).parents[2]
VERSION = versions.CURRENT
CHANNEL = 10
QUEUE = "ping"


def program() -> Path:
    """Path of the compiled client; compiled again when its source is newer.

    Raises:
        Unavailable: no C compiler was found, or it refuses the source.
    """
    binary, source = ROOT / "build" / "core_ping", Path(__file__).with_name("core_ping.c")
    if binary.exists() and source.stat().st_mtime < binary.stat().st_mtime:
        return binary
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise Unavailable("no C compiler on PATH")
    binary.parent.mkdir(exist_ok=True)
    options = ["-std=c11", "-D_GNU_SOURCE", "-O2"]
    command = [compiler, *options, "-o", str(binary), str(source), "-lpthread"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise Unavailable(f"core_ping.c does not compile: {done.stderr.splitlines()[:1]}")
    return binary


class _Session:
    """A connection with a session that has begun."""

    def __init__(self, port: int, name: str, window_size: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=30)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._frames = FrameReader()
        self.socket.sendall(MAGIC)
        self.send(connections.Ping(60_000), 0)
        created = connections.CreateSession(
            *(name, CHANNEL, VERSION, USER, PASSWORD, 100 * 1024),
            xa=False,
            auto_commit_sends=True,
            auto_commit_acks=True,
            window_size=window_size,
            pre_acknowledge=False,
            default_address=None,
        )
        self.send(created, connections.SESSION_CHANNEL)
        self.await_kind(connections.CreateSessionResponse)

    def send(self, packet: Packet, channel: int = CHANNEL) -> None:
        """Send a packet."""
        self.socket.sendall(packet.frame(channel, VERSION))

    def await_kind(self, kind: type[Packet]) -> None:
        """Read until a packet of that kind has come.

        Raises:
            Unavailable: the broker refuses.
        """
        wanted = {number for _, number in kind.types}
        refused = {number for _, number in connections.ExceptionResponse.types}
        while True:
            for found, _, body in self._frames.feed(self.socket.recv(65536)):
                if found in refused:
                    raise Unavailable(f"the broker refuses: {bytes(body)!r}")
                if found in wanted:
                    return


def ping(port: int, body_size: int, warm: float, seconds: float) -> dict[str, float]:
    """Send durable messages one at a time to a broker of ours, while a consumer takes them.

    Raises:
        Unavailable: no compiler, or the broker refuses.
    """
    binary = program()
    consumer = _Session(port, "consumer", -1)
    consumer.send(queues.CreateQueue(QUEUE, QUEUE, routing_type=RoutingType.ANYCAST))
    consumer.await_kind(connections.NullResponse)
    consumer.send(sessions.CreateConsumer(0, QUEUE))
    consumer.await_kind(queues.QueueQueryResponse)
    consumer.send(sessions.Start())
    consumer.send(sessions.ConsumerCredits(0, -1))
    producer = _Session(port, "producer", 1024 * 1024)
    message = Message(QUEUE, bytes(body_size), durable=True)
    message.routing_type = RoutingType.ANYCAST
    frames = (
        messages.Send(message, requires_response=True, correlation_id=1),
        messages.Acknowledge(0, 0, requires_response=False),
    )
    descriptors = [one.socket.fileno() for one in (producer, consumer)]
    for one in (producer, consumer):
        one.socket.setblocking(True)
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder, str(number)) for number in range(len(frames))]
        for file, packet in zip(files, frames, strict=True):
            file.write_bytes(packet.frame(CHANNEL, VERSION))
        done = subprocess.run(
            [*map(str, (binary, *descriptors, *files, warm, seconds))],
            pass_fds=descriptors,
            capture_output=True,
            text=True,
        )
    for one in (producer, consumer):
        one.socket.close()
    if done.returncode:
        raise Unavailable(f"core_ping: {done.stderr.strip()}")
    found: dict[str, float] = json.loads(done.stdout)
    return found
