"""Connections of OpenWire: what is agreed on, who may connect, and what a broker refuses."""

import asyncio
import struct

import pytest

from broker.protocols.openwire import commands as c
from broker.protocols.openwire.identifiers import (
    ConnectionId,
    ConsumerId,
    ProducerId,
    SessionId,
    XATransactionId,
)
from tests.broker.protocols.openwire.client import CONNECTION, OpenWire, text_of
from tests.broker.protocols.stomp.client import Stomp, core, serving
from tests.interop.asynchronous import asynchronous

QUEUE = c.ActiveMQQueue("q")


async def closes(client):
    """Read until the broker has closed the connection."""
    async with asyncio.timeout(30):
        while await client.reader.read(4096):
            pass


@pytest.mark.parametrize("version", [1, 2, 6, 10, 12, 99])
@pytest.mark.parametrize("tight", [False, True])
@asynchronous
async def test_a_message_there_and_back(version, tight):
    async with serving() as broker, OpenWire.of(broker, version=version, tight=tight) as client:
        consumer = await client.consume(QUEUE)
        await client.ask(client.text(QUEUE, "hello"))

        got = await client.message()

        assert text_of(got) == "hello"
        assert got.redelivery_counter == 0
        await client.ask(client.ack(consumer, got))


@asynchronous
async def test_the_broker_says_who_it_is():
    async with serving() as broker, OpenWire.raw(broker) as client:
        info = await client.negotiate()

        assert isinstance(info, c.BrokerInfo)
        assert info.broker_name == "localhost"
        assert client.agreed.version == 12


@asynchronous
async def test_a_failover_client_says_so_before_who_it_is():
    async with serving() as broker, OpenWire.raw(broker) as client:
        await client.negotiate()
        client.put(c.ConnectionControl(fault_tolerant=True))

        await client.ask(client.login("back"))


@asynchronous
async def test_core_and_stomp_read_what_openwire_sends():
    async with serving() as broker, OpenWire.of(broker) as client, core(broker) as session:
        message = client.text(QUEUE, "grüße", correlation_id="c", type="kind")
        await client.ask(message)
        session.start()
        consumer = await session.consumer("q")
        got = await consumer.receive(30)
        assert got.text == "grüße"
        assert got.properties["JMSCorrelationID"].value == "c"
        assert got.properties["JMSType"].value == "kind"
        assert got.properties["__HDR_MESSAGE_ID"].value == f"{CONNECTION}:1:1:1"
        await got.acknowledge()
        await consumer.close()
        await client.ask(client.text(QUEUE, "for stomp"))
        async with Stomp.of(broker) as stomp:
            stomp.put("SUBSCRIBE", {"id": "1", "destination": "q"})
            frame = await stomp.get("MESSAGE")
            assert frame.body == b"for stomp"
            await client.consume(c.ActiveMQQueue("back"))
            stomp.put("SEND", {"destination": "back", "a": "b"}, b"from stomp")
            got = await client.message()
            assert text_of(got) == "from stomp"


@asynchronous
@pytest.mark.parametrize("value", [2**31, -(2**40), 2**62, "text", True])
async def test_what_others_set_as_numbers_of_openwire_is_delivered(value):
    async with serving() as broker, OpenWire.of(broker) as client, core(broker) as session:
        await client.consume(QUEUE)
        names = ("__HDR_COMMAND_ID", "__HDR_GROUP_SEQUENCE", "__HDR_ARRIVAL")
        await session.producer("q").send("odd", properties=dict.fromkeys(names, value))
        assert text_of(await client.message()) == "odd"


@asynchronous
async def test_a_transaction_counts_with_its_commit():
    async with serving() as broker, OpenWire.of(broker) as client:
        consumer = await client.consume(QUEUE)
        await client.ask(client.transaction(1, 0))
        begun = client.transaction(1, 0).transaction_id
        await client.ask(client.text(QUEUE, "one", transaction_id=begun))
        assert client.messages == []
        await client.ask(client.transaction(1, 2))
        got = await client.message()
        await client.ask(client.transaction(2, 0))
        second = client.transaction(2, 0).transaction_id
        await client.ask(client.ack(consumer, got, transaction_id=second))
        await client.ask(client.transaction(2, 4))
        # It is with the consumer: its client gives it to its listeners again by itself.
        await client.ask(client.ack(consumer, got))
        await client.ask(c.RemoveInfo(object_id=consumer, last_delivered_sequence_id=-1))
        assert client.messages == []

        refused = await client.refused(client.transaction(9, 2))
        assert refused.exception.class_name == "javax.jms.IllegalStateException"
        unknown = client.transaction(9, 2).transaction_id
        refused = await client.refused(client.text(QUEUE, "lost", transaction_id=unknown))
        assert "Transaction not started" in refused.exception.message


@asynchronous
async def test_what_is_refused_and_nobody_waits_for_is_told():
    async with serving() as broker, OpenWire.of(broker) as client:
        client.put(client.text(None, "nowhere"))

        told = await client.message()

        assert isinstance(told, c.ConnectionError)
        await client.ask(client.text(QUEUE, "it goes on"))


@asynchronous
async def test_a_closed_consumer_gives_back_what_it_saw_first():
    async with serving() as broker, OpenWire.of(broker) as client:
        consumer = await client.consume(QUEUE)
        for number in range(3):
            await client.ask(client.text(QUEUE, f"m{number}"))
        got = [await client.message() for _ in range(3)]
        seen = got[1].message.message_id.broker_sequence_id
        await client.ask(c.RemoveInfo(object_id=consumer, last_delivered_sequence_id=seen))

        await client.consume(QUEUE, 2)
        again = [await client.message() for _ in range(3)]

        assert [text_of(one) for one in again] == ["m0", "m1", "m2"]
        assert [one.redelivery_counter for one in again] == [1, 1, 0]


@asynchronous
async def test_a_window_of_one_message():
    async with serving() as broker, OpenWire.of(broker) as client:
        consumer = await client.consume(QUEUE, prefetch=1)
        for number in range(3):
            await client.ask(client.text(QUEUE, f"m{number}"))
        first = await client.message()
        assert client.messages == []
        # "Delivered" lets the next one come, and its acknowledgement no other one.
        await client.ask(client.ack(consumer, first, kind=0))
        second = await client.message()
        await client.ask(client.ack(consumer, first))
        assert client.messages == []
        await client.ask(client.ack(consumer, second))
        assert text_of(await client.message()) == "m2"


@asynchronous
async def test_a_poisoned_message_goes_to_the_dead_letter_address():
    async with serving() as broker, OpenWire.of(broker) as client:
        await client.consume(c.ActiveMQQueue("DLQ"), 2)
        consumer = await client.consume(QUEUE)
        await client.ask(client.text(QUEUE, "bad"))
        got = await client.message()
        cause = c.Throwable("java.lang.Exception", "why")

        await client.ask(client.ack(consumer, got, kind=1, poison_cause=cause))

        dead = await client.message()
        assert text_of(dead) == "bad"
        assert b"java.lang.Exception: why" in dead.message.marshalled_properties


@asynchronous
async def test_blobs_and_what_brokers_say_are_refused():
    async with serving() as broker, OpenWire.of(broker) as client:
        blob = c.ActiveMQBlobMessage(producer_id=client.producer, destination=QUEUE)
        refused = await client.refused(blob)
        assert refused.exception.message == "We don't support BLOB type yet!"
        for command in (c.BrokerInfo(), c.ControlCommand(), c.FlushCommand(), c.ConnectionError()):
            refused = await client.refused(command)
            assert refused.exception.message == "not implemented! "
        await client.ask(c.Response())


@asynchronous
async def test_a_frame_that_is_no_command_is_answered_and_the_connection_stays():
    async with serving() as broker, OpenWire.of(broker) as client:
        client.writer.write(struct.pack(">i", 2) + b"\x28\0")
        told = await client.message()
        assert told.exception.message == "Unknown data type: 40"
        client.writer.write(struct.pack(">i", 2) + b"\x03\xff")
        told = await client.message()
        assert told.exception.class_name == "java.io.IOException"
        await client.ask(client.text(QUEUE, "it goes on"))


@pytest.mark.parametrize(
    "data",
    [
        struct.pack(">i", 2**31 - 1) + b"\x03",
        struct.pack(">i", 128 * 1024) + b"\x03",
        struct.pack(">i", 0),
        struct.pack(">i", 3) + b"\x04\0\0",
    ],
)
@asynchronous
async def test_a_peer_that_has_not_logged_in_is_held_within_bounds(data):
    async with serving() as broker, OpenWire.raw(broker) as client:
        await client.negotiate()
        client.writer.write(data)
        await closes(client)


@asynchronous
async def test_commands_before_the_login_are_refused():
    async with serving() as broker, OpenWire.raw(broker) as client:
        await client.negotiate()
        refused = await client.refused(c.SessionInfo(session_id=SessionId(CONNECTION, 1)))
        assert isinstance(refused, c.ExceptionResponse)
        await closes(client)


@asynchronous
async def test_a_client_id_is_one_connection_s():
    async with serving() as broker, OpenWire.of(broker, "same") as first:
        async with OpenWire.raw(broker) as second:
            await second.negotiate()
            refused = await second.refused(second.login("same"))
            assert refused.exception.class_name == "javax.jms.InvalidClientIDException"
            await closes(second)
        async with OpenWire.raw(broker) as none:
            await none.negotiate()
            refused = await none.refused(none.login(None))
            assert refused.exception.message == "No clientID specified for connection request"
        await first.ask(first.text(QUEUE, "it goes on"))
        # A client that comes back ends its old connection.
        async with OpenWire.of(broker, "same", failover_reconnect=True, fault_tolerant=True) as new:
            await closes(first)
            await new.ask(new.text(QUEUE, "twice"))
            again = new.text(QUEUE, "twice")
            again.message_id.producer_sequence_id = 1
            await new.ask(again)
            await new.consume(QUEUE)
            assert text_of(await new.message()) == "it goes on"
            assert text_of(await new.message()) == "twice"
            assert new.messages == []


@asynchronous
async def test_ids_that_are_not_registered_are_refused():
    async with serving() as broker, OpenWire.of(broker) as client:
        producer = ProducerId(CONNECTION, 1, 7)
        refused = await client.refused(c.ProducerInfo(producer_id=producer))
        assert refused.exception.message == (
            f"Cannot add a producer to a session that had not been registered: {producer}"
        )
        refused = await client.refused(
            c.MessagePull(consumer_id=ConsumerId(CONNECTION, 1, 9), destination=QUEUE)
        )
        assert refused.exception.message == "Consumer does not exist"


@asynchronous
async def test_a_virtual_topic_s_consumers_have_queues_of_its_address():
    parameters = {"virtualTopicConsumerWildcards": "Consumer.*.%3E%3B2"}
    async with serving(parameters=parameters) as broker, OpenWire.of(broker) as client:
        for number, name in enumerate("AB"):
            destination = c.ActiveMQQueue(f"Consumer.{name}.VirtualTopic.O")
            await client.consume(destination, number + 1)
        await client.ask(client.text(c.ActiveMQTopic("VirtualTopic.O"), "v"))

        got = [await client.message() for _ in range(2)]

        assert [text_of(one) for one in got] == ["v", "v"]


@asynchronous
async def test_a_selector_is_the_queue_s_where_virtual_topics_are_aware_of_it():
    for option, left in (("", 2), ("%3BselectorAware=false", 2), ("%3BselectorAware=true", 1)):
        parameters = {"virtualTopicConsumerWildcards": f"Consumer.*.%3E%3B2{option}"}
        async with serving(parameters=parameters) as broker, OpenWire.of(broker) as client:
            destination = c.ActiveMQQueue("Consumer.A.VirtualTopic.O")
            await client.consume(destination, selector="JMSType = 'a'")
            for kind in "ab":
                await client.ask(client.text(c.ActiveMQTopic("VirtualTopic.O"), "v", type=kind))

            queue = broker.parts.postoffice.addresses.queues[destination.physical_name]
            assert queue.message_count == left


@pytest.mark.parametrize("commits", [True, False])
@asynchronous
async def test_poison_of_a_transaction_counts_with_its_commit(commits):
    async with serving() as broker, OpenWire.of(broker) as client:
        await client.consume(c.ActiveMQQueue("DLQ"), 2)
        consumer = await client.consume(QUEUE)
        for text in ("bad", "good"):
            await client.ask(client.text(QUEUE, text))
        bad, good = [await client.message() for _ in range(2)]
        await client.ask(client.transaction(1, 0))
        begun = client.transaction(1, 0).transaction_id
        cause = c.Throwable("java.lang.Exception", "why")
        await client.ask(client.ack(consumer, bad, 1, transaction_id=begun, poison_cause=cause))
        await client.ask(client.ack(consumer, good, transaction_id=begun))
        assert client.messages == []

        await client.ask(client.transaction(1, 2 if commits else 4))

        queues = broker.parts.postoffice.addresses.queues
        if commits:
            dead = await client.message()
            assert text_of(dead) == "bad"
            assert b"java.lang.Exception: why" in dead.message.marshalled_properties
            assert queues["q"].message_count == 0
            return
        # Both are with the consumer, which can say again what becomes of them.
        assert client.messages == []
        assert queues["q"].message_count == 2
        await client.ask(client.ack(consumer, bad))
        await client.ask(client.ack(consumer, good))
        assert queues["q"].message_count == 0


@asynchronous
async def test_poison_of_a_transaction_whose_consumer_ends_goes_back():
    async with serving() as broker, OpenWire.of(broker) as client:
        consumer = await client.consume(QUEUE)
        await client.ask(client.text(QUEUE, "bad"))
        bad = await client.message()
        await client.ask(client.transaction(1, 0))
        begun = client.transaction(1, 0).transaction_id
        await client.ask(client.ack(consumer, bad, 1, transaction_id=begun))
        await client.ask(c.RemoveInfo(object_id=consumer, last_delivered_sequence_id=-1))
        await client.ask(client.transaction(1, 2))

        await client.consume(QUEUE, 2)
        again = await client.message()

        assert (text_of(again), again.redelivery_counter) == ("bad", 1)


@asynchronous
async def test_poison_of_a_branch_counts_with_the_manager_s_commit():
    async with serving() as broker, OpenWire.of(broker) as client:
        await client.consume(c.ActiveMQQueue("DLQ"), 2)
        consumer = await client.consume(QUEUE)
        await client.ask(client.text(QUEUE, "bad"))
        bad = await client.message()
        branch = XATransactionId(1, b"g", b"b")

        async def step(kind):
            of = ConnectionId(CONNECTION)
            await client.ask(c.TransactionInfo(connection_id=of, transaction_id=branch, type=kind))

        await step(0)
        await client.ask(client.ack(consumer, bad, 1, transaction_id=branch))
        await step(7)
        await step(1)
        assert client.messages == []
        await step(3)
        assert text_of(await client.message()) == "bad"
        assert broker.parts.postoffice.addresses.queues["q"].message_count == 0
