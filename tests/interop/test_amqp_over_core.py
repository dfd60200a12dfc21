"""AMQP messages over links of Core between ours and Artemis, either way: as they were sent."""

import io
import uuid

import pytest
from proton import symbol

from broker.model.routing_type import RoutingType
from broker.records.amqp_large_message import LargeAmqpMessage
from broker.records.amqp_message import AmqpMessage
from broker.records.embedded_messages import embedded
from tests.broker.bridges.test_amqp_over_core import SMALL, told
from tests.broker.bridges.two_brokers import bridge, count_of, options, port_of, running, until
from tests.broker.protocols.amqp.client import Capability, Client, drained
from tests.broker.protocols.amqp.test_large import BODIES
from tests.interop.asynchronous import asynchronous
from tests.interop.test_core_bridges import bridge_here, client_of

WAIT_S = 60
KINDS = pytest.mark.parametrize("bodies", [SMALL, BODIES], ids=["small", "large"])


def login(broker):
    return {
        "allowed_mechs": "PLAIN",
        "allow_insecure_mechs": True,
        "user": broker.USER,
        "password": broker.PASSWORD,
    }


def sent_of(bodies):
    return [told(one) for one in bodies.values()]


async def send(port, queue, messages, **how):
    async with Client.of(port, **how) as client:
        sender = await client.sender(queue, Capability("queue"))
        for one in messages:
            await sender.send(one)


async def check(port, queue, messages, **how):
    async with Client.of(port, **how) as client:
        receiver = await client.receiver(queue, Capability("queue"))
        for one in messages:
            got = await receiver.get(WAIT_S)
            assert got.encode() == one.encode()
            await receiver.accept()


@KINDS
@asynchronous
async def test_from_ours_to_artemis(distributed_broker, tmp_path, bodies):
    theirs = distributed_broker
    queue, sent = f"to.{uuid.uuid4()}", sent_of(bodies)
    async with client_of(theirs) as client:
        session = await client.session()
        await session.create_queue(queue, queue, routing_type=RoutingType.ANYCAST)
    configured = bridge(forwarding_address=queue, user=theirs.USER, password=theirs.PASSWORD)
    made = options(
        "ours", queue="from", folder=tmp_path, bridges=(configured,), target_port=theirs.port
    )
    async with running(made) as ours:
        await send(port_of(ours), "from", sent)
        await until(lambda: count_of(ours, "from") == 0, WAIT_S)
    await check(theirs.port, queue, sent, **login(theirs))


@KINDS
@asynchronous
async def test_from_artemis_to_ours(distributed_broker, tmp_path, bodies):
    theirs = distributed_broker
    name, sent = f"from.{uuid.uuid4()}", sent_of(bodies)
    async with (
        running(options("ours", queue="to", folder=tmp_path)) as ours,
        client_of(theirs) as client,
    ):
        session = await client.session()
        await session.create_queue(name, name, routing_type=RoutingType.ANYCAST)
        await bridge_here(session, name, port_of(ours))
        await send(theirs.port, name, sent, **login(theirs))
        await check(port_of(ours), "to", sent)
        await session.manage("broker", "destroyBridge", name)


@KINDS
@asynchronous
async def test_what_is_sent_again_artemis_takes_once(distributed_broker, bodies):
    """As `pipeline replay` does: by a client of Core, with duplicate ids of its own."""
    theirs = distributed_broker
    queue, sent = f"again.{uuid.uuid4()}", sent_of(bodies)
    kind = LargeAmqpMessage if bodies is BODIES else AmqpMessage
    async with client_of(theirs) as client:
        session = await client.session()
        await session.create_queue(queue, queue, routing_type=RoutingType.ANYCAST)
        producer = session.producer(queue)
        for number, one in enumerate(sent):
            encoded = one.encode()
            for _ in range(2):
                message = kind.received(encoded, queue, 0)
                message.send_again(f"job:{number}", RoutingType.ANYCAST)
                made = embedded(message)
                # The second one it drops, and says nothing.
                if kind is LargeAmqpMessage:
                    await producer.send_stream(io.BytesIO(encoded), made)
                else:
                    await producer.send(made)
    async with Client.of(theirs.port, **login(theirs)) as client:
        receiver = await client.receiver(queue, Capability("queue"))
        for number, one in enumerate(sent):
            got = await receiver.get(WAIT_S)
            assert got.properties.pop("_AMQ_DUPL_ID") == f"job:{number}"
            assert got.annotations.pop(symbol("x-opt-routing-type")) == 1
            assert got.encode() == one.encode()
            await receiver.accept()
        assert await drained(client, receiver, 0) == []
