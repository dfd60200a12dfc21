"""A cluster of our broker and Artemis's: messages go both ways, and to those who consume."""

import asyncio
import contextlib
import dataclasses

import pytest

from broker.client.aio import AsyncClient
from broker.model.routing_type import RoutingType
from broker.server.server import Broker
from tests.broker.bridges.two_brokers import send, take, until
from tests.broker.cluster.mesh import (
    CLUSTER_PASSWORD,
    CLUSTER_USER,
    demand,
    forwarding,
    is_told,
    node_options,
    peers_of,
    queue,
    waiting,
)
from tests.broker.protocols.mqtt.client import Mqtt, Version
from tests.interop.artemis_broker import NEWEST, VERSION, ArtemisBroker
from tests.interop.asynchronous import asynchronous
from tests.interop.fetched import PeerUnavailableError
from tests.servers import free_port

WAIT_S = 60
LARGE = "x" * 300_000


@pytest.fixture(scope="module", params=[VERSION, pytest.param(NEWEST, marks=pytest.mark.soak)])
def artemis(request, tmp_path_factory):
    """Artemis's broker in a cluster, and the port where it looks for ours."""
    port = free_port()
    options = (
        *("--nio", "--no-autotune", "--clustered", "--cluster-user", CLUSTER_USER),
        *("--cluster-password", CLUSTER_PASSWORD, "--staticCluster", f"tcp://127.0.0.1:{port}"),
    )
    try:
        broker = ArtemisBroker(
            tmp_path_factory.mktemp("artemis"), options=options, version=request.param
        )
        broker.change_configuration(
            (
                "<auto-create-queues>",
                "<redistribution-delay>0</redistribution-delay><auto-create-queues>",
            ),
        )
        broker.start()
    except PeerUnavailableError as error:
        pytest.skip(f"Artemis {request.param} cannot be run here: {error}")
    yield broker, port
    broker.kill()


@contextlib.asynccontextmanager
async def joined(artemis, folder, *queues, mode="ON_DEMAND"):
    """Ours, once both know each other."""
    theirs, port = artemis
    options = node_options(
        "ours", port, [theirs.port], mode=mode, folder=folder, queues=tuple(map(queue, queues))
    )
    ours = Broker(dataclasses.replace(options, name="ours"))
    await ours.start()
    try:
        await until(lambda: is_told(ours, 1), WAIT_S)
        yield ours
    finally:
        await ours.stop()


@contextlib.asynccontextmanager
async def their_session(artemis):
    theirs, _ = artemis
    async with AsyncClient(theirs.uri, user=theirs.USER, password=theirs.PASSWORD) as client:
        yield await client.session()


async def attribute(session, resource, name):
    return await session.attribute(resource, name)


def listeners(broker):
    """Queues by which other nodes hear of this one's clients, and that they consume from."""
    queues = broker.parts.postoffice.addresses.queues.values()
    return [one for one in queues if one.name.startswith("notif.") and one.consumers.all()]


async def read(received):
    await received.read()
    return received.content


@asynchronous
async def test_messages_go_to_whoever_consumes(artemis, tmp_path):
    async with their_session(artemis) as session:
        await session.create_queue("both", "both", routing_type=RoutingType.ANYCAST)
        async with joined(artemis, tmp_path, "both") as ours:
            names = await session.attribute("address.both", "AllQueueNames")
            assert len(names) >= 1

            # Theirs to ours.
            async with AsyncClient(f"tcp://127.0.0.1:{artemis[1]}") as client:
                here = await client.session()
                consumer = await here.consumer("both")
                producer = session.producer("both")
                # Redistributed or sent on: with it Artemis knows of the consumer.
                await producer.send("first", durable=True)
                received = await consumer.receive(WAIT_S)
                assert await read(received) == "first"
                for content in [*map(str, range(20)), LARGE, "last"]:
                    await producer.send(content, durable=True)
                found = []
                while len(found) < 22:
                    received = await consumer.receive(WAIT_S)
                    assert received is not None, found
                    found.append(await read(received))
                    assert not [one for one in received.message.properties if "ROUTE_TO" in one]
                assert found == [*map(str, range(20)), LARGE, "last"]
                await consumer.close()

            # Ours to theirs.
            async with await session.consumer("both") as consumer:
                await until(lambda: demand(ours, "both") == 1, WAIT_S)
                await send(ours, "both", *map(str, range(20)), LARGE, "last")
                found = []
                while len(found) < 22:
                    received = await consumer.receive(WAIT_S)
                    assert received is not None, found
                    found.append(await read(received))
                assert found == [*map(str, range(20)), LARGE, "last"]
            assert forwarding(ours) == 0
            assert waiting(ours, "both") == 0
        await session.delete_queue("both")


@asynchronous
async def test_a_client_of_mqtt_is_connected_to_one_of_them(artemis, tmp_path):
    login = {"user": artemis[0].USER, "password": artemis[0].PASSWORD.encode()}
    async with joined(artemis, tmp_path) as ours:
        await until(lambda: listeners(ours), WAIT_S)
        async with Mqtt.of(artemis[0].port, "c", Version.V3_1_1, **login) as first:
            # News of two who come in one millisecond ends both.
            await asyncio.sleep(0.01)
            async with Mqtt.of(ours, "c", Version.V3_1_1) as second:
                assert await first.is_closed()
                await second.settle()
                async with Mqtt.of(artemis[0].port, "c", Version.V3_1_1, **login) as third:
                    assert await second.is_closed()
                    await third.settle()


@asynchronous
async def test_what_waits_is_redistributed_either_way(artemis, tmp_path):
    async with their_session(artemis) as session:
        await session.create_queue("moved", "moved", routing_type=RoutingType.ANYCAST)
        async with joined(artemis, tmp_path, "moved") as ours:
            await send(ours, "moved", *map(str, range(30)))
            assert waiting(ours, "moved") == 30
            async with await session.consumer("moved") as consumer:
                found = [await read(await consumer.receive(WAIT_S)) for _ in range(30)]
            assert found == list(map(str, range(30)))

            await until(lambda: demand(ours, "moved") == 0, WAIT_S)
            producer = session.producer("moved")
            for number in range(30):
                await producer.send(str(number), durable=True)
            assert sorted(await take(ours, "moved", 30, WAIT_S), key=int) == found
        await session.delete_queue("moved")


@pytest.mark.soak
@asynchronous
async def test_either_leaves_and_comes_back(artemis, tmp_path):
    theirs, _ = artemis
    async with joined(artemis, tmp_path, "kept") as ours:
        theirs.stop()
        await until(lambda: not any(one.is_connected for one in peers_of(ours).values()), WAIT_S)
        await send(ours, "kept", "a", "b")
        theirs.start()
        await until(lambda: is_told(ours, 1), WAIT_S)
        async with their_session(artemis) as session:
            await session.create_queue("kept", "kept", routing_type=RoutingType.ANYCAST)
            async with await session.consumer("kept") as consumer:
                assert [await read(await consumer.receive(WAIT_S)) for _ in range(2)] == ["a", "b"]
            await session.delete_queue("kept")
