"""A core bridge between two brokers of ours, each over real sockets."""

import asyncio
import uuid

import pytest

from broker.bridges.core.outgoing import OutgoingMessages
from broker.bridges.core.status import BridgeState
from broker.bridges.core.window import window_of
from broker.config.addressing import ComponentRoutingType, Transformer
from broker.errors import BrokerError
from broker.model.message import Message
from broker.model.properties import Property, PropertyType
from broker.model.routing_type import RoutingType
from broker.settings.policies import AddressFullPolicy
from broker.settings.settings import AddressSettings
from broker.settings.settings_repository import SettingsRepository
from broker.transport.event_loop import loop_factory
from tests.broker.bridges.two_brokers import (
    bridge,
    bridged,
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
from tests.proxy import Proxy

ADD_HEADERS = "org.apache.activemq.artemis.core.server.transformer.AddHeadersTransformer"


def test_messages_go_over_in_order_and_leave_their_queue():
    async def main():
        async with running(options("t", queue="to")) as target:
            made = options("s", queue="from", bridges=(bridge(),), target_port=port_of(target))
            async with running(made) as source:
                await send(source, "from", *map(str, range(100)))

                assert await take(target, "to", 100) == list(map(str, range(100)))
                await until(lambda: count_of(source, "from") == 0)
                status = source.bridges.by_name["b"].status
                assert (status.acknowledged_count, status.pending_count) == (100, 0)
                assert status.window == 4000
                assert (status.reason, status.is_moving) == ("the queue is empty", True)
        assert source.bridges.by_name == {}

    asyncio.run(main())


def test_the_broker_s_own_event_loop_takes_a_bridge():
    """As `broker run` has it, where a transport is of no class of asyncio's."""

    async def main():
        async with running(options("t", queue="to")) as target:
            made = options("s", queue="from", bridges=(bridge(),), target_port=port_of(target))
            async with running(made) as source:
                await send(source, "from", "one", "x" * 300)
                assert await take(target, "to", 2) == ["one", "x" * 300]

    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(main())


def test_what_a_broker_has_when_it_starts_goes_over(tmp_path):
    async def main():
        async with running(options("t", queue="to")) as target:
            async with running(options("s", queue="from", folder=tmp_path)) as source:
                await send(source, "from", "one", "two")
            made = options("s", folder=tmp_path, bridges=(bridge(),), target_port=port_of(target))
            async with running(made):
                assert await take(target, "to", 2) == ["one", "two"]
            async with running(options("s", queue="from", folder=tmp_path)) as source:
                assert count_of(source, "from") == 0

    asyncio.run(main())


def test_a_target_that_is_not_there_is_waited_for():
    async def main():
        async with running(options("t", queue="to")) as target:
            port = port_of(target)
        made = options("s", queue="from", bridges=(bridge(),), target_port=port)
        async with running(made) as source:
            await send(source, "from", "one")
            one = source.bridges.by_name["b"]
            await until(lambda: "waits to retry in" in one.status.reason)
            assert not one.is_connected
            async with running(options("t", queue="to", port=port)) as target:
                assert await take(target, "to", 1) == ["one"]

    asyncio.run(main())


def test_what_had_no_answer_goes_again_and_arrives_once():
    """The connection is lost again and again, at any moment of it."""

    async def main():
        async with running(options("t", queue="to")) as target:
            with Proxy(port_of(target)) as proxy:
                made = options("s", queue="from", bridges=(bridge(),), target_port=proxy.port)
                async with running(made) as source:
                    sent = [f"{number}" for number in range(1500)]
                    sending = asyncio.ensure_future(send(source, "from", *sent))
                    one = source.bridges.by_name["b"]
                    for _ in range(15):
                        await asyncio.sleep(0.03)
                        proxy.reset()
                    await sending
                    await until(lambda: count_of(source, "from") == 0)
                    assert await take(target, "to", len(sent)) == sent
                    assert count_of(target, "to") == 0
                    assert one.status.acknowledged_count == len(sent)

    asyncio.run(main())


def test_a_target_without_the_forwarding_address_refuses_in_words():
    async def main():
        async with running(options("t")) as target:
            made = options("s", queue="from", bridges=(bridge(),), target_port=port_of(target))
            async with running(made) as source:
                await send(source, "from", "one")
                one = source.bridges.by_name["b"]
                await until(lambda: "refuses" in one.status.reason)
                assert "the target refuses: address 'to' does not exist there" in one.status.reason
                assert count_of(source, "from") == 1
                await make_queue(target, "to")
                assert await take(target, "to", 1) == ["one"]

    asyncio.run(main())


def test_attempts_come_to_an_end_and_a_start_begins_anew():
    async def main():
        async with running(options("t", queue="to")) as target:
            port = port_of(target)
        configured = bridge(initial_connect_attempts=2)
        async with running(
            options("s", queue="from", bridges=(configured,), target_port=port)
        ) as source:
            await send(source, "from", "one")
            one = source.bridges.by_name["b"]
            await until(lambda: one.state is BridgeState.STOPPED)
            assert "no attempt is left after 3" in one.status.reason
            assert count_of(source, "from") == 1
            async with running(options("t", queue="to", port=port)) as target:
                one.start()
                assert await take(target, "to", 1) == ["one"]

    asyncio.run(main())


def test_a_paused_bridge_leaves_messages_where_they_are():
    async def main():
        async with running(options("t", queue="to")) as target:
            made = options("s", queue="from", bridges=(bridge(),), target_port=port_of(target))
            async with running(made) as source:
                one = source.bridges.by_name["b"]
                await until(lambda: one.is_connected)
                await one.pause()
                await send(source, "from", "one")
                assert (one.state, one.status.reason) == (BridgeState.PAUSED, "paused")
                assert await take(source, "from", 1) == ["one"]
                await send(source, "from", "two")
                one.start()
                assert await take(target, "to", 1) == ["two"]

    asyncio.run(main())


def test_a_pause_without_confirmations_gives_back_what_was_on_its_way():
    async def main():
        async with running(options("t", queue="to")) as target:
            with Proxy(port_of(target)) as proxy:
                configured = bridge(pending_ack_timeout_ms=100)
                made = options("s", queue="from", bridges=(configured,), target_port=proxy.port)
                async with running(made) as source:
                    one = source.bridges.by_name["b"]
                    # With its credits, so that the next ones leave at once.
                    await send(source, "from", "zero")
                    assert await take(target, "to", 1) == ["zero"]
                    await until(lambda: count_of(source, "from") == 0)
                    proxy.stall()
                    await send(source, "from", "one", "two")
                    await until(lambda: one.status.pending_count == 2)
                    await one.pause()
                    assert count_of(source, "from") == 2
                    assert source.parts.postoffice.addresses.queues["from"].delivering_count == 0
                    proxy.resume()
                    one.start()
                    assert await take(target, "to", 2) == ["one", "two"]
                    assert count_of(target, "to") == 0

    asyncio.run(main())


def test_a_filter_leaves_the_rest_and_says_so():
    async def main():
        async with running(options("t", queue="to")) as target:
            configured = bridge(filter="colour = 'red'")
            made = options("s", queue="from", bridges=(configured,), target_port=port_of(target))
            async with running(made) as source:
                await send(source, "from", "g", properties={"colour": "green"})
                one = source.bridges.by_name["b"]
                await until(lambda: one.is_connected)
                await until(lambda: "matches none" in one.status.reason)
                assert one.status.reason == "filter \"colour = 'red'\" matches none of 1 messages"
                await send(source, "from", "r", properties={"colour": "red"})
                assert await take(target, "to", 1) == ["r"]
                assert count_of(source, "from") == 1

    asyncio.run(main())


@pytest.mark.parametrize(
    ("kind", "queue"),
    [
        (ComponentRoutingType.PASS, "any"),
        (ComponentRoutingType.ANYCAST, "any"),
        (ComponentRoutingType.MULTICAST, "multi"),
    ],
)
def test_the_routing_type_is_passed_or_set(kind, queue):
    async def main():
        async with running(options("t")) as target:
            async with session_of(target) as session:
                both = (RoutingType.ANYCAST, RoutingType.MULTICAST)
                await session.create_address("to", *both)
                await session.create_queue("any", "to")
                await session.create_queue("multi", "to", routing_type=RoutingType.MULTICAST)
            configured = bridge(routing_type=kind)
            made = options("s", queue="from", bridges=(configured,), target_port=port_of(target))
            async with running(made) as source:
                one = Property("", PropertyType.BYTE, int(RoutingType.ANYCAST))
                await send(source, "from", "one", properties={"_AMQ_ROUTING_TYPE": one})
                assert await take(target, queue, 1) == ["one"]
                assert count_of(target, "any") + count_of(target, "multi") == 0

    asyncio.run(main())


def test_without_a_forwarding_address_messages_keep_theirs():
    async def main():
        async with running(options("t", queue="from")) as target:
            configured = bridge(forwarding_address=None)
            made = options("s", queue="from", bridges=(configured,), target_port=port_of(target))
            async with running(made) as source:
                await send(source, "from", "one")
                assert await take(target, "from", 1) == ["one"]

    asyncio.run(main())


@pytest.mark.parametrize("size", [150_000, 1_000_000])
def test_large_messages_are_streamed_in_their_order(tmp_path, size):
    async def main():
        async with bridged(tmp_path) as (source, target):
            sent = ["a", "b" * size, "c", "d" * size, "e"]
            await send(source, "from", *sent)
            assert await take(target, "to", 5) == sent
            await until(lambda: count_of(source, "from") == 0)
        assert list((tmp_path / "s" / "large").glob("*.msg")) == []

    asyncio.run(main())


def test_paged_messages_and_scheduled_ones_go_over(tmp_path):
    async def main():
        settings = SettingsRepository()
        settings.add(
            "from",
            AddressSettings(
                max_size_messages=10,
                page_size_bytes=4096,
                address_full_policy=AddressFullPolicy.PAGE,
            ),
        )
        async with running(options("t", queue="to")) as target:
            with Proxy(port_of(target)) as proxy:
                proxy.cut()
                made = options(
                    "s",
                    queue="from",
                    folder=tmp_path,
                    settings=settings,
                    bridges=(bridge(),),
                    target_port=proxy.port,
                )
                async with running(made) as source:
                    sent = [f"{number} {'x' * 100}" for number in range(200)]
                    await send(source, "from", *sent)
                    address = source.parts.postoffice.addresses.by_name["from"]
                    assert source.parts.paging.stores[address.name].is_paging
                    proxy.resume()
                    assert await take(target, "to", 200) == sent
                    soon_ms = source.clock_ms() + 300
                    await send(source, "from", "later", deliver_in_ms=300)
                    assert await take(target, "to", 1) == ["later"]
                    assert source.clock_ms() >= soon_ms

    asyncio.run(main())


def test_a_full_target_gives_no_credit_and_the_bridge_says_so():
    async def main():
        settings = SettingsRepository()
        settings.add(
            "to",
            AddressSettings(max_size_bytes=10_000, address_full_policy=AddressFullPolicy.BLOCK),
        )
        async with running(options("t", queue="to", settings=settings)) as target:
            configured = bridge(producer_window_size_bytes=1000)
            made = options("s", queue="from", bridges=(configured,), target_port=port_of(target))
            async with running(made) as source:
                sent = [f"{number} {'x' * 500}" for number in range(60)]
                await send(source, "from", *sent)
                one = source.bridges.by_name["b"]
                await until(lambda: "no credit" in one.status.reason)
                assert "address 'to' of the target is full or blocked" in one.status.reason
                assert await take(target, "to", 60) == sent

    asyncio.run(main())


def test_a_target_that_fails_sends_is_asked_again():
    async def main():
        settings = SettingsRepository()
        settings.add(
            "to",
            AddressSettings(max_size_bytes=10_000, address_full_policy=AddressFullPolicy.FAIL),
        )
        async with running(options("t", queue="to", settings=settings)) as target:
            made = options("s", queue="from", bridges=(bridge(),), target_port=port_of(target))
            async with running(made) as source:
                sent = [f"{number} {'x' * 500}" for number in range(60)]
                await send(source, "from", *sent)
                one = source.bridges.by_name["b"]
                await until(lambda: "the target refuses" in one.status.reason)
                assert await take(target, "to", 60) == sent

    asyncio.run(main())


def test_headers_are_added_by_a_transformer():
    async def main():
        async with running(options("t", queue="to")) as target:
            configured = bridge(
                transformer=Transformer(class_name=ADD_HEADERS, properties=(("from", "s"),))
            )
            made = options("s", queue="from", bridges=(configured,), target_port=port_of(target))
            async with running(made) as source:
                await send(source, "from", "one")
                async with (
                    session_of(target) as session,
                    await session.consumer("to") as consumer,
                ):
                    received = await consumer.receive(30)
                    assert received.get("from") == "s"
                    assert received.get("_AMQ_BRIDGE_DUP") is None

    asyncio.run(main())


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"static_connectors": None, "discovery_group_ref": "dg"}, "no discovery group is called"),
        ({"transformer_class_name": "org.example.Mine"}, "no transformer is called 'org.example"),
    ],
)
def test_what_is_not_there_is_refused_by_name_at_the_start(changes, told):
    async def main():
        broker = running(options("s", queue="from", bridges=(bridge(**changes),), target_port=1))
        with pytest.raises(BrokerError, match=told):
            await broker.__aenter__()

    asyncio.run(main())


def test_an_unknown_connector_is_refused_by_name_at_the_start():
    async def main():
        broker = running(options("s", queue="from", bridges=(bridge(),)))
        with pytest.raises(BrokerError, match="bridge b: no connector is called 'target'"):
            await broker.__aenter__()

    asyncio.run(main())


def test_a_queue_that_is_deleted_is_waited_for():
    async def main():
        async with running(options("t", queue="to")) as target:
            made = options("s", bridges=(bridge(),), target_port=port_of(target))
            async with running(made) as source:
                one = source.bridges.by_name["b"]
                await until(lambda: "queue 'from' does not exist" in one.status.reason)
                await make_queue(source, "from")
                await send(source, "from", "one")
                assert await take(target, "to", 1) == ["one"]
                await until(lambda: count_of(source, "from") == 0)
                source.parts.postoffice.addresses.delete_queue("from")
                await until(lambda: not one.is_connected)
                await make_queue(source, "from")
                await send(source, "from", "two")
                assert await take(target, "to", 1) == ["two"]

    asyncio.run(main())


def test_several_bridges_of_a_name_share_the_queue():
    async def main():
        async with running(options("t", queue="to", id_cache_size=100)) as target:
            configured = bridge(concurrency=3)
            made = options("s", queue="from", bridges=(configured,), target_port=port_of(target))
            async with running(made) as source:
                sent = {str(number) for number in range(300)}
                await send(source, "from", *sent)
                assert set(await take(target, "to", 300)) == sent
                found = source.bridges.by_name
                assert sorted(found) == ["b-0", "b-1", "b-2"]
                assert {one.status.window for one in found.values()} == {33}

    asyncio.run(main())


def test_a_target_that_keeps_no_ids_is_warned_of(caplog):
    async def main():
        async with running(options("t", queue="to", id_cache_size=0)) as target:
            made = options("s", queue="from", bridges=(bridge(),), target_port=port_of(target))
            async with running(made) as source:
                await send(source, "from", "one", "two")
                assert await take(target, "to", 2) == ["one", "two"]
                assert source.bridges.by_name["b"].status.window == 1

    asyncio.run(main())
    said = [one.message for one in caplog.records if "duplicate ids (id-cache-size)" in one.message]
    assert len(said) == 1
    assert "remembers 0 duplicate ids (id-cache-size): messages may double" in said[0]


def test_the_duplicate_id_is_artemis_s():
    node = uuid.UUID("00112233-4455-6677-8899-aabbccddeeff")
    made = OutgoingMessages(bridge(), node, None).make(Message("from", b"x", message_id=258))

    assert made.get("_AMQ_BRIDGE_DUP") == node.bytes + b"\0\0\0\0\0\0\1\2"
    assert made.address == "to"


@pytest.mark.parametrize(
    ("size", "count", "detects", "window"),
    [
        (20_000, 1, True, 4000),
        (100, 1, True, 100),
        (100, 3, True, 33),
        (2, 3, True, 1),
        (None, 1, True, 500),
        (20_000, 1, False, 1),
    ],
)
def test_the_window_is_what_the_target_remembers(size, count, detects, window):
    assert window_of(size, bridge_count=count, uses_detection=detects) == window
