"""What an acceptor's URI says of MQTT: Artemis's parameters, their ranges, and what they do."""

import pytest

from broker.model.routing_type import RoutingType
from broker.protocols.mqtt.agreement import agree
from broker.protocols.mqtt.factory import MQTT
from broker.protocols.mqtt.packets import Acknowledgement, Connect, PacketType, Publish, Will
from broker.protocols.mqtt.properties import PropertyId
from broker.protocols.mqtt.reason_codes import ReasonCode
from broker.protocols.registry import read_parameters
from tests.broker.protocols.mqtt.client import VERSIONS, Mqtt
from tests.broker.protocols.stomp.client import serving
from tests.broker.protocols.stomp.test_as_for_core import configured
from tests.interop.asynchronous import asynchronous

V3, V4, V5 = VERSIONS
# As in the acceptors of Artemis's own tests (MQTTTestSupport).
PREFIXES = {"anycastPrefix": "anycast:", "multicastPrefix": "multicast:"}


@asynchronous
async def test_an_acceptor_of_artemis_is_taken(tmp_path):
    uri = (
        "tcp://127.0.0.1:0?protocols=MQTT;anycastPrefix=anycast:;multicastPrefix=multicast:;"
        "receiveMaximum=-1;maximumPacketSize=-1;topicAliasMaximum=-1;serverKeepAlive=-1;"
        "defaultMqttSessionExpiryInterval=-1;defaultMaximumInFlightPublishMessages=-1;"
        "closeMqttConnectionOnPublishAuthorizationFailure=false;allowLinkStealing=false"
    )
    async with (
        configured(tmp_path, acceptors=uri) as broker,
        Mqtt.of(broker, user="all", password=b"a", keep_alive_s=30) as client,
    ):
        assert client.connack.properties == {}

        # What it is not told of is the protocol's own limit.
        for packet_id in (1, 2, 3):
            client.put(Publish("t", b"", 2, packet_id=packet_id))
            await client.ack(PacketType.PUBREC, packet_id, ReasonCode.SUCCESS)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("receiveMaximum", "0"),
        ("receiveMaximum", "65536"),
        ("receiveMaximum", "-2"),
        ("maximumPacketSize", "0"),
        ("maximumPacketSize", "268435456"),
        ("topicAliasMaximum", "65536"),
        ("topicAliasMaximum", "-2"),
        ("serverKeepAlive", "65536"),
        ("serverKeepAlive", "-2"),
        ("defaultMqttSessionExpiryInterval", "-2"),
        ("allowLinkStealing", "1"),
        ("closeMqttConnectionOnPublishAuthorizationFailure", ""),
        ("defaultMaximumInFlightPublishMessages", "many"),
    ],
)
def test_a_value_that_the_protocol_has_not_is_refused(name, value):
    with pytest.raises(ValueError, match=name):
        read_parameters(MQTT, {name: value})


@pytest.mark.parametrize(
    ("server_s", "asked_s", "agreed_s", "told_s"),
    [
        (60, 0, 60, 60),
        (60, 30, 30, None),
        (60, 60, 60, None),
        (60, 100, 60, 60),
        (0, 100, 0, 0),
        (0, 0, 0, None),
        (-1, 100, 100, None),
        (-1, 0, 0, None),
    ],
)
def test_a_keep_alive_is_the_clients_unless_the_server_asks_for_less(
    server_s, asked_s, agreed_s, told_s
):
    parameters = read_parameters(MQTT, {"serverKeepAlive": str(server_s)})

    agreement = agree(Connect(V5, "c", True, asked_s), parameters)

    assert agreement.silence_s == agreed_s * 1.5
    assert agreement.properties.get(PropertyId.SERVER_KEEP_ALIVE) == told_s


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(("most", "sent"), [(2, 2), (0, 5), (-1, 5)])
@asynchronous
async def test_a_client_that_names_no_receive_maximum_has_the_acceptors(version, most, sent):
    parameters = {"defaultMaximumInFlightPublishMessages": str(most)}
    async with serving(parameters=parameters) as broker, Mqtt.of(broker, "c", version) as client:
        await client.subscribe("t")
        for number in range(5):
            await client.publish("t", b"%d" % number)

        found = [await client.message(acknowledges=False) for _ in range(sent)]
        await client.settle()
        assert [one.payload for one in found] == [b"%d" % number for number in range(sent)]
        for one in found:
            client.put(Acknowledgement(PacketType.PUBACK, one.packet_id))
        assert len(await client.payloads(5 - sent)) == 5 - sent


# --- prefixes -----------------------------------------------------------------------------------


@pytest.mark.parametrize("version", VERSIONS)
@asynchronous
async def test_clients_of_an_anycast_address_share_its_queue(version):
    """As testAnycastPrefixWorksWithMQTT of Artemis."""
    async with (
        serving(parameters=PREFIXES) as broker,
        Mqtt.of(broker, "a", version) as a,
        Mqtt.of(broker, "b", version) as b,
    ):
        for client in (a, b):
            await client.subscribe("anycast:foo/bar")
        for client in (a, b):
            await client.publish("foo/bar")
        for client in (a, b):
            await client.message(topic="foo/bar")
            await client.settle()
        assert list(broker.parts.postoffice.addresses.queues) == ["foo.bar"]

        # The first one that had it leaves it to the other.
        await a.disconnect()
        await b.publish("anycast:foo/bar", b"alone")
        assert await b.payloads(1) == [b"alone"]


@asynchronous
async def test_a_prefix_chooses_the_type_of_an_address_that_is_made():
    async with serving(parameters=PREFIXES) as broker, Mqtt.of(broker) as client:
        by_name = broker.parts.postoffice.addresses.by_name
        await client.publish("anycast:a", b"kept")
        await client.publish("multicast:b", code=ReasonCode.SUCCESS)
        await client.subscribe("multicast:c")
        await client.publish("c", b"for all")
        assert await client.payloads(1) == [b"for all"]

        types = {name: by_name[name].routing_types for name in "abc"}
        assert types["a"] == {RoutingType.ANYCAST}
        assert types["b"] == types["c"] == {RoutingType.MULTICAST}
        await client.subscribe("a")
        assert await client.payloads(1) == [b"kept"]


@asynchronous
async def test_a_prefix_leads_to_none_of_the_brokers_own_addresses():
    async with serving(parameters=PREFIXES) as broker:
        async with Mqtt.of(broker) as client:
            code = ReasonCode.NOT_AUTHORIZED
            for prefix in ("anycast:", "multicast:", "anycast:multicast:", "anycast:anycast:"):
                for name in ("$sys/mqtt/sessions", "$sys/mqtt/retain/x"):
                    await client.publish(prefix + name, code=code if prefix.count(":") < 2 else 0)
            await client.subscribe("anycast:$sys/mqtt/#", code=code)
            assert not any(
                name.startswith("$sys") for name in broker.parts.postoffice.addresses.by_name
            )
        async with Mqtt.raw(broker) as client:
            will = Will("anycast:$sys/mqtt/sessions", b"", 0, False)
            await client.connect(will=will, code=code)


@pytest.mark.parametrize("text", ["anycast:", "$share/g/anycast:"])
@asynchronous
async def test_a_prefix_alone_is_no_address(text):
    async with serving(parameters=PREFIXES) as broker, Mqtt.of(broker) as client:
        await client.subscribe(text, code=ReasonCode.TOPIC_FILTER_INVALID)
        client.put(Publish("anycast:"))
        assert await client.is_closed(ReasonCode.TOPIC_NAME_INVALID)


@asynchronous
async def test_a_will_and_a_retained_message_go_where_their_prefix_says():
    async with serving(parameters=PREFIXES) as broker, Mqtt.of(broker, "s") as s:
        will = Will("anycast:w", b"gone", 1, True)
        async with Mqtt.of(broker, "a", will=will) as a:
            a.writer.transport.abort()
            await s.subscribe("anycast:w")
            await s.message(payload=b"gone", topic="w")
        async with Mqtt.of(broker, "t") as t:
            await t.publish("multicast:r", b"kept", retain=True)
            await t.subscribe("r")
            await t.message(payload=b"kept", retain=True)


@asynchronous
async def test_a_session_with_a_prefix_is_taken_up_after_a_restart(tmp_path):
    for turn in range(2):
        async with (
            serving(tmp_path, parameters=PREFIXES) as broker,
            Mqtt.of(broker, clean=False, expiry=100) as client,
        ):
            if not turn:
                await client.subscribe("anycast:a", "multicast:b", "$share/g/multicast:b")
            for topic in ("a", "b", "anycast:a"):
                await client.publish(topic, topic.encode())
            assert sorted(await client.payloads(4)) == [b"a", b"anycast:a", b"b", b"b"]
            await client.settle()
