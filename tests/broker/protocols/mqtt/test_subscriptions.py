"""SUBSCRIBE, UNSUBSCRIBE, filters, groups; retained messages."""

import asyncio

import pytest

from broker.model.address import DEFAULT_WILDCARDS, WildcardConfiguration
from broker.model.routing_type import RoutingType
from broker.protocols.mqtt.errors import MqttError
from broker.protocols.mqtt.packets import (
    Disconnect,
    Filter,
    PacketType,
    Publish,
    Suback,
    Subscribe,
)
from broker.protocols.mqtt.properties import PropertyId
from broker.protocols.mqtt.reason_codes import ReasonCode
from broker.protocols.mqtt.topics import address_of, check_filter, split_shared, topic_of
from tests.broker.protocols.mqtt.client import VERSIONS, Mqtt
from tests.broker.protocols.stomp.client import Stomp, core, serving
from tests.interop.asynchronous import asynchronous

V3, V4, V5 = VERSIONS
NAMES = [
    ("a/b", "a.b"),
    ("a/+/#", "a.*.#"),
    ("/a/", ".a."),
    ("foo1.0/bar/+", "foo1\\.0.bar.*"),
    ("x*y", "x\\*y"),
    ("a\\/b", "a/b"),
    ("a\\.b/c", "a\\\\\\.b.c"),
    ("größe/\U0001f600", "größe.\U0001f600"),
]


@pytest.mark.parametrize(("topic", "address"), NAMES)
def test_a_topic_is_an_address_and_back(topic, address):
    assert address_of(topic, DEFAULT_WILDCARDS) == address
    if topic != "a\\/b":
        assert topic_of(address, DEFAULT_WILDCARDS) == topic


def test_with_the_wildcards_of_mqtt_nothing_is_converted():
    own = WildcardConfiguration(delimiter="/", single_word="+", any_words="#")
    assert address_of("a.b/+", own) == "a.b/+"
    assert topic_of("a.b/c", own) == "a.b/c"


def test_a_core_address_is_a_topic_too():
    assert topic_of("a/b", DEFAULT_WILDCARDS) == "a\\/b"
    assert topic_of("a.b::queue", DEFAULT_WILDCARDS) == "a/b"


@pytest.mark.parametrize("text", ["", "a/#/b", "a#", "+a", "a/b+", "##", "a::b"])
def test_filters_that_are_none(text):
    with pytest.raises(MqttError) as error:
        check_filter(text)
    assert error.value.code is ReasonCode.TOPIC_FILTER_INVALID


@pytest.mark.parametrize("text", ["#", "+", "/", "//", "a/+/b", "+/+", "/#", "$SYS/#", "a b"])
def test_filters_that_are_some(text):
    check_filter(text)


@pytest.mark.parametrize("text", ["$share//t", "$share/g", "$share/g/", "$share/g+/t"])
def test_groups_that_are_none(text):
    with pytest.raises(MqttError):
        split_shared(text)


@pytest.mark.parametrize(
    ("filter", "topics", "others"),
    [
        ("#", ["a", "a/b", "/", "/a"], ["$SYS/x", "$a"]),
        ("+/b", ["a/b", "/b"], ["b", "a/b/c", "$a/b"]),
        ("a/#", ["a", "a/b", "a/b/c", "a/"], ["ab", "b/a"]),
        ("a/+", ["a/b", "a/"], ["a", "a/b/c"]),
        ("+", ["a"], ["/a", "a/", "$a"]),
        ("/+", ["/a"], ["a"]),
        ("$SYS/#", ["$SYS/x"], ["SYS/x"]),
        ("a.b", ["a.b"], ["a/b"]),
        ("a*/+", ["a*/x", "a*/x.y", "a*/*"], ["ab/x"]),
        ("+/x", ["a.b/x", "a\\b/x"], ["a.b/y"]),
    ],
)
@asynchronous
async def test_a_filter_matches_topics(filter, topics, others):
    async with serving() as broker, Mqtt.of(broker) as client:
        await client.subscribe(filter, qos=0)
        for topic in [*others, *topics]:
            client.put(Publish(topic, topic.encode()))
        found = [await client.message() for _ in topics]
        assert [one.topic for one in found] == topics
        await client.settle()


@asynchronous
async def test_every_filter_has_its_own_answer():
    async with serving() as broker:
        async with Mqtt.of(broker) as client:
            filters = (Filter("a", 0), Filter("a/#/b", 1), Filter("b", 2), Filter("$share/g/c", 1))
            client.put(Subscribe(1, filters))
            assert (await client.get(Suback)).codes == (0, 0x8F, 2, 1)
        async with Mqtt.of(broker, "d", V4) as client:
            client.put(Subscribe(1, filters[:3]))
            assert (await client.get(Suback)).codes == (0, 0x80, 2)


@asynchronous
async def test_an_end_of_a_subscription_is_answered_and_removes_its_queue():
    async with serving() as broker:
        for version in VERSIONS:
            async with Mqtt.of(broker, "c", version) as client:
                await client.subscribe("a", "b/#")
                assert set(broker.parts.postoffice.addresses.queues) == {"c.a", "c.b.#"}
                answer = await client.unsubscribe("a", "x")
                assert answer.codes == ((0, 0x11) if version is V5 else ())
                assert set(broker.parts.postoffice.addresses.queues) == {"c.b.#"}
                await client.publish("a")
                await client.settle()


@asynchronous
async def test_one_that_is_subscribed_again_has_the_options_of_the_last_time():
    async with serving() as broker, Mqtt.of(broker) as client:
        await client.subscribe("t", qos=0, identifier=1)
        await client.subscribe("t", qos=1, identifier=2)
        await client.publish("t", b"x", 0)
        await client.publish("t", b"y", 0)
        found = [await client.message() for _ in range(2)]
        assert [one.properties[PropertyId.SUBSCRIPTION_IDENTIFIER] for one in found] == [[2], [2]]
        assert len(broker.parts.postoffice.addresses.queues) == 1


@asynchronous
async def test_each_subscription_that_matches_gets_a_message_of_its_own():
    async with serving() as broker, Mqtt.of(broker) as client:
        await client.subscribe("a/b", qos=0, identifier=1)
        await client.subscribe("a/+", qos=0, identifier=2)
        client.put(Publish("a/b"))
        found = [await client.message() for _ in range(2)]
        ids = sorted(one.properties[PropertyId.SUBSCRIPTION_IDENTIFIER] for one in found)
        assert ids == [[1], [2]]


@asynchronous
async def test_without_local_messages_a_client_does_not_hear_itself():
    async with serving() as broker, Mqtt.of(broker) as client, Mqtt.of(broker, "d") as other:
        await client.subscribe("t", no_local=True)
        await client.publish("t", b"own")
        await other.publish("t", b"other")
        async with core(broker) as session:
            await session.producer("t").send(b"core")
        assert await client.payloads(2) == [b"other", b"core"]
        await client.settle()
        assert broker.parts.postoffice.addresses.queues["c.t"].message_count == 0
        client.put(Subscribe(9, (Filter("$share/g/t", 1, no_local=True),)))
        assert await client.is_closed(ReasonCode.PROTOCOL_ERROR)


@asynchronous
async def test_a_group_shares_messages_and_its_queue_goes_with_the_last(tmp_path):
    async with serving(tmp_path) as broker, Mqtt.of(broker, "p") as p:
        async with Mqtt.of(broker, "a") as a, Mqtt.of(broker, "b") as b:
            for one in (a, b):
                await one.subscribe("$share/g/t/+", qos=1)
            for number in range(10):
                await p.publish(f"t/{number}", b"%d" % number)
            found = await a.payloads(5) + await b.payloads(5)
            assert sorted(found) == [b"%d" % number for number in range(10)]
            await a.settle()
            await a.disconnect()
            assert "g.t.*" in broker.parts.postoffice.addresses.queues
            await p.publish("t/x", b"x")
            assert await b.payloads(1) == [b"x"]
            await b.settle()
            await b.disconnect()
        assert "g.t.*" not in broker.parts.postoffice.addresses.queues


@asynchronous
async def test_a_client_may_have_a_topic_for_itself_and_in_a_group():
    async with serving() as broker, Mqtt.of(broker) as client:
        await client.subscribe("t", "$share/g/t", qos=0)
        await client.publish("t", b"x", 0)
        assert await client.payloads(2) == [b"x", b"x"]
        await client.unsubscribe("t")
        await client.publish("t", b"y", 0)
        assert await client.payloads(1) == [b"y"]


@asynchronous
async def test_a_queue_of_the_same_name_at_another_address_is_not_taken():
    async with serving() as broker, Mqtt.of(broker, "a") as a, Mqtt.of(broker, "a.b") as other:
        await a.subscribe("b/c")
        await other.subscribe("c", code=ReasonCode.UNSPECIFIED_ERROR)
        await a.publish("b/c", b"x")
        assert await a.payloads(1) == [b"x"]


@asynchronous
async def test_an_anycast_address_gives_its_queue():
    async with serving() as broker, core(broker) as session:
        await session.create_queue("q", "orders", routing_type=RoutingType.ANYCAST)
        await session.producer("orders").send(b"core")
        async with Mqtt.of(broker) as client:
            await client.subscribe("orders", qos=1)
            assert await client.payloads(1) == [b"core"]
            await client.publish("orders", b"mqtt")
            assert await client.payloads(1) == [b"mqtt"]
        assert "q" in broker.parts.postoffice.addresses.queues


@asynchronous
async def test_a_queue_that_an_operator_removes_ends_the_connection():
    async with serving() as broker, Mqtt.of(broker, expiry=100) as client:
        await client.subscribe("t")
        broker.parts.postoffice.addresses.delete_queue("c.t")
        assert await client.is_closed(ReasonCode.ADMINISTRATIVE_ACTION)
        async with Mqtt.of(broker, clean=False, expiry=100) as again:
            assert again.connack.session_present
            await again.publish("t", b"x")
            assert await again.payloads(1) == [b"x"]


@asynchronous
async def test_queues_are_as_artemis_makes_them():
    async with serving() as broker, Mqtt.of(broker, expiry=9) as client:
        await client.subscribe("a/b", "#")
        plain, wild = (
            broker.parts.postoffice.addresses.queues[name].binding for name in ("c.a.b", "c.#")
        )
        text = (
            "NOT ((AMQAddress = 'activemq.management') OR (AMQAddress = 'activemq.notifications')"
        )
        assert plain.filter == f"{text})"
        assert wild.filter == f"{text} OR (AMQAddress LIKE '$%'))"
        assert plain.routing_type is RoutingType.MULTICAST
        assert not plain.auto_created


# --- retained messages --------------------------------------------------------------------------


@pytest.mark.parametrize("version", VERSIONS)
@asynchronous
async def test_the_last_message_of_a_topic_is_retained(tmp_path, version):
    async with serving(tmp_path) as broker, Mqtt.of(broker, "p", version) as p:
        for qos in (0, 1, 2):
            await p.publish("a/b", b"%d" % qos, qos, retain=True)
        await p.publish("a/c", b"c", 1, retain=True)
        await p.publish("a/c", b"not retained", 1)
        await p.settle()
    async with serving(tmp_path) as broker, Mqtt.of(broker, "s", version) as s:
        await s.subscribe("a/+", qos=1)
        found = [await s.message(retain=True) for _ in range(2)]
        assert sorted((one.topic, one.payload) for one in found) == [("a/b", b"2"), ("a/c", b"c")]
        await s.publish("a/b", b"live", 1, retain=True)
        await s.message(payload=b"live", retain=False)
        await s.publish("a/b", b"", 1, retain=True)
        await s.message(payload=b"", retain=False)
        async with Mqtt.of(broker, "t", version) as t:
            await t.subscribe("a/b", "a/c", qos=0)
            assert (await t.message(retain=True)).payload == b"c"
            await t.settle()


@asynchronous
async def test_when_retained_messages_come_is_the_clients_choice():
    async with serving() as broker, Mqtt.of(broker) as client:
        await client.publish("t", b"x", 1, retain=True)
        for handling, count in ((2, 0), (1, 0), (0, 1), (0, 1), (1, 0)):
            await client.subscribe("t", retain_handling=handling)
            assert await client.payloads(count) == [b"x"] * count
            await client.settle()
        await client.unsubscribe("t")
        await client.subscribe("t", retain_handling=1)
        assert await client.payloads(1) == [b"x"]
        await client.subscribe("$share/g/t")
        await client.settle()


@asynchronous
async def test_a_client_may_keep_the_flag_as_it_was_published():
    async with serving() as broker, Mqtt.of(broker) as client:
        await client.subscribe("#", retain_as_published=True)
        await client.publish("t", b"x", 1, retain=True)
        await client.publish("t", b"y", 1)
        await client.message(payload=b"x", retain=True)
        await client.message(payload=b"y", retain=False)


@pytest.mark.parametrize("pattern", ["a/t", "a/+"])
@asynchronous
async def test_a_subscription_gets_a_retained_message_that_is_on_its_way(tmp_path, pattern):
    async with serving(tmp_path) as broker, Mqtt.of(broker) as client:
        for number in range(1, 6):
            # The broker reads both at once, long before the message is durable.
            client.put(Publish("a/t", b"%d" % number, 0, True))
            await client.subscribe(pattern, qos=0)
            message = await client.message(retain=True)
            assert message.payload == b"%d" % number
            await client.unsubscribe(pattern)
        # One that removes it.
        client.put(Publish("a/t", b"", 0, True))
        await client.subscribe(pattern, qos=0)
        await client.settle()


@asynchronous
async def test_who_subscribes_and_leaves_while_one_is_on_its_way_gets_nothing(tmp_path):
    async with serving(tmp_path) as broker, Mqtt.of(broker, "p") as client:
        async with Mqtt.of(broker, "s") as gone:
            gone.put(Publish("t", b"x", 0, True))
            gone.put(Subscribe(2, (Filter("t", 0),)))
            gone.put(Disconnect())
        await client.subscribe("t", qos=0)
        await client.message(payload=b"x", retain=True)
        await client.settle()


@asynchronous
async def test_retained_messages_that_are_on_their_way_replace_each_other(tmp_path):
    async with serving(tmp_path) as broker, Mqtt.of(broker) as client:
        for number in range(1, 21):
            payload = b"" if number == 20 else b"%d" % number
            client.put(Publish("t", payload, 1, True, packet_id=number))
        for number in range(1, 21):
            await client.ack(PacketType.PUBACK, number)
        queue = broker.parts.postoffice.addresses.queues["$sys.mqtt.retain.t"]
        assert queue.message_count == 0
    async with serving(tmp_path) as broker, Mqtt.of(broker) as client:
        await client.subscribe("t")
        await client.settle()


@asynchronous
async def test_a_large_message_can_be_retained(tmp_path):
    async with serving(tmp_path) as broker, Mqtt.of(broker, "p") as p:
        for size in (200_000, 300_000):
            await p.publish("t", b"x" * size, 1, retain=True)
    async with serving(tmp_path) as broker, Mqtt.of(broker, "s") as s:
        await s.subscribe("t")
        assert (await s.message(retain=True)).payload == b"x" * 300_000
        await s.settle()
        await s.publish("t", b"", 1, retain=True)
        await s.message(payload=b"")
    assert list((tmp_path / "large").glob("*.msg")) == []


@asynchronous
async def test_a_retained_message_that_has_expired_does_not_come():
    properties = {PropertyId.MESSAGE_EXPIRY_INTERVAL: 1}
    async with serving() as broker, Mqtt.of(broker) as client:
        await client.publish("t", b"x", 1, retain=True, properties=properties)
        await asyncio.sleep(1.1)
        await client.subscribe("t")
        await client.settle()


# --- other protocols ----------------------------------------------------------------------------


@asynchronous
async def test_a_text_of_a_core_client_is_utf_8(tmp_path):
    async with serving(tmp_path) as broker, Mqtt.of(broker) as client, core(broker) as session:
        await client.subscribe("t", qos=2)
        await session.producer("t").send("größe", durable=True)
        await client.message(payload="größe".encode(), topic="t", qos=2)
        await session.producer("t").send("large" * 100_000, durable=True)
        await client.message(payload=b"large" * 100_000)


@asynchronous
async def test_between_stomp_and_mqtt():
    async with serving() as broker, Mqtt.of(broker) as client, Stomp.of(broker) as stomp:
        await client.subscribe("a/b", qos=1)
        await stomp.send("a.b", b"from stomp")
        assert (await client.message(topic="a/b")).payload == b"from stomp"
        await stomp.subscribe("a.b")
        await client.publish("a/b", b"from mqtt")
        assert await client.payloads(1) == [b"from mqtt"]
        frame = await stomp.get("MESSAGE")
        assert frame.body == b"from mqtt"
        assert frame.headers["mqtt.qos.level"] == "1"
