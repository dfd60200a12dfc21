"""Metrics count connections, sessions and messages of clients of each protocol."""

import pytest

from broker.options import WebOptions
from tests.broker.management.test_web import get
from tests.broker.protocols.between import SENDERS, Login
from tests.broker.protocols.consuming import CONSUMERS, queue_of
from tests.broker.protocols.stomp.client import serving, until
from tests.interop.asynchronous import asynchronous

SENDING = {
    "CORE": "Core",
    "AMQP": "AMQP",
    "MQTT": "MQTT",
    "MQTT5": "MQTT",
    "OPENWIRE": "OpenWire",
    "STOMP": "STOMP",
}


async def measured(broker):
    """Series by name, of the broker, and of the one queue of the address."""
    _, _, text = await get(broker.web[0].port, "/metrics")
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    values = {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines}
    queue = queue_of(broker).name
    return {
        name.partition("{")[0]: value
        for name, value in values.items()
        if 'queue="' not in name or f'queue="{queue}"' in name
    }


@pytest.mark.parametrize("protocol", CONSUMERS)
@asynchronous
async def test_a_client_is_counted(protocol):
    web = (WebOptions(host="127.0.0.1", port=0),)
    parameters = {"defaultMaximumInFlightPublishMessages": "1"}
    async with serving(options={"web": web}, parameters=parameters) as broker:
        async with CONSUMERS[protocol](broker, 1):
            for _ in range(3):
                await SENDERS[SENDING[protocol]](
                    Login(broker.acceptors[0].port), "t", "text", "queue"
                )
            await until(lambda: len(broker.clients.connections) == 1)
            await until(lambda: queue_of(broker).message_count == 3)
            found = await measured(broker)
        # The receiver, and three that have sent.
        assert found["artemis_connection_count"] == 1
        assert found["artemis_total_connection_count"] == 4
        assert found["artemis_session_count"] >= 1
        assert found["artemis_total_session_count"] >= 4
        assert found["artemis_consumer_count"] == 1
        assert found["artemis_messages_added"] == 3
        assert found["artemis_message_count"] == 3
        assert found["artemis_delivering_message_count"] == 1
        await until(lambda: not broker.clients.connections)
