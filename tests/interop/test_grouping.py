"""Message groups in a cluster of our broker and Artemis's, either of which decides."""

import asyncio
import contextlib
import dataclasses

import pytest

from broker.client.aio import AsyncClient
from broker.config.cluster import GroupingHandler, GroupingType
from broker.model.routing_type import RoutingType
from broker.server.server import Broker
from tests.broker.bridges.two_brokers import session_of, until
from tests.broker.cluster.mesh import (
    CLUSTER_PASSWORD,
    CLUSTER_USER,
    demand,
    is_told,
    node_options,
    queue,
)
from tests.interop.artemis_broker import NEWEST, VERSION, ArtemisBroker
from tests.interop.asynchronous import asynchronous
from tests.interop.fetched import PeerUnavailableError
from tests.servers import free_port

WAIT_S = 60
QUEUE = "grouped"
GROUPS = ("red", "blue", "green", "black")
COUNT = 6


@pytest.fixture(
    scope="module",
    params=[
        (VERSION, "LOCAL"),
        (VERSION, "REMOTE"),
        pytest.param((NEWEST, "LOCAL"), marks=pytest.mark.soak),
    ],
    ids=lambda one: "-".join(one),
)
def artemis(request, tmp_path_factory):
    """Artemis's broker in a cluster, its type, and the port where it looks for ours."""
    version, kind = request.param
    port = free_port()
    options = (
        *("--nio", "--no-autotune", "--clustered", "--cluster-user", CLUSTER_USER),
        *("--cluster-password", CLUSTER_PASSWORD, "--staticCluster", f"tcp://127.0.0.1:{port}"),
    )
    handler = (
        f'<grouping-handler name="g"><type>{kind}</type><timeout>5000</timeout></grouping-handler>'
    )
    try:
        broker = ArtemisBroker(tmp_path_factory.mktemp("artemis"), options=options, version=version)
        broker.change_configuration(("<cluster-connections>", f"{handler}<cluster-connections>"))
        broker.start()
    except PeerUnavailableError as error:
        pytest.skip(f"Artemis {version} cannot be run here: {error}")
    yield broker, kind, port
    broker.kill()


def with_handler(options, kind):
    """The same, with a grouping-handler."""
    handler = GroupingHandler(name="g", type=GroupingType[kind])
    configuration = options.configuration
    cluster = dataclasses.replace(configuration.cluster, grouping_handler=handler)
    configuration = dataclasses.replace(configuration, cluster=cluster)
    return dataclasses.replace(options, name="ours", configuration=configuration)


@contextlib.asynccontextmanager
async def consuming(session, received):
    async def listen(one):
        await one.read()
        received.append(one.content)

    async with await session.consumer(QUEUE, listener=listen):
        yield


@asynchronous
async def test_a_group_has_one_consumer_wherever_its_messages_come(artemis, tmp_path):
    theirs, kind, port = artemis
    ours_decides = kind == "REMOTE"
    options = node_options("ours", port, [theirs.port], folder=tmp_path, queues=(queue(QUEUE),))
    options = with_handler(options, "LOCAL" if ours_decides else "REMOTE")
    here, there = [], []
    async with contextlib.AsyncExitStack() as stack:
        client = await stack.enter_async_context(
            AsyncClient(theirs.uri, user=theirs.USER, password=theirs.PASSWORD)
        )
        session = await client.session()
        await session.create_queue(QUEUE, QUEUE, routing_type=RoutingType.ANYCAST)
        ours = Broker(options)
        await ours.start()
        stack.push_async_callback(ours.stop)
        await until(lambda: is_told(ours, 1), WAIT_S)
        own = await stack.enter_async_context(session_of(ours))
        await stack.enter_async_context(consuming(own, here))
        await stack.enter_async_context(consuming(session, there))
        await until(lambda: demand(ours, QUEUE) == 1, WAIT_S)
        while len(await session.attribute("address." + QUEUE, "BindingNames")) < 2:  # noqa: ASYNC110
            await asyncio.sleep(0.05)

        producers = session.producer(QUEUE), own.producer(QUEUE)
        for number in range(COUNT):
            for source, producer in enumerate(producers):
                for group in GROUPS:
                    content = f"{group} {source} {number}"
                    properties = {"_AMQ_GROUP_ID": group}
                    await producer.send(content, durable=True, properties=properties)
        await until(lambda: len(here) + len(there) == COUNT * len(GROUPS) * 2, WAIT_S)

        for group in GROUPS:
            found = [
                [one for one in received if one.split()[0] == group] for received in (here, there)
            ]
            assert [] in found, found
            for source in "01":
                numbers = [
                    int(one.split()[2]) for one in max(found, key=len) if one.split()[1] == source
                ]
                assert numbers == list(range(COUNT)), found
        assert here, "both have groups"
        assert there, "both have groups"
        handler = ours.parts.postoffice.grouping.handler
        assert sorted(handler.owners) == sorted(f"{group}.{QUEUE}" for group in GROUPS)
    assert "grouping handler is null" not in theirs.log()
