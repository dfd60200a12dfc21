"""Settlement: who settles first, by the modes of a link, and what is kept until both have."""

import pytest
from proton import Delivery, Endpoint, Link
from proton.reactor import LinkOption

from broker.settings.settings import AddressFullPolicy
from tests.broker.protocols.amqp.client import Capability, Client, Message, flush, serving, until
from tests.broker.protocols.amqp.test_transactions import TRANSACTIONAL, Transactions
from tests.interop.asynchronous import asynchronous

SMALL_CREDIT = {"amqpCredits": "5", "amqpLowCredits": "2"}


class Second(LinkOption):
    """The receiver settles when the sender has: receiver settle mode second."""

    def apply(self, link):
        link.rcv_settle_mode = Link.RCV_SECOND


def count(broker, queue="q"):
    return broker.parts.postoffice.addresses.queues[queue].message_count


async def sent(client, sender, *, settles=True, body="m", before=lambda delivery: None):
    """Send a message, and give its delivery once the broker has said what became of it."""
    link, connection = sender.link, client.connection

    def run():
        connection.wait(lambda: link.credit > 0)
        delivery = link.delivery(link.delivery_tag())
        before(delivery)
        link.stream(Message(body=body, durable=True).encode())
        link.advance()
        connection.wait(lambda: delivery.remote_state)
        flush(connection)
        assert not delivery.settled
        if settles:
            delivery.settle()
            flush(connection)
        return delivery

    return await client.run(run)


@asynchronous
async def test_a_sender_that_asks_for_second_settles_first(tmp_path):
    async with serving(tmp_path, parameters=SMALL_CREDIT) as broker, Client.of(broker) as client:
        sender = await client.sender("q", Capability("queue"), Second())
        assert sender.link.remote_rcv_settle_mode == Link.RCV_SECOND
        # Three times as many as it has credit for: what it settles is not kept.
        for number in range(15):
            delivery = await sent(client, sender, body=number)
            assert delivery.remote_state == Delivery.ACCEPTED
            assert count(broker) == number + 1


@asynchronous
async def test_what_such_a_sender_does_not_settle_takes_of_its_credit(tmp_path):
    async with serving(tmp_path, parameters=SMALL_CREDIT) as broker, Client.of(broker) as client:
        sender = await client.sender("q", Capability("queue"), Second())
        waiting = [await sent(client, sender, settles=False) for _ in range(5)]
        await client.flush()
        assert sender.link.credit == 0

        for delivery in waiting:
            await client.run(delivery.settle)
        await client.run(client.connection.wait, lambda: sender.link.credit > 0)
        assert count(broker) == 5


@pytest.mark.parametrize("is_second", [True, False])
@asynchronous
async def test_one_that_has_settled_before_is_not_answered(is_second, tmp_path):
    async with serving(tmp_path, parameters=SMALL_CREDIT) as broker, Client.of(broker) as client:
        options = [Second()] if is_second else []
        sender = await client.sender("q", Capability("queue"), *options)
        link, connection = sender.link, client.connection

        def send():
            connection.wait(lambda: link.credit > 0)
            delivery = link.send(Message(body="m"))
            delivery.settle()
            flush(connection)

        for number in range(15):
            await client.run(send)
            await until(lambda wanted=number + 1: count(broker) == wanted)


@asynchronous
async def test_a_refusal_and_a_transaction_are_answered_in_that_mode_too(tmp_path):
    address = {"max_size_messages": 1, "address_full_policy": AddressFullPolicy.FAIL}
    async with (
        serving(tmp_path, match="full", address=address) as broker,
        Client.of(broker) as client,
    ):
        full = await client.sender("full", Capability("queue"), Second())
        assert (await sent(client, full)).remote_state == Delivery.ACCEPTED
        assert (await sent(client, full)).remote_state == Delivery.REJECTED

        transactions = await Transactions.of(client)
        assert transactions.sender.link.remote_rcv_settle_mode == Link.RCV_FIRST
        sender = await client.sender("q", Capability("queue"), Second())
        id = await transactions.declare()

        def enlist(delivery):
            delivery.local.data = [id]
            delivery.update(TRANSACTIONAL)

        delivery = await sent(client, sender, before=enlist)
        assert delivery.remote_state == TRANSACTIONAL
        assert count(broker) == 0
        await transactions.discharge(id)
        assert count(broker) == 1


@pytest.mark.parametrize(
    ("state", "left"),
    [(Delivery.ACCEPTED, 0), (Delivery.RELEASED, 1), (Delivery.REJECTED, 0)],
)
@asynchronous
async def test_a_receiver_that_asks_for_second_is_settled_before_it_settles(state, left, tmp_path):
    async with serving(tmp_path) as broker, Client.of(broker) as client:
        await client.send("q", "m")
        queue = await client.receiver("q", Second(), credit=1)
        assert queue.link.remote_rcv_settle_mode == Link.RCV_SECOND
        await queue.get()
        delivery = queue.blocking.fetcher.unsettled.popleft()

        def run():
            delivery.update(state)
            client.connection.wait(lambda: delivery.settled)
            delivery.settle()

        await client.run(run)
        assert delivery.remote_state == state
        await until(lambda: count(broker) == left)
        # What it has not said anything of comes back when it goes.
        await client.send("q", "other")
        queue.link.flow(1)
        await queue.get()
        await queue.close()
        await until(lambda: count(broker) == left + 1)


@asynchronous
async def test_a_detach_forgets_what_was_not_settled(tmp_path):
    async with serving(tmp_path, parameters=SMALL_CREDIT) as broker, Client.of(broker) as client:
        sender = await client.sender("q", Capability("queue"), Second())
        await sent(client, sender, settles=False)
        await sender.close()
        assert sender.link.state & Endpoint.REMOTE_CLOSED
        again = await client.sender("q", Capability("queue"), Second())
        assert again.link.credit == 5
        assert count(broker) == 1


@asynchronous
async def test_the_sender_settle_mode_is_that_of_the_peer(tmp_path):
    async with serving(tmp_path) as broker, Client.of(broker) as client:
        for mode in (Link.SND_SETTLED, Link.SND_UNSETTLED, Link.SND_MIXED):

            class Mode(LinkOption):
                def apply(self, link, mode=mode):
                    link.snd_settle_mode = mode

            sender = await client.sender("q", Capability("queue"), Mode())
            receiver = await client.receiver("q", Capability("queue"), Mode(), credit=0)
            assert sender.link.remote_snd_settle_mode == mode
            assert receiver.link.remote_snd_settle_mode == mode
