"""What a session of MQTT costs that does nothing: connected, subscribed, or waiting for its client.

10,000 of them, and 100,000 in a soak. Those with a connection are as many as one process may have
sockets here.
"""

import contextlib
import resource
import socket

import pytest

from broker.protocols.mqtt.encoding import encode
from broker.protocols.mqtt.framing import Framing, Limits
from broker.protocols.mqtt.packets import (
    Connack,
    Connect,
    Disconnect,
    Filter,
    Publish,
    Suback,
    Subscribe,
    Version,
)
from broker.protocols.mqtt.properties import PropertyId
from tests.broker.test_many_connections import memory
from tests.broker.wire_client import WAIT_S
from tests.interop.our_broker import OurBroker

COUNTS = [10_000, pytest.param(100_000, marks=pytest.mark.soak)]
# Connections from one address: of its 28,000 ports the first half is found at once.
OF_AN_ADDRESS = 10_000
# Fewer say nothing: the process grows by pages.
LEAST = 1000
# Before it is measured: what the first ones make is there for all.
WARM = 200
AT_ONCE = 100
# Of Linux; Python has no name for it before 3.12.
IP_BIND_ADDRESS_NO_PORT = 24
# Descriptors for everything else.
SPARE = 300
KIB = 1024
# Bytes of the broker's memory: 6 KiB are promised for a session. A subscription is a queue more,
# and a consumer while its client is there.
EACH_MAX = {"connected": 6 * KIB, "subscribed": 15 * KIB, "waiting": 8 * KIB}


@pytest.fixture
def sockets():
    """How many this process may have for sessions."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    yield hard - SPARE - WARM
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


class Client:
    """One that waits for each answer."""

    def __init__(self, port, number=0):
        self.socket = socket.socket()
        self.socket.settimeout(WAIT_S)
        # A port is chosen for this peer when it connects; bind() alone looks for one that is free.
        self.socket.setsockopt(socket.IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1)
        self.socket.bind((f"127.0.0.{1 + number // OF_AN_ADDRESS}", 0))
        self.socket.connect(("127.0.0.1", port))
        self.framing = Framing(Limits(KIB, -1))
        self.framing.version = Version.V5

    def put(self, *packets):
        self.socket.sendall(b"".join(encode(one, Version.V5) for one in packets))

    def get(self, kind):
        while (found := self.framing.next()) is None:
            data = self.socket.recv(4096)
            assert data, "the broker has left"
            self.framing.feed(data)
        assert isinstance(found, kind), found
        return found

    def is_left_alone(self):
        self.socket.setblocking(False)
        with pytest.raises(BlockingIOError):
            self.socket.recv(1)
        return True


def open_some(stack, port, numbers, kind):
    """Sessions of a kind, those with a connection among them left open."""
    clients = []
    for number in numbers:
        clients.append(Client(port, number))
        stack.enter_context(clients[-1].socket)
    for client, number in zip(clients, numbers, strict=True):
        name = f"c{number}"
        expiry = {PropertyId.SESSION_EXPIRY_INTERVAL: 3600}
        client.put(Connect(Version.V5, name, True, 0, properties=expiry))
        if kind != "connected":
            client.put(Subscribe(1, (Filter(f"idle/{name}", 1),)))
    for client in clients:
        client.get(Connack)
        if kind != "connected":
            client.get(Suback)
        if kind == "waiting":
            client.put(Disconnect())
            assert client.socket.recv(1) == b""
            client.socket.close()
    return [] if kind == "waiting" else clients


def open_all(stack, port, first, count, kind):
    """Those that are left open, of so many."""
    return [
        client
        for start in range(first, first + count, AT_ONCE)
        for client in open_some(
            stack, port, range(start, min(start + AT_ONCE, first + count)), kind
        )
    ]


@pytest.mark.slow
@pytest.mark.parametrize("full", COUNTS)
@pytest.mark.parametrize("kind", EACH_MAX)
def test_an_idle_session_takes_little_memory(tmp_path, sockets, effort, figures, kind, full):
    count = effort(full, least=LEAST)
    if kind != "waiting":
        count = min(count, sockets)
    # They may say nothing for as long as it takes.
    silent = ("</acceptor>", "?serverKeepAlive=0</acceptor>")
    broker = OurBroker(tmp_path, silent, options=("--no-persistence", "--allow-anonymous"))
    with contextlib.ExitStack() as stack:
        stack.callback(broker.ensure_ended)
        open_all(stack, broker.port, 0, WARM, kind)
        before = memory(broker.process)

        idle = open_all(stack, broker.port, WARM, count, kind)

        each = (memory(broker.process) - before) // count
        # Another client is served meanwhile; these stay idle.
        busy = Client(broker.port)
        stack.enter_context(busy.socket)
        busy.put(Connect(Version.V5, "busy", True, 0), Subscribe(1, (Filter("t", 0),)))
        busy.put(Publish("t", b"served", 0))
        busy.get(Connack)
        busy.get(Suback)
        assert busy.get(Publish).payload == b"served"
        assert all(client.is_left_alone() for client in idle)

        figures(f"idle sessions of MQTT, {kind}", sessions=count, bytes_each=each)
        assert each < EACH_MAX[kind]
        assert broker.end() == 0
    assert "Traceback" not in broker.log()
