import pytest

from broker.protocols.mqtt.packets import Version
from tests.broker.protocols.mqtt.client import VERSIONS, Mqtt
from tests.broker.protocols.stomp.client import serving
from tests.interop.asynchronous import asynchronous


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("qos", [0, 1, 2])
@asynchronous
async def test_a_message_goes_from_one_client_to_another(tmp_path, version, qos):
    async with (
        serving(tmp_path) as broker,
        Mqtt.of(broker, "a", version) as a,
        Mqtt.of(broker, "b", version) as b,
    ):
        await b.subscribe("t/+", qos=qos)
        await a.publish("t/1", b"hello", qos)
        await b.message(topic="t/1", payload=b"hello", qos=qos)
        await b.settle()


@asynchronous
async def test_a_session_and_its_messages_survive_a_restart(tmp_path):
    async with serving(tmp_path) as broker:
        async with Mqtt.of(broker, "b", expiry=1000) as b:
            await b.subscribe("t/#", "$share/g/s", qos=2, identifier=7)
        async with Mqtt.of(broker, "a", Version.V3_1_1) as a:
            await a.publish("t/1", b"1", 1)
    async with serving(tmp_path) as broker:
        async with Mqtt.of(broker, "a", Version.V3_1_1) as a:
            await a.publish("t/2", b"2", 2)
        async with Mqtt.of(broker, "b", clean=False, expiry=1000) as b:
            assert b.connack.session_present
            assert await b.payloads(2) == [b"1", b"2"]
