"""Artemis's broker scales down to ours."""

import asyncio
from collections import Counter

import pytest

from broker.client import AckMode
from broker.client.aio import AsyncClient
from broker.model.routing_type import RoutingType
from broker.model.xid import Xid
from tests.broker.cluster.mesh import CLUSTER_PASSWORD, CLUSTER_USER
from tests.interop.artemis_broker import ArtemisBroker
from tests.interop.asynchronous import asynchronous
from tests.interop.fetched import PeerUnavailableError
from tests.interop.our_broker import OurBroker
from tests.servers import free_port

pytestmark = [pytest.mark.interop, pytest.mark.slow]
WAIT_S = 60
LARGE = "x" * 300_000
SENT = [*map(str, range(20)), LARGE, "once"]
XID = Xid(7, b"branch", b"global")
CLIENT = {"user": ArtemisBroker.USER, "password": ArtemisBroker.PASSWORD}
CLUSTER = ("--cluster-user", CLUSTER_USER, "--cluster-password", CLUSTER_PASSWORD)
# Artemis's `create` calls the connector of the other node so.
POLICY = """<ha-policy><primary-only><scale-down>
<group-name>g</group-name>
<connectors><connector-ref>node0</connector-ref></connectors>
</scale-down></primary-only></ha-policy>
<cluster-user>"""
# Ours is of the group, and stays as it is when it stops.
GROUP = "<scale-down-group-name>g</scale-down-group-name>\n<cluster-user>"


@pytest.fixture
def artemis(tmp_path):
    """Artemis's broker, and the port where it looks for ours."""
    port = free_port()
    options = (
        *("--nio", "--no-autotune", "--clustered", *CLUSTER),
        *("--staticCluster", f"tcp://127.0.0.1:{port}"),
    )
    try:
        broker = ArtemisBroker(tmp_path, options=options)
        broker.change_configuration(("<cluster-user>", POLICY), ("ON_DEMAND", "STRICT"))
        broker.start()
    except PeerUnavailableError as error:
        pytest.skip(f"Artemis cannot be run here: {error}")
    yield broker, port
    broker.kill()


@pytest.fixture
def ours(artemis, tmp_path):
    """Ours, which Artemis looks for."""
    theirs, port = artemis
    options = ("--port", port, "--static-cluster", theirs.uri, *CLUSTER, "--queues", "q:anycast")
    broker = OurBroker(tmp_path, ("<cluster-user>", GROUP), options=options)
    yield broker
    broker.ensure_ended()


async def forwarding_to_ours(session):
    """Artemis's store-and-forward queue for ours, once it knows of our queue q."""
    async with asyncio.timeout(WAIT_S):
        while not await session.attribute("address.q", "remoteQueueNames"):  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    names = await session.attribute("broker", "queueNames")
    (found,) = [one for one in names if one.startswith("$.artemis.internal.sf.")]
    return found


async def taken(session, queue, count):
    """The contents of so many messages, which must be all of a queue."""
    found = []
    async with await session.consumer(queue) as consumer:
        while len(found) < count:
            received = await consumer.receive(WAIT_S)
            assert received is not None, f"{queue} has {len(found)} of {count}"
            await received.read()
            found.append(received.content)
            await received.acknowledge()
    return found


async def waiting(session, queue):
    return await session.attribute(f"queue.{queue}", "messageCount")


@asynchronous
async def test_all_of_theirs_is_in_ours_once(artemis, ours):
    theirs, _ = artemis
    async with AsyncClient(theirs.uri, **CLIENT) as there:
        session = await there.session()
        await session.create_queue("q")
        await session.create_queue("r")
        await session.create_queue("s1", "topic", routing_type=RoutingType.MULTICAST)
        red = {"selector": "color = 'red'", "routing_type": RoutingType.MULTICAST}
        await session.create_queue("s2", "topic", **red)
        topic = session.producer("topic")
        for one in ("red", "blue"):
            await topic.send(one, durable=True, properties={"color": one})

        # What it has for ours waits, too.
        forwarding = await forwarding_to_ours(session)
        await session.manage(f"queue.{forwarding}", "pause")
        producer = session.producer("q")
        for one in SENT:
            more = {"_AMQ_DUPL_ID": "id"} if one == "once" else {}
            await producer.send(one, durable=True, properties=more)
        assert await waiting(session, "q") == await waiting(session, forwarding) == len(SENT) / 2

        session = await there.session(AckMode.XA)
        consumer = await session.consumer("q")
        await session.xa_start(XID)
        received = await consumer.receive(WAIT_S)
        await received.acknowledge()
        await session.producer("r").send("sent", durable=True)
        await session.xa_end(XID)
        await session.xa_prepare(XID)
    theirs.stop()
    assert "AMQ222181" not in theirs.log(), theirs.log()

    async with AsyncClient(ours.uri, **CLIENT) as here:
        session = await here.session()
        await session.producer("q").send("again", durable=True, properties={"_AMQ_DUPL_ID": "id"})
        left = Counter(SENT) - Counter([received.content])
        assert Counter(await taken(session, "q", left.total())) == left
        assert await taken(session, "s1", 2) == ["red", "blue"]
        assert await taken(session, "s2", 1) == ["red"]
        assert await waiting(session, "r") == 0
        decided = await here.session(AckMode.XA)
        await decided.xa_commit(XID)
        assert await taken(session, "r", 1) == ["sent"]
        assert [await waiting(session, one) for one in ("q", "r", "s1", "s2")] == [0] * 4
    assert ours.end() == 0
