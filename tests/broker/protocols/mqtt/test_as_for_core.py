"""What is the same for every protocol: users and roles, TLS, parameters, management."""

import json
import ssl

from broker.config.tls import server_context
from broker.config.transport import parse_transport
from broker.protocols.mqtt.reason_codes import ReasonCode
from tests.broker.certificates import Authority
from tests.broker.protocols.mqtt.client import Mqtt
from tests.broker.protocols.stomp.client import core, serving
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
