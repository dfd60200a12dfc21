"""What is the same for every protocol: groups, delivery times, priorities, slow consumers.

Beside these what a link makes: dynamic nodes, and what a detach leaves of them.
"""

import asyncio
import contextlib
import time

import pytest
from proton import Terminus, symbol, timestamp
from proton.reactor import LinkOption
from proton.utils import ConnectionClosed

from broker.model.routing_type import RoutingType
from broker.settings.policies import SlowConsumerPolicy
from tests.broker.protocols.amqp.client import (
    Capability,
    Client,
    Message,
    Source,
    core,
    drained,
    serving,
    until,
)
from tests.interop.asynchronous import asynchronous

CLOSES_GROUP = 2**32 - 1


class Priority(LinkOption):
    """The link's property for the priority of its consumer."""

    def __init__(self, value):
        self.value = value

    def apply(self, link):
        link.properties = {symbol("priority"): self.value}


class Dynamic(LinkOption):
    """A target whose node the broker makes."""

    def __init__(self, expiry_policy=Terminus.EXPIRE_WITH_SESSION):
        self.expiry_policy = expiry_policy

    def apply(self, link):
        link.target.dynamic = True
        link.target.address = None
        link.target.expiry_policy = self.expiry_policy


def addresses(broker):
    return broker.parts.postoffice.addresses


# --- as for Core ------------------------------------------------------------------------------


@asynchronous
async def test_a_group_has_one_receiver_until_it_is_closed(tmp_path):
    async with serving(tmp_path) as broker, Client.of(broker) as client:
        await client.send("q")
        first = await client.receiver("q", credit=20)
        second = await client.receiver("q", credit=20)
        sender = await client.sender("q")
        for number in range(6):
            group = "ab"[number % 2]
            await sender.send(Message(body=number, group_id=group, group_sequence=number + 1))
        found = [await drained(client, one, 0) for one in (first, second)]
        # As many groups as receivers: each has one.
        assert sorted(found) == [[0, 2, 4], [1, 3, 5]]
        groups = addresses(broker).queues["q"].groups
        assert len(groups) == 2
        for one in (first, second):
            one.link.flow(1)
        await client.flush()
        await sender.send(Message(body=6, group_id="a", group_sequence=CLOSES_GROUP))
        await until(lambda: len(groups) == 1)


@asynchronous
async def test_a_group_is_the_same_for_senders_and_receivers_of_core(tmp_path):
    async with (
        serving(tmp_path) as broker,
        Client.of(broker) as client,
        core(broker) as session,
    ):
        await client.send("q")
        sender = await client.sender("q")

        async def send():
            await sender.send(Message(body="amqp", group_id="g", group_sequence=7))
            await session.producer("q").send("core", group_id="g")

        consumer = await session.consumer("q")
        receiver = await client.receiver("q")
        await send()
        got = await consumer.receive()
        assert got.properties["_AMQ_GROUP_ID"].value == "g"
        assert got.properties["_AMQ_GROUP_SEQUENCE"].value == 7
        assert (await consumer.receive()).content == "core"
        # The one that had the group leaves: it goes to the other.
        await consumer.close()
        await send()
        messages = [await receiver.get() for _ in range(2)]
        assert [(one.body, one.group_id) for one in messages] == [("amqp", "g"), ("core", "g")]
        assert [one.group_sequence for one in messages] == [7, 0]


@asynchronous
async def test_a_delivery_time_is_kept_over_a_restart_and_waited_for(tmp_path):
    due_ms = 0
    for is_again in (False, True):
        async with serving(tmp_path) as broker, Client.of(broker) as client:
            if not is_again:
                sender = await client.sender("q", Capability("queue"))
                due_ms = time.time_ns() // 1_000_000 + 1500
                annotations = {symbol("x-opt-delivery-time"): timestamp(due_ms)}
                late = Message(body="late", durable=True, annotations=annotations)
                await sender.send(late)
                await sender.send(Message(body="now", durable=True))
                continue
            receiver = await client.receiver("q")
            assert (await receiver.get()).body == "now"
            got = await receiver.get()
            assert time.time_ns() // 1_000_000 >= due_ms
            assert (got.body, got.annotations) == ("late", annotations)


@pytest.mark.parametrize("by", ["property", "address"])
@asynchronous
async def test_the_receiver_of_the_highest_priority_gets_all(by, tmp_path):
    async with serving(tmp_path) as broker, Client.of(broker) as client:
        await client.send("q")
        found = {}
        for priority in (1, 5, -3):
            address, options = f"q?consumer-priority={priority}", []
            if by == "property":
                address, options = "q", [Priority(priority)]
            found[priority] = await client.receiver(address, *options, credit=2)
            source = found[priority].link.remote_source
            assert source.address == address
        queue = addresses(broker).queues["q"]
        assert sorted(one.priority for one in queue.consumers.all()) == [-3, 1, 5]
        sender = await client.sender("q")
        # Each has credit again for what it was given.
        for priority in (5, 1, -3):
            for number in range(3):
                await sender.send(Message(body=number))
            assert await found[priority].bodies(3) == [0, 1, 2]
            await found[priority].close()


@asynchronous
async def test_one_that_does_not_read_delays_no_other(tmp_path):
    body = bytes(20_000)
    async with (
        serving(tmp_path) as broker,
        Client.of(broker) as stalled,
        Client.of(broker) as other,
    ):
        # From here on its socket is not looked at.
        await stalled.receiver("t", Capability("topic"), credit=1000)
        receiver = await other.receiver("t", Capability("topic"), credit=1000)
        sender = await other.sender("t", Capability("topic"))
        for _ in range(500):
            await sender.send(Message(body=body, inferred=True))
            assert len((await receiver.get()).body) == len(body)
            await receiver.accept()
        (waiting,) = (one for one in addresses(broker).queues.values() if one.message_count)
        assert waiting.message_count == 500


@asynchronous
async def test_a_slow_consumer_is_told_and_its_connection_closed(tmp_path):
    address = {
        "slow_consumer_threshold": 5,
        "slow_consumer_check_period_s": 1,
        "slow_consumer_policy": SlowConsumerPolicy.KILL,
    }
    async with (
        serving(tmp_path, address=address) as broker,
        Client.of(broker) as slow,
        Client.of(broker) as other,
    ):
        await other.send("q")
        receiver = await slow.receiver("q", credit=1)
        sender = await other.sender("q")

        async def fill():
            while True:
                await sender.send(Message(body="x"))

        filling = asyncio.ensure_future(fill())
        try:
            await receiver.get()
            with pytest.raises(ConnectionClosed, match=r"amqp:connection:forced.*too slow"):
                await slow.run(slow.connection.wait, lambda: False)
        finally:
            filling.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await filling


# --- nodes that links make --------------------------------------------------------------------


@pytest.mark.parametrize("name", ["queue", "topic"])
@asynchronous
async def test_a_dynamic_target_is_a_temporary_queue_or_topic(name, tmp_path):
    is_topic = name == "topic"
    async with serving(tmp_path) as broker:
        async with Client.of(broker) as client:
            sender = await client.sender(None, Capability(f"temporary-{name}"), Dynamic())
            address = sender.link.remote_target.address
            assert sender.link.remote_target.dynamic
            found = addresses(broker).by_name[address]
            types = {RoutingType.MULTICAST if is_topic else RoutingType.ANYCAST}
            assert found.routing_types == types
            assert list(addresses(broker).queues) == ([] if is_topic else [address])
            receivers = [await client.receiver(address) for _ in range(1 + is_topic)]
            await sender.send(Message(body="m"))
            for receiver in receivers:
                assert await receiver.bodies(1) == ["m"]
        await until(lambda: address not in addresses(broker).by_name)
        assert not addresses(broker).queues


@asynchronous
async def test_a_dynamic_target_without_a_capability_is_a_queue(tmp_path):
    async with serving(tmp_path) as broker, Client.of(broker) as client:
        sender = await client.sender(None, Dynamic())
        address = sender.link.remote_target.address
        assert list(addresses(broker).queues) == [address]
        await sender.close()
        await until(lambda: not addresses(broker).queues)


@asynchronous
async def test_a_dynamic_target_that_is_used_stays_until_its_connection_ends(tmp_path):
    async with serving(tmp_path) as broker, Client.of(broker) as other:
        async with Client.of(broker) as client:
            sender = await client.sender(None, Dynamic(Terminus.EXPIRE_WITH_LINK))
            address = sender.link.remote_target.address
            receiver = await other.receiver(address)
            await sender.close()
            again = await client.sender(address)
            await again.send(Message(body="m"))
            assert await receiver.bodies(1) == ["m"]
        await until(lambda: address not in addresses(broker).queues)


@pytest.mark.parametrize(
    ("policy", "is_left"),
    [
        (Terminus.EXPIRE_WITH_LINK, False),
        (Terminus.EXPIRE_WITH_SESSION, False),
        (Terminus.EXPIRE_WITH_CONNECTION, True),
        (Terminus.EXPIRE_NEVER, True),
    ],
)
@asynchronous
async def test_a_detach_removes_what_expires_with_the_link(policy, is_left, tmp_path):
    durable = Source(durability=Terminus.DELIVERIES, expiry_policy=policy)
    async with serving(tmp_path) as broker, Client.of(broker, container_id="c") as client:
        receiver = await client.receiver("t", Capability("topic"), durable, name="sub")
        receiver.link.detach()
        await client.flush()
        queues = addresses(broker).queues
        await until(lambda: not (queues and queues["c.sub"].consumer_count))
        assert list(queues) == (["c.sub"] if is_left else [])
