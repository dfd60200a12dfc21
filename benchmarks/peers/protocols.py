"""Protocols by which ours is measured beside others: who speaks them, and what loads a port.

A protocol is a name, its peers, each with how it starts and how a client gets in, what loads a port
of theirs, and the cases with their targets. All loads take the arguments of load.py, whatever they
are written in, and print its JSON.
"""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.peers import jms_loads, mosquitto, nats, rabbitmq
from benchmarks.peers.brokers import PASSWORD, USER, artemis, ours
from benchmarks.peers.classic import classic
from benchmarks.peers.mqtt_client import connect_packet

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from benchmarks.peers.process import Broker

OURS = "ours"


class Case(NamedTuple):
    """What a load does.

    Args:
        title: as it is shown.
        pairs: producers, each with a consumer; of a fan-out, consumers.
        window: messages of a producer that wait to be confirmed.
        kind: `durable`, `volatile` or `fan-out`.
        targets: what is asked for, ours over theirs, by the name of the broker.
        rate: messages a second of all producers together; 0 as many as it goes. With a rate all
            have the same load, and what is asked for is a tail, which is to be below the target.
        size: of a body, in bytes.
    """

    title: str
    pairs: int
    window: int
    kind: str
    targets: dict[str, float]
    rate: int = 0
    size: int = 1024

    @property
    def counted(self) -> str:
        """Name of the figure that is compared."""
        return "received_per_s" if self.kind == "fan-out" else "confirmed_per_s"


class Peer(NamedTuple):
    """A broker, and how one gets in.

    Args:
        start: in a folder; its port is the protocol's.
        user: of the client.
        password: likewise.
        client: where it needs another one than the protocol's.
    """

    start: Callable[[Path], Broker]
    user: str = USER
    password: str = PASSWORD
    client: Callable[[], list[str]] | None = None


class Protocol(NamedTuple):
    """One protocol.

    Args:
        client: gives the command that loads a port, without its arguments.
        peers: by their names, ours first.
        cases: in order.
        uri: what the client takes for a port, which is `{}`.
    """

    client: Callable[[], list[str]]
    peers: dict[str, Peer]
    cases: tuple[Case, ...]
    uri: str = "{}"

    def command(self, peer: Peer, port: int, case: Case) -> list[str]:
        """Give what loads a broker; how long follows.

        Raises:
            Unavailable: what the client needs is not there.
        """
        client = peer.client or self.client
        return [
            *(*client(), self.uri.format(port), peer.user, peer.password),
            *(str(case.pairs), str(case.window), str(case.size), case.kind, str(case.rate)),
        ]


def _python(module: str) -> Callable[[], list[str]]:
    return lambda: [sys.executable, "-m", f"benchmarks.peers.{module}"]


def _ours(folder: Path) -> Broker:
    """Ours: each acceptor finds the protocol out."""
    return ours(folder, None)


def _artemis(folder: Path) -> Broker:
    """Artemis, in the same way."""
    return artemis(folder, None)


def _rabbitmq(plugin: rabbitmq.Plugin, client: Callable[[], list[str]] | None = None) -> Peer:
    start = partial(rabbitmq.rabbitmq, database=None, plugin=plugin)
    return Peer(start, rabbitmq.USER, rabbitmq.PASSWORD, client)


def _classic(protocol: str) -> Peer:
    return Peer(partial(classic, protocol=protocol))


# Artemis and Classic have one target: it is asked for of the faster one.
DURABLE = {"artemis": 1.5, "classic": 1.5, "rabbitmq": 1.0}
TAIL = {"artemis": 1.0, "classic": 1.0, "rabbitmq": 1.0}
FAN_OUT = {"mosquitto": 1.0}
PAIRS = (
    Case("1 one at a time", 1, 1, "durable", DURABLE),
    Case("1, 256 in flight", 1, 256, "durable", DURABLE),
    Case("16 one at a time", 16, 1, "durable", DURABLE),
    Case("16, 64 in flight each", 16, 64, "durable", DURABLE),
    Case("1, 256 in flight, not durable", 1, 256, "volatile", {}),
    Case("16, 64 in flight each, not durable", 16, 64, "volatile", {}),
    Case("1, 2,000 a second", 1, 256, "durable", TAIL, 2000),
)
FAN_OUTS = (
    Case("fan-out to 1", 1, 256, "fan-out", FAN_OUT, size=100),
    Case("fan-out to 100", 100, 64, "fan-out", FAN_OUT, size=100),
    Case("fan-out to 1,000", 1000, 16, "fan-out", FAN_OUT, size=100),
)

STOMP_HELLO = (
    "CONNECT\naccept-version:1.2\nhost:/\n"
    f"login:{rabbitmq.USER}\npasscode:{rabbitmq.PASSWORD}\n\n\0"
)
STOMP_PLUGIN = rabbitmq.Plugin(
    "rabbitmq_stomp", "stomp.listeners.tcp.1", STOMP_HELLO.encode(), b"CONNECTED"
)
MQTT_HELLO = connect_packet("hello", rabbitmq.USER, rabbitmq.PASSWORD)
MQTT_GREETING = b"\x20\x02\0\0"
MQTT_PLUGIN = rabbitmq.Plugin("rabbitmq_mqtt", "mqtt.listeners.tcp.1", MQTT_HELLO, MQTT_GREETING)
# It listens where RabbitMQ does; what answers is its first layer, which has the login.
AMQP_PLUGIN = rabbitmq.Plugin("rabbitmq_amqp1_0", "", b"AMQP\3\1\0\0", b"AMQP\3\1\0\0")

PROTOCOLS = {
    "stomp": Protocol(
        _python("stomp_load"),
        {
            OURS: Peer(_ours),
            "artemis": Peer(_artemis),
            "classic": _classic("stomp"),
            "rabbitmq": _rabbitmq(STOMP_PLUGIN),
        },
        PAIRS,
    ),
    "mqtt": Protocol(
        _python("mqtt_load"),
        {
            OURS: Peer(_ours),
            "artemis": Peer(_artemis),
            "classic": _classic("mqtt"),
            "rabbitmq": _rabbitmq(MQTT_PLUGIN),
            "mosquitto": Peer(
                partial(mosquitto.mosquitto, hello=MQTT_HELLO, greeting=MQTT_GREETING)
            ),
            "nats": Peer(partial(nats.mqtt, hello=MQTT_HELLO, greeting=MQTT_GREETING)),
        },
        PAIRS + FAN_OUTS,
    ),
    "amqp": Protocol(
        jms_loads.qpid,
        {
            OURS: Peer(_ours),
            "artemis": Peer(_artemis),
            "classic": _classic("amqp"),
            "rabbitmq": _rabbitmq(AMQP_PLUGIN, partial(jms_loads.qpid, jms_loads.RABBITMQ_PREFIX)),
        },
        PAIRS,
        jms_loads.AMQP,
    ),
    "openwire": Protocol(
        jms_loads.classic_client,
        {OURS: Peer(_ours), "artemis": Peer(_artemis), "classic": _classic("openwire")},
        PAIRS,
        jms_loads.OPENWIRE,
    ),
}
