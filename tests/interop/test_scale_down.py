"""Our broker scales down to Artemis's."""

import asyncio
import dataclasses

import pytest

from broker.client import AckMode
from broker.client.aio import AsyncClient
from broker.config.ha import PrimaryOnly, ScaleDown
from broker.model.xid import Xid
from broker.server.server import Broker
from tests.broker.bridges.two_brokers import send, session_of, until
from tests.broker.cluster.mesh import (
    CLUSTER_PASSWORD,
    CLUSTER_USER,
    is_told,
    node_options,
    queue,
    settings,
)
from tests.interop.artemis_broker import ArtemisBroker
from tests.interop.asynchronous import asynchronous
from tests.interop.fetched import PeerUnavailableError
from tests.servers import free_port

WAIT_S = 60
LARGE = "x" * 300_000
XID = Xid(7, b"branch", b"global")


@pytest.fixture
def artemis(tmp_path):
    """Artemis's broker in a cluster, and the port where it looks for ours."""
    port = free_port()
    options = (
        *("--nio", "--no-autotune", "--clustered", "--cluster-user", CLUSTER_USER),
        *("--cluster-password", CLUSTER_PASSWORD, "--staticCluster", f"tcp://127.0.0.1:{port}"),
    )
    try:
        broker = ArtemisBroker(tmp_path / "artemis", options=options)
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
async def test_all_of_ours_is_in_theirs(artemis, tmp_path):
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
    report = node.scale_down_choice.report
    assert report.is_complete, str(report)
    assert (report.messages, report.transactions, report.duplicate_ids) == (21, 1, 1)

    client = {"user": theirs.USER, "password": theirs.PASSWORD}
    async with AsyncClient(theirs.uri, **client) as there:
        session = await there.session(AckMode.XA)
        await session.xa_commit(XID)
        session = await there.session()
        await session.producer("q").send("again", durable=True, properties={"_AMQ_DUPL_ID": "id"})
        assert await session.attribute("queue.q", "messageCount") == 22


@asynchronous
async def test_ids_of_what_was_consumed_stay_there(artemis, tmp_path):
    """With the last binding of an address Artemis forgets its ids, and ours ends with this node."""
    theirs, port = artemis
    policy = PrimaryOnly(scale_down=ScaleDown(discovery_group_ref=None))
    node = ours(artemis, tmp_path / "ours", policy)
    await node.start()
    await until(lambda: is_told(node, 1), WAIT_S)
    await send(node, "q", "once", properties={"_AMQ_DUPL_ID": "id"})
    async with session_of(node) as session:
        await (await (await session.consumer("q")).receive(10)).acknowledge()
    await node.stop()
    assert node.scale_down_choice.report.is_complete

    client = {"user": theirs.USER, "password": theirs.PASSWORD}
    async with AsyncClient(theirs.uri, **client) as there, asyncio.timeout(WAIT_S):
        session = await there.session()
        # Another process knows it, so it is asked.
        while str(port) in await session.manage("broker", "listNetworkTopology"):  # noqa: ASYNC110
            await asyncio.sleep(0.02)
        await session.producer("q").send("again", durable=True, properties={"_AMQ_DUPL_ID": "id"})
        assert await session.attribute("queue.q", "messageCount") == 0
