"""Peers that mean no good, or are gone: the broker stays small, and serves the others."""

import contextlib
import itertools
import random
import select
import socket
import struct
import time
from pathlib import Path

import pytest

from broker.model.message import Message
from broker.protocols.core import packet_connection as connections
from broker.protocols.core import packet_message as messages
from broker.protocols.core import packet_queue as queues
from broker.protocols.core import versions
from broker.protocols.core.frames import HEADER, MAGIC, encode_frame
from broker.protocols.core.handler import FRAME_MAX, UNAUTHENTICATED_FRAME_MAX
from broker.protocols.core.packets import PACKETS
from tests.broker.serve import BrokerProcess
from tests.broker.wire_client import CHANNEL, WAIT_S, WireClient

HANDSHAKE_S = 0.5
MIB = 1024 * 1024
CAPTURED = Path(__file__).parent / "protocols" / "core" / "captured.txt"


@pytest.fixture(scope="module")
def broker():
    running = BrokerProcess("-", handshake_s=HANDSHAKE_S)
    with WireClient(running.port, "first") as client:
        client.queue("q")
        exchange(client, "warm")
    yield running
    assert running.stop() == 0


def exchange(client, text):
    """A message there and back."""
    client.send("q", text, 1)
    client.confirmed()
    client.consume("q")
    got, message_id, _ = client.receive()
    client.acknowledge(message_id)
    assert got == text


def serves(broker):
    """Somebody else is served."""
    with WireClient(broker.port, "other") as client:
        exchange(client, "for others")


def memory(broker):
    """Bytes of the broker's process that are in memory."""
    for line in Path(f"/proc/{broker.process.pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("no VmRSS")


def descriptors(broker):
    return len(list(Path(f"/proc/{broker.process.pid}/fd").iterdir()))


def connect(broker):
    return socket.create_connection(("127.0.0.1", broker.port), WAIT_S)


def half_close(peer):
    """Send no more; the broker may have closed it before."""
    with contextlib.suppress(OSError):
        peer.shutdown(socket.SHUT_WR)


def is_closed(peer):
    """Wait until the broker has closed it; whatever it says before that is thrown away."""
    try:
        while peer.recv(65536):
            pass
    except ConnectionError:
        pass
    return True


def send_until_refused(peer, data, size):
    """Send so many bytes, or as many as the broker lets come."""
    peer.settimeout(WAIT_S)
    sent = 0
    try:
        while sent < size:
            sent += peer.send(data)
    except ConnectionError:
        pass
    return sent


@pytest.mark.parametrize(
    "length", [2**31 - 1, -1, -(2**31), 0, 8, UNAUTHENTICATED_FRAME_MAX - 3], ids=str
)
def test_an_impossible_length_ends_the_connection_and_takes_no_memory(broker, length):
    before = memory(broker)
    with connect(broker) as peer:
        peer.sendall(MAGIC + struct.pack(">i", length))
        send_until_refused(peer, bytes(65536), 8 * MIB)

        assert is_closed(peer)
    assert memory(broker) - before < 4 * MIB
    serves(broker)


def test_after_login_a_frame_may_be_larger_and_not_larger_than_that(broker):
    with WireClient(broker.port, "large") as client:
        client.queue("q")
        large = Message("q", bytes(1 * MIB), durable=False)
        client.put(messages.Send(large, requires_response=True, correlation_id=1))
        client.confirmed()
        client.put(queues.DeleteQueue("q"))
        client.get(connections.NullResponse)
        client.queue("q")
        client._socket.sendall(struct.pack(">i", FRAME_MAX))

        assert is_closed(client._socket)
    serves(broker)


@pytest.mark.parametrize("number", sorted(PACKETS))
def test_no_packet_does_anything_before_login(broker, number):
    before = descriptors(broker)
    with connect(broker) as peer:
        peer.sendall(MAGIC)
        for channel, body in itertools.product((0, 1, CHANNEL, -1, 2**63 - 1), (b"", bytes(40))):
            try:
                peer.sendall(encode_frame(number, channel, body))
            except ConnectionError:
                break
        half_close(peer)
        assert is_closed(peer)
    until(lambda: descriptors(broker) <= before)


def test_garbage_of_a_known_session_ends_that_connection_alone(broker):
    seeded = random.Random(7)
    with WireClient(broker.port, "patient") as patient:
        for number in sorted(PACKETS):
            client = WireClient(broker.port, f"garbage-{number}")
            body = seeded.randbytes(seeded.randrange(60))
            with client:
                client._socket.sendall(encode_frame(number, CHANNEL, body))
                half_close(client._socket)
                assert is_closed(client._socket)
        exchange(patient, "still here")


def test_a_real_conversation_with_wrong_bytes_ends_nothing_else(broker):
    """What a client of Artemis sent, with some bytes changed."""
    seeded = random.Random(8)
    lines = CAPTURED.read_text().splitlines()
    frames = [bytes.fromhex(line[2:]) for line in lines if line.startswith("C ")]
    sent = MAGIC + b"".join(frames)
    assert len(sent) > 1000
    with WireClient(broker.port, "patient") as patient:
        for _ in range(60):
            changed = bytearray(sent)
            for _ in range(seeded.randrange(1, 6)):
                changed[seeded.randrange(len(MAGIC), len(changed))] = seeded.randrange(256)
            with connect(broker) as peer:
                send_until_refused(peer, bytes(changed), 1)
                half_close(peer)
                assert is_closed(peer)
        exchange(patient, "still here")


def until(holds):
    """Wait for what only has to happen at all."""
    deadline = time.monotonic() + WAIT_S
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def is_readable(peer):
    """Whether something, or the end, is there; select() knows no descriptor above 1024."""
    poll = select.poll()
    poll.register(peer, select.POLLIN)
    return bool(poll.poll(0))


@pytest.mark.slow
def test_who_says_nothing_or_one_byte_at_a_time_is_closed(broker):
    before = descriptors(broker)
    silent = [connect(broker) for _ in range(200)]
    for peer in (half_closed := [connect(broker) for _ in range(20)]):
        peer.shutdown(socket.SHUT_WR)
    slow = [connect(broker) for _ in range(50)]
    # Half of them get as far as a frame.
    for peer in slow[:25]:
        peer.sendall(MAGIC + HEADER.pack(60_000, 30, 1))
    still = set(slow)
    deadline = time.monotonic() + WAIT_S
    while still:
        assert time.monotonic() < deadline
        for peer in tuple(still):
            try:
                peer.send(b"A")
                if is_readable(peer) and not peer.recv(1):
                    still.discard(peer)
            except ConnectionError:
                still.discard(peer)
        serves(broker)
        time.sleep(0.1)

    assert all(map(is_closed, silent + half_closed))
    for peer in silent + half_closed + slow:
        peer.close()
    until(lambda: descriptors(broker) <= before)


@pytest.mark.slow
def test_a_client_that_stops_reading_takes_no_memory(broker):
    with WireClient(broker.port, "filler") as filler:
        filler.queue("deaf")
        for number in range(4000):
            filler.send("deaf", "x" * 10_000, number)
            if number >= 64:
                filler.confirmed()
        before = memory(broker)
        with WireClient(broker.port, "deaf") as deaf:
            deaf.consume("deaf")
            # What is on its way fills the kernel's buffers, and then no more of it is written.
            time.sleep(1)
            assert memory(broker) - before < 8 * MIB
            serves(broker)
        filler.put(queues.DeleteQueue("deaf"))


@pytest.mark.slow
def test_a_client_that_asks_and_never_listens_is_not_read_from(broker):
    before = memory(broker)
    with WireClient(broker.port, "asking") as asking:
        asking._socket.setblocking(False)
        questions = queues.QueueQuery("q").frame(CHANNEL, versions.CURRENT) * 1000
        sent, quiet_since = 0, time.monotonic()
        while time.monotonic() - quiet_since < 3:
            try:
                sent += asking._socket.send(questions)
                quiet_since = time.monotonic()
            except BlockingIOError:
                time.sleep(0.01)
            assert sent < 64 * MIB, "everything is read, and every answer kept"
        assert memory(broker) - before < 16 * MIB
        serves(broker)


@pytest.mark.slow
def test_what_a_peer_that_is_gone_had_goes_to_others(broker):
    """A connection that is never closed: the cable is cut."""
    with WireClient(broker.port, "gone") as gone, WireClient(broker.port, "next") as following:
        following.queue("handed over")
        following.send("handed over", "text", 1)
        following.confirmed()
        gone.consume("handed over")
        assert gone.receive()[0] == "text"
        gone.put(connections.Ping(500), 0)
        following.consume("handed over")

        text, _, is_marked = following.receive()

        assert (text, is_marked) == ("text", True)
        assert is_closed(gone._socket)
