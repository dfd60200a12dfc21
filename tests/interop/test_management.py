"""Management by our client, of Artemis's broker and ours: names, arguments and results."""

import json
import uuid

import pytest

from broker.client import errors
from broker.client.aio import AsyncClient
from broker.management.address_control import AddressControl
from broker.management.broker_control import BrokerControl
from broker.management.queue_control import QueueControl
from broker.model.properties import PropertyType
from tests.interop.asynchronous import asynchronous

# Ours, or younger than Artemis's broker of these tests.
OURS = {
    *(("broker", "getDuplicateCount"), ("queue", "isPersistedPause")),
    *(("broker", "getJMSBridgeNames"), ("address", "getId"), ("address", "getQueueCount")),
    *(("broker", "getStrandedMessagesAsJSON"), ("broker", "getLeftClusterConnectionNames")),
}
# Answered with an error that says so.
OF_A_JVM = {
    *("getThreadPoolMaxSize", "getScheduledThreadPoolMaxSize", "getMessageExpiryThreadPriority"),
    "isAsyncConnectionExecutionEnabled",
}


def client_of(broker):
    return AsyncClient(broker.uri, user=broker.USER, password=broker.PASSWORD)


async def filled(session, *numbers):
    name = f"queue.{uuid.uuid4()}"
    await session.manage("broker", "createQueue", name, name, "ANYCAST")
    async with session.producer(name) as producer:
        for number in numbers:
            await producer.send(f"m{number}", properties={"n": number})
    return name


@asynchronous
async def test_a_queue_s_messages(either_broker):
    async with client_of(either_broker) as client:
        session = await client.session()
        queue, other = await filled(session, 1, 2, 3, 4), await filled(session)
        resource = f"queue.{queue}"

        found = await session.manage(resource, "listMessages", "n > 2")
        first = json.loads(await session.manage(resource, "getFirstMessageAsJSON"))

        assert [one["n"] for one in found] == [3, 4]
        common = {"messageID", "address", "durable", "expiration", "timestamp", "priority", "n"}
        assert set(found[0]) >= common
        assert (found[0]["priority"], found[0]["durable"], found[0]["address"]) == (4, True, queue)
        assert first[0]["n"] == 1
        assert await session.manage(resource, "countMessages", "n > 1") == 3
        assert await session.manage(resource, "moveMessages", "n < 3", other) == 2
        assert await session.manage(f"queue.{other}", "retryMessages") == 2
        assert await session.manage(resource, "removeMessage", found[0]["messageID"]) is True
        assert await session.manage(resource, "removeMessages", 100, "n = 4") == 1
        assert await session.attribute(resource, "messageCount") == 2
        await session.manage(resource, "pause")
        assert await session.attribute(resource, "paused") is True
        await session.manage(resource, "resume")
        assert await session.manage(resource, "removeAllMessages") == 2


@asynchronous
async def test_lists_have_the_same_fields(artemis_broker, our_broker):
    answers = []
    for broker in (artemis_broker, our_broker):
        async with client_of(broker) as client:
            session = await client.session()
            queue = await filled(session, 1)
            async with await session.consumer(queue):
                rows = {}
                for name in ("Queues", "Addresses", "Consumers", "Connections", "Sessions"):
                    text = await session.manage("broker", f"list{name}", "", 1, 500)
                    found = json.loads(text)
                    assert found["count"] >= len(found["data"]) >= 1
                    rows[name] = found["data"][0]
                options = {"field": "name", "operation": "EQUALS", "value": queue}
                text = await session.manage("broker", "listQueues", json.dumps(options), 1, 50)
                rows["own"] = json.loads(text)["data"][0]
                answers.append(rows)

    # What Artemis's broker of these tests tells, and by types; it has grown since.
    theirs, ours = answers
    for name, row in theirs.items():
        missing = {key for key in row if key not in ours[name]}
        assert missing == set(), name
        shared = [key for key in row if key in ours[name]]
        assert [type(ours[name][key]) for key in shared] == [type(row[key]) for key in shared]
    same = ("messageCount", "durable", "routingType", "filter", "messagesAdded", "maxConsumers")
    assert [theirs["own"][key] for key in same] == [ours["own"][key] for key in same]


@asynchronous
async def test_every_attribute_of_ours_is_one_of_artemis(artemis_broker, our_broker):
    found = []
    for broker in (artemis_broker, our_broker):
        answers = {}
        async with client_of(broker) as client:
            session = await client.session()
            queue = await filled(session, 1)
            for resource, control in (
                ("broker", BrokerControl),
                (f"queue.{queue}", QueueControl),
                (f"address.{queue}", AddressControl),
            ):
                for name in sorted(control.getters):
                    kind = resource.partition(".")[0]
                    if (kind, name) in OURS or name in OF_A_JVM:
                        continue
                    try:
                        answers[kind, name] = await session.manage(resource, name)
                    except errors.BrokerRefused as error:
                        answers[kind, name] = error
        found.append(answers)

    theirs, ours = found
    assert {key: type(value) for key, value in ours.items() if value is not None} == {
        key: type(theirs[key]) for key, value in ours.items() if value is not None
    }


@asynchronous
async def test_a_request_may_be_large(either_broker):
    text = "x" * 120_000
    async with client_of(either_broker) as client:
        session = await client.session()
        queue = await filled(session)
        await session.manage(f"queue.{queue}", "sendMessage", {}, 3, text, True, "admin", "secret")

        async with await session.consumer(queue) as consumer:
            received = await consumer.receive(20)
            if received.is_large:
                await received.read()
            assert received.text == text
        assert await session.attribute(f"queue.{queue}", "messagesAdded") == 1


@asynchronous
async def test_failures_are_told(either_broker):
    async with client_of(either_broker) as client:
        session = await client.session()

        with pytest.raises(errors.BrokerRefused, match="AMQ229067"):
            await session.manage("queue.none", "pause")
        with pytest.raises(errors.BrokerRefused, match="AMQ229069"):
            await session.manage("broker", "fly", 1, 2)
        with pytest.raises(errors.BrokerRefused):
            await session.attribute("broker", "weight")
        with pytest.raises(errors.BrokerRefused, match="AMQ229017"):
            await session.manage("broker", "destroyQueue", "none")


@asynchronous
async def test_notifications_have_the_same_properties(artemis_broker, our_broker):
    found = []
    for broker in (artemis_broker, our_broker):
        told = {}
        async with client_of(broker) as client:
            session, other = await client.session(), await client.session()
            name = f"told.{uuid.uuid4()}"
            await session.create_shared_queue(name, "activemq.notifications", durable=False)
            async with await session.consumer(name) as consumer:
                queue = await filled(other, 1)
                async with await other.consumer(queue, "n = 1"):
                    pass
                await (await client.session()).close()
                await other.manage("broker", "destroyQueue", queue)
                while (message := await consumer.receive(2)) is not None:
                    kind = message.get("_AMQ_NotifType")
                    if message.get("_AMQ_Address") in (queue, "activemq.notifications"):
                        told[kind] = {one.name: one.type for one in message.properties.values()}
        found.append(told)

    theirs, ours = found
    assert set(ours) >= {
        *("BINDING_ADDED", "BINDING_REMOVED", "CONSUMER_CREATED", "CONSUMER_CLOSED"),
        *("SESSION_CREATED", "SESSION_CLOSED"),
    }
    for kind, properties in theirs.items():
        for name, type_ in properties.items():
            assert PropertyType.NULL in (type_, ours[kind][name]) or ours[kind][name] == type_


@asynchronous
async def test_texts_have_the_same_keys_and_types(artemis_broker, our_broker):
    found = []
    for broker in (artemis_broker, our_broker):
        async with client_of(broker) as client:
            session, other = await client.session(), await client.session()
            queue = await filled(other, 1, 2)
            async with await other.consumer(queue):
                texts = {
                    "counter": await session.manage(f"queue.{queue}", "listMessageCounter"),
                    "days": await session.manage(f"queue.{queue}", "listMessageCounterHistory"),
                    "consumers": await session.manage(f"queue.{queue}", "listConsumersAsJSON"),
                    "all consumers": await session.manage("broker", "listAllConsumersAsJSON"),
                    "producers": await session.manage("broker", "listProducersInfoAsJSON"),
                    "acceptors": await session.manage("broker", "getAcceptorsAsJSON"),
                    "roles": await session.manage("broker", "getRolesAsJSON", queue),
                    "users": await session.manage("broker", "listUser", ""),
                    "page": await session.manage("broker", "listProducers", "", 1, 10),
                }
                tables = await session.manage(f"queue.{queue}", "listMessageCounterAsHTML")
                assert tables.startswith('<table class="activemq-message-counter">')
            found.append({name: shape(json.loads(text)) for name, text in texts.items()})

    theirs, ours = found
    for name, expected in theirs.items():
        # Ours may say more.
        assert ours[name].items() >= expected.items(), name


def shape(value):
    """Types by name, of the first where there are several; of parameters that there are some."""
    if isinstance(value, list):
        value = value[0]
    types = {name: type(one) for name, one in value.items()}
    types.pop("lastProducedMessageID", None)
    if "data" in value:
        types |= shape(value["data"])
    return types


@asynchronous
async def test_a_message_that_is_retried_is_what_it_was(artemis_broker, our_broker):
    found = []
    for broker in (artemis_broker, our_broker):
        async with client_of(broker) as client:
            session = await client.session()
            queue = await filled(session)
            headers = {"_AMQ_ROUTING_TYPE": "1"}
            await session.manage(
                *(f"queue.{queue}", "sendMessage", headers, 3, "text", True),
                *(broker.USER, broker.PASSWORD),
            )
            async with session.producer(queue) as producer:
                await producer.send("plain")
            dead = f"queue.{await filled(session)}"
            target = dead.removeprefix("queue.")
            await session.manage(f"queue.{queue}", "moveMessages", "", target)
            moved = await session.manage(dead, "listMessages", "")
            assert await session.manage(dead, "retryMessages") == 2
            back = await session.manage(f"queue.{queue}", "listMessages", "")
            found.append([sorted(sorted(one) for one in rows) for rows in (moved, back)])

    assert found[0] == found[1]
