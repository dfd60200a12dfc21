"""What is the same for every protocol: users and roles, full addresses, slow clients, lists."""

import json

import pytest

from broker.protocols.openwire import commands as c
from broker.protocols.openwire.identifiers import ConsumerId, ProducerId
from broker.settings.policies import SlowConsumerPolicy
from broker.settings.settings import AddressFullPolicy
from tests.broker.protocols.openwire.client import OpenWire, text_of
from tests.broker.protocols.openwire.test_connections import closes
from tests.broker.protocols.stomp.client import core, serving, until
from tests.broker.protocols.stomp.test_as_for_core import configured
from tests.interop.asynchronous import asynchronous

QUEUE, TOPIC = c.ActiveMQQueue("q"), c.ActiveMQTopic("t")
OTHER = "ID:other-1-2-3:1"


def as_user(broker, name, **fields):
    login = {"user_name": name, "password": name[0]}
    return OpenWire.of(broker, name, name=f"ID:{name}-1-2-3:1", **login, **fields)


async def refused(client, command, kind, words):
    """An exception of this class, with these words."""
    found = (await client.refused(command)).exception
    assert found.class_name == f"javax.jms.{kind}"
    assert words in found.message


@asynchronous
async def test_users_may_do_what_their_roles_say(tmp_path):
    async with configured(tmp_path) as broker:
        async with OpenWire.raw(broker) as stranger:
            await stranger.negotiate()
            login = stranger.login("x", user_name="sue", password="wrong")
            found = (await stranger.refused(login)).exception
            assert found.class_name == "java.lang.SecurityException"
            await closes(stranger)
        async with as_user(broker, "sue") as sue, as_user(broker, "rob") as rob:
            await rob.consume(QUEUE)
            await sue.ask(sue.text(QUEUE, "for rob"))
            assert text_of(await rob.message()) == "for rob"

            security = "JMSSecurityException"
            await refused(rob, rob.text(QUEUE, "no"), security, "SEND")
            producer = c.ProducerInfo(producer_id=ProducerId(rob.name, 9, 1), destination=QUEUE)
            await refused(rob, producer, security, "SEND")
            for number, one in enumerate((QUEUE, TOPIC), start=5):
                info = c.ConsumerInfo(consumer_id=ConsumerId(sue.name, 1, number), destination=one)
                await refused(sue, info, security, "permission")
            await refused(sue, sue.text(c.ActiveMQQueue("new"), "no"), security, "CREATE_ADDRESS")
            # Who asks for no answer is told all the same, and the connection stays.
            rob.put(rob.text(QUEUE, "no"))
            assert isinstance(await rob.message(), c.ConnectionError)
            await rob.ask(c.Response())


@asynchronous
async def test_a_sender_to_a_blocked_address_waits_and_others_do_not(tmp_path):
    address = {"max_size_messages": 2, "address_full_policy": AddressFullPolicy.BLOCK}
    full = c.ActiveMQQueue("full")
    async with (
        serving(tmp_path, match="full", address=address) as broker,
        OpenWire.of(broker) as sender,
        OpenWire.of(broker, "other", name=OTHER) as other,
    ):
        for number in range(2):
            await sender.ask(sender.text(full, str(number)))
        numbers = [sender.put(sender.text(full, str(number)), True) for number in range(2, 5)]
        # A producer that waits for answers waits alone: its connection goes on.
        await sender.ask(sender.text(QUEUE, "free"))
        assert sender.messages == []
        await other.ask(other.text(QUEUE, "free"))
        consumer = await other.consume(full)
        for number in range(5):
            got = await other.message()
            assert text_of(got) == str(number)
            other.put(other.ack(consumer, got))
        answers = [(await sender.message()).correlation_id for _ in numbers]
        assert answers == numbers


@asynchronous
async def test_a_sender_without_answers_to_a_blocked_address_is_not_read_from(tmp_path):
    address = {"max_size_messages": 1, "address_full_policy": AddressFullPolicy.BLOCK}
    full = c.ActiveMQQueue("full")
    async with (
        serving(tmp_path, match="full", address=address) as broker,
        OpenWire.of(broker) as sender,
        OpenWire.of(broker, "other", name=OTHER) as other,
    ):
        for number in range(3):
            sender.put(sender.text(full, str(number)))
        asked = sender.put(sender.text(QUEUE, "behind"), True)
        queues = broker.parts.postoffice.addresses.queues
        await until(lambda: "full" in queues and queues["full"].message_count == 1)
        assert "q" not in queues
        consumer = await other.consume(full)
        for number in range(3):
            got = await other.message()
            assert text_of(got) == str(number)
            await other.ask(other.ack(consumer, got))
        assert (await sender.message()).correlation_id == asked


@asynchronous
async def test_a_full_address_that_fails_says_so():
    address = {"max_size_messages": 1, "address_full_policy": AddressFullPolicy.FAIL}
    async with serving(address=address) as broker, OpenWire.of(broker) as client:
        await client.ask(client.text(QUEUE, "fits"))
        full = client.text(QUEUE, "does not")
        await refused(client, full, "ResourceAllocationException", "is full")


@asynchronous
async def test_what_is_missing_and_may_not_be_made_is_refused():
    address = {"auto_create_queues": False, "auto_create_addresses": False}
    async with serving(address=address) as broker, OpenWire.of(broker) as client:
        for number, one in enumerate((QUEUE, TOPIC), start=5):
            kind = "InvalidDestinationException"
            words = f"{'Queue q' if one is QUEUE else 'Topic t'} does not exist."
            await refused(client, client.text(one, "no"), kind, words)
            info = c.ConsumerInfo(consumer_id=ConsumerId(client.name, 1, number), destination=one)
            await refused(client, info, kind, words)


@asynchronous
async def test_one_that_does_not_read_delays_no_other():
    async with (
        serving() as broker,
        OpenWire.of(broker) as stalled,
        OpenWire.of(broker, "other", name=OTHER) as other,
    ):
        await stalled.consume(TOPIC, prefetch=10_000)
        consumer = await other.consume(TOPIC, prefetch=10_000)
        stalled.writer.transport.pause_reading()
        body = bytes(50_000)
        for _ in range(300):
            await other.ask(other.sent(c.ActiveMQBytesMessage, TOPIC, body))
            got = await other.message()
            assert len(got.message.content) == len(body)
            other.put(other.ack(consumer, got))
        (behind,) = (
            one for one in broker.parts.postoffice.addresses.queues.values() if one.waiting.count
        )
        assert behind.binding.address == "t"
        stalled.writer.transport.resume_reading()
        for _ in range(300):
            await stalled.message()


@asynchronous
async def test_a_slow_consumer_is_told_and_its_connection_closed():
    address = {
        "slow_consumer_threshold": 10,
        "slow_consumer_check_period_s": 1,
        "slow_consumer_policy": SlowConsumerPolicy.KILL,
    }
    async with (
        serving(match="q", address=address) as broker,
        OpenWire.of(broker) as slow,
        OpenWire.of(broker, "other", name=OTHER) as other,
    ):
        await slow.consume(QUEUE, prefetch=1)
        for number in range(50):
            await other.ask(other.text(QUEUE, str(number)))
        assert text_of(await slow.message()) == "0"
        told = await slow.message()
        assert isinstance(told, c.ConnectionError)
        assert "too slow" in told.exception.message
        await closes(slow)
        await other.ask(other.text(QUEUE, "it goes on"))


@asynchronous
async def test_management_lists_connections_sessions_consumers_and_producers():
    async with serving() as broker, OpenWire.of(broker, "me") as client, core(broker) as session:
        await client.consume(QUEUE, selector="JMSType = 'a'")
        await client.ask(client.text(QUEUE, "m"))
        rows = {}
        for kind in ("Connections", "Sessions", "Consumers", "Producers"):
            found = json.loads(await session.manage("broker", f"list{kind}", "", 1, 100))["data"]
            rows[kind] = [one for one in found if {"me", "OPENWIRE"} & set(one.values())]
        assert [one["protocol"] for one in rows["Connections"]] == ["OPENWIRE"]
        # That of the connection, and the client's own.
        assert [one["clientID"] for one in rows["Sessions"]] == ["me", "me"]
        (consumer,) = rows["Consumers"]
        assert (consumer["queue"], consumer["protocol"]) == ("q", "OPENWIRE")
        assert "'a'" in consumer["filter"]
        (producer,) = rows["Producers"]
        assert producer["address"] == "q"


@asynchronous
async def test_an_exclusive_queue_gives_everything_to_one_consumer():
    address = {"default_exclusive_queue": True}
    async with (
        serving(address=address) as broker,
        OpenWire.of(broker) as first,
        OpenWire.of(broker, "other", name=OTHER) as second,
    ):
        consumer = await first.consume(QUEUE)
        await second.consume(QUEUE)
        for text in ("a", "b", "c"):
            await second.ask(second.text(QUEUE, text))
        got = [await first.message() for _ in range(3)]
        assert [text_of(one) for one in got] == ["a", "b", "c"]
        assert second.messages == []
        # The next one takes over.
        await first.ask(c.RemoveInfo(object_id=consumer, last_delivered_sequence_id=-1))
        assert [text_of(await second.message()) for _ in range(3)] == ["a", "b", "c"]


@pytest.mark.parametrize("is_exclusive", [False, True])
@asynchronous
async def test_an_exclusive_consumer_is_as_any_other(is_exclusive):
    """As in Artemis, where the queue alone decides."""
    async with serving() as broker, OpenWire.of(broker) as client:
        await client.consume(QUEUE, 1, exclusive=is_exclusive)
        await client.consume(QUEUE, 2)
        for text in "ab":
            await client.ask(client.text(QUEUE, text))
        got = [(await client.message()).consumer_id.value for _ in range(2)]
        assert sorted(got) == [1, 2]
