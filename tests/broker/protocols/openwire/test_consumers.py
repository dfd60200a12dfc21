"""Consumers of OpenWire: destinations of all kinds, and what each acknowledgement says."""

import pytest

from broker.model.routing_type import RoutingType
from broker.protocols.openwire import commands as c
from tests.broker.protocols.openwire.client import OpenWire, text_of
from tests.broker.protocols.stomp.client import core, serving
from tests.interop.asynchronous import asynchronous

QUEUE = c.ActiveMQQueue("q")
REDELIVERED, INDIVIDUAL, UNMATCHED, EXPIRED = 3, 4, 5, 6


def count(broker, name):
    return broker.parts.postoffice.addresses.queues[name].message_count


async def three(client):
    """A consumer of three messages."""
    consumer = await client.consume(QUEUE)
    for number in range(3):
        await client.ask(client.text(QUEUE, f"m{number}"))
    return consumer, [await client.message() for _ in range(3)]


@asynchronous
async def test_one_says_that_it_is_given_again_and_nothing_is_acknowledged():
    async with serving() as broker, OpenWire.of(broker) as client:
        consumer, got = await three(client)
        await client.ask(client.ack(consumer, got[2], REDELIVERED, 3))
        assert count(broker, "q") == 3


@pytest.mark.parametrize("kind", [INDIVIDUAL, UNMATCHED])
@asynchronous
async def test_one_acknowledges_its_message_alone(kind):
    async with serving() as broker, OpenWire.of(broker) as client:
        consumer, got = await three(client)
        await client.ask(client.ack(consumer, got[1], kind))
        assert count(broker, "q") == 2
        await client.ask(c.RemoveInfo(object_id=consumer, last_delivered_sequence_id=-1))

        await client.consume(QUEUE, 2)

        assert [text_of(await client.message()) for _ in range(2)] == ["m0", "m2"]


@asynchronous
async def test_one_says_that_its_messages_have_expired():
    async with serving() as broker, OpenWire.of(broker) as client:
        await client.consume(c.ActiveMQQueue("EXPIRED"), 2)
        consumer, got = await three(client)
        ack = client.ack(consumer, got[1], EXPIRED, 2)
        ack.first_message_id = got[0].message.message_id
        await client.ask(ack)
        assert [text_of(await client.message()) for _ in range(2)] == ["m0", "m1"]
        assert count(broker, "q") == 1


@asynchronous
async def test_one_of_an_unknown_type_is_refused():
    async with serving() as broker, OpenWire.of(broker) as client:
        consumer, got = await three(client)
        refused = await client.refused(client.ack(consumer, got[0], 9))
        assert "unknown type 9" in refused.exception.message
        assert count(broker, "q") == 3


@asynchronous
async def test_a_queue_of_an_address_by_its_whole_name():
    async with serving() as broker, OpenWire.of(broker) as client, core(broker) as session:
        await session.create_queue("sub", "a", routing_type=RoutingType.MULTICAST)
        # One of a topic comes to the queue that is there; one of a queue, too.
        for number, kind in enumerate((c.ActiveMQTopic, c.ActiveMQQueue), start=1):
            consumer = await client.consume(kind("a::sub"), number)
            await client.ask(client.text(c.ActiveMQTopic("a"), "m"))
            got = await client.message()
            assert text_of(got) == "m"
            await client.ask(client.ack(consumer, got))
            await client.ask(c.RemoveInfo(object_id=consumer))
        assert count(broker, "sub") == 0
        # What is sent to the whole name goes to that queue alone.
        await session.create_queue("other", "a", routing_type=RoutingType.MULTICAST)
        await client.ask(client.text(c.ActiveMQTopic("a::sub"), "m"))
        assert (count(broker, "sub"), count(broker, "other")) == (1, 0)


@pytest.mark.parametrize(
    ("pattern", "names"),
    [("a.*", ["a.b", "a.c"]), ("a.>", ["a.b", "a.c", "a.b.c"]), ("*.c", ["a.c"])],
)
@pytest.mark.parametrize("kind", [c.ActiveMQQueue, c.ActiveMQTopic])
@asynchronous
async def test_a_wildcard_stands_for_all_that_match_it(pattern, names, kind):
    async with serving() as broker, OpenWire.of(broker) as client:
        await client.consume(kind(pattern))
        for name in ("a.b", "a.c", "a.b.c", "x"):
            await client.ask(client.text(kind(name), name))
        got = [await client.message() for _ in names]
        assert [text_of(one) for one in got] == names
        assert [one.destination for one in got] == [kind(name) for name in names]
        await client.ask(c.Response())
        assert client.messages == []
