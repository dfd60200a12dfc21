"""Peers that mean no good, in each protocol; tests/broker/test_hostile_peers.py is about Core's."""

import contextlib
import random
import time

import pytest

from tests.broker.protocols.hostile import SPEECHES
from tests.broker.serve import BrokerProcess
from tests.broker.test_hostile_peers import (
    HANDSHAKE_S,
    MIB,
    WAIT_S,
    connect,
    descriptors,
    half_close,
    is_closed,
    is_readable,
    memory,
    send_until_refused,
    serves,
    until,
)
from tests.broker.wire_client import WireClient

IMPOSSIBLE = [(name, what) for name, one in SPEECHES.items() for what in one.impossible]


@pytest.fixture(scope="module")
def broker():
    running = BrokerProcess("-", handshake_s=HANDSHAKE_S)
    with WireClient(running.port, "first") as client:
        client.queue("q")
    serves(running)
    for speech in SPEECHES.values():
        # What is read for the first client of a protocol counts for none of them.
        with connect(running) as peer:
            peer.sendall(speech.login)
            assert peer.recv(1)
    yield running
    assert running.stop() == 0


@pytest.mark.parametrize(("protocol", "what"), IMPOSSIBLE)
def test_an_impossible_length_ends_the_connection_and_takes_no_memory(broker, protocol, what):
    before, opened = memory(broker), descriptors(broker)
    with connect(broker) as peer:
        peer.sendall(SPEECHES[protocol].impossible[what])
        send_until_refused(peer, b"x" * 65536, 8 * MIB)

        assert is_closed(peer)
    assert memory(broker) - before < 4 * MIB
    until(lambda: descriptors(broker) <= opened)
    serves(broker)


@pytest.mark.parametrize("protocol", SPEECHES)
def test_a_login_with_wrong_bytes_ends_nothing_else(broker, protocol):
    seeded, said = random.Random(9), SPEECHES[protocol].login + SPEECHES[protocol].questions
    opened = descriptors(broker)
    with WireClient(broker.port, "patient"):
        for _ in range(60):
            changed = bytearray(said)
            for _ in range(seeded.randrange(1, 6)):
                changed[seeded.randrange(8, len(changed))] = seeded.randrange(256)
            with connect(broker) as peer:
                send_until_refused(peer, bytes(changed), 1)
                half_close(peer)
                assert is_closed(peer)
    until(lambda: descriptors(broker) <= opened)
    serves(broker)


@pytest.mark.slow
@pytest.mark.parametrize("protocol", SPEECHES)
def test_who_says_nothing_or_one_byte_at_a_time_is_closed(broker, protocol):
    opened, before = descriptors(broker), memory(broker)
    beginning = SPEECHES[protocol].beginning
    silent = [connect(broker) for _ in range(100)]
    for peer in (half_closed := [connect(broker) for _ in range(50)]):
        peer.sendall(beginning)
        peer.shutdown(1)
    slow = [connect(broker) for _ in range(100)]
    # Each begins a login, a byte at a time, and never ends it.
    still = dict.fromkeys(slow, 0)
    deadline = time.monotonic() + WAIT_S
    while still:
        assert time.monotonic() < deadline
        for peer, place in tuple(still.items()):
            try:
                if place < len(beginning) - 1:
                    peer.send(beginning[place : place + 1])
                still[peer] = place + 1
                if is_readable(peer) and not peer.recv(65536):
                    del still[peer]
            except ConnectionError:
                still.pop(peer)
        serves(broker)
        time.sleep(0.05)

    assert all(map(is_closed, silent + half_closed))
    for peer in silent + half_closed + slow:
        peer.close()
    until(lambda: descriptors(broker) <= opened)
    assert memory(broker) - before < 16 * MIB


@pytest.mark.slow
@pytest.mark.parametrize("protocol", SPEECHES)
def test_a_client_that_asks_and_never_listens_is_not_read_from(broker, protocol):
    before, opened, speech = memory(broker), descriptors(broker), SPEECHES[protocol]
    with connect(broker) as asking:
        asking.sendall(speech.login)
        assert asking.recv(1)
        asking.setblocking(False)
        questions = speech.questions * 1000
        sent, place, quiet_since = 0, 0, time.monotonic()
        with contextlib.suppress(ConnectionError):
            # Who is not read from is silent, too, and may be closed for that.
            while time.monotonic() - quiet_since < 3:
                try:
                    count = asking.send(questions[place:])
                    sent, place = sent + count, (place + count) % len(questions)
                    quiet_since = time.monotonic()
                except BlockingIOError:
                    time.sleep(0.01)
                assert sent < 64 * MIB, "everything is read, and every answer kept"
        # An engine of AMQP has all sessions that one read has begun.
        assert memory(broker) - before < 48 * MIB
        # It was answered for a while.
        assert sent > MIB // 4
        serves(broker)
    until(lambda: descriptors(broker) <= opened)


@pytest.mark.slow
@pytest.mark.parametrize("protocol", [one for one in SPEECHES if one != "AMQP"])
def test_a_peer_that_is_gone_is_closed(broker, protocol):
    """The cable is cut: it said how long it may be silent. Of AMQP the acceptor says that."""
    opened = descriptors(broker)
    with connect(broker) as gone:
        gone.sendall(SPEECHES[protocol].login)
        gone.settimeout(WAIT_S)
        assert gone.recv(1)
        assert is_closed(gone)
        until(lambda: descriptors(broker) <= opened)
    serves(broker)
