"""One consumer over all nodes of a cluster: what comes, from where, and what becomes of nodes."""

import asyncio
import contextlib

import pytest

from broker.client import AckMode, AsyncClient, Client
from broker.client.errors import BrokerRefused, ClosedError, NotConnected
from broker.embedded import EmbeddedBroker
from tests.broker.bridges.two_brokers import port_of, send, take
from tests.broker.cluster.mesh import Mesh, queue, settings, until, waiting
from tests.interop.asynchronous import asynchronous

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
    named = "&".join(f"{name}={value}" for name, value in ({"retryInterval": 50} | parameters).items())
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
            assert len(consumer.connections) == 3
            found = await contents(consumer, 60)
            assert await consumer.receive_now() is None

        assert sorted(found) == sorted(f"{number}.{one}" for number in range(3) for one in range(20))
        await until(lambda: all(waiting(node, "q") == consumers(node) == 0 for node in nodes))


@asynchronous
async def test_a_node_with_many_messages_does_not_keep_one_with_few_waiting():
    mesh = mesh_of(3)
    async with mesh.serving() as nodes:
        await send(nodes[0], "q", *["busy"] * 300)
        for node in nodes[1:]:
            await send(node, "q", "quiet", "quiet")
        async with everywhere(*nodes) as consumer:
            await until(lambda: all(one.delivering_count for one in queues(nodes)))

            first = await contents(consumer, 8)

    assert first.count("quiet") == 4


def queues(nodes):
    return [one.parts.postoffice.addresses.queues["q"] for one in nodes]
