"""Core bridges between our broker and Artemis's, either way, over a connection that is lost."""

import asyncio
import contextlib
import json
import uuid

from broker.client.aio import AsyncClient
from broker.model.routing_type import RoutingType
from tests.broker.bridges.two_brokers import (
    bridge,
    count_of,
    options,
    port_of,
    running,
    send,
    until,
)
from tests.interop.asynchronous import asynchronous
from tests.proxy import Proxy

RESETS = 8
COUNT = 600
LARGE = "x" * 300_000
WAIT_S = 60


def client_of(broker):
    return AsyncClient(broker.uri, user=broker.USER, password=broker.PASSWORD)


async def taken(session, queue, count):
    """The contents of so many messages, and that there are no more."""
    found = []
    async with await session.consumer(queue) as consumer:
        while len(found) < count:
            received = await consumer.receive(WAIT_S)
            assert received is not None, f"{len(found)} of {count} came"
            await received.read()
            found.append(received.content)
            assert received.get("_AMQ_BRIDGE_DUP") is None
        assert await consumer.receive(1) is None
    return found


async def bridge_here(session, name, port):
    """Have Artemis bridge a queue to the queue `to` of our broker."""
    connector = f"ours.{uuid.uuid4()}"
    await session.manage("broker", "addConnector", connector, f"tcp://127.0.0.1:{port}")
    made = {
        "name": name,
        "queue-name": name,
        "forwarding-address": "to",
        "static-connectors": [connector],
        "retry-interval": 100,
        "reconnect-attempts": -1,
        "user": "anybody",
        "password": "any",
    }
    await session.manage("broker", "createBridge", json.dumps(made))


@contextlib.contextmanager
def resetting(proxy):
    """Reset all connections again and again."""

    async def reset():
        for _ in range(RESETS):
            await asyncio.sleep(0.08)
            proxy.reset()

    task = asyncio.ensure_future(reset())
    try:
        yield task
    finally:
        task.cancel()


@asynchronous
async def test_from_ours_to_artemis_each_arrives_once_and_in_order(artemis_broker, tmp_path):
    queue = f"to.{uuid.uuid4()}"
    sent = [*map(str, range(COUNT)), LARGE, "last"]
    async with client_of(artemis_broker) as client:
        session = await client.session()
        await session.create_queue(queue, queue, routing_type=RoutingType.ANYCAST)
        with Proxy(artemis_broker.port) as proxy:
            configured = bridge(
                forwarding_address=queue,
                user=artemis_broker.USER,
                password=artemis_broker.PASSWORD,
            )
            made = options(
                "ours",
                queue="from",
                folder=tmp_path,
                bridges=(configured,),
                target_port=proxy.port,
            )
            async with running(made) as ours:
                one = ours.bridges.by_name["b"]
                await until(lambda: one.is_connected, WAIT_S)
                with resetting(proxy):
                    await send(ours, "from", *sent)
                    await until(lambda: count_of(ours, "from") == 0, WAIT_S)
                # It was told: Artemis's default of id-cache-size is 20,000.
                assert one.status.window == 4000
        assert await taken(session, queue, len(sent)) == sent


@asynchronous
async def test_a_wrong_password_is_told_in_artemis_s_words(artemis_broker):
    configured = bridge(user="unknown", password="wrong")
    made = options("ours", queue="from", bridges=(configured,), target_port=artemis_broker.port)
    async with running(made) as ours:
        one = ours.bridges.by_name["b"]
        await until(lambda: "the target refuses" in one.status.reason, WAIT_S)
        assert "AMQ229031" in one.status.reason


@asynchronous
async def test_from_artemis_to_ours_each_arrives_once_and_in_order(artemis_broker, tmp_path):
    name = f"from.{uuid.uuid4()}"
    sent = [*map(str, range(COUNT)), LARGE, "last"]
    async with (
        running(options("ours", queue="to", folder=tmp_path)) as ours,
        client_of(artemis_broker) as client,
    ):
        session = await client.session()
        await session.create_queue(name, name, routing_type=RoutingType.ANYCAST)
        with Proxy(port_of(ours)) as proxy:
            await bridge_here(session, name, proxy.port)
            with resetting(proxy):
                producer = session.producer(name)
                for one in sent:
                    await producer.post(one, durable=True)
                async with AsyncClient(f"tcp://127.0.0.1:{port_of(ours)}") as here:
                    assert await taken(await here.session(), "to", len(sent)) == sent
            await session.manage("broker", "destroyBridge", name)
