"""Two brokers in this process, a bridge between them, and a relay on its way."""

import asyncio
import contextlib
import dataclasses

from broker.client import AckMode, AsyncClient
from broker.config import BrokerConfig
from broker.config.cluster import BridgeConfig, ClusterConfig, StaticConnectors
from broker.config.transport import TransportConfig
from broker.model.routing_type import RoutingType
from broker.options import BrokerOptions
from broker.server.server import Broker
from broker.settings.queue_defaults import QueueRequest
from broker.storage.open import FileStoreOptions, bindings_options, messages_options
from broker.transport.acceptor import AcceptorOptions

WAIT_S = 30
CONNECTOR = "target"
QUICK = {"retry_interval_ms": 20, "max_retry_interval_ms": 50, "check_period_ms": 1000}


def files(folder):
    """Stores in a folder."""
    return FileStoreOptions(
        bindings=bindings_options(folder / "bindings"),
        messages=messages_options(folder / "journal", journal_type="NIO", file_size=1 << 20),
        large_messages=folder / "large",
        paging=folder / "paging",
    )


def bridge(name="b", queue="from", forwarding_address="to", **changes):
    """The configuration of a bridge over the connector of the target."""
    values = {
        "name": name,
        "queue_name": queue,
        "forwarding_address": forwarding_address,
        "filter": None,
        "static_connectors": StaticConnectors(connector_refs=(CONNECTOR,)),
        "discovery_group_ref": None,
    }
    return BridgeConfig(**(values | QUICK | changes))


def options(name, *, port=0, bridges=(), target_port=None, folder=None, queue=None, **more):
    """Of one broker, with a queue."""
    connectors = ()
    if target_port is not None:
        connector = TransportConfig(
            name=CONNECTOR, scheme="tcp", host="127.0.0.1", port=target_port
        )
        connectors = (connector,)
    configuration = BrokerConfig(cluster=ClusterConfig(connectors=connectors, bridges=bridges))
    return BrokerOptions(
        name=name,
        acceptors=(AcceptorOptions(host="127.0.0.1", port=port),),
        store=None if folder is None else files(folder),
        queues=()
        if queue is None
        else (
            QueueRequest(
                name=queue,
                address=queue,
                routing_type=RoutingType.ANYCAST,
                auto_create_address=True,
            ),
        ),
        bridges=bridges,
        configuration=configuration,
        **more,
    )


@contextlib.asynccontextmanager
async def running(options, **more):
    """A broker that serves within the block."""
    broker = Broker(options, **more)
    await broker.start()
    try:
        yield broker
    finally:
        await broker.stop()


def port_of(broker):
    """Where it listens."""
    return broker.acceptors[0].port


@contextlib.asynccontextmanager
async def session_of(broker, mode=AckMode.AUTO, **client):
    """A session of a client of it."""
    async with AsyncClient(f"tcp://127.0.0.1:{port_of(broker)}", **client) as one:
        yield await one.session(mode)


async def make_queue(broker, name, routing_type=RoutingType.ANYCAST):
    """A queue on an address of its name."""
    async with session_of(broker) as session:
        await session.create_queue(name, name, routing_type=routing_type)


async def send(broker, address, *contents, **headers):
    """Send durable messages, one after the other."""
    async with session_of(broker) as session:
        producer = session.producer(address)
        answers = [await producer.post(one, durable=True, **headers) for one in contents]
        await asyncio.gather(*answers)


async def take(broker, queue, count, wait_s=WAIT_S):
    """The contents of so many messages."""
    found = []
    async with session_of(broker) as session, await session.consumer(queue) as consumer:
        while len(found) < count:
            received = await consumer.receive(wait_s)
            assert received is not None, (
                f"{len(found)} of {count} messages of {queue} came: {found}"
            )
            await received.read()
            found.append(received.content)
    return found


async def until(condition, wait_s=WAIT_S):
    """Wait until it holds."""
    async with asyncio.timeout(wait_s):
        while not condition():  # noqa: ASYNC110 - of another task.
            await asyncio.sleep(0.005)


def count_of(broker, queue):
    """Messages in a queue."""
    return broker.parts.postoffice.addresses.queues[queue].message_count


def changed(config, **changes):
    """A configuration with some other values."""
    return dataclasses.replace(config, **changes)


@contextlib.asynccontextmanager
async def bridged(folder):
    """Two brokers, and a bridge from `from` to `to`."""
    async with running(options("t", queue="to", folder=folder / "t")) as target:
        made = options(
            "s",
            queue="from",
            folder=folder / "s",
            bridges=(bridge(),),
            target_port=port_of(target),
        )
        async with running(made) as source:
            yield source, target
