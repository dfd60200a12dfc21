"""JMS bridges between ours and ActiveMQ Classic, by its jars and JNDI names; none is lost in kills.

All bridges run in a third broker, which has no messages: each party can be killed alone.
"""

import contextlib
import time
import uuid
from collections import Counter

import pytest

from benchmarks.peers.classic import Classic, jars
from tests.interop.fetched import PeerUnavailableError
from tests.interop.our_broker import OurBroker
from tests.interop.test_jms_bridge import session_of
from tests.proxy import Proxy
from tests.servers import free_port

pytest.importorskip("jpype")
proton = pytest.importorskip("proton")

from proton.utils import BlockingConnection  # noqa: E402 - missing where nothing builds it.

WAIT_S = 120
LOOK_S = 0.05
# How long a target is looked at that should get nothing more.
QUIET_S = 0.5
# Of one that may have lost the last ones: a bridge comes back from a kill within less.
SETTLED_S = 5
COUNT = 20
KILL_COUNT, KILL_LEAST, KILLS = 900, 120, 6
WAYS = {
    "most": ("AT_MOST_ONCE", "auto"),
    "least": ("DUPLICATES_OK", "auto"),
    "once": ("ONCE_AND_ONLY_ONCE", "two-phase"),
}
MAY_LOSE, MAY_DOUBLE = {"most"}, {"least"}
DIRECTIONS = ("there", "back")
FILE = """
quality-of-service = "{quality}"
exactly-once = "{exactly_once}"
max-batch-size = 3
max-batch-time = {batch_ms}
failure-retry-interval = 50
transaction-log = "log-{name}"

[{ours}]
url = "{uri}"
queue = "{name}"
user = "{user}"
password = "{password}"

[{classic}]
provider = "jms"
jars = ["{jars}"]
connection-factory = "ConnectionFactory"
queue = "queues/q"

[{classic}.jndi]
"java.naming.factory.initial" = "org.apache.activemq.jndi.ActiveMQInitialContextFactory"
"java.naming.provider.url" = "tcp://127.0.0.1:{port}"
"xa" = "{is_xa}"
"queue.queues/q" = "{name}"
"""


class Parties:
    """Classic, ours, and the broker that runs the bridges: two of each way, in each direction."""

    def __init__(self, folder):
        self.folder = folder
        places = {one: folder / one for one in ("classic", "ours", "host")}
        for place in places.values():
            place.mkdir()
        self.classic = self._classic(None)
        # Of which it listens after a restart, too.
        self.ours = OurBroker(places["ours"], options=("--port", free_port()))
        self.host = OurBroker(places["host"], starts=False)

    def _classic(self, ports):
        # What comes by AMQP is a text message of JMS.
        more = {"amqp": "&transport.transformer=jms"}
        return Classic(self.folder / "classic", ports=ports, memory="512m", more=more)

    def bridge(self, way, direction, port=None, batch_ms=20):
        """Write the file of a bridge; its name, which both of its queues have."""
        quality, exactly_once = WAYS[way]
        name = f"{direction}-{way}-{uuid.uuid4().hex[:6]}"
        roles = ("source", "target")
        ours, classic = roles if direction == "there" else roles[::-1]
        text = FILE.format(
            name=name,
            quality=quality,
            exactly_once=exactly_once,
            ours=ours,
            classic=classic,
            uri=self.ours.uri,
            user=self.ours.USER,
            password=self.ours.PASSWORD,
            jars=jars(),
            is_xa=str(exactly_once == "two-phase").lower(),
            port=port or self.classic.port,
            batch_ms=batch_ms,
        )
        with session_of(self.ours) as session:
            session.create_queue(name)
        bridges = self.host.folder / "etc" / "bridges"
        bridges.mkdir(exist_ok=True)
        (bridges / f"{name}.toml").write_text(text)
        return name

    def kill(self, party):
        """As a crash does, and start it again."""
        if party == "classic":
            self.classic.kill()
            self.classic = self._classic(self.classic.ports)
            return
        broker = getattr(self, party)
        broker.ensure_ended()
        broker.start()

    def remove_bridges(self):
        self.host.ensure_ended()
        print(self.host.log()[-3000:])
        for file in (self.host.folder / "etc" / "bridges").glob("*.toml"):
            file.unlink()

    def close(self):
        for broker in (self.host, self.ours):
            broker.ensure_ended()
        self.classic.kill()

    @contextlib.contextmanager
    def classic_connection(self):
        url = f"amqp://127.0.0.1:{self.classic.ports['amqp']}"
        made = BlockingConnection(url, timeout=WAIT_S, allowed_mechs="ANONYMOUS")
        yield made
        made.close()

    def send(self, direction, name, contents):
        """Send to the source; every second message is not durable, if `contents` says so."""
        if direction == "there":
            with session_of(self.ours) as session, session.producer(name) as producer:
                for text, is_durable in contents:
                    producer.send(text, durable=is_durable, properties={"n": 5})
            return
        with self.classic_connection() as connection:
            sender = connection.create_sender(name)
            for text, is_durable in contents:
                sender.send(proton.Message(text, durable=is_durable, properties={"n": 5}))

    def take(self, direction, name, is_over):
        """The messages of the target as (text, durable, property), until enough have come."""
        found = []
        end_s = time.monotonic() + WAIT_S
        if direction == "back":
            with session_of(self.ours) as session, session.consumer(name) as consumer:
                while not is_over(found) and time.monotonic() < end_s:
                    if (one := consumer.receive(LOOK_S)) is not None:
                        found.append((one.content, one.message.durable, one.get("n")))
            return found
        with self.classic_connection() as connection:
            receiver = connection.create_receiver(name, credit=100)
            while not is_over(found) and time.monotonic() < end_s:
                with contextlib.suppress(proton.Timeout):
                    one = receiver.receive(timeout=LOOK_S)
                    receiver.accept()
                    found.append((one.body, one.durable, one.properties["n"]))
        return found


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    try:
        made = Parties(tmp_path_factory.mktemp("classic_bridges"))
    except PeerUnavailableError as error:
        pytest.skip(str(error))
    yield made
    made.close()


@pytest.fixture
def parties(running):
    """All of them, with no bridge; the host is not started."""
    yield running
    running.remove_bridges()


def test_every_quality_both_ways_durable_and_not(parties):
    contents = [(f"m{number}", number % 2 == 0) for number in range(COUNT)]
    bridges = {
        parties.bridge(way, direction): direction for way in WAYS for direction in DIRECTIONS
    }
    for name, direction in bridges.items():
        parties.send(direction, name, contents)

    parties.host.start()

    for name, direction in bridges.items():
        found = parties.take(direction, name, lambda found: len(found) == COUNT)
        for is_durable in (True, False):
            # Classic gives each of the two in its order, and mixes them.
            kept = [one for one in found if one[1] is is_durable]
            expected = [(text, durable, 5) for text, durable in contents if durable is is_durable]
            assert kept == expected, name
    for name, direction in bridges.items():
        # Nothing comes twice, and nothing is left.
        assert parties.take(direction, name, over_after(QUIET_S)) == []
        if direction == "there":
            with session_of(parties.ours) as session:
                assert session.query_queue(name).message_count == 0


def test_nothing_is_sent_at_most_once_before_its_acknowledgement_is_sure(parties):
    """What the source has not heard of comes again."""
    batch_s = 2
    with Proxy(parties.classic.port) as proxy:
        name = parties.bridge("most", "back", port=proxy.port, batch_ms=1000 * batch_s)
        parties.host.start()
        parties.send("back", name, [("before", True)])
        first = parties.take("back", name, lambda found: found)
        parties.send("back", name, [("cut", True)])
        # It has come to the bridge, and its batch is not due yet.
        time.sleep(batch_s / 3)
        proxy.stall()
        # The acknowledgement has been written, and is held back.
        early = parties.take("back", name, over_after(2 * batch_s))
        proxy.cut()
        proxy.resume()
        found = parties.take("back", name, lambda found: found)
        found += parties.take("back", name, over_after(2 * batch_s))

    assert [text for text, _, _ in first] == ["before"]
    assert early == []
    assert [text for text, _, _ in found] == ["cut"]


def over_after(seconds):
    """Once nothing more has come for so long."""
    count, end_s = 0, time.monotonic() + seconds

    def is_over(found):
        nonlocal count, end_s
        if len(found) != count:
            count, end_s = len(found), time.monotonic() + seconds
        return time.monotonic() > end_s

    return is_over


@pytest.mark.slow
def test_each_party_is_killed_while_messages_move(parties, effort, figures):
    count = effort(KILL_COUNT, least=KILL_LEAST)
    kills = effort(KILLS, least=1)
    bridges = {
        parties.bridge(way, direction): (way, direction) for way in WAYS for direction in DIRECTIONS
    }
    for name, (_, direction) in bridges.items():
        parties.send(direction, name, [(str(number), True) for number in range(count)])

    parties.host.start()
    for _ in range(kills):
        for party in ("classic", "ours", "host"):
            time.sleep(0.3)
            parties.kill(party)

    # Those that may lose come last: what they have not brought by then is lost.
    for name, (way, direction) in sorted(bridges.items(), key=lambda one: one[1][0] in MAY_LOSE):
        found = Counter()
        if way not in MAY_LOSE:
            found += counted(parties, direction, name, all_of(count))
        # What would come twice comes behind the last one.
        quiet_s = SETTLED_S if way in MAY_LOSE else QUIET_S
        found += counted(parties, direction, name, over_after(quiet_s))
        lost = sum(not found[str(number)] for number in range(count))
        doubled = sum(times > 1 for times in found.values())
        figures(
            f"JMS bridge, Classic, {WAYS[way][0]}, {direction}",
            kills=3 * kills,
            messages=count,
            lost=lost,
            doubled=doubled,
        )
        assert not lost or way in MAY_LOSE, name
        assert not doubled or way in MAY_DOUBLE, name


def counted(parties, direction, name, is_over):
    return Counter(text for text, _, _ in parties.take(direction, name, is_over))


def all_of(count):
    return lambda found: len({text for text, _, _ in found}) == count
