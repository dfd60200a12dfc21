"""10,000 clients that have logged in and do nothing, as far as this machine lets them.

MQTT's are in protocols/mqtt/test_idle_sessions.py.
"""

import contextlib
import resource
import socket
import struct
from pathlib import Path

import pytest

from broker.protocols.core import packet_connection as connections
from broker.protocols.core import versions
from broker.protocols.core.frames import MAGIC, FrameReader
from broker.protocols.openwire import commands as openwire
from broker.protocols.openwire.framing import FrameReader as OpenWireFrames
from broker.protocols.openwire.identifiers import ConnectionId, SessionId
from broker.protocols.openwire.wire_format import Agreement, WireFormatInfo, own_wire_format
from tests.broker.wire_client import WAIT_S, WireClient
from tests.interop.our_broker import OurBroker

COUNT = 10_000
LEAST = 1000
# Descriptors for everything else.
SPARE = 300
# Before it is measured: what the first ones make is there for all.
WARM = 200
KIB = 1024
# Bytes of the broker's memory for a connection with a session. 6 KiB are promised. A connection of
# OpenWire has two sessions: its own, and the client's. The engine of AMQP takes 17 KiB for itself.
EACH_MAX = {"core": 6 * KIB, "stomp": 6 * KIB, "openwire": 8.5 * KIB, "amqp": 35 * KIB}


@pytest.fixture
def count(effort):
    """How many connections this process may have, and the run asks for."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    yield min(effort(COUNT, least=LEAST), hard - SPARE - WARM)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def greeting(name):
    """All that a client says until it has a session, without waiting for answers."""
    session = connections.CreateSession(
        name,
        10,
        versions.CURRENT,
        None,
        None,
        102400,
        xa=False,
        auto_commit_sends=True,
        auto_commit_acks=True,
        window_size=-1,
        pre_acknowledge=False,
        default_address=None,
    )
    for_ever = connections.Ping(-1).frame(0, versions.CURRENT)
    return MAGIC + for_ever + session.frame(connections.SESSION_CHANNEL, versions.CURRENT)


def core(peer, name):
    """Log in, and have a session."""
    peer.sendall(greeting(name))
    frames = FrameReader()
    answer = connections.CreateSessionResponse(versions.CURRENT)
    wanted = dict.fromkeys(number for _, number in type(answer).types)
    while data := peer.recv(4096):
        if any(kind in wanted for kind, _, _ in frames.feed(data)):
            return
    raise AssertionError("the broker has left")


def stomp(peer, name):
    peer.sendall(f"CONNECT\naccept-version:1.2\nhost:/\nclient-id:{name}\n\n\0".encode())
    assert until(peer, b"\0").startswith(b"CONNECTED\n")


def amqp(peer, name):
    """A container and a session, without SASL."""
    container = name.encode()
    opening = described(0x10, 1, b"\xa1" + bytes([len(container)]) + container)
    # No channel of the peer's, the first id, and two windows.
    window = b"\x70" + struct.pack(">I", 1000)
    peer.sendall(b"AMQP\0\1\0\0" + opening + described(0x11, 4, b"\x40\x43" + window + window))
    until(peer, b"\0\x53\x11")


def described(code, count, fields):
    """A frame of channel 0 whose body is a list."""
    body = b"\0\x53" + bytes([code]) + b"\xc0" + bytes([len(fields) + 1, count]) + fields
    return struct.pack(">IBBH", len(body) + 8, 2, 0, 0) + body


def until(peer, word):
    """What comes up to a word, and perhaps behind it."""
    found = b""
    while word not in found:
        data = peer.recv(4096)
        assert data, found
        found += data
    return found


def open_wire(peer, name):
    own = own_wire_format(max_inactivity_ms=0, initial_delay_ms=0, max_frame_size=2**30)
    peer.sendall(own.encode())
    frames = OpenWireFrames(2**30)

    def frame():
        while (found := frames.next()) is None:
            data = peer.recv(4096)
            assert data, "the broker has left"
            frames.feed(data)
        return found

    agreed = Agreement(own, WireFormatInfo.decode(frame()))
    for number, command in enumerate(
        (
            openwire.ConnectionInfo(connection_id=ConnectionId(name), client_id=name),
            openwire.SessionInfo(session_id=SessionId(name, 1)),
        )
    ):
        command.command_id, command.response_required = number, True
        peer.sendall(agreed.write(command))
        while not isinstance(answer := agreed.reader(frame()).command(), openwire.Response):
            pass
        assert not isinstance(answer, openwire.ExceptionResponse), answer.exception


LOGIN = {"core": core, "stomp": stomp, "openwire": open_wire, "amqp": amqp}


def memory(process):
    """Bytes of a process that are in memory."""
    for line in Path(f"/proc/{process.pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("no VmRSS")


def open_all(stack, port, log_in, first, count):
    """Clients that have a session, one after another."""
    found = []
    for number in range(first, first + count):
        peer = stack.enter_context(socket.create_connection(("127.0.0.1", port), WAIT_S))
        log_in(peer, f"idle-{number}")
        found.append(peer)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("protocol", LOGIN)
def test_idle_connections_are_kept_and_others_served(tmp_path, count, figures, protocol):
    # They may say nothing for as long as it takes.
    silent = ("</acceptor>", "?connectionTtl=3600000;amqpIdleTimeout=0</acceptor>")
    broker = OurBroker(tmp_path, silent, options=("--no-persistence", "--allow-anonymous"))
    with WireClient(broker.port, "first") as client, contextlib.ExitStack() as stack:
        client.queue("q")
        open_all(stack, broker.port, LOGIN[protocol], 0, WARM)
        before = memory(broker.process)

        idle = open_all(stack, broker.port, LOGIN[protocol], WARM, count)

        each = (memory(broker.process) - before) // count
        client.consume("q")
        for number in range(1000):
            client.send("q", str(number), number)
            client.confirmed()
            text, message_id, _ = client.receive()
            client.acknowledge(message_id)
            assert text == str(number)
        for peer in idle:
            peer.setblocking(False)
            with pytest.raises(BlockingIOError):
                peer.recv(1)

    figures(f"idle connections of {protocol}", connections=count, bytes_each=each)
    assert each < EACH_MAX[protocol]
    assert broker.end() == 0
    assert "Traceback" not in broker.log()
