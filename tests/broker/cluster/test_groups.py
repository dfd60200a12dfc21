"""Brokers that find each other, and clients that find them, by UDP and by a shared folder."""

import asyncio

import pytest

from broker.client import AsyncClient, Client, NotConnected
from broker.discovery.datagram import Broadcast, decode_broadcast, encode_broadcast
from broker.environment import Environment
from broker.model.transport_configuration import TransportConfiguration
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
from tests.interop.asynchronous import asynchronous
from tests.servers import free_port


def folder_of(path):
    return (
        f'<endpoint name="shared-folder"><property key="path" value="{path}"/>'
        '<property key="period" value="20"/></endpoint>'
    )


@pytest.fixture(params=[pytest.param("udp", marks=needs_multicast), "shared-folder"])
def endpoint(request, tmp_path):
    """What stands in a group, and the URI of clients."""
    if request.param == "udp":
        port = free_udp_port()
        return udp(port), f"udp://{GROUP}:{port}?localBindAddress={LOOPBACK}"
    path = tmp_path / "broadcasts"
    return folder_of(path), f"discovery://shared-folder?path={path}&period=20"


@asynchronous
async def test_brokers_hear_each_other_and_silence(endpoint, tmp_path):
    xml, _ = endpoint
    one = configuration(tmp_path, "one", xml, free_port(), refresh_ms=400)
    two = configuration(tmp_path, "two", xml, free_port(), refresh_ms=400)
    async with started(one) as first:
        async with started(two) as second:
            await until(lambda: heard(first) == {second.node_id})
            await until(lambda: heard(second) == {first.node_id})
        await until(lambda: heard(first) == set())


@asynchronous
async def test_a_client_finds_a_broker_that_comes_later(endpoint, tmp_path):
    xml, uri = endpoint
    options = configuration(tmp_path, "one", xml, free_port())
    async with AsyncClient(uri) as client:
        connecting = asyncio.ensure_future(client.connect())
        await asyncio.sleep(0.05)
        assert not connecting.done()
        async with started(options) as broker:
            connection = await connecting
            assert connection.connector.port == broker.acceptors[0].port
            session = await connection.session()
            await session.create_queue("q")
            await connection.close()
        assert "231.7.7.7" in repr(client) or "shared-folder" in repr(client)


@asynchronous
async def test_clients_are_spread_over_what_they_hear(endpoint, tmp_path):
    xml, uri = endpoint
    both = [configuration(tmp_path, name, xml, free_port()) for name in ("one", "two")]
    async with started(both[0]) as one, started(both[1]) as two:
        await until(lambda: heard(one) and heard(two))
        more = "&useTopologyForLoadBalancing=false"
        async with AsyncClient(uri + more) as client:
            await client.connect()
            await until(lambda: len(client.connectors) == 2)
            reached = {(await client.connect()).connector.port for _ in range(4)}
        assert reached == {one.acceptors[0].port, two.acceptors[0].port}


@asynchronous
async def test_a_client_that_hears_nobody_says_so(endpoint):
    _, uri = endpoint
    async with AsyncClient(uri + "&initialWaitTimeout=50") as client:
        with pytest.raises(NotConnected, match="no broker was heard in 50 ms"):
            await client.connect()


def test_the_client_for_threads_discovers_too(endpoint, tmp_path):
    xml, uri = endpoint
    options = configuration(tmp_path, "one", xml, free_port())

    async def serve():
        async with started(options):
            await asyncio.to_thread(talk)

    def talk():
        with Client(uri) as client:
            client.session().create_queue("q")

    asyncio.run(serve())


@needs_multicast
@asynchronous
async def test_groups_on_other_ports_and_addresses_do_not_mix():
    network = Environment().network
    port, other = free_udp_port(), free_udp_port()
    found = {(GROUP, port): [], (GROUP, other): [], ("231.7.7.8", port): []}
    joined = [
        await network.join_group(*place, LOOPBACK, datagrams.append)
        for place, datagrams in found.items()
    ]
    sending = await network.open_datagrams(LOOPBACK, 0)
    sending.send(b"one", GROUP, port)
    sending.send(b"two", "231.7.7.8", port)
    await until(lambda: found[GROUP, port] and found["231.7.7.8", port])

    assert found == {(GROUP, port): [b"one"], (GROUP, other): [], ("231.7.7.8", port): [b"two"]}
    for one in (*joined, sending):
        one.close()


@needs_multicast
@asynchronous
async def test_two_brokers_of_one_node_id_and_rubbish_are_logged(tmp_path, caplog):
    port = free_udp_port()
    network = Environment().network
    options = configuration(tmp_path, "one", udp(port), free_port())
    async with started(options) as broker:
        sending = await network.open_datagrams(LOOPBACK, 0)
        sending.send(b"\xff\xff", GROUP, port)
        connector = TransportConfiguration("other", parameters={"host": "h", "port": "1"})
        copy = encode_broadcast(Broadcast(broker.node_id, "another", (connector,)))
        await until(lambda: "a datagram was refused" in caplog.text)
        await asyncio.sleep(0.1)
        sending.send(copy, GROUP, port)
        await until(lambda: "AMQ212034" in caplog.text)
        assert broker.node_id in caplog.text
        assert heard(broker) == set()
        sending.close()


@needs_multicast
@asynchronous
async def test_a_port_is_taken_at_random_for_an_address_without_one(tmp_path, caplog):
    port = free_udp_port()
    heard_from = []
    joined = await Environment().network.join_group(GROUP, port, LOOPBACK, heard_from.append)
    async with started(configuration(tmp_path, "one", udp(port), free_port())) as broker:
        await until(lambda: heard_from)
        (connector,) = decode_broadcast(heard_from[0]).connectors
        assert (connector.name, connector.port) == ("own", broker.acceptors[0].port)
    assert "AMQ212056" in caplog.text
    joined.close()


@asynchronous
async def test_a_group_that_cannot_be_opened_is_logged_and_the_broker_serves(tmp_path, caplog):
    # An address that is not of this machine (TEST-NET-3).
    xml = udp(free_udp_port()).replace(LOOPBACK, "203.0.113.1")
    async with started(configuration(tmp_path, "one", xml, free_port())) as broker:
        assert broker.is_active
        assert not broker.cluster.broadcast_groups["bg"].is_started
    assert "AMQ222116: unable to start broadcast group bg" in caplog.text
    assert "unable to start discovery group dg" in caplog.text
