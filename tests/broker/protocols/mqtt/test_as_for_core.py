"""What is the same for every protocol: users and roles, TLS, parameters, management."""

import json
import ssl

import pytest

from broker.config.tls import server_context
from broker.config.transport import parse_transport
from broker.protocols.mqtt.packets import Publish, Version
from broker.protocols.mqtt.properties import PropertyId
from broker.protocols.mqtt.reason_codes import ReasonCode
from broker.settings.policies import SlowConsumerPolicy
from tests.broker.certificates import Authority
from tests.broker.protocols.mqtt.client import Mqtt
from tests.broker.protocols.stomp.client import core, serving, until
from tests.broker.protocols.stomp.test_as_for_core import configured
from tests.interop.asynchronous import asynchronous


@asynchronous
async def test_users_may_do_what_their_roles_say(tmp_path):
    async with (
        configured(tmp_path) as broker,
        Mqtt.of(broker, "sue", user="sue", password=b"s") as sue,
        Mqtt.of(broker, "rob", user="rob", password=b"r") as rob,
    ):
        await rob.subscribe("t")
        await sue.publish("t", b"for rob")
        assert await rob.payloads(1) == [b"for rob"]
        await rob.publish("t", code=ReasonCode.NOT_AUTHORIZED)
        await sue.subscribe("t", code=ReasonCode.NOT_AUTHORIZED)
        await sue.publish("new", code=ReasonCode.NOT_AUTHORIZED)
        # A retained message needs no permission of its own.
        await sue.publish("t", b"kept", retain=True)
        await rob.message(payload=b"kept", retain=False)
        await rob.unsubscribe("t")
        await rob.subscribe("t")
        await rob.message(payload=b"kept", retain=True)


@asynchronous
async def test_an_acceptor_of_its_own_is_configured(tmp_path):
    uri = "tcp://127.0.0.1:0?protocols=MQTT;useEpoll=true;serverKeepAlive=30;receiveMaximum=5"
    async with configured(tmp_path, acceptors=uri) as broker:
        async with Mqtt.of(broker, user="all", password=b"a") as client:
            found = {one.name: value for one, value in client.connack.properties.items()}
            assert (found["SERVER_KEEP_ALIVE"], found["RECEIVE_MAXIMUM"]) == (30, 5)
        async with Mqtt.raw(broker) as client:
            client.write(b"ARTEMIS")
            assert await client.is_closed()


@asynchronous
async def test_it_is_spoken_over_tls(tmp_path):
    authority = Authority(tmp_path, "ours")
    certificate = authority.issue("server", host="127.0.0.1")
    transport = parse_transport(
        "s", f"tcp://localhost:0?sslEnabled=true;keyStorePath={certificate}"
    )
    context = ssl.create_default_context(cafile=authority.certificate)
    context.check_hostname = False
    async with (
        serving(ssl=server_context(transport)) as broker,
        Mqtt.raw(broker, ssl=context) as client,
    ):
        await client.connect()
        await client.subscribe("t")
        await client.publish("t", b"by TLS")
        assert await client.payloads(1) == [b"by TLS"]


@asynchronous
async def test_management_lists_connections_sessions_consumers_and_producers():
    async with (
        serving() as broker,
        Mqtt.of(broker, "me") as client,
        core(broker) as session,
    ):
        await client.subscribe("t/+")
        await client.publish("t/a")
        rows = {}
        for kind in ("Connections", "Sessions", "Consumers", "Producers"):
            found = json.loads(await session.manage("broker", f"list{kind}", "", 1, 100))
            rows[kind] = [one for one in found["data"] if "me" in one.values()]
        (connection,), (consumer,) = rows["Connections"], rows["Consumers"]
        assert connection["protocol"] == consumer["protocol"] == "MQTT5"
        assert connection["clientID"] == consumer["clientID"] == "me"
        assert consumer["queue"] == "me.t.*"
        assert len(rows["Sessions"]) == 1
        (producer,) = rows["Producers"]
        assert producer["address"] == "t.a"


@asynchronous
async def test_lost_connections_are_delivery_attempts():
    """A message that three connections were lost with is a dead letter."""
    kept = {"clean": False, "expiry": 3600}
    async with serving(address={"max_delivery_attempts": 3}) as broker, core(broker) as session:
        await session.create_queue("DLQ", "DLQ")
        async with Mqtt.of(broker, "c", **kept) as client:
            await client.subscribe("t")
        await session.producer("t").send("bad", durable=True)
        for number in range(3):
            async with Mqtt.of(broker, "c", **kept) as client:
                await client.message(acknowledges=False, payload=b"bad", dup=number > 0)
                client.writer.transport.abort()
            await until(lambda: not any(map(is_mqtt, broker.clients.sessions.values())))
        queues = broker.parts.postoffice.addresses.queues
        await until(lambda: queues["DLQ"].message_count == 1)
        assert queues["c.t"].message_count == 0
        async with Mqtt.of(broker, "c", **kept) as client:
            await client.settle()


def is_mqtt(session):
    return session.origin.protocol.startswith("MQTT")


@pytest.mark.parametrize("version", [Version.V3_1_1, Version.V5])
@asynchronous
async def test_a_slow_consumer_is_told_and_its_connection_closed(version):
    address = {
        "slow_consumer_threshold": 10,
        "slow_consumer_check_period_s": 1,
        "slow_consumer_policy": SlowConsumerPolicy.KILL,
    }
    async with (
        serving(match="t", address=address) as broker,
        Mqtt.of(broker, "slow", version) as slow,
        Mqtt.of(broker, "other", version) as other,
    ):
        await slow.subscribe("t")
        for number in range(50):
            await other.publish("t", str(number).encode())
        for number in range(50):
            await slow.get(Publish, payload=str(number).encode())
        code = ReasonCode.ADMINISTRATIVE_ACTION if version is Version.V5 else None
        assert await slow.is_closed(code)
        await other.settle()


@asynchronous
async def test_a_user_property_is_no_duplicate_id():
    """As in Artemis: it is kept under another name."""
    properties = {PropertyId.USER_PROPERTY: [("_AMQ_DUPL_ID", "same")]}
    async with serving() as broker, Mqtt.of(broker) as client:
        await client.subscribe("t")
        for text in (b"1", b"2"):
            await client.publish("t", text, properties=properties)
        assert await client.payloads(2) == [b"1", b"2"]
