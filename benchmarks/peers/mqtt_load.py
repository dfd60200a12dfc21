"""A client of MQTT 3.1.1 that costs little: pairs of a producer and a consumer, each with a topic.

    python -m benchmarks.peers.mqtt_load PORT USER PASSWORD PAIRS WINDOW SIZE KIND RATE WARM TIME

Arguments and output are those of load.py. Producers publish at QoS 1, so that each message is
confirmed. `durable` has consumers at QoS 1 whose sessions stay, and which confirm each message;
`volatile` has consumers at QoS 0. KIND `fan-out` is another load: see mqtt_fan_out.py.

Packets are made beforehand. Of what a consumer gets, heads, lengths and identifiers are read.
"""

from __future__ import annotations

import struct
import sys
from typing import TYPE_CHECKING

from benchmarks.peers import mqtt_fan_out
from benchmarks.peers.load import RECEIVE_SIZE, Producer, parsed, received, run
from benchmarks.peers.mqtt_client import QOS_1, log_in, publish_packet, subscribe

if TYPE_CHECKING:
    import socket

_PUBACK = 0x4002
_ACKNOWLEDGEMENT = struct.Struct(">HH")
_PUBLISH, _TYPE = 0x30, 0xF0


class Sender(Producer):
    """A producer at QoS 1. Each open message has an identifier of its own."""

    def __init__(self, connection: socket.socket, topic: str, body: bytes, window: int) -> None:
        super().__init__(connection, window)
        self._free = list(range(1, window + 1))
        self._packets = [publish_packet(topic, body, one) for one in range(window + 1)]
        self._sent = [0.0] * (window + 1)
        self._rest = b""

    def _send(self, now: float, count: int) -> None:
        taken = self._free[:count]
        del self._free[:count]
        for one in taken:
            self._sent[one] = now
        self.connection.sendall(b"".join([self._packets[one] for one in taken]))

    def _confirmed(self) -> list[float]:
        data = self._rest + received(self.connection)
        whole = len(data) - len(data) % _ACKNOWLEDGEMENT.size
        self._rest = data[whole:]
        confirmed = []
        for head, identifier in _ACKNOWLEDGEMENT.iter_unpack(data[:whole]):
            if head != _PUBACK:
                raise SystemExit(f"the producer got {data[:100].hex()}")
            confirmed.append(identifier)
        self._free += confirmed
        return [self._sent[one] for one in confirmed]


class Receiver:
    """A consumer, all of whose packets have one length; at QoS 1 it confirms them.

    Args:
        connection: of its own.
        packet: a packet as it will come, but for its flags and identifier.
        identifier_at: where the identifier is, 0: there is none.
    """

    def __init__(self, connection: socket.socket, packet: bytes, identifier_at: int) -> None:
        self.connection = connection
        self._length = len(packet)
        self._identifier_at = identifier_at
        self._qos = packet[0] & QOS_1
        # The length of what follows, as it is written.
        self._written = packet[1:3] if packet[1] > 127 else packet[1:2]
        self._buffer = bytearray(RECEIVE_SIZE)
        self._view = memoryview(self._buffer)
        self._held = 0

    def read(self) -> int:
        """How many more messages have come."""
        size = self.connection.recv_into(self._view[self._held :])
        if not size:
            raise SystemExit("the broker has closed the connection")
        held = self._held + size
        count = held // self._length
        whole = count * self._length
        self._check(count, whole)
        if self._identifier_at and count:
            self._confirm(count, whole)
        self._held = held - whole
        self._buffer[: self._held] = self._buffer[whole:held]
        return count

    def _check(self, count: int, whole: int) -> None:
        """Refuse what is not as it was to be: the flag DUP does not count."""
        step = self._length
        is_right = all(
            head & _TYPE == _PUBLISH and head & QOS_1 == self._qos
            for head in set(self._buffer[:whole:step])
        )
        for at, byte in enumerate(self._written, 1):
            is_right &= self._buffer[at:whole:step].count(byte) == count
        if not is_right:
            raise SystemExit(f"the consumer got {self._buffer[:100].hex()}")

    def _confirm(self, count: int, whole: int) -> None:
        answers = bytearray(_PUBACK.to_bytes(2, "big") + b"\0\0") * count
        at, step = self._identifier_at, self._length
        answers[2::4] = self._buffer[at:whole:step]
        answers[3::4] = self._buffer[at + 1 : whole : step]
        self.connection.sendall(answers)


def main(words: list[str]) -> None:
    """Measure."""
    arguments = parsed(words)
    if arguments.kind == "fan-out":
        mqtt_fan_out.run(arguments)
        return
    account = arguments.port, arguments.user, arguments.password
    is_durable = arguments.kind == "durable"
    body = b"x" * arguments.size
    producers, consumers = [], []
    for number in range(arguments.pairs):
        topic = f"load-{number}"
        connection = log_in(*account, f"consumer-{number}", is_clean=not is_durable)
        subscribe(connection, topic, 1 if is_durable else 0)
        packet = publish_packet(topic, body, 1 if is_durable else 0)
        at = len(packet) - len(body) - 2 if is_durable else 0
        consumers.append(Receiver(connection, packet, at))
        sending = log_in(*account, f"producer-{number}")
        producers.append(Sender(sending, topic, body, arguments.window))
    run(producers, consumers, arguments)


if __name__ == "__main__":
    main(sys.argv[1:])
