"""The frame of a load on a broker by raw sockets: pairs of a producer and a consumer, one process.

A load of a protocol (stomp_load.py, mqtt_load.py) connects them and hands them to `run`. All take
the same arguments, which are those of java/Load.java too, and print the same JSON:

    PORT USER PASSWORD PAIRS WINDOW SIZE KIND RATE WARM TIME

WINDOW messages of a producer, of SIZE bytes each, may be open, that is without a confirmation.
KIND is `durable` or `volatile`. RATE is that of all producers together, each message at its moment;
0 is as many as it goes. Printed are messages a second that were confirmed and received in TIME
seconds behind the first WARM seconds, and percentiles in us. These are of the time from the moment
at which a message was to be sent to its confirmation.
"""

from __future__ import annotations

import json
import resource
import selectors
import socket
import time
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

RECEIVE_SIZE = 256 * 1024


class Arguments(NamedTuple):
    """What a load is to do."""

    port: int
    user: str
    password: str
    pairs: int
    window: int
    size: int
    kind: str
    rate: int
    warm: float
    seconds: float


def parsed(words: Sequence[str]) -> Arguments:
    """Read the arguments of a command."""
    port, user, password, pairs, window, size, kind, rate, warm, seconds = words
    return Arguments(
        *(int(port), user, password, int(pairs), int(window), int(size), kind, int(rate)),
        *(float(warm), float(seconds)),
    )


def connect(port: int) -> socket.socket:
    """A connection that sends at once."""
    made = socket.create_connection(("127.0.0.1", port))
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return made


def received(connection: socket.socket) -> bytes:
    """What has come; the end of a connection ends the load."""
    data = connection.recv(RECEIVE_SIZE)
    if not data:
        raise SystemExit("the broker has closed the connection")
    return data


def raise_file_limit() -> None:
    """Let this process, and those that it starts, open as many files as it may."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


class Consumer(Protocol):
    """One consumer."""

    connection: socket.socket

    def read(self) -> int:
        """How many more messages have come."""


class Producer(ABC):
    """One producer.

    Args:
        connection: of its own.
        window: how many messages may be open.
    """

    def __init__(self, connection: socket.socket, window: int) -> None:
        self.connection = connection
        self._window = window
        self._open = 0

    @property
    def has_room(self) -> bool:
        """Whether one more may be open."""
        return self._open < self._window

    def fill(self, now: float, due: int | None = None) -> None:
        """Send as many as the window has room for, or as are due."""
        count = self._window - self._open
        if due is not None:
            count = min(count, due)
        if count > 0:
            self._open += count
            self._send(now, count)

    def read(self) -> list[float]:
        """When those were sent that are confirmed now."""
        moments = self._confirmed()
        self._open -= len(moments)
        return moments

    @abstractmethod
    def _send(self, now: float, count: int) -> None:
        """Send messages, and keep the moment."""

    @abstractmethod
    def _confirmed(self) -> list[float]:
        """Read what has come: the moments of the messages that it confirms."""


def run(producers: Sequence[Producer], consumers: Sequence[Consumer], arguments: Arguments) -> None:
    """Drive them and print what was measured."""
    select = selectors.DefaultSelector()
    for producer in producers:
        select.register(producer.connection, selectors.EVENT_READ, (producer, None))
    for consumer in consumers:
        select.register(consumer.connection, selectors.EVENT_READ, (None, consumer))
    rate, pairs = arguments.rate, len(producers)
    latencies: list[float] = []
    confirmed = came = 0
    began = time.perf_counter()
    start = began + arguments.warm
    end = start + arguments.seconds
    interval = pairs / rate if rate else 0.0
    next_at = [began + interval * number / pairs for number in range(pairs)]
    now = began
    while now < end:
        for number, producer in enumerate(producers):
            if not rate:
                producer.fill(now)
                continue
            while next_at[number] <= now and producer.has_room:
                producer.fill(next_at[number], 1)
                next_at[number] += interval
        # A broker that stalls does not stall the measure.
        timeout = max(0.0, min(next_at) - now) if rate else end - now
        for key, _ in select.select(timeout):
            sender, receiver = key.data
            if sender is not None:
                moments = sender.read()
                now = time.perf_counter()
                if now >= start:
                    confirmed += len(moments)
                    latencies += [now - one for one in moments]
            else:
                count = receiver.read()
                if time.perf_counter() >= start:
                    came += count
        now = time.perf_counter()
    report(confirmed, came, latencies, arguments.seconds)


def report(confirmed: int, came: int, latencies: list[float], seconds: float) -> None:
    """Print the figures."""
    if not latencies:
        raise SystemExit(f"nothing was confirmed in {seconds} seconds, {came} received")
    latencies.sort()
    print(
        json.dumps(
            {
                "confirmed_per_s": confirmed / seconds,
                "received_per_s": came / seconds,
                "p50_us": 1e6 * latencies[len(latencies) // 2],
                "p99_us": 1e6 * latencies[len(latencies) * 99 // 100],
            }
        )
    )
