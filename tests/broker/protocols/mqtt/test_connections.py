"""CONNECT, keep-alive, takeover, DISCONNECT, and what ends a connection."""

import asyncio

import pytest

from broker.errors import BrokerError, ErrorCode
from broker.protocols.mqtt.factory import MQTT
from broker.protocols.mqtt.packets import (
    Auth,
    Connack,
    Connect,
    Disconnect,
    PacketType,
    Ping,
    Publish,
    Will,
)
from broker.protocols.mqtt.properties import PropertyId
from broker.protocols.mqtt.reason_codes import ReasonCode
from broker.protocols.registry import Detection
from tests.broker.protocols.mqtt.client import VERSIONS, Mqtt
from tests.broker.protocols.stomp.client import serving
from tests.interop.asynchronous import asynchronous

V3, V4, V5 = VERSIONS


def connect(level, name="MQTT", flags=2, rest=b"\0\0"):
    text = name.encode()
    body = len(text).to_bytes(2, "big") + text + bytes((level, flags, 0, 0)) + rest
    return b"\x10" + bytes((len(body),)) + body


@pytest.mark.parametrize("version", VERSIONS)
@asynchronous
async def test_every_version_is_found_byte_by_byte(version):
    async with serving() as broker, Mqtt.raw(broker, version) as client:
        name = "MQIsdp" if version is V3 else "MQTT"
        rest = b"\0\0\1c" if version is V5 else b"\0\1c"
        for byte in connect(version, name, rest=rest):
            client.write(bytes([byte]))
            await client.writer.drain()
            await asyncio.sleep(0)
        await client.get(Connack, code=0, session_present=False)
        await client.settle()
        (connection,) = broker.clients.connections.values()
        assert connection.origin.protocol == ("MQTT5" if version is V5 else "MQTT")
        (session,) = broker.clients.sessions.values()
        assert session.origin.client_id == "c"


def test_detection_needs_no_more_than_it_says():
    yes = bytes.fromhex("10ffffff7f00064d5149736470")
    assert len(yes) == MQTT.detection_size
    assert MQTT.detect(yes) is Detection.YES
    for size in range(1, len(yes)):
        assert MQTT.detect(yes[:size]) is Detection.MORE
    for no in (
        b"\x11",
        b"\x20",
        b"\x10\x0c\0\x05",
        b"\x10\x80\x80\x80\x80\x01",
        b"\x10\x0c\0\4MQTS",
    ):
        assert MQTT.detect(no) is Detection.NO


@asynchronous
async def test_another_packet_first_closes_the_connection():
    async with serving() as broker, Mqtt.raw(broker) as client:
        client.put(Ping(PacketType.PINGREQ))
        assert await client.is_closed()


@pytest.mark.parametrize(
    ("level", "name", "answer"),
    [(5, "MQIsdp", "20020001"), (2, "MQTT", "20020001"), (6, "MQTT", "2003008400")],
)
@asynchronous
async def test_a_level_that_is_not_spoken_is_refused(level, name, answer):
    async with serving() as broker, Mqtt.raw(broker) as client:
        client.write(connect(level, name))
        assert await client.reader.read() == bytes.fromhex(answer)


@asynchronous
async def test_a_client_without_an_id_is_given_one_or_refused():
    async with serving() as broker:
        async with Mqtt.of(broker, "") as client:
            assigned = client.connack.properties[PropertyId.ASSIGNED_CLIENT_IDENTIFIER]
            assert len(assigned) == 36
        async with Mqtt.of(broker, "", V4) as client:
            await client.settle()
        async with Mqtt.raw(broker, V4) as client:
            await client.connect("", clean=False, code=2)
            assert await client.is_closed()
        async with Mqtt.raw(broker) as client:
            await client.connect("", clean=False, code=ReasonCode.CLIENT_IDENTIFIER_NOT_VALID)
            assert await client.is_closed()
        async with Mqtt.raw(broker, V3) as client:
            await client.connect("c" * 24, code=2)
        async with Mqtt.raw(broker) as client:
            await client.connect("a::b", code=ReasonCode.CLIENT_IDENTIFIER_NOT_VALID)


@asynchronous
async def test_a_client_of_5_is_told_what_holds():
    parameters = {"maximumPacketSize": "2000", "receiveMaximum": "10", "topicAliasMaximum": "3"}
    async with serving(parameters=parameters) as broker, Mqtt.raw(broker) as client:
        connack = await client.connect(keep_alive_s=100)
        assert connack.properties == {
            PropertyId.TOPIC_ALIAS_MAXIMUM: 3,
            PropertyId.SERVER_KEEP_ALIVE: 60,
            PropertyId.MAXIMUM_PACKET_SIZE: 2000,
            PropertyId.RECEIVE_MAXIMUM: 10,
        }


@asynchronous
async def test_enhanced_authentication_is_refused():
    async with serving() as broker:
        async with Mqtt.raw(broker) as client:
            properties = {PropertyId.AUTHENTICATION_METHOD: "SCRAM"}
            code = ReasonCode.BAD_AUTHENTICATION_METHOD
            await client.connect(properties=properties, code=code)
            assert await client.is_closed()
        async with Mqtt.of(broker) as client:
            client.put(Auth(0x19))
            assert await client.is_closed(ReasonCode.PROTOCOL_ERROR)


class OneUser:
    """Security that lets one user in, who may not do everything."""

    is_enabled = True

    def __init__(self, *forbidden):
        self.forbidden = set(forbidden)

    def __getattr__(self, name):
        from broker.security.allow_all import AllowAll

        return getattr(AllowAll(), name)

    def authenticate(self, user, password, principal=None):
        if (user, password) != ("u", "p"):
            raise BrokerError(ErrorCode.SECURITY_EXCEPTION, "AMQ229031: wrong")
        return user

    def check(self, user, permission, address, queue):
        if permission in self.forbidden:
            raise BrokerError(ErrorCode.SECURITY_EXCEPTION, f"AMQ229032: {permission}")
        return


@pytest.mark.parametrize(("version", "code"), [(V3, 5), (V4, 5), (V5, 0x86)])
@asynchronous
async def test_a_wrong_password_is_refused(version, code):
    async with serving(security=OneUser()) as broker:
        async with Mqtt.raw(broker, version) as client:
            await client.connect(user="u", password=b"x", code=code)
            assert await client.is_closed()
        async with Mqtt.raw(broker, version) as client:
            await client.connect(user="u", password=b"p")
            await client.settle()


@pytest.mark.parametrize("version", VERSIONS)
@asynchronous
async def test_a_second_connect_ends_the_connection(version):
    async with serving() as broker, Mqtt.of(broker, "c", version) as client:
        client.put(Connect(version, "c", True, 0))
        assert await client.is_closed(ReasonCode.PROTOCOL_ERROR if version is V5 else None)
        assert broker.clients.sessions == {}


@pytest.mark.parametrize("version", VERSIONS)
@asynchronous
async def test_a_client_that_connects_again_takes_the_place_of_its_older_connection(version):
    async with (
        serving() as broker,
        Mqtt.of(broker, "c", version) as old,
        Mqtt.of(broker, "c", version) as new,
    ):
        assert await old.is_closed(ReasonCode.SESSION_TAKEN_OVER if version is V5 else None)
        await new.settle()
        assert len(broker.clients.sessions) == 1


@asynchronous
async def test_without_link_stealing_the_newer_connection_is_refused():
    parameters = {"allowLinkStealing": "false"}
    async with serving(parameters=parameters) as broker, Mqtt.of(broker) as old:
        async with Mqtt.raw(broker) as new:
            await new.connect(code=ReasonCode.CLIENT_IDENTIFIER_NOT_VALID)
            assert await new.is_closed()
        await old.settle()


@asynchronous
async def test_a_client_that_says_nothing_for_too_long_is_left():
    options = {"connection_ttl_check_interval": 0.05}
    async with serving(options=options) as broker:
        async with Mqtt.raw(broker) as client:
            await client.connect(keep_alive_s=1)
            assert await client.is_closed(ReasonCode.KEEP_ALIVE_TIMEOUT)
        async with Mqtt.raw(broker, V4) as client:
            await client.connect(keep_alive_s=1)
            for _ in range(4):
                await asyncio.sleep(0.5)
                await client.settle()
            assert await client.is_closed()


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("data", ["36020000", "0000", "4000", "d000", "20020000"])
@asynchronous
async def test_what_a_client_may_not_send_ends_the_connection(version, data):
    async with serving() as broker, Mqtt.of(broker, "c", version) as client:
        client.write(bytes.fromhex(data))
        if version is V5:
            found = await client.get(Disconnect)
            assert found.code in (ReasonCode.MALFORMED_PACKET, ReasonCode.PROTOCOL_ERROR)
            assert found.properties[PropertyId.REASON_STRING]
        assert await client.is_closed()


@asynchronous
async def test_a_client_that_wants_no_problem_information_is_told_the_code_alone():
    properties = {PropertyId.REQUEST_PROBLEM_INFORMATION: 0}
    async with serving() as broker, Mqtt.of(broker, properties=properties) as client:
        client.put(Publish("a/+"))
        found = await client.get(Disconnect, code=ReasonCode.TOPIC_NAME_INVALID)
        assert found.properties == {}


@asynchronous
async def test_a_packet_larger_than_the_broker_takes_is_refused():
    parameters = {"maximumPacketSize": "100"}
    async with serving(parameters=parameters) as broker, Mqtt.of(broker) as client:
        await client.publish("t", b"x" * 80)
        client.put(Publish("t", b"x" * 100))
        assert await client.is_closed(ReasonCode.PACKET_TOO_LARGE)


@asynchronous
async def test_a_session_expiry_cannot_begin_with_disconnect():
    async with serving() as broker, Mqtt.of(broker) as client:
        client.put(Disconnect(0, {PropertyId.SESSION_EXPIRY_INTERVAL: 5}))
        assert await client.is_closed(ReasonCode.PROTOCOL_ERROR)


@asynchronous
async def test_a_stopping_broker_says_so():
    async with serving() as broker, Mqtt.of(broker) as client, Mqtt.of(broker, "d", V4) as old:
        await broker.stop()
        assert await client.is_closed(ReasonCode.SERVER_SHUTTING_DOWN)
        assert await old.is_closed()


@asynchronous
async def test_an_operator_can_end_a_connection():
    async with serving() as broker, Mqtt.of(broker) as client:
        (connection,) = broker.clients.connections.values()
        connection.fail()
        assert await client.is_closed(ReasonCode.ADMINISTRATIVE_ACTION)


@pytest.mark.parametrize("topic", ["", "a/#", "+"])
@asynchronous
async def test_a_will_goes_to_a_topic(topic):
    async with serving() as broker, Mqtt.raw(broker) as client:
        code = ReasonCode.TOPIC_NAME_INVALID if topic else ReasonCode.PROTOCOL_ERROR
        await client.connect(will=Will(topic, b"", 0, False), code=code)


@asynchronous
async def test_the_brokers_own_addresses_are_out_of_reach():
    async with serving() as broker:
        async with Mqtt.of(broker) as client:
            code = ReasonCode.NOT_AUTHORIZED
            await client.publish("$sys/mqtt/sessions", code=code)
            await client.publish("$sys/mqtt/retain/x", qos=2, code=code)
            await client.subscribe("$sys/mqtt/#", code=code)
            await client.settle()
        async with Mqtt.raw(broker) as client:
            await client.connect(will=Will("$sys/mqtt/sessions", b"", 0, False), code=code)


@asynchronous
async def test_acknowledgements_of_unknown_packets_are_harmless():
    async with serving() as broker, Mqtt.of(broker) as client:
        client.answer(PacketType.PUBACK, 9)
        client.answer(PacketType.PUBCOMP, 9)
        client.answer(PacketType.PUBREC, 9)
        await client.ack(PacketType.PUBREL, 9, ReasonCode.PACKET_IDENTIFIER_NOT_FOUND)
        client.answer(PacketType.PUBREL, 9)
        await client.ack(PacketType.PUBCOMP, 9, ReasonCode.PACKET_IDENTIFIER_NOT_FOUND)
        await client.settle()


@asynchronous
async def test_an_acceptor_may_be_for_mqtt_alone():
    async with serving(protocols=("MQTT",)) as broker:
        async with Mqtt.of(broker) as client:
            await client.publish("t", b"x")
        async with Mqtt.raw(broker) as client:
            client.write(b"CONNECT\n\n\0")
            assert await client.is_closed()


@pytest.mark.parametrize("version", [V4, V5])
@asynchronous
async def test_who_may_not_publish_is_told_or_left(version):
    security = OneUser("send")
    async with (
        serving(security=security) as broker,
        Mqtt.of(broker, "c", version, user="u", password=b"p") as client,
    ):
        if version is V5:
            await client.publish("t", qos=0)
            await client.publish("t", qos=1, code=ReasonCode.NOT_AUTHORIZED)
            await client.publish("t", qos=2, code=ReasonCode.NOT_AUTHORIZED)
            await client.settle()
        else:
            client.put(Publish("t", b"", 1, packet_id=1))
            assert await client.is_closed()
    parameters = {"closeMqttConnectionOnPublishAuthorizationFailure": "false"}
    async with (
        serving(security=security, parameters=parameters) as broker,
        Mqtt.of(broker, "c", V4, user="u", password=b"p") as client,
    ):
        await client.publish("t", qos=1)


@pytest.mark.parametrize(("version", "code"), [(V3, 1), (V4, 0x80), (V5, 0x87)])
@pytest.mark.parametrize("what", ["consume", "createNonDurableQueue"])
@asynchronous
async def test_who_may_not_subscribe_is_told_and_no_queue_is_left(version, code, what):
    async with (
        serving(security=OneUser(what)) as broker,
        Mqtt.of(broker, "c", version, user="u", password=b"p") as client,
    ):
        await client.subscribe("t", code=code)
        await client.settle()
        assert broker.parts.postoffice.addresses.queues == {}
