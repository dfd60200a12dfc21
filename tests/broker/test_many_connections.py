"""10,000 clients that have logged in and do nothing, as far as this machine lets them."""

import contextlib
import resource
import socket
from pathlib import Path

import pytest

from broker.protocols.core import packet_connection as connections
from broker.protocols.core import versions
from broker.protocols.core.frames import MAGIC, FrameReader
from tests.broker.wire_client import WAIT_S, WireClient
from tests.interop.our_broker import OurBroker

COUNT = 10_000
# Descriptors for everything else.
SPARE = 300
AT_ONCE = 100
# Of the broker's memory, for a connection with a session. 5 KiB were seen.
EACH_MAX = 40 * 1024


@pytest.fixture
def count():
    """How many connections this process may have."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    yield min(COUNT, hard - SPARE)
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


def has_session(peer):
    frames = FrameReader()
    answer = connections.CreateSessionResponse(versions.CURRENT)
    wanted = dict.fromkeys(number for _, number in type(answer).types)
    while data := peer.recv(4096):
        if any(kind in wanted for kind, _, _ in frames.feed(data)):
            return True
    return False


def memory(process):
    """Bytes of a process that are in memory."""
    for line in Path(f"/proc/{process.pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("no VmRSS")


@pytest.mark.slow
def test_idle_connections_are_kept_and_others_served(tmp_path, count, figures):
    broker = OurBroker(tmp_path, options=("--no-persistence", "--allow-anonymous"))
    with WireClient(broker.port, "first") as client, contextlib.ExitStack() as stack:
        client.queue("q")
        before = memory(broker.process)
        idle = []
        while len(idle) < count:
            some = []
            for _ in range(min(AT_ONCE, count - len(idle))):
                peer = socket.create_connection(("127.0.0.1", broker.port), WAIT_S)
                stack.enter_context(peer)
                peer.sendall(greeting(f"idle-{len(idle) + len(some)}"))
                some.append(peer)
            assert all(map(has_session, some))
            idle += some

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

    figures("idle connections", connections=count, bytes_each=each)
    assert each < EACH_MAX
    assert broker.end() == 0
    assert "Traceback" not in broker.log()
