"""Messages that wait although a consumer somewhere takes them: counted, told once, forgotten."""

import asyncio
import dataclasses
import json
import logging

import pytest

from broker.config.core import WatchConfig
from broker.management.broker_control import BrokerControl
from broker.management.metrics import Metrics
from broker.server.server import Broker
from tests.broker.bridges.two_brokers import send, session_of, take
from tests.broker.cluster.mesh import Mesh, demand, queue, settings, until, waiting
from tests.interop.asynchronous import asynchronous

Q = (queue("q"),)
PERIOD_MS = 200


class WatchedMesh(Mesh):
    """Told of what waits for longer than PERIOD_MS."""

    def options(self, number):
        made = super().options(number)
        watch = WatchConfig(stranded_message_period_ms=PERIOD_MS)
        return dataclasses.replace(
            made, configuration=dataclasses.replace(made.configuration, watch=watch)
        )


def stranded(node):
    return node.cluster.stranded.by_queue


def warnings_of(caplog):
    return [one.getMessage() for one in caplog.records if "although a consumer" in one.message]


@asynchronous
async def test_what_redistribution_does_not_move_is_told_once_and_counted(caplog):
    caplog.set_level(logging.WARNING, "broker.cluster")
    mesh = WatchedMesh(2, queues=Q, address_settings=settings(redistribution_delay_ms=-1))
    async with mesh.serving() as nodes:
        await send(nodes[0], "q", "a", "b", properties={"color": "red"})
        await send(nodes[0], "q", "no consumer takes it")
        async with session_of(nodes[1]) as session:
            await session.consumer("q", "color = 'red'")
            await until(lambda: demand(nodes[0], "q") == 1)
            await until(lambda: "q" in stranded(nodes[0]))

            assert stranded(nodes[0])["q"].count == 2
            told = Metrics(nodes[0]).answer(None)[1].decode()
            assert 'quiver_messages_stranded{address="q",broker="node0",queue="q"} 2.0' in told
            (row,) = json.loads(BrokerControl(nodes[0]).invoke("getStrandedMessagesAsJSON", ()))
            assert (row["queue"], row["count"]) == ("q", 2)
            assert row["forMs"] >= PERIOD_MS
            (warning,) = warnings_of(caplog)
            assert f"broker queue why q {row['messageID']}" in warning
            await asyncio.sleep(PERIOD_MS / 1000)
            assert len(warnings_of(caplog)) == 1
        # Without that consumer none takes them.
        await until(lambda: not stranded(nodes[0]))
        assert await take(nodes[0], "q", 3) == ["a", "b", "no consumer takes it"]


@pytest.mark.slow
@asynchronous
async def test_a_queue_whose_consumers_work_is_not_stranded(caplog):
    mesh = WatchedMesh(2, queues=Q)
    async with (
        mesh.serving() as nodes,
        session_of(nodes[0], consumer_window_size=0) as session,
    ):
        consumer = await session.consumer("q")
        await send(nodes[0], "q", *map(str, range(20)))
        for _ in range(15):
            assert await consumer.receive(10) is not None
            await asyncio.sleep(PERIOD_MS / 4000)
            assert not stranded(nodes[0])
        # Now it does nothing any more.
        await until(lambda: "q" in stranded(nodes[0]))
        assert stranded(nodes[0])["q"].where == "here"
        assert waiting(nodes[0], "q") >= 4


@asynchronous
async def test_a_broker_that_is_alone_looks_for_nothing():
    broker = Broker(Mesh(1).options(0))
    alone = dataclasses.replace(
        broker.options,
        configuration=dataclasses.replace(
            broker.options.configuration,
            cluster=dataclasses.replace(
                broker.options.configuration.cluster, cluster_connections=()
            ),
        ),
    )
    broker = Broker(alone)
    await broker.start()
    try:
        assert broker.cluster.stranded is None
        assert json.loads(BrokerControl(broker).invoke("getStrandedMessagesAsJSON", ())) == []
    finally:
        await broker.stop()
