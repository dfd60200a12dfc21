"""Clients of the Core protocol: ours follow, and what those of a lower version are told."""

import asyncio
import contextlib
import uuid

import pytest

from broker.client import AsyncClient
from broker.client.errors import BrokerRefused, NotConnected
from broker.errors import BrokerError, ErrorCode
from broker.model.routing_type import RoutingType
from broker.options import BrokerOptions
from broker.server.server import Broker
from broker.transport.acceptor import AcceptorOptions
from tests.broker.protocols.stomp.client import until
from tests.broker.routers.brokers import HASH, HOST, hashing, router, serving, static_pool, xml
from tests.interop.asynchronous import asynchronous

FIRST = '<policy name="FIRST_ELEMENT"/>'


async def place_of(client, queue=None):
    """The port of the broker that a client has its session at; a message goes there and back."""
    queue = queue or str(uuid.uuid4())
    session = await client.session()
    await session.create_queue(queue)
    await session.producer(queue).send("hello")
    async with await session.consumer(queue) as consumer:
        assert (await consumer.receive()).content == "hello"
    (connection,) = client.connections
    return connection.connector.port


async def place_once_ready(uri, client_id):
    """As `place_of`, of a new client; while a cluster forms, members may go and come once."""
    while True:
        async with connecting(uri, client_id) as client:
            try:
                return await place_of(client)
            except BrokerRefused as refused:
                if refused.code != ErrorCode.ROUTING_EXCEPTION:
                    raise


@contextlib.asynccontextmanager
async def connecting(uri, client_id=None, **options):
    async with AsyncClient(uri, client_id=client_id, **options) as client:
        yield client


@asynchronous
async def test_a_client_follows_to_the_target(tmp_path):
    async with serving(tmp_path) as brokers:
        await brokers.start(1)
        await brokers.start(0, router(FIRST + static_pool(["to1"])))
        await brokers.ready(0, 1)

        async with connecting(brokers.uri(0), "c") as client:
            assert await place_of(client, "q") == brokers.ports[1]
            assert client.connections[0].node_id == brokers.node_id(1)
            # All sessions of a connection are where the first one is.
            second = await client.session()
            assert (await second.query_queue("q")).exists


@asynchronous
async def test_both_send_clients_to_each_other_by_their_ids(tmp_path):
    async with hashing(tmp_path) as brokers:
        for number in range(6):
            client_id = f"client-{number}"
            wanted = brokers.ports[brokers.owner_of(client_id)]
            for first in range(2):
                async with connecting(brokers.uri(first), client_id) as client:
                    assert await place_of(client) == wanted


@asynchronous
async def test_a_client_that_is_not_let_in_is_told(tmp_path):
    async with serving(tmp_path, 1) as brokers:
        await brokers.start(0, router("<local-target-filter>FOO.*</local-target-filter>"))

        async with connecting(brokers.uri(0), "FOO1") as client:
            assert await place_of(client) == brokers.ports[0]
        async with connecting(brokers.uri(0), "BAR") as client:
            with pytest.raises(BrokerRefused) as refused:
                await client.session()
        assert refused.value.code == ErrorCode.REMOTE_DISCONNECT
        assert "AMQ229240: Connection router r rejected" in str(refused.value)


@asynchronous
async def test_a_client_waits_for_the_quorum(tmp_path):
    """It connects before its target is there, and is sent there then."""
    more = "<quorum-timeout>60000</quorum-timeout>"
    async with serving(tmp_path) as brokers:
        await brokers.start(0, router(FIRST + static_pool(["to1"], more)))
        async with connecting(brokers.uri(0), "c") as client:
            placed = asyncio.ensure_future(place_of(client))
            await until(lambda: brokers.brokers[0].acceptors[0].connections)
            await brokers.start(1)

            assert await placed == brokers.ports[1]


@asynchronous
async def test_a_pool_that_is_not_ready_refuses(tmp_path):
    more = "<quorum-timeout>50</quorum-timeout>"
    async with serving(tmp_path) as brokers:
        await brokers.start(0, router(FIRST + static_pool(["to1"], more)))

        async with connecting(brokers.uri(0), "c") as client:
            with pytest.raises(BrokerRefused, match="AMQ229238: Connection router r not ready"):
                await client.session()


@asynchronous
async def test_a_target_that_stops_is_left_out_and_comes_back(tmp_path):
    async with serving(tmp_path, 3) as brokers:
        await brokers.start(1)
        await brokers.start(2)
        await brokers.start(0, router(FIRST + static_pool(["to1", "to2"])))
        await brokers.ready(0, 2)

        for wanted, change in ((1, None), (2, brokers.stop), (1, brokers.start)):
            if change is not None:
                await change(1)
                await brokers.ready(0, 1 if wanted == 2 else 2)
            async with connecting(brokers.uri(0), "c") as client:
                assert await place_of(client) == brokers.ports[wanted]


@asynchronous
async def test_the_emptiest_broker_gets_the_next_client(tmp_path):
    policy = '<policy name="LEAST_CONNECTIONS"/>'
    async with serving(tmp_path, 3) as brokers, AsyncClient(brokers.uri(1)) as other:
        await brokers.start(1)
        await brokers.start(2)
        for _ in range(5):
            await other.connect()
        await brokers.start(0, router(policy + static_pool(["to1", "to2"])))
        await brokers.ready(0, 2)

        async with connecting(brokers.uri(0), "c") as client:
            assert await place_of(client) == brokers.ports[2]


@asynchronous
async def test_brokers_that_send_a_client_round_are_given_up(tmp_path):
    async with serving(tmp_path) as brokers:
        for number in range(2):
            await brokers.start(number, router(FIRST + static_pool([f"to{1 - number}"])))
        for number in range(2):
            await brokers.ready(number, 1)

        async with connecting(brokers.uri(0), "c") as client:
            with pytest.raises(NotConnected, match="sent on to another broker 10 times"):
                await client.session()


@asynchronous
async def test_a_cached_target_is_kept_over_a_restart(tmp_path):
    content = router(
        '<cache><persisted>true</persisted></cache><policy name="ROUND_ROBIN"/>'
        + static_pool(["to1", "to2"], "<quorum-size>2</quorum-size>")
    )
    async with serving(tmp_path, 3) as brokers:
        await brokers.start(1)
        await brokers.start(2)
        places = []
        for _ in range(3):
            more = f"<bindings-directory>{tmp_path}/b</bindings-directory>"
            more += f"<journal-directory>{tmp_path}/j</journal-directory>"
            await brokers.start(0, content, persists=True, more=more)
            await brokers.ready(0, 2)
            for _ in range(2):
                async with connecting(brokers.uri(0), "c") as client:
                    places.append(await place_of(client))
            await brokers.stop(0)

        assert len(set(places)) == 1


MEMBERS = (
    "<pool><quorum-size>2</quorum-size><check-period>100</check-period>"
    "<local-target-enabled>true</local-target-enabled>"
    "<cluster-connection>c</cluster-connection></pool>"
)


def cluster_of(number):
    """Elements of one of two nodes."""
    return (
        "<cluster-user>u</cluster-user><cluster-password>p</cluster-password>"
        f'<cluster-connections><cluster-connection name="c"><connector-ref>to{number}'
        "</connector-ref><retry-interval>50</retry-interval><static-connectors>"
        f"<connector-ref>to{1 - number}</connector-ref>"
        "</static-connectors></cluster-connection></cluster-connections>"
    )


@asynchronous
async def test_members_of_a_cluster_are_targets_and_are_not_routed_themselves(tmp_path):
    """Cluster connections lead through the acceptors with the router."""
    async with serving(tmp_path) as brokers:
        for number in range(2):
            await brokers.start(number, router(HASH + MEMBERS), more=cluster_of(number))
        for number in range(2):
            await brokers.ready(number, 2)

        places = set()
        for number in range(4):
            found = set()
            for first in range(2):
                uri = f"{brokers.uri(first)}?useTopologyForLoadBalancing=false"
                found.add(await place_once_ready(uri, f"client-{number}"))
            assert len(found) == 1
            places |= found
        for broker in brokers.brokers:
            (connection,) = broker.cluster.connections.values()
            await until(lambda connection=connection: len(connection.topology.members) == 2)


@asynchronous
async def test_a_consumer_of_all_nodes_goes_where_the_routers_let_it(tmp_path):
    """It is at each node already: one that sends it to another is left out."""
    async with serving(tmp_path) as brokers:
        for number in range(2):
            await brokers.start(number, router(HASH + MEMBERS), more=cluster_of(number))
        for number in range(2):
            await brokers.ready(number, 2)
        uri = f"{brokers.uri(0)}?clientID=c&retryInterval=20"
        port = await place_once_ready(uri, "c")
        chosen = brokers.brokers[brokers.ports.index(port)]
        async with AsyncClient(uri) as client:
            await (await client.session()).create_queue("q", "q", routing_type=RoutingType.ANYCAST)
            consumer = await client.consume_everywhere("q")

            assert consumer.node_ids == (chosen.node_id,)
            await (await client.session()).producer("q").send("a")
            assert (await consumer.receive(10)).content == "a"


@asynchronous
async def test_brokers_that_discovery_hears_are_targets(tmp_path):
    folder = tmp_path / "heard"
    folder.mkdir()
    endpoint = f'<endpoint name="shared-folder"><property key="path" value="{folder}"/></endpoint>'
    told = (
        '<broadcast-groups><broadcast-group name="b"><broadcast-period>50</broadcast-period>'
        f"<connector-ref>to1</connector-ref>{endpoint}</broadcast-group></broadcast-groups>"
    )
    heard = (
        f'<discovery-groups><discovery-group name="d">{endpoint}</discovery-group>'
        "</discovery-groups>"
    )
    pool = (
        "<pool><check-period>100</check-period>"
        '<discovery-group-ref discovery-group-name="d"/></pool>'
    )
    async with serving(tmp_path) as brokers:
        await brokers.start(0, router(FIRST + pool), more=heard)
        await brokers.start(1, more=told)
        await brokers.ready(0, 1)

        async with connecting(brokers.uri(0), "c") as client:
            assert await place_of(client) == brokers.ports[1]
        await brokers.stop(1)
        await brokers.ready(0, 0)


@asynchronous
async def test_a_broker_stops_while_a_client_is_held(tmp_path):
    more = "<quorum-timeout>60000</quorum-timeout>"
    async with serving(tmp_path) as brokers:
        broker = await brokers.start(0, router(FIRST + static_pool(["to1"], more)))
        reader, writer = await asyncio.open_connection(HOST, brokers.ports[0])
        writer.write(b"ARTEMIS")
        pool = broker.clients.routers.by_name["r"].pool
        await until(lambda: pool.waiting_count == 1)

        await brokers.stop(0)

        assert pool.waiting_count == 0
        await reader.read()
        writer.close()


@asynchronous
async def test_an_acceptor_whose_router_is_missing_does_not_start():
    broker = Broker(BrokerOptions(acceptors=(AcceptorOptions(host=HOST, port=0, router="x"),)))

    with pytest.raises(BrokerError, match="no connection router is called 'x'"):
        await broker.start()
    await broker.stop()


def test_a_router_is_read(tmp_path):
    config = xml(tmp_path, router('<policy name="ROUND_ROBIN"/><cache/>'))

    (found,) = config.cluster.connection_routers
    assert (found.name, found.policy.name.value, found.cache.timeout_ms) == ("r", "ROUND_ROBIN", 0)
