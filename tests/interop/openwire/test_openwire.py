"""ActiveMQ Classic's JMS client works with our broker, unchanged, and the same on Artemis."""

import asyncio

import pytest

from tests.broker.protocols.stomp.client import serving
from tests.broker.serve import BrokerProcess
from tests.interop.artemis_broker import ArtemisBroker
from tests.interop.asynchronous import asynchronous
from tests.interop.fetched import PeerUnavailableError
from tests.interop.jms_outlives import (
    made_by,
    messages_outlive_kill_9,
    prepared_transactions_outlive_kill_9,
)
from tests.interop.openwire.client import OpenWireClient

pytestmark = [pytest.mark.interop, pytest.mark.slow]

TYPES = (
    "[ActiveMQMessage, grüße € 😀 NUL, null, 7b, [b=-1, c=x, d=2.5, f=1.5, i=3, l=1099511627776, "
    "s=-2, t=text, y=[1, 2], z=true], [true, 1, q, 5, 6, 7.5, s, [9]], [o, 1]]"
)
HEADERS = (
    "[kind, c-1, topic://answers, true, 1, 7, true, false, true, 0, [boolean=Boolean:true, "
    "byte=Byte:3, double=Double:0.5, float=Float:0.25, int=Integer:1, long=Long:2, short=Short:4, "
    "text=String:t]]"
)


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    running = BrokerProcess(tmp_path_factory.mktemp("openwire"))
    yield running
    assert running.stop() == 0


def of_port(broker):
    return OpenWireClient(f"tcp://127.0.0.1:{broker.port}")


@pytest.fixture(scope="module")
def client(broker):
    with made_by(of_port) as new:
        yield new(broker)


@pytest.fixture
def new_client():
    with made_by(of_port) as new:
        yield new


SCENARIOS = [
    ("types", TYPES),
    ("compressed", TYPES),
    ("headers", HEADERS),
    ("modes", "[m2true, m2]"),
    ("transactions", "[null, kept, kepttrue2, answer, answer]"),
    ("redelivery", "[r0, r0, r1, r0true]"),
    ("topic", "[t] [t]"),
    ("durable", "[kept, busy, InvalidDestinationException]"),
    ("browse", "[b0, b1, b2, b0, b1, b2, false, b0, b1, b2]"),
    ("selectors", "[[1, 3], [4], [5], [0, 2]]"),
    ("badSelector", "InvalidSelectorException"),
    ("composite", "[c, c, c]"),
    ("wildcards", "[1] [1, 2]"),
    ("temporary", "pongtopic"),
    ("pull", "[null, null, p0, p1, p2, null]"),
    ("expiry", "[here]"),
    ("groups", "6 0"),
    ("scheduled", "latertrue"),
    ("noLocal", "[] [own]"),
    ("window", "50"),
    ("clientId", "InvalidClientIDException"),
    ("advisories", "true true"),
    ("priorities", "[9, 4, 1]"),
    ("xa", "[0, null, x, x, -4, []]"),
]


@pytest.mark.parametrize(("scenario", "found"), SCENARIOS)
def test_scenario(client, scenario, found):
    assert client.run(scenario, f"place.{scenario}") == found


# Virtual topics are where an acceptor says so; all others have them, too.
VIRTUAL = "virtualTopicConsumerWildcards=Consumer.*.%3E%3B2"
# Of a branch that it does not know Artemis says XAER_RMFAIL, not XAER_NOTA.
ON_ARTEMIS = {"xa": "[0, null, x, x, -7, []]"}


@pytest.fixture(scope="module")
def on_artemis(tmp_path_factory):
    try:
        artemis = ArtemisBroker(tmp_path_factory.mktemp("artemis"))
        artemis.change_configuration(("supportAdvisory=false", f"supportAdvisory=true;{VIRTUAL}"))
        artemis.start()
    except PeerUnavailableError as missing:
        pytest.skip(f"Artemis cannot be run here: {missing}")
    try:
        with made_by(artemis_client) as new:
            yield new(artemis)
    finally:
        artemis.stop()


def artemis_client(artemis):
    login = f"jms.userName={artemis.USER}&jms.password={artemis.PASSWORD}"
    return OpenWireClient(f"{artemis.uri}?{login}")


@pytest.mark.parametrize(("scenario", "found"), SCENARIOS)
def test_the_same_on_artemis(on_artemis, scenario, found):
    answer = on_artemis.run(scenario, f"place.{scenario}")
    assert answer == ON_ARTEMIS.get(scenario, found)


def test_virtual_topics_on_artemis(on_artemis):
    assert on_artemis.run("virtual", "v") == "[v] [v]"


@asynchronous
async def test_virtual_topics():
    name, _, value = VIRTUAL.partition("=")
    with made_by(lambda port: OpenWireClient(f"tcp://127.0.0.1:{port}")) as new:
        async with serving(parameters={name: value}) as broker:
            client = await asyncio.to_thread(new, broker.acceptors[0].port)
            assert await asyncio.to_thread(client.run, "virtual", "v") == "[v] [v]"


def test_large_messages(client):
    assert client.run("large", "place.large", 5_000_000) == "truebehind"


@pytest.mark.parametrize("version", [1, 6, 10])
@pytest.mark.parametrize("is_tight", [False, True])
def test_older_versions_loose_and_tight(broker, version, is_tight):
    tight = str(is_tight).lower()
    options = f"wireFormat.version={version}&wireFormat.tightEncodingEnabled={tight}"
    url = f"tcp://127.0.0.1:{broker.port}?{options}"
    with made_by(lambda _: OpenWireClient(url)) as new:
        client = new(broker)
        place = f"place.{version}.{is_tight}"
        assert client.run("types", place) == TYPES
        assert client.run("headers", place) == HEADERS


def test_messages_outlive_kill_9(tmp_path, new_client):
    messages_outlive_kill_9(tmp_path, new_client)


@pytest.mark.parametrize(
    ("decision", "rest"), [("commit", ["m1", "new"]), ("rollback", ["m0", "m1"])]
)
def test_prepared_transactions_outlive_kill_9(tmp_path, new_client, decision, rest):
    assert prepared_transactions_outlive_kill_9(tmp_path, new_client, decision) == rest
