"""Core bridges made, changed, looked at and removed while the broker runs."""

import asyncio
import json

import pytest

from broker.bridges.core.status import BridgeState
from broker.client.errors import BrokerRefused
from broker.errors import BrokerError
from broker.management.metrics import Metrics
from broker.options.file import ConfigurationFile
from broker.options.from_config import broker_options
from broker.server.server import Broker
from tests.broker.bridges.two_brokers import (
    WAIT_S,
    bridge,
    count_of,
    make_queue,
    options,
    port_of,
    running,
    send,
    session_of,
    take,
    until,
)

MADE = {
    "name": "made",
    "queue-name": "from",
    "forwarding-address": "to",
    "static-connectors": ["target"],
    "retry-interval": 20,
    "transformer-configuration": {
        "class-name": "org.apache.activemq.artemis.core.server.transformer.AddHeadersTransformer",
        "properties": {"by": "made"},
    },
}


async def call(broker, resource, operation, *arguments):
    """What an operation gives."""
    async with session_of(broker) as session:
        return await session.manage(resource, operation, *arguments)


async def attribute(broker, resource, name):
    """What an attribute is."""
    async with session_of(broker) as session:
        return await session.attribute(resource, name)


def test_a_bridge_is_made_by_management_and_there_after_a_restart(tmp_path):
    async def main():
        async with running(options("t", queue="to")) as target:
            made = options("s", queue="from", folder=tmp_path, target_port=port_of(target))
            async with running(made) as source:
                await call(source, "broker", "createBridge", json.dumps(MADE))
                assert await attribute(source, "broker", "bridgeNames") == ["made"]
                await send(source, "from", "one")
                assert await take(target, "to", 1) == ["one"]
                with pytest.raises(BrokerRefused, match="already a bridge with name made"):
                    await call(source, "broker", "createBridge", json.dumps(MADE))
            async with running(made) as source:
                assert await attribute(source, "bridge.made", "transformerProperties") == {
                    "by": "made"
                }
                await send(source, "from", "two")
                assert await take(target, "to", 1) == ["two"]
                await call(source, "broker", "destroyBridge", "made")
                assert await attribute(source, "broker", "bridgeNames") == []
            async with running(made) as source:
                assert await attribute(source, "broker", "bridgeNames") == []

    asyncio.run(main())


def test_each_form_of_create_bridge_makes_one():
    last = (1000, "target", False, False, None, None)
    retry = (20, 1.5, -1, -1, True, 1_000_000)
    forms = {
        "a": (*retry, *last),
        "b": (*retry, 500_000, *last),
    }

    async def main():
        async with running(options("t", queue="to")) as target:
            made = options("s", queue="from", target_port=port_of(target))
            async with running(made) as source:
                for name, rest in forms.items():
                    first = (name, "from", "to", None, None)
                    await call(source, "broker", "createBridge", *first, *rest)
                headers = (MADE["transformer-configuration"]["class-name"], '{"by": "c"}')
                await call(
                    source,
                    "broker",
                    "createBridge",
                    *("c", "from", "to", None, *headers, *retry, 500_000, *last),
                )
                assert await attribute(source, "broker", "bridgeNames") == ["a", "b", "c"]
                assert await attribute(source, "bridge.a", "retryIntervalMultiplier") == 1.5
                assert await attribute(source, "bridge.c", "transformerProperties") == {"by": "c"}
                await until(lambda: all(one.is_connected for one in bridges(source)))

    asyncio.run(main())


def bridges(broker):
    return broker.bridges.by_name.values()


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"queue-name": None}, "a bridge needs a name and a queue-name"),
        ({"static-connectors": ["nowhere"]}, "no connector is called 'nowhere'"),
        ({"static-connectors": None}, "it takes <static-connectors> or <discovery-group-ref>"),
        ({"retry-interval": "soon"}, "retry-interval"),
        ({"retry_interval": 5}, "a bridge has no 'retry_interval'"),
        ({"transformer-configuration": {"class-name": "None"}}, "no transformer is called 'None'"),
        (
            {"static-connectors": None, "discovery-group-name": "dg"},
            "no discovery group is called 'dg'",
        ),
    ],
)
def test_what_is_wrong_is_refused_in_words(changes, says):
    async def main():
        async with running(options("s", queue="from", target_port=1)) as source:
            with pytest.raises(BrokerRefused, match=says):
                await call(source, "broker", "createBridge", json.dumps(MADE | changes))
            assert source.bridges.by_name == {}

    asyncio.run(main())


def test_a_bridge_is_paused_and_resumed_and_tells_of_itself():
    async def main():
        async with running(options("t", queue="to")) as target:
            made = options("s", queue="from", bridges=(bridge(),), target_port=port_of(target))
            async with running(made) as source:
                one = source.bridges.by_name["b"]
                await send(source, "from", "one")
                assert await take(target, "to", 1) == ["one"]
                await until(lambda: count_of(source, "from") == 0)
                assert json.loads(await attribute(source, "bridge.b", "statusAsJSON")) == {
                    "name": "b",
                    "queue": "from",
                    "forwardingAddress": "to",
                    "state": "STARTED",
                    "connected": True,
                    "target": f"127.0.0.1:{port_of(target)}",
                    "window": 4000,
                    "messageCount": 0,
                    "messagesPendingAcknowledgement": 0,
                    "messagesAcknowledged": 1,
                    "moving": True,
                    "reason": "the queue is empty",
                }
                assert await attribute(source, "bridge.b", "connected") is True
                assert await attribute(source, "bridge.b", "staticConnectors") == ["target"]
                assert await attribute(source, "bridge.b", "metrics") == {
                    "messagesPendingAcknowledgement": 0,
                    "messagesAcknowledged": 1,
                }
                text = Metrics(source).answer(None)[1].decode()
                assert 'quiver_bridge_connected{bridge="b",broker="s",queue="from"} 1.0' in text
                await call(source, "bridge.b", "pause")
                assert one.state is BridgeState.PAUSED
                assert await attribute(source, "bridge.b", "started") is False
                await call(source, "bridge.b", "resume")
                await until(lambda: one.is_connected)
                await call(source, "bridge.b", "stop")
                assert one.state is BridgeState.STOPPED
                await call(source, "bridge.b", "start")
                await send(source, "from", "two")
                assert await take(target, "to", 1) == ["two"]

    asyncio.run(main())


def test_starts_and_stops_are_told():
    async def main():
        async with running(options("t", queue="to")) as target:
            made = options("s", queue="from", bridges=(bridge(),), target_port=port_of(target))
            async with running(made) as source, session_of(source) as session:
                address = source.options.notifications.address
                await session.create_queue(
                    "told",
                    address,
                    selector="_AMQ_NotifType LIKE 'BRIDGE%'",
                    routing_type=0,
                )
                async with await session.consumer("told") as consumer:
                    await call(source, "bridge.b", "stop")
                    await call(source, "bridge.b", "start")
                    told = [await consumer.receive(WAIT_S) for _ in range(2)]
                found = [(one.get("_AMQ_NotifType"), one.get("name")) for one in told]
                assert found == [("BRIDGE_STOPPED", "b"), ("BRIDGE_STARTED", "b")]

    asyncio.run(main())


XML = """<core><security-enabled>false</security-enabled><journal-type>NIO</journal-type>
<journal-file-size>100K</journal-file-size>
<acceptors><acceptor name="a">tcp://127.0.0.1:0</acceptor></acceptors>
<connectors><connector name="target">tcp://127.0.0.1:{port}</connector></connectors>
<addresses><address name="from"><anycast><queue name="from"/></anycast></address></addresses>
<bridges>{bridges}</bridges></core>"""
BRIDGE = """<bridge name="{name}"><queue-name>from</queue-name>
<forwarding-address>{address}</forwarding-address><retry-interval>20</retry-interval>
<static-connectors><connector-ref>target</connector-ref></static-connectors></bridge>"""


def test_a_reload_adds_changes_and_removes_bridges(tmp_path):
    path = tmp_path / "etc" / "broker.xml"
    path.parent.mkdir()

    async def main():
        async with running(options("t", queue="to")) as target:
            await make_queue(target, "other")
            port = port_of(target)

            def write(*bridges, head="\n"):
                path.write_text(head + XML.format(port=port, bridges="".join(bridges)))

            write()
            file = ConfigurationFile(path)
            made = broker_options(file.load())
            source = Broker(made, configuration=file)
            await source.start()
            try:
                assert source.bridges.by_name == {}
                write(BRIDGE.format(name="b", address="to"))
                source.reload_configuration()
                await send(source, "from", "one")
                assert await take(target, "to", 1) == ["one"]
                first = source.bridges.by_name["b"]
                # In another line, and the same.
                write(BRIDGE.format(name="b", address="to"), head="\n\n")
                source.reload_configuration()
                assert source.bridges.by_name["b"] is first
                write(BRIDGE.format(name="b", address="other"))
                source.reload_configuration()
                await send(source, "from", "two")
                assert await take(target, "other", 1) == ["two"]
                write()
                source.reload_configuration()
                assert source.bridges.by_name == {}
                await send(source, "from", "three")
                assert await take(source, "from", 1) == ["three"]
            finally:
                await source.stop()

    asyncio.run(main())


def test_a_reload_applies_a_connector_that_leads_elsewhere(tmp_path):
    path = tmp_path / "etc" / "broker.xml"
    path.parent.mkdir()

    async def main():
        async with (
            running(options("t", queue="to")) as target,
            running(options("u", queue="to")) as other,
        ):

            def write(broker, head="\n"):
                made = XML.format(
                    port=port_of(broker), bridges=BRIDGE.format(name="b", address="to")
                )
                path.write_text(head + made)

            write(target)
            file = ConfigurationFile(path)
            source = Broker(broker_options(file.load()), configuration=file)
            await source.start()
            try:
                await send(source, "from", "one")
                assert await take(target, "to", 1) == ["one"]
                first = source.bridges.by_name["b"]
                write(target, head="\n\n")
                source.reload_configuration()
                assert source.bridges.by_name["b"] is first
                write(other)
                source.reload_configuration()
                await send(source, "from", "two")
                assert await take(other, "to", 1) == ["two"]
            finally:
                await source.stop()

    asyncio.run(main())


def test_a_bridge_with_the_name_of_one_of_several_is_refused():
    """`concurrency` makes names of its own."""

    async def main():
        several, another = bridge(name="a", concurrency=2), bridge(name="a-0")
        for pair in ((several, another), (another, several)):
            broker = running(options("s", queue="from", bridges=pair, target_port=1))
            with pytest.raises(BrokerError, match="another bridge is called a-0"):
                await broker.__aenter__()

    asyncio.run(main())
