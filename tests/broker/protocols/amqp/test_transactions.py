"""Transactions that a client declares: sends and acknowledgements count together, or not at all."""

import pytest
from proton import Delivery, Described, Terminus, symbol
from proton.reactor import SenderOption
from proton.utils import SendException

from broker.settings.settings import AddressFullPolicy
from tests.broker.protocols.amqp.client import Capability, Client, Message, flush, serving, until
from tests.interop.asynchronous import asynchronous

TRANSACTIONAL = 0x34


class Coordinator(SenderOption):
    def apply(self, link):
        link.target.type = Terminus.COORDINATOR
        link.target.address = None


def count(broker, queue="q"):
    return broker.parts.postoffice.addresses.queues[queue].message_count


class Transactions:
    """Declares and discharges them."""

    def __init__(self, client):
        self.client = client

    @classmethod
    async def of(cls, client):
        made = cls(client)
        made.sender = await client.sender(None, Coordinator())
        return made

    async def declare(self):
        body = Described(symbol("amqp:declare:list"), [None])
        delivery = await self.request(body)
        assert delivery.remote_state == 0x33
        return delivery.remote.data[0]

    async def discharge(self, id, *, fails=False):
        body = Described(symbol("amqp:discharge:list"), [id, fails])
        return await self.request(body)

    async def request(self, body):
        link = self.sender.link
        connection = self.client.connection

        def run():
            connection.wait(lambda: link.credit > 0)
            delivery = link.send(Message(body=body))
            connection.wait(lambda: delivery.settled)
            return delivery

        return await self.client.run(run)

    async def send(self, id, sender, message):
        link, connection = sender.link, self.client.connection

        def run():
            connection.wait(lambda: link.credit > 0)
            delivery = link.delivery(link.delivery_tag())
            delivery.local.data = [id]
            delivery.update(TRANSACTIONAL)
            link.stream(message.encode())
            link.advance()
            connection.wait(lambda: delivery.settled)
            return delivery

        return await self.client.run(run)

    async def answer(
        self, id, receiver, descriptor="amqp:accepted:list", fields=(), *, settles=True
    ):
        """Settle the oldest message that was received."""

        def run():
            delivery = receiver.blocking.fetcher.unsettled.popleft()
            delivery.local.data = [id, Described(symbol(descriptor), list(fields))]
            delivery.update(TRANSACTIONAL)
            if settles:
                delivery.settle()
            flush(self.client.connection)
            return delivery

        return await self.client.run(run)


@asynchronous
async def test_what_is_sent_comes_with_the_commit_and_goes_with_a_rollback(tmp_path):
    async with serving(tmp_path) as broker, Client.of(broker) as client:
        transactions = await Transactions.of(client)
        sender = await client.sender("q", Capability("queue"))
        for fails in (True, False):
            id = await transactions.declare()
            assert len(id) == 36
            for number in range(3):
                message = Message(body=number, durable=True)
                delivery = await transactions.send(id, sender, message)
                assert delivery.remote_state == TRANSACTIONAL
            assert count(broker) == 0
            delivery = await transactions.discharge(id, fails=fails)
            assert delivery.remote_state == Delivery.ACCEPTED
            assert count(broker) == (0 if fails else 3)
        queue = await client.receiver("q")
        assert await queue.bodies(3) == [0, 1, 2]


@pytest.mark.parametrize("settles", [True, False])
@asynchronous
async def test_what_is_accepted_is_gone_with_the_commit(settles, tmp_path):
    async with serving(tmp_path) as broker, Client.of(broker) as client:
        await client.send("q", "m")
        transactions = await Transactions.of(client)
        queue = await client.receiver("q", credit=5)
        for fails in (True, False):
            message = await queue.get()
            assert message.delivery_count == (0 if fails else 1)
            id = await transactions.declare()
            delivery = await transactions.answer(id, queue, settles=settles)
            assert count(broker) == 1
            await transactions.discharge(id, fails=fails)
            if not settles:
                await client.run(client.connection.wait, lambda one=delivery: one.settled)
        await until(lambda: count(broker) == 0)


@asynchronous
async def test_a_rejection_counts_with_the_commit(tmp_path):
    async with serving(tmp_path) as broker, Client.of(broker) as client:
        await client.send("q", "m")
        await client.send("DLQ")
        transactions = await Transactions.of(client)
        queue = await client.receiver("q", credit=1)
        await queue.get()
        id = await transactions.declare()
        await transactions.answer(id, queue, "amqp:rejected:list")
        assert count(broker) == 1
        await transactions.discharge(id)
        await until(lambda: count(broker) == 0 and count(broker, "DLQ") == 1)


@pytest.mark.parametrize(
    ("name", "fields", "count_then", "comes_here"),
    [
        ("released", (), 0, True),
        ("modified", (), 0, True),
        ("modified", (False,), 0, True),
        ("modified", (True,), 1, True),
        ("modified", (None, True), 0, False),
        ("modified", (True, True), 1, False),
    ],
)
@asynchronous
async def test_a_message_that_is_given_back_comes_with_the_commit(
    name, fields, count_then, comes_here, tmp_path
):
    async with serving(tmp_path) as broker, Client.of(broker) as client:
        await client.send("q", "m")
        transactions = await Transactions.of(client)
        first = await client.receiver("q", credit=2)
        await first.get()
        id = await transactions.declare()
        await transactions.answer(id, first, f"amqp:{name}:list", fields)
        other = await client.receiver("q", credit=0)
        await client.flush()
        assert not first.blocking.fetcher.has_message
        await transactions.discharge(id)
        if not comes_here:
            await client.flush()
            assert not first.blocking.fetcher.has_message
            other.link.flow(1)
        got = await (first if comes_here else other).get()
        assert (got.body, got.delivery_count) == ("m", count_then)


@pytest.mark.parametrize("name", ["released", "modified", "rejected"])
@asynchronous
async def test_what_is_given_back_counts_as_delivered_where_it_is_rolled_back(name, tmp_path):
    async with serving(tmp_path) as broker, Client.of(broker) as client:
        await client.send("q", "m")
        transactions = await Transactions.of(client)
        queue = await client.receiver("q", credit=2)
        await queue.get()
        id = await transactions.declare()
        await transactions.answer(id, queue, f"amqp:{name}:list")
        await transactions.discharge(id, fails=True)
        got = await queue.get()
        assert (got.body, got.delivery_count) == ("m", 1)


@asynchronous
async def test_a_rejection_in_a_transaction_is_a_failed_delivery_where_the_acceptor_says_so(
    tmp_path,
):
    parameters = {"amqpTreatRejectAsUnmodifiedDeliveryFailed": "true"}
    async with serving(tmp_path, parameters=parameters) as broker, Client.of(broker) as client:
        await client.send("q", "m")
        transactions = await Transactions.of(client)
        queue = await client.receiver("q", credit=2)
        await queue.get()
        id = await transactions.declare()
        await transactions.answer(id, queue, "amqp:rejected:list")
        await transactions.discharge(id)
        assert (await queue.get()).delivery_count == 1


@asynchronous
async def test_several_sessions_work_for_one_and_a_lost_connection_rolls_back(tmp_path):
    async with serving(tmp_path) as broker:
        async with Client.of(broker) as client:
            await client.send("q")
            transactions = await Transactions.of(client)
            id = await transactions.declare()
            for _ in range(2):
                sender = await client.sender("q")
                await transactions.send(id, sender, Message(body="x", durable=True))
        assert count(broker) == 0


@asynchronous
async def test_an_unknown_transaction_is_refused(tmp_path):
    async with serving(tmp_path) as broker, Client.of(broker) as client:
        await client.send("q")
        transactions = await Transactions.of(client)
        delivery = await transactions.discharge(b"nobody's")
        assert delivery.remote_state == Delivery.REJECTED
        assert delivery.remote.condition.name == "amqp:transaction:unknown-id"
        sender = await client.sender("q")
        delivery = await transactions.send(b"nobody's", sender, Message(body="x"))
        assert delivery.remote_state == Delivery.REJECTED
        assert count(broker) == 0


@asynchronous
async def test_a_transaction_of_which_something_was_refused_is_rolled_back(tmp_path):
    address = {"max_size_messages": 1, "address_full_policy": AddressFullPolicy.FAIL}
    async with (
        serving(tmp_path, match="full", address=address) as broker,
        Client.of(broker) as client,
    ):
        transactions = await Transactions.of(client)
        other = await client.sender("q", Capability("queue"))
        sender = await client.sender("full", Capability("queue"))
        await sender.send(Message(body="fills it"))
        id = await transactions.declare()
        await transactions.send(id, other, Message(body="x"))
        delivery = await transactions.send(id, sender, Message(body="too much"))
        assert delivery.remote_state == Delivery.REJECTED
        delivery = await transactions.discharge(id)
        assert delivery.remote_state == Delivery.REJECTED
        assert delivery.remote.condition.name == "amqp:transaction:rollback"
        assert count(broker) == 0
        with pytest.raises(SendException):
            await sender.send(Message(body="still full"))


@asynchronous
async def test_one_larger_than_a_blocking_address_gets_to_its_commit(tmp_path):
    address = {"max_size_messages": 2, "address_full_policy": AddressFullPolicy.BLOCK}
    credits = {"amqpCredits": "10", "amqpLowCredits": "5"}
    async with (
        serving(tmp_path, match="full", address=address, parameters=credits) as broker,
        Client.of(broker) as client,
    ):
        transactions = await Transactions.of(client)
        sender = await client.sender("full", Capability("queue"))
        id = await transactions.declare()
        for number in range(40):
            await client.run(client.connection.wait, lambda: sender.link.credit > 0)
            await transactions.send(id, sender, Message(body=number))
        await transactions.discharge(id)
        queue = await client.receiver("full")
        assert await queue.bodies(40) == list(range(40))
