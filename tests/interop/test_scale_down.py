"""Our broker scales down to Artemis's, and Artemis's to ours."""

import dataclasses

import pytest

from broker.client import AckMode
from broker.client.aio import AsyncClient
from broker.config.ha import PrimaryOnly, ScaleDown
from broker.model.routing_type import RoutingType
from broker.model.xid import Xid
from broker.server.server import Broker
from tests.broker.bridges.two_brokers import send, session_of, take, until
from tests.broker.cluster.groups import free_port
from tests.broker.cluster.mesh import (
    CLUSTER_PASSWORD,
    CLUSTER_USER,
    is_told,
    node_options,
    queue,
    settings,
    waiting,
)
from tests.interop.artemis_broker import ArtemisBroker
from tests.interop.asynchronous import asynchronous
from tests.interop.fetched import PeerUnavailableError

WAIT_S = 60
LARGE = "x" * 300_000
XID = Xid(7, b"branch", b"global")
TO_OURS = """<ha-policy><primary-only><scale-down><enabled>true</enabled>
<connectors><connector-ref>node0</connector-ref></connectors>
</scale-down></primary-only></ha-policy>
<cluster-connections>"""


@pytest.fixture
def artemis(tmp_path):
    """Artemis's broker, which scales down to the port where it looks for ours."""
    port = free_port()
    options = (
        *("--nio", "--no-autotune", "--clustered", "--cluster-user", CLUSTER_USER),
        *("--cluster-password", CLUSTER_PASSWORD, "--staticCluster", f"tcp://127.0.0.1:{port}"),
    )
    try:
        broker = ArtemisBroker(tmp_path / "artemis", options=options)
        broker.change_configuration(("<cluster-connections>", TO_OURS))
        broker.start()
    except PeerUnavailableError as error:
        pytest.skip(f"Artemis cannot be run here: {error}")
    yield broker, port
    broker.kill()


def ours(artemis, folder, policy=None):
    theirs, port = artemis
    made = node_options(
        "ours",
        port,
        [theirs.port],
        folder=folder,
        queues=(queue("q"),),
        ha_policy=policy,
        address_settings=settings(redistribution_delay_ms=-1),
    )
    return Broker(dataclasses.replace(made, name="ours"))


@asynchronous
async def test_either_way(artemis, tmp_path):
    theirs, _ = artemis
    policy = PrimaryOnly(scale_down=ScaleDown(discovery_group_ref=None))
    node = ours(artemis, tmp_path / "ours", policy)
    await node.start()
    await until(lambda: is_told(node, 1), WAIT_S)
    await send(node, "q", *map(str, range(20)), LARGE)
    await send(node, "q", "once", properties={"_AMQ_DUPL_ID": "id"})
    async with session_of(node, AckMode.XA) as session:
        consumer = await session.consumer("q")
        await session.xa_start(XID)
        received = await consumer.receive(10)
        await received.acknowledge()
        await session.producer("q").send("sent", durable=True)
        await session.xa_end(XID)
        await session.xa_prepare(XID)
    await node.stop()
    report = node.scale_down_report
    assert report.is_complete, str(report)
    assert (report.messages, report.transactions, report.duplicate_ids) == (21, 1, 1)

    client = {"user": theirs.USER, "password": theirs.PASSWORD}
    async with AsyncClient(theirs.uri, **client) as there:
        session = await there.session(AckMode.XA)
        await session.xa_commit(XID)
        session = await there.session()
        await session.producer("q").send("again", durable=True, properties={"_AMQ_DUPL_ID": "id"})
        assert await session.attribute("queue.q", "messageCount") == 22
        await session.create_queue("new", "new", routing_type=RoutingType.MULTICAST)
        await session.producer("new").send("to a queue that ours does not have", durable=True)
        session = await there.session(AckMode.XA)
        await session.xa_start(XID)
        await session.producer("q").send("sent by theirs", durable=True)
        await session.xa_end(XID)
        await session.xa_prepare(XID)

    # And back, all of it.
    node = ours(artemis, tmp_path / "ours")
    await node.start()
    try:
        await until(lambda: is_told(node, 1), WAIT_S)
        theirs.stop()
        await until(lambda: waiting(node, "q") == 22, WAIT_S)
        await until(lambda: len(node.transactions.prepared()) == 1, WAIT_S)
        async with session_of(node, AckMode.XA) as session:
            await session.xa_commit(XID)
        await until(lambda: waiting(node, "q") == 23, WAIT_S)
        found = await take(node, "q", 23)
        assert found == [*map(str, range(1, 20)), LARGE, "once", "sent", "sent by theirs"]
        assert await take(node, "new", 1) == ["to a queue that ours does not have"]
    finally:
        await node.stop()
