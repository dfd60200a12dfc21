"""MQTT against Artemis 2.44 and against ours: the same client, and one folder in turn."""

import pytest

from broker.protocols.mqtt.packets import PacketType, Will
from broker.protocols.mqtt.properties import PropertyId
from tests.broker.protocols.mqtt.client import VERSIONS, Mqtt
from tests.interop.artemis_broker import ArtemisBroker
from tests.interop.asynchronous import asynchronous
from tests.interop.one_folder import ours

V3, V4, V5 = VERSIONS
LOGIN = {"user": ArtemisBroker.USER, "password": ArtemisBroker.PASSWORD.encode()}
PROPERTIES = {
    PropertyId.PAYLOAD_FORMAT_INDICATOR: 1,
    PropertyId.CONTENT_TYPE: "x",
    PropertyId.RESPONSE_TOPIC: "re/ply",
    PropertyId.CORRELATION_DATA: b"\0\1",
    PropertyId.USER_PROPERTY: [("b", "1"), ("a", "2"), ("b", "3")],
}


@pytest.fixture(params=["distributed_broker", "ours"])
def port(request, tmp_path):
    """Of Artemis, and of our broker."""
    if request.param != "ours":
        yield request.getfixturevalue(request.param).port
        return
    from tests.interop.our_broker import OurBroker

    broker = OurBroker(tmp_path)
    yield broker.port
    broker.end()


def to(port, client_id, version=V5, **named):
    return Mqtt.of(port, client_id, version, **LOGIN, **named)


@pytest.mark.parametrize("version", VERSIONS)
@asynchronous
async def test_the_same_client_sees_the_same(port, version):
    root = f"same{int(version)}"
    is_5 = version is V5
    async with to(port, f"{root}s", version) as s, to(port, f"{root}p", version) as p:
        for qos in (0, 1, 2):
            await s.subscribe(f"{root}/{qos}/+", qos=qos)
        for qos in (0, 1, 2):
            properties = PROPERTIES if is_5 else ()
            await p.publish(f"{root}/{qos}/x-y", b"%d" % qos, qos, properties=properties)
            message = await s.message(topic=f"{root}/{qos}/x-y", payload=b"%d" % qos, qos=qos)
            assert message.properties == (PROPERTIES if is_5 else {})
        # Retained, large, empty.
        for payload in (b"old", b"r" * 300_000):
            await p.publish(f"{root}/kept", payload, 1, retain=True)
        await s.subscribe(f"{root}/kept", qos=1)
        await s.message(payload=b"r" * 300_000, retain=True)
        await p.publish(f"{root}/kept", b"", 1, retain=True)
        await s.message(payload=b"", retain=False)
        await s.unsubscribe(f"{root}/kept")
        await s.subscribe(f"{root}/kept", qos=1)
        await s.settle()
        # A will.
        will = Will(f"{root}/1/will", b"gone", 1, False)
        async with to(port, f"{root}w", version, will=will) as w:
            w.writer.transport.abort()
        await s.message(payload=b"gone", qos=1)
    # A session.
    kept = {"expiry": 1000} if is_5 else {}
    async with to(port, f"{root}k", version, clean=False, **kept) as k:
        await k.subscribe(f"{root}/k", qos=2)
        await k.disconnect()
    async with to(port, f"{root}p", version) as p:
        await p.publish(f"{root}/k", b"kept", 2)
    async with to(port, f"{root}k", version, clean=False, **kept) as k:
        assert k.connack.session_present
        await k.message(payload=b"kept", qos=2)
        await k.disconnect()
    async with to(port, f"{root}k", version) as k:
        assert not k.connack.session_present


SHARED, OWN = "$share/g/swap/shared", "swap/+"


async def leave(port, turn):
    """Leave a session, retained messages, and messages that wait."""
    async with to(port, f"s{turn}", expiry=0xFFFFFFFF) as s:
        await s.subscribe(OWN, SHARED, qos=2, identifier=9)
        await s.disconnect()
    async with to(port, "p") as p:
        for number in range(3):
            await p.publish(
                "swap/x", b"%d" % number, number and 1, properties=PROPERTIES, retain=number == 2
            )
        await p.publish("swap/y-z", b"retained", 2, retain=True)
        await p.publish("swap/large", bytes(range(256)) * 2000, 1)
        await p.publish("swap/shared", b"shared", 1)


async def take(port, turn):
    """Find what was left, and take it away."""
    async with to(port, f"s{turn}", clean=False, expiry=0xFFFFFFFF) as s:
        assert s.connack.session_present
        found = [await s.message() for _ in range(6)]
        bodies = [b"1", b"2", b"retained", bytes(range(256)) * 2000, b"shared", b"shared"]
        assert sorted(one.payload for one in found) == sorted(bodies)
        first = next(one for one in found if one.payload == b"1")
        assert first.properties == {**PROPERTIES, PropertyId.SUBSCRIPTION_IDENTIFIER: [9]}
        assert {one.topic for one in found} == {
            *("swap/x", "swap/y-z", "swap/large", "swap/shared"),
        }
        await s.settle()
        await s.disconnect()
    async with to(port, "r") as r:
        await r.subscribe("swap/#", qos=1)
        found = [await r.message(retain=True) for _ in range(2)]
        assert sorted(one.payload for one in found) == [b"2", b"retained"]
        for topic in ("swap/x", "swap/y-z"):
            await r.publish(topic, b"", 1, retain=True)
            await r.message(payload=b"")
    async with to(port, f"s{turn}") as s:
        assert not s.connack.session_present
        await s.settle()


@asynchronous
async def test_one_folder_in_turn(folder_owner):
    async with folder_owner.serving() as port:
        await leave(port, 1)
    async with ours(folder_owner.data) as port:
        await take(port, 1)
        await leave(port, 2)
        async with to(port, "rel", expiry=0xFFFFFFFF) as s:
            # A PUBREL that waits for its PUBCOMP.
            await s.subscribe("rel", qos=2)
            await s.publish("rel", b"x", 0)
            async with to(port, "p") as p:
                await p.publish("rel", b"y", 2)
            await s.message(payload=b"x")
            message = await s.message(acknowledges=False)
            s.answer(PacketType.PUBREC, message.packet_id)
            await s.ack(PacketType.PUBREL, message.packet_id)
    async with folder_owner.serving() as port:
        await take(port, 2)
        await leave(port, 3)
    async with ours(folder_owner.data) as port:
        await take(port, 3)
