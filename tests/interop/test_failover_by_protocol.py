"""What clients of MQTT, STOMP and AMQP have left at a primary that is killed is at its backup.

OpenWire's client is in tests/interop/openwire/test_failover.py, Core's in test_pairs.py.
"""

import asyncio
import contextlib
import time

import pytest
from proton import Delivery, Message, Terminus

from broker.protocols.mqtt.packets import Acknowledgement, PacketType
from broker.protocols.mqtt.properties import PropertyId
from tests.broker.protocols.amqp.client import Capability, Client, Source
from tests.broker.protocols.mqtt.client import Mqtt
from tests.broker.protocols.stomp.client import Stomp
from tests.interop.our_broker import OurBroker
from tests.interop.test_pairs import WAIT_S, ended, folder_store, our_pair

pytestmark = pytest.mark.slow

LARGE = bytes(range(256)) * 2000


def across_a_failover(folder, leave, take):
    """Clients connect to the primary and are there when it is killed; others to the backup."""
    pair = our_pair(folder, folder_store(folder))
    with ended(pair):
        pair.primary.start()
        pair.backup.begin()
        asyncio.run(_across(pair, leave, take))


async def _across(pair, leave, take):
    async with contextlib.AsyncExitStack() as clients:
        await leave(pair.primary.port, clients)
        await asyncio.to_thread(pair.primary.kill)
        await asyncio.to_thread(_wait_until_it_serves, pair.backup)
    await take(pair.backup.port)


def _wait_until_it_serves(backup):
    deadline_s = time.monotonic() + WAIT_S
    while "serving at" not in backup.log():
        assert time.monotonic() < deadline_s, backup.log()[-3000:]
        time.sleep(0.05)


# --- MQTT -----------------------------------------------------------------------------------------

OWN, SHARED = "t/#", "$share/g/work"
PROPERTIES = {
    PropertyId.CONTENT_TYPE: "x",
    PropertyId.USER_PROPERTY: [("b", "1"), ("a", "2"), ("b", "3")],
}


def mqtt(port, client_id, *, clean=False):
    return Mqtt.of(
        port,
        client_id,
        clean=clean,
        expiry=0xFFFFFFFF,
        user=OurBroker.USER,
        password=OurBroker.PASSWORD.encode(),
    )


async def leave_mqtt(port, clients):
    async with mqtt(port, "s") as session:
        await session.subscribe(OWN, SHARED, qos=2, identifier=9)
        await session.disconnect()
    publisher = await clients.enter_async_context(mqtt(port, "p"))
    for qos in (1, 2):
        await publisher.publish("t/x", b"%d" % qos, qos, properties=PROPERTIES)
    await publisher.publish("t/kept", b"kept", 1, retain=True)
    await publisher.publish("t/large", LARGE, 2)
    await publisher.publish("work", b"work", 1)
    # A receiver that has one message but for its PUBCOMP, and has not answered the next one.
    receiver = await clients.enter_async_context(mqtt(port, "r"))
    await receiver.subscribe("r", qos=2)
    for payload in (b"released", b"unanswered"):
        await publisher.publish("r", payload, 2)
    first = await receiver.message(payload=b"released", acknowledges=False)
    await receiver.message(payload=b"unanswered", acknowledges=False)
    receiver.answer(PacketType.PUBREC, first.packet_id)
    await receiver.ack(PacketType.PUBREL, first.packet_id)


async def take_mqtt(port):
    async with mqtt(port, "s") as session:
        assert session.connack.session_present
        found = [await session.message() for _ in range(5)]
        bodies = [b"1", b"2", b"kept", LARGE, b"work"]
        assert sorted(one.payload for one in found) == sorted(bodies)
        first = next(one for one in found if one.payload == b"1")
        assert first.properties == {**PROPERTIES, PropertyId.SUBSCRIPTION_IDENTIFIER: [9]}
        # Its subscriptions are served as before.
        await session.publish("t/new", b"new", 1)
        await session.message(payload=b"new")
        await session.settle()
    async with mqtt(port, "r") as receiver:
        assert receiver.connack.session_present
        released = await receiver.answered(Acknowledgement, type=PacketType.PUBREL)
        receiver.answer(PacketType.PUBCOMP, released.packet_id)
        await receiver.message(payload=b"unanswered")
        await receiver.settle()
    async with mqtt(port, "new", clean=True) as other:
        await other.subscribe("t/kept", qos=1)
        await other.message(payload=b"kept", retain=True)
        await other.settle()


def test_sessions_retained_messages_and_handshakes_of_mqtt(tmp_path):
    across_a_failover(tmp_path, leave_mqtt, take_mqtt)


# --- STOMP ----------------------------------------------------------------------------------------


def stomp(port, **headers):
    return Stomp.of(port, login=OurBroker.USER, passcode=OurBroker.PASSWORD, **headers)


async def leave_stomp(port, clients):
    client = await clients.enter_async_context(stomp(port, client_id="me"))
    await client.subscribe("news", "d", durable_subscription_name="d", selector="n <> '2'")
    await client.do("UNSUBSCRIBE", {"id": "d"})
    for number in "123":
        await client.send("news", number.encode(), n=number)
    anycast = {"destination-type": "ANYCAST"}
    for body in (b"acknowledged", b"delivered", b"waits", LARGE):
        await client.send("orders", body, **anycast, **{"content-length": len(body)})
    for transaction in ("kept", "left open"):
        await client.do("BEGIN", {"transaction": transaction})
        await client.send("orders", transaction.encode(), **anycast, transaction=transaction)
    await client.do("COMMIT", {"transaction": "kept"})
    await client.subscribe("orders", "o", "client-individual", subscription_type="ANYCAST")
    found = [await client.get("MESSAGE") for _ in range(2)]
    assert [one.body for one in found] == [b"acknowledged", b"delivered"]
    # More messages may come before the receipt.
    client.put("ACK", client.of_message(found[0]))
    client.put("BEGIN", {"transaction": "behind", "receipt": "all"})
    while (await client.next()).command != "RECEIPT":
        pass


async def take_stomp(port):
    async with stomp(port, client_id="me") as client:
        await client.subscribe("news", "d", durable_subscription_name="d", selector="n <> '2'")
        assert await client.bodies(2) == ["1", "3"]
        await client.subscribe("orders", "o", "client-individual", subscription_type="ANYCAST")
        for body in (b"delivered", b"waits", LARGE, b"kept"):
            message = await client.get("MESSAGE")
            assert message.body == body
            client.put("ACK", client.of_message(message))
        assert await client.is_silent()


def test_durable_subscriptions_and_messages_of_stomp(tmp_path):
    across_a_failover(tmp_path, leave_stomp, take_stomp)


# --- AMQP -----------------------------------------------------------------------------------------

DURABLE = Source(durability=Terminus.DELIVERIES, expiry_policy=Terminus.EXPIRE_NEVER)


def amqp(port):
    login = {"user": OurBroker.USER, "password": OurBroker.PASSWORD, "allowed_mechs": "PLAIN"}
    return Client.of(port, container_id="c", **login)


async def leave_amqp(port, clients):
    client = await clients.enter_async_context(amqp(port))
    topic = await client.receiver("t", Capability("topic"), DURABLE, name="sub", credit=1)
    sender = await client.sender("t", Capability("topic"))
    for body in ("taken", "unsettled", LARGE, "waits"):
        await sender.send(Message(body=body, durable=True, properties={"k": "v"}))
    assert await topic.bodies(1) == ["taken"]
    topic.link.flow(1)
    await topic.get()
    queue = await client.receiver("q", Capability("queue"), credit=10)
    await client.send("q", "first", "second", "third")
    await queue.get()
    await queue.settle(Delivery.RELEASED)
    await queue.get()


async def take_amqp(port):
    async with amqp(port) as client:
        topic = await client.receiver("t", Capability("topic"), DURABLE, name="sub")
        for body in ("unsettled", LARGE, "waits"):
            message = await topic.get()
            assert (message.body, message.properties) == (body, {"k": "v"})
            await topic.accept()
        await client.send("t", "new", capability="topic")
        assert await topic.bodies(1) == ["new"]
        queue = await client.receiver("q", Capability("queue"))
        assert sorted(await queue.bodies(3)) == ["first", "second", "third"]


def test_durable_subscriptions_and_unsettled_deliveries_of_amqp(tmp_path):
    across_a_failover(tmp_path, leave_amqp, take_amqp)
