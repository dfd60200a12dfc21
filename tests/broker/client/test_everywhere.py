"""One consumer over all nodes of a cluster: what comes, from where, and what becomes of nodes."""

import asyncio
import contextlib
import time
from pathlib import Path

import pytest

from broker.client import AckMode, AsyncClient, Client
from broker.client.errors import BrokerRefused, ClosedError, NotConnected
from broker.embedded import EmbeddedBroker
from broker.model.routing_type import RoutingType
from broker.protocols.core.packet_cluster import ClusterTopology
from tests.broker.bridges.two_brokers import make_queue, port_of, send, session_of, take
from tests.broker.client.test_failover import running
from tests.broker.cluster.mesh import Mesh, queue, settings, until, waiting
from tests.interop.asynchronous import asynchronous
from tests.pages import fences

GUIDE = Path(__file__).resolve().parents[3] / "docs/guide/cluster.md"
Q = (queue("q"),)
WAIT_S = 30
HOW = {
    "queues": Q,
    "mode": "OFF",
    "address_settings": settings(redistribution_delay_ms=-1),
}


def mesh_of(count, **more):
    """Nodes that keep their messages to themselves."""
    return Mesh(count, **(HOW | more))


def uri(*nodes, **parameters):
    named = "&".join(
        f"{name}={value}" for name, value in ({"retryInterval": 50} | parameters).items()
    )
    return "({})?{}".format(",".join(f"tcp://127.0.0.1:{port_of(one)}" for one in nodes), named)


@contextlib.asynccontextmanager
async def everywhere(*nodes, client=None, name="q", **how):
    async with AsyncClient(uri(*nodes, **(client or {}))) as one:
        yield await one.consume_everywhere(name, **how)


async def contents(consumer, count):
    """Of the next messages, which are acknowledged in the modes where the client does."""
    found = []
    while len(found) < count:
        received = await consumer.receive(WAIT_S)
        assert received is not None, f"{len(found)} of {count} came: {found}"
        found.append(received.content)
    return found


def consumers(node):
    found = node.parts.postoffice.addresses.queues.get("q")
    return 0 if found is None else found.consumer_count


@asynchronous
async def test_messages_of_all_nodes_come_once_each_though_one_is_named():
    mesh = mesh_of(3)
    async with mesh.serving() as nodes:
        for number, node in enumerate(nodes):
            await send(node, "q", *(f"{number}.{one}" for one in range(20)))

        async with everywhere(nodes[1]) as consumer:
            assert len(consumer.node_ids) == 3
            found = await contents(consumer, 60)
            assert await consumer.receive_now() is None

        assert sorted(found) == sorted(
            f"{number}.{one}" for number in range(3) for one in range(20)
        )
        await until(lambda: all(waiting(node, "q") == consumers(node) == 0 for node in nodes))


@asynchronous
async def test_a_node_with_many_messages_does_not_keep_one_with_few_waiting():
    mesh = mesh_of(2)
    async with mesh.serving() as nodes:
        await send(nodes[0], "q", *["busy"] * 300)
        for node in nodes[1:]:
            await send(node, "q", "quiet", "quiet", "quiet", "quiet")
        async with everywhere(*nodes) as consumer:
            await until(lambda: all(one.delivering_count for one in queues(nodes)))

            first = await contents(consumer, 20)

    assert first.count("quiet") == 4


def queues(nodes):
    return [one.parts.postoffice.addresses.queues["q"] for one in nodes]


@asynchronous
async def test_a_node_that_joins_is_consumed_once_it_is_told_of():
    mesh = mesh_of(2)
    async with mesh.serving() as nodes:
        await mesh.stop(1)
        await until(lambda: len(nodes[0].cluster.connections["mesh"].topology.members) == 1)
        async with everywhere(nodes[0]) as consumer:
            assert len(consumer.node_ids) == 1

            # With nothing kept it has another node id.
            await mesh.start(1)
            await send(nodes[1], "q", "late")

            assert await contents(consumer, 1) == ["late"]


@pytest.mark.parametrize("attempts", [0, -1])
@asynchronous
async def test_a_node_that_stops_is_left_without_an_error_and_consumed_again(tmp_path, attempts):
    """What it had delivered and was not acknowledged comes again; what was is gone."""
    mesh = mesh_of(2, folder=tmp_path)
    client = {"reconnectAttempts": attempts}
    async with (
        mesh.serving() as nodes,
        everywhere(nodes[1], client=client, mode=AckMode.INDIVIDUAL) as consumer,
    ):
        await send(nodes[1], "q", "taken", "not acknowledged", "at hand")
        first, second = await consumer.receive(WAIT_S), await consumer.receive(WAIT_S)
        await first.acknowledge()
        await until(lambda: waiting(nodes[1], "q") == 2)

        await mesh.stop(1)
        await send(nodes[0], "q", "of the other one")
        received = await consumer.receive(WAIT_S)
        assert received.content == "of the other one"
        await received.acknowledge()
        await until(lambda: len(consumer.node_ids) == 1)
        await second.acknowledge()

        await mesh.start(1)
        again = [await consumer.receive(WAIT_S) for _ in range(2)]
        assert [one.content for one in again] == ["not acknowledged", "at hand"]
        for one in again:
            await one.acknowledge()
        assert await consumer.receive_now() is None
        await until(lambda: waiting(nodes[0], "q") == waiting(nodes[1], "q") == 0)


@asynchronous
async def test_nodes_that_all_stopped_are_found_by_the_uri_in_any_order(tmp_path):
    """The first one's departure was told, so its connection is not tried any more."""
    mesh = mesh_of(2, folder=tmp_path)
    async with mesh.serving() as nodes:
        client = {"reconnectAttempts": -1}
        async with everywhere(*nodes, client=client) as consumer:
            await mesh.stop(0)
            await until(lambda: len(consumer.node_ids) == 1)
            await mesh.stop(1)

            await mesh.start(0)
            await send(nodes[0], "q", "back")

            assert await contents(consumer, 1) == ["back"]


@asynchronous
async def test_receive_raises_once_no_node_is_left():
    mesh = mesh_of(2)
    async with mesh.serving() as nodes, everywhere(*nodes) as consumer:
        waits = asyncio.ensure_future(consumer.receive())
        await mesh.stop(0)
        await until(lambda: len(consumer.node_ids) == 1)
        assert not waits.done()
        await mesh.stop(1)

        with pytest.raises(NotConnected, match="no node is left: "):
            await waits
        with pytest.raises(NotConnected, match="no node is left: "):
            await consumer.receive_now()
        assert consumer.node_ids == ()


@asynchronous
async def test_a_node_without_the_queue_is_tried_again():
    mesh = mesh_of(2, each={1: {"queues": ()}})
    async with mesh.serving() as nodes, everywhere(*nodes) as consumer:
        await send(nodes[0], "q", "one")
        assert await contents(consumer, 1) == ["one"]

        await make_queue(nodes[1], "q")
        await send(nodes[1], "q", "two")
        assert await contents(consumer, 1) == ["two"]

        async with session_of(nodes[1]) as session:
            await session.manage("broker", "destroyQueue", "q", True)
        await make_queue(nodes[1], "q")
        await send(nodes[1], "q", "three")
        assert await contents(consumer, 1) == ["three"]


@asynchronous
async def test_what_a_node_refuses_for_good_is_raised_once_and_the_others_go_on():
    mesh = mesh_of(2, each={1: {"queues": ()}})
    async with mesh.serving() as nodes, everywhere(*nodes) as consumer:
        async with session_of(nodes[1]) as session:
            await session.create_queue("q", "q", routing_type=RoutingType.ANYCAST, max_consumers=0)

        with pytest.raises(BrokerRefused, match="Maximum Consumer Limit"):
            await consumer.receive(WAIT_S)
        await send(nodes[0], "q", "a")
        assert await contents(consumer, 1) == ["a"]
        assert await consumer.receive(0.2) is None
        assert len(consumer.node_ids) == 1


@asynchronous
async def test_a_node_of_which_another_one_says_that_it_has_left_is_consumed_while_it_is_there():
    """Two nodes that have lost each other say so of each other."""
    mesh = mesh_of(2)
    async with mesh.serving() as nodes, AsyncClient(uri(*nodes)) as client:
        consumer = await client.consume_everywhere("q")
        for one in client.topology.members:
            client.topology.update(ClusterTopology(True, one.node_id, one.unique_event_id))
        assert client.topology.members == ()

        for node in nodes:
            await send(node, "q", "a")
        assert await contents(consumer, 2) == ["a", "a"]


@pytest.mark.parametrize("mode", [AckMode.TRANSACTED, AckMode.XA, AckMode.XA_CLIENT])
@asynchronous
async def test_transactions_are_refused(mode):
    """Before anything is connected: no broker runs."""
    async with AsyncClient("tcp://127.0.0.1:1") as client:
        with pytest.raises(ValueError, match="a transaction belongs to the session of one node"):
            await client.consume_everywhere("q", mode=mode)


@asynchronous
async def test_at_first_a_node_must_be_reached_and_nothing_is_left_of_what_fails():
    async with AsyncClient("tcp://127.0.0.1:1") as client:
        with pytest.raises(NotConnected):
            await client.consume_everywhere("q")
        assert client.connections == ()
    async with EmbeddedBroker() as embedded, AsyncClient(uri(embedded.broker)) as client:
        await make_queue(embedded.broker, "q")
        with pytest.raises(BrokerRefused):
            await client.consume_everywhere("q", "no selector (")
        assert client.connections == ()


@asynchronous
async def test_acknowledging_in_mode_client_is_of_one_node():
    mesh = mesh_of(2)
    async with mesh.serving() as nodes:
        for node in nodes:
            await send(node, "q", "a", "b")
        async with everywhere(*nodes, mode=AckMode.CLIENT, ack_batch_size=0) as consumer:
            received = [await consumer.receive(WAIT_S) for _ in range(4)]

            await received[-1].acknowledge()

            await until(lambda: sorted(waiting(one, "q") for one in nodes) == [0, 2])


@asynchronous
async def test_a_window_of_0_and_many_at_once_and_a_selector():
    mesh = mesh_of(2)
    async with mesh.serving() as nodes:
        for node in nodes:
            await send(node, "q", "a", "b", "c", properties={"color": "red"})
            await send(node, "q", "blue", properties={"color": "blue"})
        async with everywhere(*nodes, selector="color = 'red'", consumer_window_size=0) as consumer:
            found = await contents(consumer, 2)
            while many := await consumer.receive_many(10, 0):
                found += [one.content for one in many]

        assert sorted(found) == ["a", "a", "b", "b", "c", "c"]
        assert [await take(node, "q", 1) for node in nodes] == [["blue"], ["blue"]]


@asynchronous
async def test_a_loop_ends_when_the_consumer_is_closed_and_a_listener_gets_all():
    mesh = mesh_of(2)
    async with mesh.serving() as nodes:
        async with AsyncClient(uri(*nodes)) as client:
            found = []
            consumer = await client.consume_everywhere(
                "q", listener=lambda one: found.append(one.text)
            )
            for number, node in enumerate(nodes):
                await send(node, "q", str(number))
            await until(lambda: sorted(found) == ["0", "1"])
            await consumer.close()
            await until(lambda: not any(map(consumers, nodes)))

            async with await client.consume_everywhere("q") as consumer:
                await send(nodes[0], "q", "last")
                async for one in consumer:
                    assert one.text == "last"
                    asyncio.get_running_loop().call_soon(asyncio.ensure_future, consumer.close())
            with pytest.raises(ClosedError):
                await consumer.receive()
            await client.consume_everywhere("q")
            assert sum(map(consumers, nodes)) == 2
        await until(lambda: not any(map(consumers, nodes)))


@asynchronous
async def test_a_lone_broker_that_tells_no_connector_is_a_cluster_of_one():
    async with EmbeddedBroker() as embedded:
        await make_queue(embedded.broker, "q")
        async with everywhere(embedded.broker) as consumer:
            await send(embedded.broker, "q", "a")
            assert await contents(consumer, 1) == ["a"]


@asynchronous
async def test_a_node_is_consumed_at_its_backup_and_by_the_primary_that_is_back(tmp_path):
    async with running(tmp_path, is_cluster=True) as pair, AsyncClient(pair.uri) as client:
        session = await client.session()
        await until(lambda: [one for one in client.topology.members if one.backup])
        await session.create_queue("q", "q", routing_type=RoutingType.ANYCAST)
        consumer = await client.consume_everywhere("q")
        for change in (pair.fail_over, pair.fail_back):
            await change()
            await session.producer("q").send(change.__name__)
            assert await contents(consumer, 1) == [change.__name__]
        assert len(consumer.node_ids) == 1


@asynchronous
async def test_the_client_for_threads_has_it():
    mesh = mesh_of(2)
    async with mesh.serving() as nodes:
        for number, node in enumerate(nodes):
            await send(node, "q", f"{number}.0", f"{number}.1")

        def run():
            with Client(uri(nodes[0])) as client:
                with client.consume_everywhere("q", mode=AckMode.INDIVIDUAL) as consumer:
                    found = []
                    for received in consumer:
                        received.acknowledge()
                        found.append(received.text)
                        if len(found) == 3:
                            break
                    assert repr(consumer) == "<EverywhereConsumer 'q': open, 2 of 2 nodes>"
                heard = []
                with client.consume_everywhere("q", listener=lambda one: heard.append(one.text)):
                    while not heard:
                        time.sleep(0.01)
                with pytest.raises(ValueError, match="a transaction"):
                    client.consume_everywhere("q", mode=AckMode.TRANSACTED)
                return found + heard

        assert sorted(await asyncio.to_thread(run)) == ["0.0", "0.1", "1.0", "1.1"]


@asynchronous
async def test_the_program_of_the_guide_prints_what_all_nodes_have(capsys):
    (program,) = [one for one in fences(GUIDE) if one.language == "python"]
    mesh = mesh_of(2, queues=(queue("orders"),))
    async with mesh.serving() as nodes:
        for number, node in enumerate(nodes):
            await send(node, "orders", f"of node {number}")
        text = "\n".join(program.lines).replace("61617", str(port_of(nodes[0])))

        await asyncio.to_thread(exec, text, {})

    printed = capsys.readouterr().out.splitlines()
    assert sorted(printed) == ["of node 0", "of node 1"]
