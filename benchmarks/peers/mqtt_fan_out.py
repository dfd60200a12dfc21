"""One producer and many consumers of one topic by MQTT 3.1.1 at QoS 0; mqtt_load.py runs it.

Of load.py's arguments PAIRS is the number of consumers. WINDOW times as many deliveries may be on
their way: no broker has a reason to drop one. Received are deliveries a second. Confirmed are
messages that all consumers have, and times run until the last one has it.

The client counts bytes only: a delivery that is lost shows in that no more messages are confirmed.
"""

from __future__ import annotations

import select
import time
from collections import deque
from typing import TYPE_CHECKING

from benchmarks.peers.load import RECEIVE_SIZE, raise_file_limit, report
from benchmarks.peers.mqtt_client import log_in, publish_packet, subscribe

if TYPE_CHECKING:
    from benchmarks.peers.load import Arguments

_TOPIC = "load-0"
_STALLED_S = 10.0
# Microseconds between looks for the slowest consumer: a look at many costs what reading many does.
_LOOK_US_PER_CONSUMER = 1


def run(arguments: Arguments) -> None:
    """Measure."""
    raise_file_limit()
    account = arguments.port, arguments.user, arguments.password
    consumers = []
    for number in range(arguments.pairs):
        consumers.append(log_in(*account, f"consumer-{number}"))
        subscribe(consumers[-1], _TOPIC, 0)
    producer = log_in(*account, "producer")
    packet = publish_packet(_TOPIC, b"x" * arguments.size)
    length, window = len(packet), arguments.window
    each = length * len(consumers)
    poll = select.epoll()
    for consumer in consumers:
        poll.register(consumer, select.EPOLLIN)
    read = {one.fileno(): one.recv_into for one in consumers}
    bytes_of = dict.fromkeys(read, 0)
    buffer = bytearray(RECEIVE_SIZE)
    moments: deque[float] = deque()
    sent = done = total = 0
    latencies: list[float] = []
    start_total = start_done = 0
    now = time.perf_counter()
    start, end = now + arguments.warm, now + arguments.warm + arguments.seconds
    is_warm = False
    look_at, between = now, 1e-6 * _LOOK_US_PER_CONSUMER * len(consumers)
    while now < end:
        if not is_warm and now >= start:
            is_warm, start_total, start_done = True, total, done
        count = window - sent + total // each
        if count > 0:
            sent += count
            moments.extend([now] * count)
            producer.sendall(packet * count)
        events = poll.poll(_STALLED_S)
        if not events:
            raise SystemExit(
                f"stalled: {sent} messages were sent, {total // length} deliveries came"
            )
        for descriptor, _ in events:
            size = read[descriptor](buffer)
            if not size:
                raise SystemExit("the broker has closed the connection")
            bytes_of[descriptor] += size
            total += size
        now = time.perf_counter()
        if now >= look_at:
            look_at = now + between
            slowest = min(bytes_of.values()) // length
            over = [moments.popleft() for _ in range(slowest - done)]
            done = slowest
            if is_warm:
                latencies += [now - one for one in over]
    received = (total - start_total) // length
    report(done - start_done, received, latencies, arguments.seconds)
