"""PUBLISH both ways: QoS, packet ids, windows, aliases, expiry, properties, large payloads."""

import asyncio

import pytest

from broker.model.routing_type import RoutingType
from broker.protocols.mqtt.packets import PacketType, Publish
from broker.protocols.mqtt.properties import PropertyId
from broker.protocols.mqtt.reason_codes import ReasonCode
from broker.settings.settings import AddressFullPolicy
from tests.broker.protocols.mqtt.client import VERSIONS, Mqtt
from tests.broker.protocols.stomp.client import core, serving
from tests.interop.asynchronous import asynchronous

V3, V4, V5 = VERSIONS


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("qos", [0, 1, 2])
@asynchronous
async def test_a_message_goes_from_one_client_to_another(tmp_path, version, qos):
    async with (
        serving(tmp_path) as broker,
        Mqtt.of(broker, "a", version) as a,
        Mqtt.of(broker, "b", version) as b,
    ):
        await b.subscribe("t/+", qos=2)
        await a.publish("t/1", b"hello", qos)
        await b.message(topic="t/1", payload=b"hello", qos=qos, dup=False, retain=False)
        await b.settle()
        (queue,) = (
            one for one in broker.parts.postoffice.addresses.queues.values() if one.name == "b.t.*"
        )
        assert queue.message_count == 0


@pytest.mark.parametrize(("published", "subscribed", "given"), [(2, 1, 1), (1, 2, 1), (2, 0, 0)])
@asynchronous
async def test_the_lower_qos_counts(published, subscribed, given):
    async with serving() as broker, Mqtt.of(broker) as client:
        await client.subscribe("t", qos=subscribed)
        client.put(Publish("t", b"", published, packet_id=100))
        found = [await client.next(), await client.next()]
        (message,) = (one for one in found if isinstance(one, Publish))
        assert message.qos == given


@asynchronous
async def test_a_message_is_acknowledged_once_it_is_durable(tmp_path):
    async with serving(tmp_path) as broker:
        async with Mqtt.of(broker, "s", expiry=100) as client:
            await client.subscribe("t", qos=2)
        async with Mqtt.of(broker, "p") as client:
            for qos in (1, 2):
                await client.publish("t", b"%d" % qos, qos)
            client.put(Publish("t", b"0", 0))
            await client.settle()
    async with serving(tmp_path) as broker, Mqtt.of(broker, "s", clean=False, expiry=9) as client:
        assert client.connack.session_present
        assert await client.payloads(2) == [b"1", b"2"]
        assert await client.is_silent()


@asynchronous
async def test_a_qos_2_message_that_comes_twice_is_routed_once():
    async with serving() as broker, Mqtt.of(broker) as client, Mqtt.of(broker, "s") as s:
        await s.subscribe("t", qos=2)
        for dup in (False, True, True):
            client.put(Publish("t", b"one", 2, packet_id=5, dup=dup))
            await client.ack(PacketType.PUBREC, 5)
        client.answer(PacketType.PUBREL, 5)
        await client.ack(PacketType.PUBCOMP, 5)
        client.put(Publish("t", b"two", 2, packet_id=5))
        await client.ack(PacketType.PUBREC, 5)
        assert await s.payloads(2) == [b"one", b"two"]
        assert await s.is_silent()


@asynchronous
async def test_a_qos_2_message_that_comes_again_on_a_later_connection_is_routed_once():
    async with serving() as broker, Mqtt.of(broker, "s") as s:
        await s.subscribe("t", qos=2)
        async with Mqtt.of(broker, "p", expiry=100) as client:
            client.put(Publish("t", b"one", 2, packet_id=5))
            await client.ack(PacketType.PUBREC, 5)
        async with Mqtt.of(broker, "p", expiry=100, clean=False) as client:
            client.put(Publish("t", b"one", 2, packet_id=5, dup=True))
            await client.ack(PacketType.PUBREC, 5)
            client.answer(PacketType.PUBREL, 5)
            await client.ack(PacketType.PUBCOMP, 5)
        assert await s.payloads(1) == [b"one"]
        assert await s.is_silent()


@pytest.mark.parametrize("qos", [1, 2])
@asynchronous
async def test_what_was_not_acknowledged_comes_again_with_its_id_and_dup(qos):
    async with serving() as broker, Mqtt.of(broker, "p") as p:
        async with Mqtt.of(broker, "s", expiry=100) as s:
            await s.subscribe("t", qos=2)
            for number in range(5):
                await p.publish("t", b"%d" % number, qos)
            first = [await s.message(acknowledges=False) for _ in range(5)]
            assert [one.dup for one in first] == [False] * 5
        async with Mqtt.of(broker, "s", expiry=100, clean=False) as s:
            again = [await s.message() for _ in range(5)]
            assert [one.packet_id for one in again] == [one.packet_id for one in first]
            assert [one.payload for one in again] == [one.payload for one in first]
            assert [one.dup for one in again] == [True] * 5
            await s.settle()
        async with Mqtt.of(broker, "s", expiry=100, clean=False) as s:
            assert await s.is_silent()


@pytest.mark.parametrize("restarts", [False, True])
@asynchronous
async def test_a_pubrel_without_answer_is_sent_again(tmp_path, restarts):
    async with serving(tmp_path) as broker:
        async with Mqtt.of(broker, "p") as p, Mqtt.of(broker, "s", expiry=100) as s:
            await s.subscribe("t", qos=2)
            await p.publish("t", b"x", 2)
            packet_id = (await s.message(acknowledges=False)).packet_id
            s.answer(PacketType.PUBREC, packet_id)
            await s.ack(PacketType.PUBREL, packet_id)
        if not restarts:
            async with Mqtt.of(broker, "s", clean=False, expiry=100) as s:
                await s.ack(PacketType.PUBREL, packet_id)
    async with serving(tmp_path) as broker:
        async with Mqtt.of(broker, "s", clean=False, expiry=100) as s:
            await s.ack(PacketType.PUBREL, packet_id)
            s.answer(PacketType.PUBCOMP, packet_id)
            await s.settle()
        async with Mqtt.of(broker, "s", clean=False, expiry=100) as s:
            assert await s.is_silent()
        async with Mqtt.of(broker, "s") as s:
            await s.settle()
            names = broker.parts.postoffice.addresses.queues
            assert not [one for one in names if "qos2" in one]


@asynchronous
async def test_a_pubrec_that_refuses_ends_a_message():
    async with serving() as broker, Mqtt.of(broker) as client:
        await client.subscribe("t", qos=2)
        await client.publish("t", b"x", 0)
        await client.message()
        async with Mqtt.of(broker, "p") as p:
            await p.publish("t", b"x", 2)
        found = await client.message(acknowledges=False)
        client.answer(PacketType.PUBREC, found.packet_id, 0x83)
        await client.settle()
        assert broker.parts.postoffice.addresses.queues["c.t"].message_count == 0


@asynchronous
async def test_no_more_are_on_their_way_than_the_client_takes():
    properties = {PropertyId.RECEIVE_MAXIMUM: 3}
    async with (
        serving() as broker,
        Mqtt.of(broker, "p") as p,
        Mqtt.of(broker, "s", properties=properties) as s,
    ):
        await s.subscribe("a", qos=1)
        await s.subscribe("b", qos=2)
        for number in range(4):
            await p.publish("a", b"a%d" % number, 1)
            await p.publish("b", b"b%d" % number, 2)
        held = [await s.message(acknowledges=False) for _ in range(3)]
        assert await s.is_silent()
        found = list(held)
        while held:
            one = held.pop(0)
            if one.qos == 1:
                s.answer(PacketType.PUBACK, one.packet_id)
            else:
                s.answer(PacketType.PUBREC, one.packet_id)
                await s.ack(PacketType.PUBREL, one.packet_id)
                s.answer(PacketType.PUBCOMP, one.packet_id)
            if len(found) < 8:
                found.append(await s.message(acknowledges=False))
                held.append(found[-1])
        assert sorted(one.payload for one in found) == sorted(
            b"%c%d" % (letter, number) for letter in b"ab" for number in range(4)
        )


@asynchronous
async def test_a_client_that_sends_more_than_the_broker_takes_is_left():
    parameters = {"receiveMaximum": "2"}
    async with serving(parameters=parameters) as broker, Mqtt.of(broker) as client:
        for packet_id in (1, 2):
            client.put(Publish("t", b"", 2, packet_id=packet_id))
            await client.ack(PacketType.PUBREC, packet_id)
        client.put(Publish("t", b"", 1, packet_id=3))
        assert await client.is_closed(ReasonCode.RECEIVE_MAXIMUM_EXCEEDED)


@asynchronous
async def test_aliases_stand_for_topics_both_ways():
    properties = {PropertyId.TOPIC_ALIAS_MAXIMUM: 2}
    async with serving() as broker, Mqtt.of(broker, properties=properties) as client:
        await client.subscribe("#", qos=0)
        one, two = {PropertyId.TOPIC_ALIAS: 1}, {PropertyId.TOPIC_ALIAS: 2}
        client.put(Publish("a", b"1", properties=one))
        client.put(Publish("", b"2", properties=one))
        client.put(Publish("b", b"3", properties=two))
        client.put(Publish("c", b"4", properties=one))
        client.put(Publish("", b"5", properties=one))
        found = [await client.message() for _ in range(5)]
        assert [(m.topic, m.properties.get(PropertyId.TOPIC_ALIAS)) for m in found] == [
            ("a", 1),
            ("", 1),
            ("b", 2),
            ("c", None),
            ("c", None),
        ]


@pytest.mark.parametrize("properties", [{PropertyId.TOPIC_ALIAS: n} for n in (0, 1, 4)])
@asynchronous
async def test_an_alias_that_is_not_known_ends_the_connection(properties):
    async with serving(parameters={"topicAliasMaximum": "3"}) as broker, Mqtt.of(broker) as client:
        topic = "" if properties[PropertyId.TOPIC_ALIAS] == 1 else "t"
        client.put(Publish(topic, b"", properties=properties))
        assert await client.is_closed(ReasonCode.TOPIC_ALIAS_INVALID)


@asynchronous
async def test_properties_come_as_they_were_sent(tmp_path):
    properties = {
        PropertyId.PAYLOAD_FORMAT_INDICATOR: 1,
        PropertyId.CONTENT_TYPE: "text/plain",
        PropertyId.RESPONSE_TOPIC: "re/ply",
        PropertyId.CORRELATION_DATA: b"\0\1\2",
        PropertyId.USER_PROPERTY: [("b", "1"), ("a", "2"), ("b", "3"), ("", "")]
        + [("n", str(number)) for number in range(12)],
    }
    async with serving(tmp_path) as broker, Mqtt.of(broker) as client:
        await client.subscribe("t", qos=0, identifier=300)
        await client.publish("t", b"x", properties=properties)
        message = await client.message()
        assert message.properties == {**properties, PropertyId.SUBSCRIPTION_IDENTIFIER: [300]}


@asynchronous
async def test_a_message_expires_and_says_how_long_it_has():
    properties = {PropertyId.MESSAGE_EXPIRY_INTERVAL: 1}
    longer = {PropertyId.MESSAGE_EXPIRY_INTERVAL: 4_000_000_000}
    async with serving() as broker, Mqtt.of(broker, "p") as p:
        async with Mqtt.of(broker, "s", expiry=100) as s:
            await s.subscribe("t")
        await p.publish("t", b"short", properties=properties)
        await p.publish("t", b"long", properties=longer)
        await asyncio.sleep(1.2)
        async with Mqtt.of(broker, "s", expiry=100, clean=False) as s:
            message = await s.message(payload=b"long")
            left = message.properties[PropertyId.MESSAGE_EXPIRY_INTERVAL]
            assert 3_999_999_990 < left < 4_000_000_000


@asynchronous
async def test_what_is_too_large_for_a_client_is_not_sent_to_it():
    properties = {PropertyId.MAXIMUM_PACKET_SIZE: 200}
    async with serving() as broker, Mqtt.of(broker, properties=properties) as client:
        await client.subscribe("t", qos=1)
        async with Mqtt.of(broker, "p") as p:
            for payload in (b"x" * 500, b"small", b"y" * 150_000, b"end"):
                await p.publish("t", payload, 1)
        assert await client.payloads(2) == [b"small", b"end"]
        await client.settle()
        assert broker.parts.postoffice.addresses.queues["c.t"].message_count == 0


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("qos", [0, 1, 2])
@asynchronous
async def test_large_payloads_are_kept_outside_of_the_journal(tmp_path, version, qos):
    payloads = [bytes([number]) * (300_000 + number) for number in range(3)]
    async with (
        serving(tmp_path) as broker,
        Mqtt.of(broker, "p", version) as p,
        Mqtt.of(broker, "s", version) as s,
    ):
        await s.subscribe("t", qos=qos)
        for payload in payloads:
            await p.publish("t", payload, qos)
            await p.publish("t", b"small", qos)
        assert await s.payloads(6) == [one for payload in payloads for one in (payload, b"small")]
        await s.settle()
    assert list((tmp_path / "large").glob("*.msg")) == []


@asynchronous
async def test_a_large_message_survives_a_restart_and_a_client_that_leaves_in_its_middle(tmp_path):
    payload = bytes(range(256)) * 4000
    async with serving(tmp_path) as broker:
        async with Mqtt.of(broker, "s", expiry=100) as s:
            await s.subscribe("t", qos=1)
        async with Mqtt.of(broker, "p") as p:
            await p.publish("t", payload, 1)
        async with Mqtt.raw(broker) as p:
            await p.connect("q")
            head = bytes.fromhex("32c0843d0001740001 00".replace(" ", ""))
            p.write(head + b"z" * 200_000)
            await p.writer.drain()
    async with serving(tmp_path) as broker, Mqtt.of(broker, "s", clean=False, expiry=100) as s:
        found = await s.message()
        assert found.payload == payload
        await s.settle()


@asynchronous
async def test_a_client_that_does_not_read_holds_nobody_up(tmp_path):
    async with (
        serving(tmp_path) as broker,
        Mqtt.of(broker, "p") as p,
        Mqtt.of(broker, "slow") as slow,
        Mqtt.of(broker, "s") as s,
    ):
        await slow.subscribe("t", qos=0)
        slow.writer.transport.pause_reading()
        await s.subscribe("t", qos=0)
        for number in range(300):
            await p.publish("t", b"%d" % number + b"x" * 20_000, 1)
            await s.message()
        slow.writer.transport.resume_reading()
        for number in range(300):
            assert (await slow.message()).payload.startswith(b"%dx" % number)


@asynchronous
async def test_a_full_address_holds_its_publisher(tmp_path):
    address = {"max_size_bytes": 20_000, "address_full_policy": AddressFullPolicy.BLOCK}
    async with serving(tmp_path, match="t", address=address) as broker:
        async with Mqtt.of(broker, "s", expiry=100) as s:
            await s.subscribe("t", qos=1)
        async with Mqtt.of(broker, "p") as p:
            for number in range(1, 41):
                p.put(Publish("t", b"%d " % number + b"x" * 1000, 1, packet_id=number))
            await p.ack(PacketType.PUBACK, 1)
            await asyncio.sleep(0.2)
            held = broker.parts.postoffice.addresses.queues["s.t"].message_count
            assert 0 < held < 40
            async with Mqtt.of(broker, "s", clean=False, expiry=100) as s:
                found = [(await s.message()).payload.split()[0] for _ in range(40)]
            assert found == [b"%d" % number for number in range(1, 41)]
            for number in range(2, 41):
                await p.ack(PacketType.PUBACK, number)


@asynchronous
async def test_messages_are_paged_as_others_are(tmp_path):
    address = {
        "max_size_bytes": 20_000,
        "page_size_bytes": 10_000,
        "address_full_policy": AddressFullPolicy.PAGE,
    }
    async with serving(tmp_path, match="t", address=address) as broker:
        async with Mqtt.of(broker, "s", expiry=100) as s:
            await s.subscribe("t", qos=2)
        async with Mqtt.of(broker, "p") as p:
            for number in range(100):
                await p.publish("t", b"%d " % number + b"x" * 1000, 1)
        async with Mqtt.of(broker, "s", clean=False, expiry=100) as s:
            found = [(await s.message()).payload.split()[0] for _ in range(100)]
            assert found == [b"%d" % number for number in range(100)]


@asynchronous
async def test_without_an_address_and_leave_to_make_one_a_message_goes_nowhere():
    async with serving(address={"auto_create_addresses": False}) as broker:
        async with Mqtt.of(broker) as client:
            await client.publish("t", code=ReasonCode.NO_MATCHING_SUBSCRIBERS)
            await client.subscribe("t", code=ReasonCode.UNSPECIFIED_ERROR)
        async with Mqtt.of(broker, "c", V4) as client:
            await client.publish("t")
            await client.subscribe("t", code=0x80)


@asynchronous
async def test_a_core_consumer_sees_what_artemis_would_store(tmp_path):
    properties = {
        PropertyId.CONTENT_TYPE: "x/y",
        PropertyId.USER_PROPERTY: [("k", "v"), ("k", "w")],
    }
    async with serving(tmp_path) as broker, core(broker) as session:
        await session.create_queue("q", "t", routing_type=RoutingType.MULTICAST)
        async with Mqtt.of(broker, "pub") as p:
            await p.publish("t", b"\1\2", 2, properties=properties)
        consumer = await session.consumer("q")
        message = await consumer.receive(30)
        assert message.content == b"\1\2"
        assert message.message.type == 4
        assert message.message.priority == 0
        assert message.message.durable
        found = {name: item.value for name, item in message.message.properties.items()}
        assert found == {
            "mqtt.message.retain": False,
            "mqtt.qos.level": 2,
            "__AMQ_CID": "pub",
            "_AMQ_ROUTING_TYPE": 0,
            "mqtt.content.type": "x/y",
            "mqtt.user.property.exists": 2,
            "mqtt.ordered.user.property.0.k": "v",
            "mqtt.ordered.user.property.1.k": "w",
        }
