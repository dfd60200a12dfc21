"""With zero bytes free a broker starts, consumers drain it, and then producers go on.

Whole brokers on real file systems of 64 MB; tests/crash/test_full_disk.py has the journal.
"""

import time

import pytest

from journal.options import JournalType
from tests.broker.serve import BrokerProcess
from tests.broker.wire_client import Refused, WireClient
from tests.crash.small_disk import SYSTEMS_AND_KINDS, fill, small_disk

FILE_SIZE = 512 << 10
# For the first files of the bindings, which have 1 MiB each, and some of the messages.
ROOM = 9 << 20
BODY = "x" * 4000
ACKNOWLEDGED = 10
# Messages in memory; what comes behind them goes to pages.
PAGED = 20


def start(mount, kind, max_messages):
    return BrokerProcess(
        mount / "data", max_messages=max_messages, journal_type=kind, file_size=FILE_SIZE
    )


def send_until_refused(port, name):
    """Numbers of the messages that the broker has, and what it said to the next one."""
    sent = []
    with WireClient(port, name) as client:
        client.queue("q")
        try:
            for number in range(1, 100_000):
                client.send("q", f"{number}:{BODY}", number)
                sent.append(client.confirmed())
        except Refused as error:
            return sent, str(error)
    raise AssertionError("the disk never got full")


def number_of(text):
    return int(text.split(":")[0])


def take(port, name, most):
    """Numbers of the next messages, each acknowledged durably; all with `most` None."""
    taken = []
    with WireClient(port, name) as client:
        left = client.count("q") if most is None else most
        client.consume("q")
        for _ in range(left):
            text, message_id, _ = client.receive()
            client.acknowledge(message_id)
            taken.append(number_of(text))
    return taken


def drain_under_kills(mount, kind, max_messages=-1):
    """A broker on a disk that is filled up, killed, drained, killed, drained.

    Args:
        mount: the disk.
        kind: of the journal.
        max_messages: behind so many they go to pages.
    """
    fill(mount, ROOM)
    broker = start(mount, kind, max_messages)
    sent, why = send_until_refused(broker.port, "first")
    assert "AMQ229102" in why
    assert "disk is full" in why
    fill(mount)
    more, _ = send_until_refused(broker.port, "second")
    sent += more
    broker.kill()

    broker = start(mount, kind, max_messages)
    taken = take(broker.port, "third", ACKNOWLEDGED)
    broker.kill()
    broker = start(mount, kind, max_messages)
    taken += take(broker.port, "fourth", None)
    assert taken == sent
    broker.kill()

    broker = start(mount, kind, max_messages)
    with WireClient(broker.port, "fifth") as client:
        assert client.count("q") == 0
        number = go_on(client)
    assert take(broker.port, "sixth", None) == [number]
    assert broker.stop() == 0


def go_on(client):
    """Send until the broker takes one: files are looked at once a second."""
    for number in range(1, 1000):
        client.send("q", f"{number}:{BODY}", number)
        try:
            return client.confirmed()
        except Refused:
            time.sleep(0.01)
    raise AssertionError("no room came back")


@pytest.mark.parametrize(
    ("system", "max_messages"),
    [
        pytest.param("ext4", PAGED, id="ext4-pages"),
        pytest.param("tmpfs", -1, id="tmpfs-journal"),
        pytest.param("ext4", -1, id="ext4-journal", marks=pytest.mark.slow),
        pytest.param("tmpfs", PAGED, id="tmpfs-pages", marks=pytest.mark.slow),
    ],
)
def test_a_broker_starts_and_is_drained_with_zero_bytes_free(tmp_path, system, max_messages):
    with small_disk(system, tmp_path) as mount:
        drain_under_kills(mount, JournalType.ASYNCIO, max_messages)


@pytest.mark.slow
@pytest.mark.parametrize(
    "max_messages",
    [pytest.param(-1, id="journal", marks=pytest.mark.soak), pytest.param(PAGED, id="pages")],
)
@pytest.mark.parametrize(("system", "kind"), SYSTEMS_AND_KINDS)
def test_a_broker_of_any_kind_of_io_is_drained(tmp_path, system, kind, max_messages):
    with small_disk(system, tmp_path) as mount:
        drain_under_kills(mount, kind, max_messages)
