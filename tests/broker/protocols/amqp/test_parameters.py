"""The parameters of an acceptor, and settings that are about AMQP alone: each has its effect."""

import asyncio
import time

import pytest
from proton import Data, Delivery, Message, Terminus, symbol
from proton.reactor import AtMostOnce, LinkOption
from proton.utils import LinkDetached

from broker.settings.settings import AddressFullPolicy
from tests.broker.protocols.amqp.client import (
    Capability,
    Client,
    Source,
    drained,
    serving,
    until,
)
from tests.broker.protocols.amqp.test_connections import AMQP, raw
from tests.broker.protocols.amqp.test_transactions import Transactions
from tests.interop.asynchronous import asynchronous

FULL = {"max_size_messages": 2, "address_full_policy": AddressFullPolicy.FAIL}


class Outcomes(LinkOption):
    """The outcomes that the source of a sender has."""

    def __init__(self, *names):
        self.names = names

    def apply(self, link):
        data = link.source.outcomes
        data.put_array(False, Data.SYMBOL)
        data.enter()
        for name in self.names:
            data.put_symbol(symbol(name))
        data.exit()


def queues(broker):
    return broker.parts.postoffice.addresses.queues


def queue(broker, name="q"):
    return queues(broker)[name]


async def send_settled(client, link, broker, count):
    """Send messages that are settled, and see that they have come: no answer does."""
    wanted = queue(broker).message_count + count

    def run():
        for _ in range(count):
            link.send(Message(body="x")).settle()

    await client.run(run)
    async with asyncio.timeout(30):
        while queue(broker).message_count < wanted:
            await client.flush()


@asynchronous
async def test_a_sender_has_a_thousand_credits_and_more_from_three_hundred_on():
    async with serving() as broker, Client.of(broker) as client:
        sender = await client.sender("q", Capability("queue"), AtMostOnce())
        await client.run(client.connection.wait, lambda: sender.link.credit == 1000)
        await send_settled(client, sender.link, broker, 699)
        await client.flush()
        assert sender.link.credit == 301
        await send_settled(client, sender.link, broker, 1)
        await client.run(client.connection.wait, lambda: sender.link.credit == 1000)


@asynchronous
async def test_so_has_who_declares_transactions():
    async with serving() as broker, Client.of(broker) as client:
        transactions = await Transactions.of(client)
        link = transactions.sender.link
        await client.run(client.connection.wait, lambda: link.credit == 1000)


@asynchronous
async def test_credits_are_those_of_the_acceptor():
    parameters = {"amqpCredits": "7", "amqpLowCredits": "4"}
    async with serving(parameters=parameters) as broker, Client.of(broker) as client:
        sender = await client.sender("q", Capability("queue"), AtMostOnce())
        await client.run(client.connection.wait, lambda: sender.link.credit == 7)
        await send_settled(client, sender.link, broker, 2)
        await client.flush()
        assert sender.link.credit == 5
        await send_settled(client, sender.link, broker, 1)
        await client.run(client.connection.wait, lambda: sender.link.credit == 7)


@asynchronous
async def test_frames_are_as_large_as_the_acceptor_says_and_the_peer_takes():
    parameters = {"maxFrameSize": "4096"}
    async with serving(parameters=parameters) as broker:
        async with Client.of(broker, max_frame_size=1024) as client:
            transport = client.connection.conn.transport
            assert transport.remote_max_frame_size == 4096
            # In many frames each way.
            body = b"x" * 50_000
            await client.send("q", body)
            receiver = await client.receiver("q")
            assert await receiver.bodies(1) == [body]
        async with raw(broker) as (reader, writer):
            opening = b"\x00\x53\x10\xc0\x04\x01\xa1\x01c"
            writer.write(AMQP + (8 + len(opening)).to_bytes(4, "big") + b"\2\0\0\0" + opening)
            writer.write((4097).to_bytes(4, "big") + b"\2\0\0\0" + bytes(4089))
            async with asyncio.timeout(30):
                assert b"amqp:connection:framing-error" in await reader.read()


@asynchronous
async def test_a_duplicate_id_may_be_a_property_like_others():
    parameters = {"amqpDuplicateDetection": "false"}
    async with serving(parameters=parameters) as broker, Client.of(broker) as client:
        sender = await client.sender("q", Capability("queue"))
        for number in range(2):
            await sender.send(Message(body=number, properties={"_AMQ_DUPL_ID": "a"}))
        receiver = await client.receiver("q")
        for number in range(2):
            got = await receiver.get()
            assert (got.body, got.properties) == (number, {"_AMQ_DUPL_ID": "a"})


@asynchronous
async def test_what_is_rejected_may_be_a_failed_delivery(tmp_path):
    parameters = {"amqpTreatRejectAsUnmodifiedDeliveryFailed": "true"}
    address = {"max_delivery_attempts": 3}
    async with (
        serving(tmp_path, address=address, parameters=parameters) as broker,
        Client.of(broker) as client,
    ):
        await client.send("DLQ")
        await client.send("q", "m")
        receiver = await client.receiver("q", credit=3)
        for count in range(3):
            assert (await receiver.get()).delivery_count == count
            await receiver.settle(Delivery.REJECTED)
        await until(lambda: queue(broker, "DLQ").message_count == 1)
        assert queue(broker).message_count == 0


@pytest.mark.parametrize(
    ("outcomes", "parameter", "state"),
    [
        (("amqp:accepted:list", "amqp:modified:list"), "true", Delivery.MODIFIED),
        (("amqp:accepted:list", "amqp:rejected:list"), "true", Delivery.REJECTED),
        (("amqp:accepted:list", "amqp:modified:list"), "false", Delivery.REJECTED),
        ((), "true", Delivery.REJECTED),
    ],
)
@asynchronous
async def test_a_full_address_answers_modified_where_both_want_it(
    outcomes, parameter, state, tmp_path
):
    parameters = {"amqpUseModifiedForTransientDeliveryErrors": parameter}
    async with (
        serving(tmp_path, match="full", address=FULL, parameters=parameters) as broker,
        Client.of(broker) as client,
    ):
        options = [Outcomes(*outcomes)] if outcomes else []
        sender = await client.sender("full", Capability("queue"), *options)
        for number in range(2):
            await sender.send(Message(body=number))
        link, connection = sender.link, client.connection

        def run():
            delivery = link.send(Message(body="too much"))
            connection.wait(lambda: delivery.settled)
            return delivery.remote_state, delivery.remote.failed

        assert await client.run(run) == (state, state == Delivery.MODIFIED)


@asynchronous
async def test_a_full_address_may_leave_a_sender_its_credit(tmp_path):
    parameters = {"amqpDrainOnTransientDeliveryErrors": "false"}
    async with (
        serving(tmp_path, match="full", address=FULL, parameters=parameters) as broker,
        Client.of(broker) as client,
    ):
        sender = await client.sender("full", Capability("queue"))
        for number in range(2):
            await sender.send(Message(body=number))
        for _ in range(3):
            assert await sender.refused(Message(body="too much")) == Delivery.REJECTED
        assert not sender.link.drain_mode
        assert sender.link.credit > 0


@asynchronous
async def test_who_does_not_give_credit_back_in_time_is_detached(tmp_path):
    parameters = {"amqpLinkQuiesceTimeout": "300"}
    async with (
        serving(tmp_path, match="full", address=FULL, parameters=parameters) as broker,
        Client.of(broker) as client,
    ):
        sender = await client.sender("full", Capability("queue"))
        for number in range(2):
            await sender.send(Message(body=number))
        started = time.monotonic()
        assert await sender.refused(Message(body="too much")) == Delivery.REJECTED
        with pytest.raises(LinkDetached, match=r"detach-forced.*Timed out waiting for remote"):
            await client.run(client.connection.wait, lambda: False)
        assert time.monotonic() - started > 0.25
        receiver = await client.receiver("full")
        assert await receiver.bodies(2) == [0, 1]


# --- settings ---------------------------------------------------------------------------------

THRESHOLD = {
    "max_size_bytes": 1000,
    "max_size_bytes_reject_threshold": 20_000,
    "address_full_policy": AddressFullPolicy.BLOCK,
}


@asynchronous
async def test_a_blocked_address_refuses_what_is_over_its_reject_threshold(tmp_path):
    async with (
        serving(tmp_path, match="full", address=THRESHOLD) as broker,
        Client.of(broker) as client,
    ):
        sender = await client.sender("full", Capability("queue"))
        relay = await client.sender(None)
        body = b"x" * 1000
        sent = 0
        # Its credit is older than the limit that it reaches: these are taken.
        while broker.parts.postoffice.addresses.by_name["full"].memory.size <= 20_000:
            await sender.send(Message(body=body, durable=True))
            sent += 1
        assert sent > 5
        assert await sender.refused(Message(body=body)) == Delivery.REJECTED
        assert await relay.refused(Message(address="full::full", body=body)) == Delivery.REJECTED
        large = Message(address="full", body=b"x" * 300_000, durable=True)
        assert await relay.refused(large) == Delivery.REJECTED
        # What is settled already is dropped.
        settled = await client.sender(None, AtMostOnce())
        await settled.send(Message(address="full", body=body))
        await client.send("q", "behind it")
        assert queue(broker, "full").message_count == sent
        assert list((tmp_path / "large").glob("*")) == []
        receiver = await client.receiver("full")
        assert len(await receiver.bodies(sent)) == sent
        await relay.send(Message(address="full", body=body))


@asynchronous
async def test_what_is_refused_over_the_threshold_says_why_and_spoils_its_transaction(tmp_path):
    async with (
        serving(tmp_path, match="full", address=THRESHOLD) as broker,
        Client.of(broker) as client,
    ):
        transactions = await Transactions.of(client)
        sender = await client.sender("full", Capability("queue"))
        await sender.send(Message(body=b"x" * 30_000))
        id = await transactions.declare()
        delivery = await transactions.send(id, sender, Message(body="too much"))
        assert delivery.remote_state == Delivery.REJECTED
        condition = delivery.remote.condition
        assert condition.name == "amqp:resource-limit-exceeded"
        assert condition.description == "Address is full: full"
        delivery = await transactions.discharge(id)
        assert delivery.remote.condition.name == "amqp:transaction:rollback"


@pytest.mark.parametrize(
    "address",
    [
        {**THRESHOLD, "max_size_bytes_reject_threshold": -1},
        {**THRESHOLD, "address_full_policy": AddressFullPolicy.PAGE},
    ],
)
@asynchronous
async def test_without_threshold_or_another_policy_nothing_is_refused(address, tmp_path):
    async with (
        serving(tmp_path, match="full", address=address) as broker,
        Client.of(broker) as client,
    ):
        sender = await client.sender("full", Capability("queue"))
        for _ in range(3):
            await sender.send(Message(body=b"x" * 30_000))


DURABLE = Source(durability=Terminus.DELIVERIES, expiry_policy=Terminus.EXPIRE_NEVER)


@pytest.mark.parametrize(
    ("capabilities", "options", "names"),
    [
        ((), (DURABLE,), ("my.c.s.1|x", "my\\.c.s\\.1")),
        (("shared",), (DURABLE,), ("my.c.s.1", "my\\.c.s\\.1")),
        (("shared", "global"), (DURABLE,), ("s.1:global", "s\\.1")),
        (("shared",), (), ("my.c.s.1:shared-volatile", "nonDurable.my\\.c.s\\.1")),
        (("shared", "global"), (), ("s.1:shared-volatile:global", "nonDurable.s\\.1")),
    ],
)
@pytest.mark.parametrize("as_core", [False, True])
@asynchronous
async def test_subscriptions_may_be_named_as_those_of_core(
    as_core, capabilities, options, names, tmp_path
):
    expected = names[as_core]
    async with (
        serving(tmp_path, options={"amqp_core_subscription_naming": as_core}) as broker,
        Client.of(broker, container_id="my.c") as client,
    ):
        wanted = Capability("topic", *capabilities)
        receiver = await client.receiver("t", wanted, *options, name="s.1|x")
        assert list(queues(broker)) == [expected]
        await client.send("t", "m", capability="topic")
        assert await drained(client, receiver, 5) == ["m"]
        if not options:
            return
        receiver.link.detach()
        await client.flush()
        await until(lambda: not queue(broker, expected).consumer_count)
        # Without a source its link finds it again.
        found = await client.receiver(None, Source(type=Terminus.UNSPECIFIED), name="s.1|x")
        assert found.link.remote_source.address == expected
