"""Discovery with Artemis: its broadcasts heard here, ours there, by brokers and by clients."""

import asyncio
import contextlib
import uuid

import pytest

from broker.client import AsyncClient
from broker.security.facade import SecurityFacade
from broker.security.manager import SecurityManager
from broker.server.server import Broker
from tests.broker.cluster.groups import (
    GROUP,
    LOOPBACK,
    configuration,
    free_udp_port,
    heard,
    needs_multicast,
    started,
    udp,
    until,
)
from tests.interop.artemis import PeerUnavailableError
from tests.interop.artemis_broker import VERSIONS, ArtemisBroker
from tests.interop.asynchronous import asynchronous
from tests.interop.jms.client import JmsClient
from tests.servers import free_port

pytestmark = [pytest.mark.slow, needs_multicast]

WAIT_S = 60
CLUSTER = ("--clustered", "--cluster-user", "u", "--cluster-password", "p")


@pytest.fixture(scope="module")
def group_port():
    return free_udp_port()


@pytest.fixture(scope="module", params=VERSIONS)
def artemis(request, tmp_path_factory, group_port):
    """A broker of Artemis in a cluster, that broadcasts and listens on the loopback interface."""
    try:
        broker = ArtemisBroker(
            tmp_path_factory.mktemp("clustered"),
            ("--nio", "--no-autotune", *CLUSTER),
            version=request.param,
        )
    except PeerUnavailableError as error:
        pytest.skip(f"the broker of Artemis {request.param} cannot be run here: {error}")
    written = f"<group-address>{GROUP}</group-address>\n            <group-port>9876</group-port>"
    broker.change_configuration(
        (written, udp(group_port)),
        ("<broadcast-period>5000", "<broadcast-period>200"),
    )
    broker.start()
    yield broker
    broker.kill()


@contextlib.asynccontextmanager
async def ours(folder, group_port):
    """Our broker in the same cluster."""
    options = configuration(folder, "ours", udp(group_port), free_port(), period_ms=200)
    manager = SecurityManager(None, cluster_user="u", cluster_password="p")
    broker = Broker(options, security=SecurityFacade(manager))
    await broker.start()
    try:
        yield broker
    finally:
        await broker.stop()


def uri(group_port):
    return f"udp://{GROUP}:{group_port}?localBindAddress={LOOPBACK}"


@asynchronous
async def test_our_client_finds_artemis(artemis, group_port):
    login = {"user": artemis.USER, "password": artemis.PASSWORD}
    async with AsyncClient(uri(group_port), **login) as client:
        session = await client.session()
        assert client.connections[0].connector.port == artemis.port
        # The topology that a cluster connection of Artemis tells has the same broker.
        (member,) = client.topology.members
        assert member.primary.port == artemis.port
        queue = f"queue.{uuid.uuid4()}"
        await session.create_queue(queue)
        await session.producer(queue).send("found")


@asynchronous
async def test_brokers_of_both_kinds_hear_and_know_each_other(artemis, group_port, tmp_path):
    async with ours(tmp_path, group_port) as broker:
        # Its broadcasts are heard here.
        await within(lambda: heard(broker))
        (node_id,) = heard(broker)
        # Ours are heard there: it has connected, shown the credentials, and announced itself.
        topology = broker.cluster.topology("")
        await within(lambda: {one.node_id for one in topology.members} == {broker.node_id, node_id})
        (member,) = [one for one in topology.members if one.node_id == node_id]
        assert member.primary.port == artemis.port
        # Artemis tells its own clients of ours.
        login = {"user": artemis.USER, "password": artemis.PASSWORD}
        async with AsyncClient(artemis.uri, **login) as client:
            await client.connect()
            await within(lambda: client.topology.member(broker.node_id) is not None)
            told = client.topology.member(broker.node_id).primary
            assert (told.host, told.port) == (LOOPBACK, broker.acceptors[0].port)


async def within(condition):
    async with asyncio.timeout(WAIT_S):
        await until(condition)


@pytest.mark.parametrize("newest", [False, True], ids=["javax", "newest"])
@asynchronous
async def test_the_jms_client_finds_ours(tmp_path, newest):
    group_port = free_udp_port()
    options = configuration(tmp_path, "ours", udp(group_port), free_port(), period_ms=200)
    async with started(options):
        try:
            client = JmsClient(
                group_port, host=GROUP, scheme="udp", newest=newest, localBindAddress=LOOPBACK
            )
        except PeerUnavailableError as missing:
            pytest.skip(str(missing))
        try:
            assert await asyncio.to_thread(client.run, "text", f"q.{uuid.uuid4()}") == "grüße €"
        finally:
            client.close()


@asynchronous
async def test_a_broker_of_artemis_that_is_gone_is_a_member_no_more(artemis, group_port, tmp_path):
    async with ours(tmp_path, group_port) as broker:
        topology = broker.cluster.topology("")
        await within(lambda: len(topology.members) == 2)
        artemis.kill()
        await within(lambda: len(topology.members) == 1)
        artemis.start()
        await within(lambda: len(topology.members) == 2)
