"""Clients of AMQP, MQTT, OpenWire and STOMP: sent elsewhere, refused, or served here."""

import contextlib
import ssl

import pytest
from proton import ConnectionException
from proton.utils import ConnectionClosed

from broker.client import AsyncClient
from broker.client.errors import BrokerRefused
from broker.protocols.mqtt.packets import Version
from broker.protocols.mqtt.properties import PropertyId
from broker.protocols.mqtt.reason_codes import ReasonCode
from broker.protocols.openwire import commands as c
from tests.broker.certificates import Authority
from tests.broker.protocols.amqp.client import Client
from tests.broker.protocols.mqtt.client import Mqtt
from tests.broker.protocols.openwire.client import OpenWire
from tests.broker.protocols.stomp.client import Stomp
from tests.broker.routers.brokers import HOST, router, serving, static_pool
from tests.interop.asynchronous import asynchronous

FIRST = '<policy name="FIRST_ELEMENT"/>'
LOCAL = "<local-target-filter>local.*</local-target-filter>"
NOT_READY = static_pool(["to1"], "<quorum-size>2</quorum-size><quorum-timeout>0</quorum-timeout>")


@contextlib.asynccontextmanager
async def sending(folder, more="", key_type="CLIENT_ID"):
    """A broker that sends clients to another one, but for those whose key begins with `local`."""
    async with serving(folder) as brokers:
        await brokers.start(1)
        await brokers.start(0, router(LOCAL + more + FIRST + static_pool(["to1"]), key_type))
        await brokers.ready(0, 1)
        yield brokers


@contextlib.asynccontextmanager
async def refusing(folder, content):
    async with serving(folder) as brokers:
        await brokers.start(0, router(LOCAL + content))
        yield brokers.brokers[0]


async def refusal_of_mqtt(broker, version, code, client_id="c"):
    async with Mqtt.raw(broker, version) as client:
        connack = await client.connect(client_id, code=code)
        with pytest.raises(EOFError):
            await client.next()
        return connack.properties


@asynchronous
async def test_mqtt_5_is_told_the_server(tmp_path):
    async with sending(tmp_path) as brokers:
        told = await refusal_of_mqtt(brokers.brokers[0], Version.V5, ReasonCode.USE_ANOTHER_SERVER)
        async with Mqtt.of(brokers.brokers[0], "local1"), Mqtt.of(brokers.brokers[1], "c"):
            pass

    assert told == {PropertyId.SERVER_REFERENCE: f"{HOST}:{brokers.ports[1]}"}


@asynchronous
async def test_mqtt_3_is_refused(tmp_path):
    async with sending(tmp_path) as brokers:
        await refusal_of_mqtt(brokers.brokers[0], Version.V3_1_1, 3)
        async with Mqtt.of(brokers.brokers[0], "local1", Version.V3_1_1):
            pass


@asynchronous
async def test_mqtt_is_refused_without_a_target(tmp_path):
    async with refusing(tmp_path / "a", "") as broker:
        assert await refusal_of_mqtt(broker, Version.V5, ReasonCode.USE_ANOTHER_SERVER) == {}
    async with refusing(tmp_path / "b", FIRST + NOT_READY) as broker:
        assert await refusal_of_mqtt(broker, Version.V5, ReasonCode.SERVER_UNAVAILABLE) == {}


@asynchronous
async def test_amqp_is_told_the_host_and_port(tmp_path):
    async with sending(tmp_path) as brokers:
        with pytest.raises(ConnectionClosed, match=r"amqp:connection:redirect") as closed:
            async with Client.of(brokers.brokers[0], container_id="c"):
                pass
        async with Client.of(brokers.brokers[0], container_id="local1"):
            pass

    told = str(closed.value)
    assert "network-host" in told
    assert HOST in told
    assert str(brokers.ports[1]) in told


@asynchronous
async def test_amqp_is_refused_without_a_target(tmp_path):
    for name, content, text in (("a", "", "rejected"), ("b", FIRST + NOT_READY, "not ready")):
        async with refusing(tmp_path / name, content) as broker:
            with pytest.raises(ConnectionException, match=f"amqp:connection:forced.*{text}"):
                async with Client.of(broker, container_id="c"):
                    pass


@asynchronous
async def test_openwire_with_failover_is_told_the_broker(tmp_path):
    async with sending(tmp_path) as brokers:
        async with OpenWire.raw(brokers.brokers[0]) as client:
            await client.negotiate()
            client.put(client.login("c", fault_tolerant=True), True)
            told = await client.next()
            with pytest.raises(EOFError):
                await client.next()
        async with OpenWire.of(brokers.brokers[0], "local1", fault_tolerant=True):
            pass

    assert isinstance(told, c.ConnectionControl)
    assert told.connected_brokers == f"tcp://{HOST}:{brokers.ports[1]}"
    assert told.rebalance_connection


@asynchronous
async def test_openwire_without_failover_is_refused(tmp_path):
    async with sending(tmp_path) as brokers, OpenWire.raw(brokers.brokers[0]) as client:
        await client.negotiate()
        answer = await client.refused(client.login("local1"))

    assert answer.exception.message == "Client not fault tolerant"


@asynchronous
async def test_openwire_is_left_without_a_target(tmp_path):
    async with refusing(tmp_path, "") as broker, OpenWire.raw(broker) as client:
        await client.negotiate()
        client.put(client.login("c", fault_tolerant=True), True)
        with pytest.raises(EOFError):
            await client.next()


@asynchronous
async def test_stomp_is_served_here(tmp_path):
    """It has no word for another broker, and Artemis asks no router for it."""
    async with (
        sending(tmp_path) as brokers,
        Stomp.of(brokers.brokers[0], client_id="c"),
    ):
        assert len(brokers.brokers[0].clients.sessions) == 1


@asynchronous
async def test_the_host_that_tls_asks_for_is_a_key(tmp_path):
    authority = Authority(tmp_path, "ours")
    key_store = authority.issue("server", host="localhost")
    tls = f"sslEnabled=true;keyStorePath={key_store};router=r"
    async with serving(tmp_path, 1) as brokers:
        content = router("<local-target-filter>eu.example.com</local-target-filter>", "SNI_HOST")
        await brokers.start(0, content, tls)
        for host, is_served in (("eu.example.com", True), ("us.example.com", False)):
            uri = f"{brokers.uri(0)}?sslEnabled=true&verifyHost=false&sniHost={host}"
            uri += f"&trustStorePath={authority.certificate}"
            async with AsyncClient(uri) as client:
                with contextlib.nullcontext() if is_served else pytest.raises(BrokerRefused):
                    await client.session()
    assert ssl.HAS_SNI


@asynchronous
async def test_the_address_of_a_client_is_a_key(tmp_path):
    async with serving(tmp_path, 1) as brokers:
        content = router(r"<local-target-filter>127\..*</local-target-filter>", "SOURCE_IP")
        await brokers.start(0, content)
        async with Stomp.of(brokers.brokers[0]), Mqtt.of(brokers.brokers[0]):
            pass
