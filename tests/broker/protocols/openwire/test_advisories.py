"""Advisories: what the broker tells consumers of ActiveMQ.Advisory topics."""

import pytest

from broker.protocols.openwire import commands as c
from broker.protocols.openwire.primitives import read_map
from tests.broker.protocols.openwire.client import OpenWire
from tests.broker.protocols.stomp.client import serving
from tests.interop.asynchronous import asynchronous

OTHER = "ID:other-1-2-3:1"
TEMPORARY = [c.ActiveMQTempQueue, c.ActiveMQTempTopic]


def advisory(name):
    return c.ActiveMQTopic(f"ActiveMQ.Advisory.{name}")


def properties(dispatch):
    return {one.name: one.value for one in read_map(dispatch.message.marshalled_properties)}


@asynchronous
async def test_a_new_connection():
    parameters = {"brokerName": "here"}
    async with serving(parameters=parameters) as broker, OpenWire.of(broker) as client:
        await client.consume(advisory("Connection"))
        async with OpenWire.of(broker, "new", name=OTHER, user_name="sue", password="secret"):
            got = await client.message()

        message, found = got.message, got.message.data_structure
        assert got.destination == advisory("Connection")
        assert (message.type, message.persistent) == ("Advisory", False)
        assert (found.client_id, found.user_name, found.password) == ("new", "sue", "")
        port = broker.acceptors[0].port
        assert properties(got) == {
            "__AMQ_CID": OTHER,
            "originBrokerId": broker.node_id,
            "originBrokerName": "here",
            "originBrokerURL": f"tcp://127.0.0.1:{port}",
        }


@pytest.mark.parametrize(
    ("topic", "kind"),
    [
        ("Queue", c.ActiveMQQueue),
        ("Topic", c.ActiveMQTopic),
        ("TempQueue", c.ActiveMQTempQueue),
        ("TempTopic", c.ActiveMQTempTopic),
    ],
)
@asynchronous
async def test_a_destination_that_is_made_and_removed(topic, kind):
    async with (
        serving() as broker,
        OpenWire.of(broker) as client,
        OpenWire.of(broker, "other", name=OTHER) as other,
    ):
        await client.consume(advisory(topic))
        connection_id = other.login("other").connection_id
        for step in (0, 1):
            await other.ask(
                c.DestinationInfo(
                    connection_id=connection_id, destination=kind("d"), operation_type=step
                )
            )
            got = await client.message()
            assert got.destination == advisory(topic)
            assert got.message.data_structure.operation_type == step
            assert got.message.data_structure.destination == kind("d")


@pytest.mark.parametrize("kind", TEMPORARY)
@asynchronous
async def test_temporary_destinations_that_there_are(kind):
    async with serving() as broker, OpenWire.of(broker, "other", name=OTHER) as other:
        await other.ask(c.DestinationInfo(destination=kind("t"), operation_type=0))
        async with OpenWire.of(broker) as client:
            both = "TempQueue,topic://ActiveMQ.Advisory.TempTopic"
            consumer = await client.consume(advisory(both))
            got = await client.message()
            assert got.message.data_structure.destination == kind("t")
            assert got.message.target_consumer_id == consumer
            other.writer.close()
            # It went with its connection.
            assert (await client.message()).message.data_structure.operation_type == 1


@asynchronous
async def test_all_of_them_by_a_wildcard():
    async with serving() as broker, OpenWire.of(broker) as client:
        await client.consume(advisory(">"))
        await client.ask(c.DestinationInfo(destination=c.ActiveMQQueue("d"), operation_type=0))
        async with OpenWire.of(broker, "new", name=OTHER):
            found = [(await client.message()).destination for _ in range(2)]
        assert found == [advisory("Queue"), advisory("Connection")]


@asynchronous
async def test_without_support_consumers_are_taken_and_told_nothing():
    parameters = {"supportAdvisory": "false"}
    async with serving(parameters=parameters) as broker, OpenWire.of(broker) as client:
        consumer = await client.consume(advisory(">"))
        async with OpenWire.of(broker, "new", name=OTHER) as other:
            await other.ask(c.DestinationInfo(destination=c.ActiveMQQueue("d"), operation_type=0))
        await client.ask(c.RemoveInfo(object_id=consumer))
        assert client.messages == []


@pytest.mark.parametrize(
    ("destination", "topic"),
    [
        (c.ActiveMQQueue("slow"), "SlowConsumer.Queue.slow"),
        (c.ActiveMQTopic("slow"), "SlowConsumer.Topic.slow"),
    ],
)
@asynchronous
async def test_a_consumer_that_is_slow(destination, topic):
    address = {"slow_consumer_threshold": 10, "slow_consumer_check_period_s": 1}
    async with (
        serving(match="slow", address=address) as broker,
        OpenWire.of(broker) as client,
        OpenWire.of(broker, "other", name=OTHER) as other,
    ):
        await client.consume(advisory("SlowConsumer.>"))
        slow = await other.consume(destination)
        for number in range(50):
            await client.ask(client.text(destination, str(number)))

        got = await client.message()

        assert got.destination == advisory(topic)
        assert properties(got)["consumerId"] == str(slow)
        assert got.message.data_structure.consumer_id == slow
