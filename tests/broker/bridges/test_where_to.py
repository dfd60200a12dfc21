"""Where a core bridge goes: to the backup of its target, and to brokers of a discovery group."""

import asyncio
import contextlib
import dataclasses

import pytest

from broker.config import BrokerConfig
from broker.config.cluster import ClusterConfig, StaticConnectors
from broker.config.discovery import BroadcastGroup, DiscoveryGroup, EndpointConfig
from broker.config.transport import TransportConfig
from broker.errors import BrokerError
from broker.options import BrokerOptions
from broker.server.server import Broker
from broker.transport.acceptor import AcceptorOptions
from tests.broker.bridges.two_brokers import (
    bridge,
    count_of,
    make_queue,
    options,
    port_of,
    running,
    send,
    take,
    until,
)
from tests.broker.client.test_failover import running as running_pair
from tests.proxy import Proxy
from tests.servers import free_port


def test_a_bridge_follows_its_target_to_the_backup_and_back(tmp_path):
    """It knows the primary alone, and hears of the backup from there."""

    async def main():
        async with running_pair(tmp_path, is_cluster=True) as pair:
            await make_queue(pair.primary, "to")
            changes = {"ha": True, "reconnect_attempts_same_node": -1}
            source = options(
                "s", queue="from", bridges=(bridge(**changes),), target_port=pair.ports[0]
            )
            async with running(source) as broker:
                (moving,) = broker.bridges.by_name.values()
                await until(lambda: moving.is_connected)
                await until(lambda: knows_backup(moving._target, pair.ports[1]))
                found = []
                for change, at in ((pair.fail_over, pair.backup), (pair.fail_back, pair.primary)):
                    await change()
                    await send(broker, "from", str(port_of(at)))
                    found += await take(at, "to", 1)
                await until(lambda: count_of(broker, "from") == 0)
                return found, [str(pair.ports[1]), str(pair.ports[0])]

    found, ports = asyncio.run(main())

    assert found == ports


def knows_backup(target, port):
    return any(
        one.backup is not None and one.backup.port == port for one in target.topology.members
    )


def endpoint(path):
    return EndpointConfig(
        name="shared-folder", properties={"path": str(path), "period": 20}, broadcasts=True
    )


@contextlib.asynccontextmanager
async def broadcasting(name, path):
    """A broker with a queue that makes itself known in a folder."""
    port = free_port()
    own = TransportConfig(name="own", scheme="tcp", host="127.0.0.1", port=port)
    group = BroadcastGroup(
        name="bg", connector_refs=("own",), broadcast_period_ms=20, endpoint=endpoint(path)
    )
    broker = Broker(
        BrokerOptions(
            name=name,
            acceptors=(AcceptorOptions(host="127.0.0.1", port=port),),
            configuration=BrokerConfig(
                cluster=ClusterConfig(connectors=(own,), broadcast_groups=(group,))
            ),
        )
    )
    await broker.start()
    try:
        await make_queue(broker, "to")
        yield broker
    finally:
        await broker.stop()


def source_options(path, **changes):
    """Of a broker whose bridge leads to the discovery group of a folder."""
    group = DiscoveryGroup(
        name="dg",
        endpoint=endpoint(path),
        refresh_timeout_ms=10_000,
        initial_wait_timeout_ms=100,
    )
    leads = {"static_connectors": None, "discovery_group_ref": "dg"}
    made = options("s", queue="from", bridges=(bridge(**(leads | changes)),))
    cluster = ClusterConfig(discovery_groups=(group,), bridges=made.bridges)
    return BrokerOptions(
        name="s",
        acceptors=made.acceptors,
        queues=made.queues,
        bridges=made.bridges,
        configuration=BrokerConfig(cluster=cluster),
    )


def test_a_bridge_finds_its_target_in_a_discovery_group(tmp_path):
    async def main():
        async with running(source_options(tmp_path)) as source:
            (moving,) = source.bridges.by_name.values()
            await send(source, "from", "one")
            await until(lambda: "no broker was heard in 100 ms" in moving.status.reason)
            assert moving.status.target == "discovery group dg"
            async with broadcasting("first", tmp_path) as first:
                assert await take(first, "to", 1) == ["one"]
                assert moving.status.target == f"127.0.0.1:{port_of(first)}"
            # The first one has taken back what others could hear.
            await send(source, "from", "two")
            async with broadcasting("second", tmp_path) as second:
                assert await take(second, "to", 1) == ["two"]
                await until(lambda: count_of(source, "from") == 0)
            await moving.stop()
            assert not moving._target._group.is_started

    asyncio.run(main())


def test_each_bridge_of_a_name_finds_it(tmp_path):
    async def main():
        async with (
            broadcasting("t", tmp_path) as target,
            running(source_options(tmp_path, concurrency=2)) as source,
        ):
            bridges = source.bridges.by_name.values()
            await until(lambda: all(one.is_connected for one in bridges))
            await send(source, "from", "one", "two")
            return sorted(await take(target, "to", 2))

    assert asyncio.run(main()) == ["one", "two"]


def test_a_discovery_group_that_is_not_there_is_named():
    async def main():
        leads = {"static_connectors": None, "discovery_group_ref": "nowhere"}
        with pytest.raises(BrokerError, match="no discovery group is called 'nowhere'"):
            await running(options("s", queue="from", bridges=(bridge(**leads),))).__aenter__()

    asyncio.run(main())


@pytest.mark.parametrize("comes_back", [True, False])
def test_what_had_no_answer_waits_for_the_same_node(comes_back, caplog):
    """Of two brokers that do not know each other the second one would take it again."""

    async def main():
        async with (
            running(options("t", queue="to")) as first,
            running(options("u", queue="to")) as second,
        ):
            with Proxy(port_of(first)) as proxy:
                leads = {"static_connectors": StaticConnectors(connector_refs=("one", "two"))}
                leads["reconnect_attempts_same_node"] = 10 if comes_back else 1
                made = options("s", queue="from", bridges=(bridge(**leads),))
                ports = {"one": proxy.port, "two": port_of(second)}
                connectors = tuple(
                    TransportConfig(name=name, scheme="tcp", host="127.0.0.1", port=port)
                    for name, port in ports.items()
                )
                cluster = ClusterConfig(connectors=connectors, bridges=made.bridges)
                made = dataclasses.replace(made, configuration=BrokerConfig(cluster=cluster))
                async with running(made) as source:
                    (moving,) = source.bridges.by_name.values()
                    await send(source, "from", "zero")
                    assert await take(first, "to", 1) == ["zero"]
                    await until(lambda: count_of(source, "from") == 0)
                    proxy.stall()
                    await send(source, "from", "one")
                    await until(lambda: moving.status.pending_count == 1)
                    proxy.cut()
                    await until(lambda: not moving.is_connected)
                    if comes_back:
                        await asyncio.sleep(0.1)
                        proxy.resume()
                        assert await take(first, "to", 1) == ["one"]
                        assert count_of(second, "to") == 0
                    else:
                        assert await take(second, "to", 1) == ["one"]
                    await until(lambda: count_of(source, "from") == 0)

    asyncio.run(main())
    assert ("they may double" in caplog.text) is not comes_back
