"""Sessions that outlive connections, and wills."""

import asyncio

import pytest

from broker.model.encoding import RecordFormatError
from broker.protocols.mqtt.packets import Filter, PacketType, Will
from broker.protocols.mqtt.properties import PropertyId
from broker.protocols.mqtt.reason_codes import ReasonCode
from broker.protocols.mqtt.session_records import read_subscriptions, write_subscriptions
from tests.broker.protocols.mqtt.client import VERSIONS, Mqtt
from tests.broker.protocols.stomp.client import serving, until
from tests.broker.protocols.stomp.test_as_for_core import configured
from tests.interop.asynchronous import asynchronous

V3, V4, V5 = VERSIONS
NEVER = 0xFFFFFFFF
SOON = {"connection_ttl_check_interval": 0.05, "mqtt_session_scan_interval": 0.05}
# Sessions are looked for by themselves, not with connections.
SCANNED = {"connection_ttl_check_interval": 3_600_000, "mqtt_session_scan_interval": 20}


def queues(broker):
    return set(broker.parts.postoffice.addresses.queues)


def kept(version):
    """How a client asks for a session that stays."""
    return {"clean": False, **({"expiry": NEVER} if version is V5 else {})}


def test_a_record_is_as_artemis_writes_it():
    found = [(Filter("a/+", 1, True, False, 2), 7), (Filter("$share/g/b", 2), None)]
    body = write_subscriptions(found)
    assert body == bytes.fromhex(
        "00 00000002"
        "00000003 0061 002f 002b 00000001 ff 00 00000002 01 00000007"
        "0000000a 000a 2473686172652f672f62 00000002 00 00 00000000 00"
    )
    assert read_subscriptions(body) == found


@pytest.mark.parametrize("data", ["", "01", "0000000001", "00ffffffff", "007fffffff"])
def test_what_is_no_record_is_refused(data):
    with pytest.raises(RecordFormatError):
        read_subscriptions(bytes.fromhex(data))


@pytest.mark.parametrize("version", VERSIONS)
@asynchronous
async def test_a_session_waits_for_its_client(version):
    async with serving() as broker:
        async with Mqtt.of(broker, "s", version, **kept(version)) as s:
            assert not s.connack.session_present
            await s.subscribe("t", qos=2)
            await s.disconnect()
        async with Mqtt.of(broker, "p", version) as p:
            for number in range(3):
                await p.publish("t", b"%d" % number, 1)
        async with Mqtt.of(broker, "s", version, **kept(version)) as s:
            assert s.connack.session_present == (version is not V3 or s.connack.session_present)
            assert await s.payloads(3) == [b"0", b"1", b"2"]
        async with Mqtt.of(broker, "s", version) as s:
            assert not s.connack.session_present
            await s.settle()
            assert queues(broker) & {"s.t"} == set()


@pytest.mark.parametrize("version", VERSIONS)
@asynchronous
async def test_a_clean_session_ends_with_its_connection(version):
    async with serving() as broker:
        async with Mqtt.of(broker, "s", version) as s:
            await s.subscribe("t", qos=1)
            assert queues(broker) == {"s.t"}
            await s.disconnect()
        assert queues(broker) == set()


@asynchronous
async def test_a_session_expires_unless_its_client_comes_back():
    async with serving(options=SOON) as broker:
        for expiry, lives in ((1, False), (100, True)):
            async with Mqtt.of(broker, f"s{expiry}", expiry=expiry) as s:
                await s.subscribe("t")
            await asyncio.sleep(1.3)
            assert (f"s{expiry}.t" in queues(broker)) == lives
        async with Mqtt.of(broker, "s1", clean=False) as s:
            assert not s.connack.session_present


@asynchronous
async def test_sessions_expire_while_nobody_connects(tmp_path):
    """And those that a restart has left, without one connection of MQTT."""
    for _ in range(2):
        async with serving(tmp_path) as broker, Mqtt.of(broker, "s", expiry=1) as s:
            await s.subscribe("t")
        async with serving(tmp_path, options=SCANNED) as broker:
            assert "s.t" in queues(broker)
            await until(lambda: "s.t" not in queues(broker))
            assert broker.clients.connection_count_total == 0


@asynchronous
async def test_a_will_is_sent_at_the_end_of_its_session_while_nobody_connects():
    async with serving(options=SCANNED) as broker, Mqtt.of(broker, "s") as s:
        await s.subscribe("w")
        async with Mqtt.of(broker, "a", expiry=1, will=will(delay=100)) as a:
            a.writer.transport.abort()
        await s.message(payload=b"gone")


@asynchronous
async def test_a_broker_xml_says_how_often_sessions_are_looked_for(tmp_path):
    core = (
        "<mqtt-session-scan-interval>20</mqtt-session-scan-interval>"
        "<connection-ttl-check-interval>3600000</connection-ttl-check-interval>"
        # Read, and of no effect in Artemis 2.44 either.
        "<mqtt-session-state-persistence-timeout>9</mqtt-session-state-persistence-timeout>"
    )
    uri = "tcp://127.0.0.1:0?protocols=MQTT;defaultMqttSessionExpiryInterval=1"
    async with configured(tmp_path, core=core, acceptors=uri) as broker:
        login = {"user": "all", "password": b"a"}
        async with Mqtt.of(broker, "s", V4, clean=False, **login) as s:
            await s.subscribe("t")
            assert "s.t" in queues(broker)
        await until(lambda: "s.t" not in queues(broker))


@asynchronous
async def test_disconnect_may_change_the_expiry():
    async with serving() as broker:
        async with Mqtt.of(broker, "s", expiry=100) as s:
            await s.subscribe("t")
            await s.disconnect(properties={PropertyId.SESSION_EXPIRY_INTERVAL: 0})
        assert "s.t" not in queues(broker)


@asynchronous
async def test_the_default_expiry_of_older_clients_is_the_acceptors():
    parameters = {"defaultMqttSessionExpiryInterval": "0"}
    async with serving(parameters=parameters) as broker:
        async with Mqtt.of(broker, "s", V4, clean=False) as s:
            await s.subscribe("t")
            await s.disconnect()
        assert queues(broker) == set()


@pytest.mark.parametrize("version", VERSIONS)
@asynchronous
async def test_a_session_survives_restarts(tmp_path, version):
    for turn in range(3):
        async with serving(tmp_path) as broker, Mqtt.of(broker, "s", version, **kept(version)) as s:
            assert s.connack.session_present == (turn > 0)
            await s.subscribe(f"t/{turn}", qos=2, identifier=5 if version is V5 else None)
            for one in range(turn + 1):
                await s.publish(f"t/{one}", b"%d" % one, 1)
            assert await s.payloads(turn + 1) == [b"%d" % one for one in range(turn + 1)]
            await s.settle()
    async with serving(tmp_path) as broker, Mqtt.of(broker, "s", version) as s:
        await s.settle()
        assert queues(broker) <= {"$sys.mqtt.sessions"}
    async with serving(tmp_path) as broker, Mqtt.of(broker, "s", version, clean=False) as s:
        assert not s.connack.session_present


@asynchronous
async def test_an_expiry_survives_a_restart(tmp_path):
    async with serving(tmp_path) as broker, Mqtt.of(broker, "s", expiry=1) as s:
        await s.subscribe("t")
    async with serving(tmp_path, options=SOON) as broker:
        assert "s.t" in queues(broker)
        await asyncio.sleep(1.4)
        assert "s.t" not in queues(broker)
    async with serving(tmp_path, options=SOON) as broker:
        sessions = broker.parts.postoffice.addresses.queues["$sys.mqtt.sessions"]
        assert sessions.message_count == 0


@pytest.mark.parametrize("version", VERSIONS)
@asynchronous
async def test_without_stored_subscriptions_a_client_subscribes_again_after_a_restart(
    tmp_path, version
):
    """As in Artemis: its messages wait, and that it subscribed is forgotten."""
    options = {"mqtt_subscription_persistence": False}
    async with serving(tmp_path, options=options) as broker:
        async with Mqtt.of(broker, "s", version, **kept(version)) as s:
            await s.subscribe("t", qos=2)
            await s.publish("t", b"half", 2)
            first = await s.message(acknowledges=False)
            s.answer(PacketType.PUBREC, first.packet_id)
            await s.ack(PacketType.PUBREL, first.packet_id)
        async with Mqtt.of(broker, "s", version, **kept(version)) as s:
            # Until then all is as ever.
            await s.ack(PacketType.PUBREL, first.packet_id)
            await s.publish("t", b"1")
            await s.message(payload=b"1", acknowledges=False)
        assert "$sys.mqtt.sessions" not in queues(broker)
    async with (
        serving(tmp_path, options=options) as broker,
        Mqtt.of(broker, "s", version, **kept(version)) as s,
    ):
        assert not s.connack.session_present
        await s.settle()
        assert not s.waiting
        await s.subscribe("t", qos=2)
        assert await s.payloads(1) == [b"1"]
        assert queues(broker) == {"s.t"}


@asynchronous
async def test_what_was_stored_stays_while_subscriptions_are_not(tmp_path):
    for is_stored in (True, False, True):
        options = {"mqtt_subscription_persistence": is_stored}
        async with (
            serving(tmp_path, options=options) as broker,
            Mqtt.of(broker, "s", clean=False, expiry=NEVER) as s,
        ):
            await s.subscribe("t")
    assert s.connack.session_present


@asynchronous
async def test_a_broker_xml_says_that_subscriptions_are_not_stored(tmp_path):
    core = "<mqtt-subscription-persistence-enabled>false</mqtt-subscription-persistence-enabled>"
    async with configured(tmp_path, core=core) as broker:
        login = {"user": "all", "password": b"a"}
        async with Mqtt.of(broker, "s", expiry=NEVER, **login) as s:
            await s.subscribe("t")
        assert "$sys.mqtt.sessions" not in queues(broker)


@asynchronous
async def test_a_record_that_is_none_is_left_out(tmp_path, caplog):
    async with serving(tmp_path) as broker:
        async with Mqtt.of(broker, "s", expiry=100) as s:
            await s.subscribe("t")
        from broker.model.message import Message
        from broker.model.properties import Property, PropertyType
        from broker.sessions.session import SessionOptions

        session = broker.clients.new_session("x", None, SessionOptions(), set())
        for properties in ([], [Property("_AMQ_LVQ_NAME", PropertyType.STRING, "bad")]):
            message = Message(
                "$sys.mqtt.sessions",
                b"\1",
                durable=True,
                message_id=session.new_id(),
                properties=properties,
            )
            session.own_queues.put(message, "$sys.mqtt.sessions")
    async with serving(tmp_path) as broker, Mqtt.of(broker, "s", clean=False) as s:
        assert s.connack.session_present
    assert "AMQ834012" in caplog.text
    assert "AMQ834013: the MQTT session of bad" in caplog.text


# --- wills --------------------------------------------------------------------------------------


def will(payload=b"gone", qos=1, *, retain=False, delay=None, **properties):
    found = {PropertyId[name]: value for name, value in properties.items()}
    if delay is not None:
        found[PropertyId.WILL_DELAY_INTERVAL] = delay
    return Will("w", payload, qos, retain, found)


@pytest.mark.parametrize("version", VERSIONS)
@asynchronous
async def test_a_will_is_sent_unless_the_client_says_goodbye(version):
    async with serving() as broker, Mqtt.of(broker, "s", version) as s:
        await s.subscribe("w", qos=2)
        async with Mqtt.of(broker, "a", version, will=will(b"1")) as a:
            await a.disconnect()
        async with Mqtt.of(broker, "a", version, will=will(b"2")) as a:
            a.writer.transport.abort()
            await s.message(payload=b"2", qos=1)
        async with Mqtt.of(broker, "a", version, will=will(b"3", 2, retain=True)) as a:
            a.write(b"\0\0")
            await s.message(payload=b"3", qos=2, retain=False)
        async with Mqtt.of(broker, "t", version) as t:
            await t.subscribe("w")
            await t.message(payload=b"3", retain=True)
        async with (
            Mqtt.of(broker, "a", version, will=will(b"4")) as a,
            Mqtt.of(broker, "a", version),
        ):
            await s.message(payload=b"4")
        await s.settle()


@asynchronous
async def test_a_client_of_5_may_go_with_its_will():
    properties = {"USER_PROPERTY": [("a", "b")], "CONTENT_TYPE": "x"}
    async with serving() as broker, Mqtt.of(broker, "s") as s:
        await s.subscribe("w")
        async with Mqtt.of(broker, "a", will=will(**properties)) as a:
            await a.disconnect(ReasonCode.DISCONNECT_WITH_WILL)
        message = await s.message(payload=b"gone")
        assert message.properties == {
            PropertyId.USER_PROPERTY: [("a", "b")],
            PropertyId.CONTENT_TYPE: "x",
        }


@asynchronous
async def test_a_will_waits_for_its_delay_or_the_end_of_the_session():
    async with serving(options=SOON) as broker, Mqtt.of(broker, "s") as s:
        await s.subscribe("w")
        for expiry, delay, waits in ((100, 1, 1), (1, 100, 1), (0, 100, 0), (100, 0, 0)):
            loop = asyncio.get_running_loop()
            began = loop.time()
            async with Mqtt.of(broker, "a", expiry=expiry, will=will(delay=delay)) as a:
                a.writer.transport.abort()
            await s.message(payload=b"gone")
            assert loop.time() - began >= waits


@asynchronous
async def test_a_client_that_comes_back_in_time_has_no_will_sent():
    async with serving(options=SOON) as broker, Mqtt.of(broker, "s") as s:
        await s.subscribe("w")
        async with Mqtt.of(broker, "a", expiry=100, will=will(delay=1)) as a:
            a.writer.transport.abort()
        await asyncio.sleep(0.2)
        async with Mqtt.of(broker, "a", expiry=100, clean=False) as a:
            await asyncio.sleep(1.2)
            await s.settle()
            await a.disconnect()
        async with Mqtt.of(broker, "a", expiry=100, will=will(delay=100)) as a:
            a.writer.transport.abort()
        await asyncio.sleep(0.2)
        async with Mqtt.of(broker, "a"):
            await s.message(payload=b"gone")


@asynchronous
async def test_many_sessions_come_and_go(tmp_path):
    async with serving(tmp_path) as broker:
        for number in range(50):
            async with Mqtt.of(broker, f"s{number}", expiry=100) as s:
                await s.subscribe("t", qos=1)
        async with Mqtt.of(broker, "p") as p:
            await p.publish("t", b"x")
        for number in range(50):
            async with Mqtt.of(broker, f"s{number}", clean=False) as s:
                assert await s.payloads(1) == [b"x"]
                await s.settle()
                await s.disconnect()
            assert queues(broker) & {f"s{number}.t"} == set()
        async with Mqtt.of(broker, "q") as q:
            # What was removed before is durable.
            await q.disconnect()
        assert queues(broker) == {"$sys.mqtt.sessions"}
        assert broker.parts.postoffice.addresses.queues["$sys.mqtt.sessions"].message_count == 0
        assert broker.clients.sessions == {}


@pytest.mark.parametrize("other_qos", [0, 1])
@asynchronous
async def test_what_was_on_its_way_comes_again_as_it_was_sent(other_qos):
    """It has its packet id and its QoS (4.4), whatever the client asks for by then."""
    first = {PropertyId.RECEIVE_MAXIMUM: 3}
    async with serving() as broker, Mqtt.of(broker, "p") as p:
        async with Mqtt.of(broker, "s", **kept(V5), properties=first) as s:
            await s.subscribe("t", qos=2)
            for number in range(5):
                await p.publish("t", b"%d" % number, 2)
            sent = [await s.message(acknowledges=False) for _ in range(3)]
        # As many as were on their way are more than the client takes now.
        async with Mqtt.of(
            broker, "s", **kept(V5), properties={PropertyId.RECEIVE_MAXIMUM: 1}
        ) as s:
            await s.subscribe("t", qos=other_qos)
            found = [await s.message() for _ in range(5)]
            await s.settle()
        assert [(one.payload, one.packet_id, one.qos, one.dup) for one in found[:3]] == [
            (one.payload, one.packet_id, 2, True) for one in sent
        ]
        assert [one.payload for one in found[3:]] == [b"3", b"4"]
        assert {one.qos for one in found[3:]} == {other_qos}
