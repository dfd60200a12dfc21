"""One instance with a paged address, two brokers in turn: each goes on with the other's pages."""

import signal

import pytest

from broker.client import AckMode, Client
from broker.model.routing_type import RoutingType
from broker.model.xid import Xid
from tests.interop.artemis import PeerUnavailableError
from tests.interop.artemis_broker import VERSIONS, ArtemisBroker
from tests.interop.jms.test_data_swapped import OursOnIt

pytestmark = [pytest.mark.interop, pytest.mark.slow]

WAIT_S = 30
QUIET_S = 0.5
XID = Xid(7, b"branch", b"paged")
BODY = "x" * 300
SMALL_PAGES = (
    ("<max-size-messages>-1<", "<max-size-messages>20<"),
    ("<page-size-bytes>10M<", "<page-size-bytes>10K<"),
    ("<max-read-page-bytes>20M<", "<max-read-page-bytes>1M<"),
)


@pytest.fixture(params=VERSIONS)
def artemis(request, tmp_path):
    try:
        made = ArtemisBroker(tmp_path, version=request.param)
    except PeerUnavailableError as missing:
        pytest.skip(str(missing))
    made.change_configuration(*SMALL_PAGES)
    yield made
    made.stop()


def client_of(artemis):
    return Client(artemis.uri, user=artemis.USER, password=artemis.PASSWORD)


def send(session, address, numbers):
    with session.producer(address) as producer:
        for number in numbers:
            producer.send(f"{number} {BODY}")


def take(session, queue, count):
    """Take, and acknowledge, so many; their numbers."""
    found = []
    with session.consumer(queue) as consumer:
        while len(found) < count:
            received = consumer.receive(WAIT_S)
            assert received is not None, f"{len(found)} of {count}"
            found.append(int(received.text.split()[0]))
            if len(found) == count:
                received.acknowledge()
    return found


def is_empty(session, queue):
    with session.consumer(queue) as consumer:
        return consumer.receive(QUIET_S) is None


def fill(artemis):
    """200 messages for two queues; of one some are acknowledged; transactions, one prepared."""
    with client_of(artemis) as client, client.session(AckMode.CLIENT) as session:
        session.create_address("paged", RoutingType.MULTICAST)
        for queue in ("first", "second"):
            session.create_queue(queue, address="paged", routing_type=RoutingType.MULTICAST)
        send(session, "paged", range(200))
        with client.session(AckMode.TRANSACTED) as transacted:
            send(transacted, "paged", range(200, 220))
            transacted.commit()
            send(transacted, "paged", range(900, 910))
            transacted.rollback()
        with client.session(AckMode.XA) as xa:
            xa.xa_start(XID)
            send(xa, "paged", range(220, 230))
            xa.xa_end(XID)
            xa.xa_prepare(XID)
        assert take(session, "first", 50) == list(range(50))


def check(artemis, decision):
    """What `fill` left, decided, and nothing else."""
    with client_of(artemis) as client, client.session(AckMode.CLIENT) as session:
        with client.session(AckMode.XA) as xa:
            assert xa.xa_recover() == (XID,)
            getattr(xa, f"xa_{decision}")(XID)
        end = 230 if decision == "commit" else 220
        assert take(session, "first", end - 50) == list(range(50, end))
        assert take(session, "second", end) == list(range(end))
        assert is_empty(session, "first")
        assert is_empty(session, "second")


HOWS = pytest.mark.parametrize(
    ("how", "decision"),
    [(signal.SIGTERM, "commit"), (signal.SIGKILL, "rollback")],
    ids=["stopped", "killed"],
)


@HOWS
def test_ours_goes_on_with_pages_of_artemis(artemis, tmp_path, how, decision):
    artemis.start()
    fill(artemis)
    artemis._end(how)

    ours = OursOnIt(tmp_path / "broker", tmp_path / "ours.log")
    check(artemis, decision)
    assert ours.end(signal.SIGTERM) == 0

    assert not list((tmp_path / "broker" / "data" / "paging").rglob("*.page"))
    artemis.start()
    with client_of(artemis) as client, client.session(AckMode.CLIENT) as session:
        assert is_empty(session, "first")
        assert is_empty(session, "second")


@HOWS
def test_artemis_goes_on_with_pages_of_ours(artemis, tmp_path, how, decision):
    ours = OursOnIt(tmp_path / "broker", tmp_path / "ours.log")
    fill(artemis)
    assert ours.end(how) == (0 if how == signal.SIGTERM else -how)
    assert len(list((tmp_path / "broker" / "data" / "paging").rglob("*.page"))) > 5

    artemis.start()
    check(artemis, decision)


def test_they_take_turns(artemis, tmp_path):
    """Half of what is there is taken in each turn, and as much comes."""
    expected, coming = [], 0
    for turn in range(4):
        ours = None
        if turn % 2:
            ours = OursOnIt(tmp_path / "broker", tmp_path / "ours.log")
        else:
            artemis.start()
        with client_of(artemis) as client, client.session(AckMode.CLIENT) as session:
            if turn == 0:
                session.create_queue("q", address="q", routing_type=RoutingType.ANYCAST)
            send(session, "q", range(coming, coming + 100))
            expected += range(coming, coming + 100)
            coming += 100
            count = len(expected) // 2
            assert take(session, "q", count) == expected[:count]
            del expected[:count]
        if ours is None:
            artemis.kill()
        else:
            ours.end(signal.SIGKILL)
    ours = OursOnIt(tmp_path / "broker", tmp_path / "ours.log")
    with client_of(artemis) as client, client.session(AckMode.CLIENT) as session:
        assert take(session, "q", len(expected)) == expected
        assert is_empty(session, "q")
    assert ours.end(signal.SIGTERM) == 0
