"""Links: what a source or target means, what becomes of messages, and what a detach leaves."""

import asyncio

import pytest
from proton import Delivery, Terminus, symbol
from proton.reactor import AtLeastOnce, AtMostOnce, Copy, DynamicNodeProperties
from proton.utils import LinkDetached, SendException

from broker.model.routing_type import RoutingType
from broker.settings.settings import AddressFullPolicy
from tests.broker.protocols.amqp.client import (
    Capability,
    Client,
    Message,
    Source,
    drained,
    no_local,
    selector,
    serving,
    until,
)
from tests.interop.asynchronous import asynchronous


def names(broker):
    return sorted(broker.parts.postoffice.addresses.queues)


def count(broker, queue="q"):
    return broker.parts.postoffice.addresses.queues[queue].message_count


async def detach(client, receiver, broker, queue):
    receiver.link.detach()
    await client.flush()
    await until(lambda: not broker.parts.postoffice.addresses.queues[queue].consumer_count)


@asynchronous
async def test_messages_go_through_a_queue_and_a_topic(tmp_path):
    async with serving(tmp_path) as broker, Client.of(broker) as client:
        await client.send("q", "one", {"a": 1}, b"three", 5, None)
        queue = await client.receiver("q", Capability("queue"))
        assert await queue.bodies(5) == ["one", {"a": 1}, b"three", 5, None]

        first = await client.receiver("t", Capability("topic"))
        second = await client.receiver("t", Capability("topic"))
        await client.send("t", "x", capability="topic")
        assert (await first.bodies(1), await second.bodies(1)) == (["x"], ["x"])
        await first.close()
        await second.close()
        assert names(broker) == ["q"]


@asynchronous
async def test_an_address_without_a_capability_is_used_as_it_is(tmp_path):
    async with serving(tmp_path) as broker, Client.of(broker) as client:
        # Made by the default routing type, which is MULTICAST.
        topic = await client.receiver("new")
        sender = await client.sender("new")
        await sender.send(Message(body="to the topic"))
        assert await topic.bodies(1) == ["to the topic"]

        await client.send("q", "in the queue")
        queue = await client.receiver("q")
        assert await queue.bodies(1) == ["in the queue"]


@asynchronous
async def test_a_qualified_name_is_its_queue(tmp_path):
    async with serving(tmp_path) as broker, Client.of(broker) as client:
        eu = await client.receiver("orders::eu", Capability("topic"))
        us = await client.receiver("orders::us", Capability("topic"))
        await client.send("orders", "both", capability="topic")
        await client.send("orders::eu", "one", capability="topic")
        assert await eu.bodies(2) == ["both", "one"]
        assert await us.bodies(1) == ["both"]
        with pytest.raises(LinkDetached, match="does not exist for address 'other'"):
            await client.receiver("other::eu", Capability("topic"))


@pytest.mark.parametrize(
    ("outcome", "counts", "dead"),
    [
        ("RELEASED", [0, 0, 0], False),
        ("MODIFIED", [0, 1, 2], False),
        ("REJECTED", [0], True),
    ],
)
@asynchronous
async def test_an_outcome_counts_as_it_says(outcome, counts, dead, tmp_path):
    address = {"max_delivery_attempts": 10}
    async with serving(tmp_path, address=address) as broker, Client.of(broker) as client:
        dead_letters = await client.receiver("DLQ", Capability("queue"))
        await client.send("q", "m")
        queue = await client.receiver("q", credit=1)
        for expected in counts:
            message = await queue.get()
            assert message.delivery_count == expected
            if outcome == "MODIFIED":
                queue.blocking.fetcher.unsettled[-1].local.failed = True
            await queue.settle(getattr(Delivery, outcome))
            queue.link.flow(1)
        if dead:
            message = await dead_letters.get()
            assert message.annotations[symbol("x-opt-ORIG-ADDRESS")] == "q"
            assert message.annotations[symbol("x-opt-ORIG-QUEUE")] == "q"
            await dead_letters.accept()
        else:
            assert (await queue.get()).body == "m"
            await queue.accept()
        await until(lambda: count(broker) == 0)


@asynchronous
async def test_what_is_undeliverable_here_is_for_others(tmp_path):
    async with serving(tmp_path) as broker, Client.of(broker) as client:
        await client.send("q", "m")
        first = await client.receiver("q", credit=5)
        await first.get()
        local = first.blocking.fetcher.unsettled[-1].local
        local.undeliverable = True
        await first.settle(Delivery.MODIFIED)
        second = await client.receiver("q", credit=5)
        assert await second.bodies(1) == ["m"]


@asynchronous
async def test_detach_and_end_give_back_without_counting(tmp_path):
    async with serving(tmp_path) as broker, Client.of(broker) as client:
        await client.send("q", "m")
        for _ in range(3):
            queue = await client.receiver("q", credit=1)
            assert (await queue.get()).delivery_count == 0
            await queue.close()


@asynchronous
async def test_a_settled_link_gets_what_counts_as_acknowledged(tmp_path):
    async with serving(tmp_path) as broker, Client.of(broker) as client:
        await client.send("q", "m")
        queue = await client.receiver("q", AtMostOnce(), credit=1)
        assert (await queue.get()).body == "m"
        await until(lambda: count(broker) == 0)
        sender = await client.sender("q", AtMostOnce())
        await sender.send(Message(body="settled"))
        queue.link.flow(1)
        assert (await queue.get()).body == "settled"


@asynchronous
async def test_a_browser_looks_and_takes_nothing(tmp_path):
    async with serving(tmp_path) as broker, Client.of(broker) as client:
        await client.send("q", "1", "2")
        browser = await client.receiver("q", Copy(), AtLeastOnce())
        assert await browser.bodies(2) == ["1", "2"]
        await browser.close()
        queue = await client.receiver("q")
        assert await queue.bodies(2) == ["1", "2"]


@asynchronous
async def test_a_drained_link_has_what_there_was(tmp_path):
    async with serving(tmp_path) as broker, Client.of(broker) as client:
        await client.send("q", "1", "2")
        queue = await client.receiver("q", credit=0)
        assert await drained(client, queue, 10) == ["1", "2"]
        assert queue.link.credit == 0
        assert await drained(client, queue, 10) == []
        await client.send("q", "3")
        queue.link.flow(1)
        assert (await queue.get()).body == "3"


class OneSession:
    """Where a client's links are: in a session that takes so many bytes at once."""

    def __init__(self, connection, capacity):
        self._session = connection.session()
        self._session.incoming_capacity = capacity
        self._session.open()

    def session(self, context):
        return self._session


@asynchronous
async def test_a_drained_link_has_what_there_was_also_if_the_peer_takes_little_at_once(tmp_path):
    body = "x" * 20_000
    async with serving(tmp_path) as broker, Client.of(broker, max_frame_size=8192) as client:
        await client.send("q", *[body] * 60)
        connection = client.connection.conn
        connection._session_policy = OneSession(connection, 5 * 8192)
        queue = await client.receiver("q", credit=0)
        assert await drained(client, queue, 100) == [body] * 60
        assert await drained(client, queue, 10) == []


@asynchronous
async def test_a_selector_chooses_by_headers_properties_and_annotations(tmp_path):
    async with serving(tmp_path) as broker, Client.of(broker) as client:
        sender = await client.sender("q", Capability("queue"))
        for number in range(6):
            await sender.send(
                Message(
                    body=number,
                    properties={"n": number, "color": "red" if number % 2 else "blue"},
                    annotations={symbol("x-opt-mark"): number},
                    priority=number,
                    id=f"id-{number}",
                    subject=f"s{number}",
                )
            )
        for text, expected in (
            ("n = 2", [2]),
            ("color = 'red' AND JMSPriority > 4", [5]),
            ('"m.x-opt-mark" = 1', [1]),
            ("JMSType = 's4'", [4]),
            ("JMSMessageID = 'id-0'", [0]),
        ):
            queue = await client.receiver("q", selector(text))
            assert await queue.bodies(1) == expected
            await queue.close()
        with pytest.raises(LinkDetached, match=r"amqp:invalid-field"):
            await client.receiver("q", selector("color = = 'red'"))


@asynchronous
async def test_a_dynamic_node_lives_as_long_as_its_connection(tmp_path):
    async with serving(tmp_path) as broker:
        async with Client.of(broker) as client:
            dynamic = await client.receiver(
                None, DynamicNodeProperties({symbol("lifetime-policy"): "x"}), dynamic=True
            )
            address = dynamic.link.remote_source.address
            assert names(broker) == [address]
            sender = await client.sender(address)
            await sender.send(Message(body="reply"))
            assert await dynamic.bodies(1) == ["reply"]
        await until(lambda: names(broker) == [])


@asynchronous
async def test_an_anonymous_sender_says_where_each_message_goes(tmp_path):
    async with serving(tmp_path) as broker, Client.of(broker) as client:
        await client.send("q")
        queue = await client.receiver("q")
        topic = await client.receiver("t", Capability("topic"))
        relay = await client.sender(None)
        await relay.send(Message(address="q", body="1"))
        await relay.send(Message(address="t", body="2"))
        dest = {symbol("x-opt-jms-dest"): 0}
        await relay.send(Message(address="made", body="3", annotations=dest))
        assert (await queue.bodies(1), await topic.bodies(1)) == (["1"], ["2"])
        made = await client.receiver("made")
        assert await made.bodies(1) == ["3"]
        assert broker.parts.postoffice.addresses.by_name["made"].routing_types == {
            RoutingType.ANYCAST
        }
        with pytest.raises(SendException):
            await relay.send(Message(body="nowhere"))
        await relay.send(Message(address="q", body="4"))
        assert await queue.bodies(1) == ["4"]


@asynchronous
async def test_what_does_not_exist_and_may_not_be_made_is_refused(tmp_path):
    address = {"auto_create_addresses": False, "auto_create_queues": False}
    async with serving(tmp_path, address=address) as broker, Client.of(broker) as client:
        with pytest.raises(LinkDetached, match=r"amqp:not-found.*AMQ119002: target address no"):
            await client.sender("no")
        with pytest.raises(LinkDetached, match=r"amqp:not-found.*AMQ119010"):
            await client.receiver("no")
        relay = await client.sender(None)
        with pytest.raises(SendException):
            await relay.send(Message(address="no", body="x"))


@asynchronous
async def test_a_durable_subscription_stays_when_detached_and_goes_when_closed(tmp_path):
    durable = Source(durability=Terminus.DELIVERIES, expiry_policy=Terminus.EXPIRE_NEVER)
    async with serving(tmp_path) as broker:
        async with Client.of(broker, container_id="c") as client:
            first = await client.receiver("t", Capability("topic"), durable, name="sub")
            assert names(broker) == ["c.sub"]
            async with Client.of(broker, container_id="c") as other:
                with pytest.raises(LinkDetached, match="AMQ229200"):
                    await other.receiver("t", Capability("topic"), durable, name="sub")
            await detach(client, first, broker, "c.sub")
            await client.send("t", "while away", capability="topic")
        async with Client.of(broker, container_id="c") as client:
            again = await client.receiver("t", Capability("topic"), durable, name="sub")
            assert await again.bodies(1) == ["while away"]
            await again.close()
            await until(lambda: names(broker) == [])


@asynchronous
async def test_a_subscription_is_found_by_its_link_and_removed(tmp_path):
    durable = Source(durability=Terminus.DELIVERIES, expiry_policy=Terminus.EXPIRE_NEVER)
    async with serving(tmp_path) as broker, Client.of(broker, container_id="c") as client:
        first = await client.receiver(
            "t", Capability("topic"), durable, selector("n = 1"), name="sub"
        )
        await detach(client, first, broker, "c.sub")
        found = await client.receiver(None, Source(type=Terminus.UNSPECIFIED), name="sub")
        source = found.link.remote_source
        assert (source.address, source.durability) == ("c.sub", Terminus.DELIVERIES)
        await found.close()
        await until(lambda: names(broker) == [])
        with pytest.raises(LinkDetached, match="Unknown subscription link: sub"):
            await client.receiver(None, Source(type=Terminus.UNSPECIFIED), name="sub")


@asynchronous
async def test_a_shared_subscription_is_shared(tmp_path):
    async with serving(tmp_path) as broker:
        async with (
            Client.of(broker, container_id="a") as one,
            Client.of(broker, container_id="b") as two,
        ):
            shared = Capability("topic", "shared", "global")
            first = await one.receiver("t", shared, name="s|1", credit=1)
            second = await two.receiver("t", shared, name="s|2", credit=1)
            assert names(broker) == ["s:shared-volatile:global"]
            await one.send("t", "1", "2", capability="topic")
            assert sorted([*await first.bodies(1), *await second.bodies(1)]) == ["1", "2"]
        await until(lambda: names(broker) == [])
        durable = Source(durability=Terminus.DELIVERIES, expiry_policy=Terminus.EXPIRE_NEVER)
        async with Client.of(broker, container_id="a") as one:
            shared = Capability("topic", "shared")
            await one.receiver("t", shared, durable, name="s")
            assert names(broker) == ["a.s"]


@asynchronous
async def test_no_local_leaves_out_what_the_container_sends(tmp_path):
    async with (
        serving(tmp_path) as broker,
        Client.of(broker, container_id="a") as one,
        Client.of(broker, container_id="b") as two,
    ):
        topic = await one.receiver("t", Capability("topic"), no_local())
        await one.send("t", "own", capability="topic")
        await two.send("t", "other", capability="topic")
        assert await topic.bodies(1) == ["other"]


@asynchronous
async def test_a_deleted_queue_ends_its_links(tmp_path):
    async with serving(tmp_path) as broker, Client.of(broker) as client:
        await client.send("q")
        queue = await client.receiver("q")
        broker.parts.postoffice.addresses.delete_queue("q")
        with pytest.raises(LinkDetached, match=r"amqp:resource-deleted.*Queue deleted: q"):
            await queue.get()


@asynchronous
async def test_a_blocked_address_withholds_credit(tmp_path):
    address = {"max_size_messages": 2, "address_full_policy": AddressFullPolicy.BLOCK}
    async with (
        serving(tmp_path, match="full", address=address) as broker,
        Client.of(broker) as client,
        Client.of(broker) as other,
    ):
        await client.send("full", "1", "2")
        sender = await client.sender("full")
        await asyncio.sleep(0.1)
        assert sender.link.credit == 0
        sending = asyncio.ensure_future(sender.send(Message(body="3")))
        queue = await other.receiver("full")
        assert await queue.bodies(3) == ["1", "2", "3"]
        await sending


@asynchronous
async def test_a_full_address_that_fails_refuses_and_drains(tmp_path):
    address = {"max_size_messages": 2, "address_full_policy": AddressFullPolicy.FAIL}
    async with (
        serving(tmp_path, match="full", address=address) as broker,
        Client.of(broker) as client,
    ):
        sender = await client.sender("full", Capability("queue"))
        for number in range(2):
            await sender.send(Message(body=number))
        assert await sender.refused(Message(body=2)) == Delivery.REJECTED
        wait = client.connection.wait
        await client.run(wait, lambda: sender.link.drain_mode)
        sender.link.drained()
        await client.flush()
        assert sender.link.credit == 0
        queue = await client.receiver("full")
        assert await queue.bodies(2) == [0, 1]
        await client.run(wait, lambda: sender.link.credit > 0)
