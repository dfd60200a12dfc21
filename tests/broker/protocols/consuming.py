"""A consumer of each protocol at the address `t` that acknowledges nothing and may stop reading.

It yields what stops it: nothing more is read of its socket then.
"""

import contextlib

from broker.client import AsyncClient
from broker.model.routing_type import RoutingType
from broker.protocols.mqtt.packets import Version
from broker.protocols.mqtt.properties import PropertyId
from broker.protocols.openwire import commands as c
from tests.broker.protocols.amqp.client import Capability, Client
from tests.broker.protocols.mqtt.client import Mqtt
from tests.broker.protocols.openwire.client import OpenWire
from tests.broker.protocols.stomp.client import Stomp

# The most that MQTT can say, and more than these tests send.
MANY = 10_000


@contextlib.asynccontextmanager
async def core_consumer(broker, ahead):
    uri = f"tcp://127.0.0.1:{broker.acceptors[0].port}"
    window = ahead if ahead < MANY else -1
    async with (
        AsyncClient(f"{uri}?consumerWindowSize={window}") as client,
        await client.session() as session,
    ):
        session.start()
        await session.create_queue("q", "t", routing_type=RoutingType.MULTICAST)
        await session.consumer("q")
        yield None


@contextlib.asynccontextmanager
async def amqp_consumer(broker, ahead):
    async with Client.of(broker) as client:
        receiver = await client.receiver("t", Capability("topic"), credit=0)
        await client.run(receiver.link.flow, ahead)
        # It reads nothing unless it is told to.
        await client.flush()
        yield receiver


@contextlib.asynccontextmanager
async def mqtt5_consumer(broker, ahead):
    properties = {PropertyId.RECEIVE_MAXIMUM: ahead}
    async with Mqtt.of(broker, properties=properties) as client:
        await client.subscribe("t", qos=1)
        yield client.writer.transport.pause_reading


@contextlib.asynccontextmanager
async def mqtt_consumer(broker, ahead):
    async with Mqtt.of(broker, version=Version.V3_1_1) as client:
        await client.subscribe("t", qos=1)
        yield client.writer.transport.pause_reading


@contextlib.asynccontextmanager
async def openwire_consumer(broker, ahead):
    async with OpenWire.of(broker) as client:
        await client.consume(c.ActiveMQTopic("t"), prefetch=ahead)
        yield client.writer.transport.pause_reading


@contextlib.asynccontextmanager
async def stomp_consumer(broker, ahead):
    async with Stomp.of(broker) as client:
        window = ahead if ahead < MANY else -1
        await client.subscribe("t", ack="client", consumer_window_size=window)
        yield client.writer.transport.pause_reading


CONSUMERS = {
    "CORE": core_consumer,
    "AMQP": amqp_consumer,
    "MQTT": mqtt_consumer,
    "MQTT5": mqtt5_consumer,
    "OPENWIRE": openwire_consumer,
    "STOMP": stomp_consumer,
}


def queue_of(broker):
    """The queue of the one subscription of the address."""
    (found,) = (
        one
        for one in broker.parts.postoffice.addresses.queues.values()
        if one.binding.address == "t"
    )
    return found
