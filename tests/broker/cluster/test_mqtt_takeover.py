"""A client of MQTT comes to another node of the cluster: its connection to the first one ends."""

import asyncio

import pytest

from broker.protocols.mqtt.packets import Version
from broker.protocols.mqtt.protocol import LATE_MS
from broker.protocols.mqtt.reason_codes import ReasonCode
from tests.broker.bridges.two_brokers import session_of
from tests.broker.cluster.mesh import Mesh, is_told, until
from tests.broker.protocols.mqtt.client import Mqtt
from tests.interop.asynchronous import asynchronous

FOR_AN_HOUR = {"clean": False, "expiry": 3600}


def clients(node):
    return sorted(one.origin.client_id for one in node.clients.sessions.values() if is_mqtt(one))


def is_mqtt(session):
    return session.origin.protocol.startswith("MQTT")


@pytest.mark.parametrize("version", [Version.V3_1_1, Version.V5])
@asynchronous
async def test_a_client_is_connected_to_one_node(version):
    async with (
        Mesh(2).serving() as nodes,
        Mqtt.of(nodes[0], "c", version) as first,
        Mqtt.of(nodes[0], "another", version) as another,
    ):
        async with Mqtt.of(nodes[1], "c", version) as second:
            code = ReasonCode.SESSION_TAKEN_OVER if version is Version.V5 else None
            assert await first.is_closed(code)
            await second.settle()
            await another.settle()
            await until(lambda: clients(nodes[0]) == ["another"])
            assert clients(nodes[1]) == ["c"]
        # And back.
        async with Mqtt.of(nodes[0], "c", version) as third:
            await third.settle()


@asynchronous
async def test_late_news_of_where_a_client_was_ends_nothing():
    async with Mesh(1).serving() as (node,), Mqtt.of(node, "c") as client:
        (at_ms,) = [one.created_ms for one in node.clients.sessions.values() if is_mqtt(one)]
        manager = node._activation._protocols._managers["MQTT"]
        manager.connected_elsewhere("c", at_ms - 1)
        manager.connected_elsewhere("c", at_ms - LATE_MS)
        manager.connected_elsewhere("another", at_ms)
        await client.settle()
        # It came there in the same millisecond, or clocks differ: it will come again.
        manager.connected_elsewhere("c", at_ms)
        assert await client.is_closed(ReasonCode.SESSION_TAKEN_OVER)


@asynchronous
async def test_what_waited_at_the_first_node_comes_to_the_second():
    async with Mesh(2).serving() as nodes, Mqtt.of(nodes[0], "c", **FOR_AN_HOUR) as first:
        await first.subscribe("prices/#")
        async with Mqtt.of(nodes[1], "sender") as sender:
            await first.disconnect()
            async with Mqtt.of(nodes[0], "here") as here:
                await here.publish("prices/steel", b"1")
            async with Mqtt.of(nodes[1], "c", **FOR_AN_HOUR) as second:
                await second.subscribe("prices/#")
                assert await second.payloads(1) == [b"1"]
                await sender.publish("prices/steel", b"2")
                assert await second.payloads(1) == [b"2"]


@asynchronous
async def test_a_node_behind_another_one_is_told():
    for hops, is_taken_over in ((2, True), (1, False)):
        mesh = Mesh(3, links={0: [1], 1: [2], 2: []}, max_hops=hops, direct=True)
        async with mesh.serving() as nodes:
            await until(lambda nodes=nodes: is_told(nodes[0], 1) and is_told(nodes[1], 1))
            async with Mqtt.of(nodes[0], "c") as first, Mqtt.of(nodes[2], "c"):
                if is_taken_over:
                    assert await first.is_closed(ReasonCode.SESSION_TAKEN_OVER)
                else:
                    assert await first.is_silent()
                    await first.settle()


@asynchronous
async def test_an_id_of_another_protocol_ends_nothing():
    async with (
        Mesh(2).serving() as nodes,
        Mqtt.of(nodes[0], "c") as first,
        session_of(nodes[1], client_id="c") as session,
    ):
        await session.create_queue("q")
        await asyncio.sleep(0.2)
        await first.settle()
