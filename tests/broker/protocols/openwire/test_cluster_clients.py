"""Clients that are told of the brokers of a cluster (updateClusterClients)."""

import pytest

from broker.discovery.topology import Member
from broker.model.transport_configuration import TransportConfiguration
from broker.protocols.openwire import commands as c
from tests.broker.protocols.openwire.client import OpenWire
from tests.broker.protocols.stomp.client import serving
from tests.interop.asynchronous import asynchronous

UPDATES = {"updateClusterClients": "true"}
REBALANCES = {**UPDATES, "rebalanceClusterClients": "true"}


def comes(broker, name, event=1):
    """A member of the cluster; what ends it."""
    parameters = {"host": name, "port": "61616"}
    connector = TransportConfiguration(name, parameters=parameters)
    connection = object()
    broker.clients.topology("").announced(Member(name, event, connector), connection)
    return lambda: broker.clients.topology("").disconnected(connection)


async def told(client):
    """What the client is told: brokers, and whether to go to the first of them."""
    control = await client.message()
    assert isinstance(control, c.ConnectionControl)
    assert not control.fault_tolerant
    return control.connected_brokers, control.rebalance_connection


@asynchronous
async def test_a_client_is_told_at_its_login_and_at_each_change():
    async with serving(parameters=UPDATES) as broker:
        comes(broker, "a")
        async with OpenWire.of(broker, manageable=True) as client:
            # Before the answer to its login.
            assert await told(client) == ("tcp://a:61616", False)
            goes = comes(broker, "b")
            assert await told(client) == ("tcp://a:61616,tcp://b:61616", False)
            comes(broker, "a", 2)  # Nothing new.
            goes()
            assert await told(client) == ("tcp://a:61616", False)


@asynchronous
async def test_clients_go_to_different_brokers():
    async with serving(parameters=REBALANCES) as broker:
        comes(broker, "a")
        comes(broker, "b")
        both = ["tcp://a:61616,tcp://b:61616", "tcp://b:61616,tcp://a:61616"]
        found = []
        for number, again in enumerate((False, False, True)):
            name = f"ID:test-1-2-3:{number}"
            info = {"manageable": True, "failover_reconnect": again}
            async with OpenWire.of(broker, f"c{number}", name=name, **info) as client:
                found.append(await told(client))
        # The last one has just come from another broker.
        assert found == [(both[0], True), (both[1], True), (both[0], False)]


@pytest.mark.parametrize("parameters", [{}, UPDATES])
@asynchronous
async def test_others_are_told_nothing(parameters):
    async with (
        serving(parameters=parameters) as broker,
        OpenWire.of(broker, manageable=not parameters) as client,
    ):
        comes(broker, "a")
        await client.ask(client.text(c.ActiveMQQueue("q"), "m"))
        assert client.messages == []


@asynchronous
async def test_one_that_has_left_its_connection_is_told_nothing_more():
    async with (
        serving(parameters=UPDATES) as broker,
        OpenWire.of(broker, manageable=True) as client,
    ):
        await told(client)
        await client.ask(c.RemoveInfo(object_id=client.login("x").connection_id))
        comes(broker, "a")
        # The same socket, another client.
        await client.ask(client.login("other"))
        assert client.messages == []
