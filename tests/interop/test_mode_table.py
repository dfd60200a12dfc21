"""The table of modes of a cluster, run against two brokers of Artemis."""

import itertools
import re
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.broker.cluster.mesh import CLUSTER_PASSWORD, CLUSTER_USER
from tests.broker.cluster.mode_table import MODES, Node, cells, differences, run
from tests.interop.artemis_broker import ArtemisBroker
from tests.interop.asynchronous import asynchronous
from tests.interop.fetched import PeerUnavailableError

WAIT_S = 20
TOLD_S = 1
QUICK = (
    "<retry-interval>100</retry-interval><use-duplicate-detection>true</use-duplicate-detection>"
)


def connection(mode, port):
    """A cluster connection for the addresses of one mode."""
    return (
        f'<cluster-connection name="{mode.lower()}"><address>{mode.lower()}.</address>'
        f"<connector-ref>artemis</connector-ref>{QUICK}"
        f"<message-load-balancing>{mode}</message-load-balancing><max-hops>1</max-hops>"
        f"<static-connectors><connector-ref>other</connector-ref></static-connectors>"
        f"</cluster-connection>"
    )


def configure(broker, other):
    """Let a broker have a connection of each mode to the other one, and the table's queues."""
    path = broker.configuration
    text = path.read_text()
    made = "".join(connection(mode, other.port) for mode in MODES)
    text, count = re.subn(
        r"<cluster-connections>.*</cluster-connections>",
        f"<cluster-connections>{made}</cluster-connections>",
        text,
        flags=re.DOTALL,
    )
    assert count == 1
    text = text.replace(
        "</connectors>",
        f'<connector name="other">tcp://127.0.0.1:{other.port}</connector></connectors>',
    )
    queues = "".join(
        f'<address name="{one.queue}"><anycast><queue name="{one.queue}"/></anycast></address>'
        for one in itertools.chain.from_iterable(map(cells, MODES))
        if one.definition == "configured"
    )
    text = text.replace("</addresses>", f"{queues}</addresses>")
    text = text.replace(
        "<auto-create-queues>",
        "<redistribution-delay>0</redistribution-delay><auto-create-queues>",
    )
    path.write_text(text)


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    """Two brokers of Artemis in one cluster."""
    options = (
        *("--nio", "--no-autotune", "--clustered", "--cluster-user", CLUSTER_USER),
        *("--cluster-password", CLUSTER_PASSWORD, "--staticCluster", "tcp://127.0.0.1:1"),
    )
    try:
        folders = [tmp_path_factory.mktemp(f"artemis{number}") for number in range(2)]
        with ThreadPoolExecutor() as both:
            made = both.map(lambda one: ArtemisBroker(one, options, memory_mb=256), folders)
            brokers = list(made)
            for one, other in itertools.permutations(brokers):
                configure(one, other)
            list(both.map(ArtemisBroker.start, brokers))
    except PeerUnavailableError as error:
        pytest.skip(f"Artemis cannot be run here: {error}")
    yield brokers
    for one in brokers:
        one.kill()


@pytest.mark.parametrize("mode", MODES)
@asynchronous
async def test_artemis_does_what_the_table_says(pair, mode):
    login = {"user": ArtemisBroker.USER, "password": ArtemisBroker.PASSWORD}
    here, there = (Node(one.uri, **login) for one in pair)
    async with here.connected(), there.connected():
        seen = await run(mode, here, there, WAIT_S, TOLD_S)

    assert differences(seen) == {}
