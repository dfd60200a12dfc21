"""Brokers of this process, configured by broker.xml, that send clients to each other."""

import contextlib

from broker.client.errors import ClientError
from broker.config.load import load
from broker.options.from_config import broker_options
from broker.routers.policies import hash_of
from broker.server.server import Broker
from tests.broker.protocols.stomp.client import until
from tests.servers import free_port

HOST = "127.0.0.1"
HASH = '<policy name="CONSISTENT_HASH"/>'


def xml(folder, core):
    """A configuration with this in <core>, which begins in line 3."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "broker.xml"
    path.write_text(
        '<configuration xmlns="urn:activemq">\n<core xmlns="urn:activemq:core">\n'
        f"{core}\n</core></configuration>"
    )
    return load(path)


def static_pool(names, more=""):
    """A pool of connectors, by their names."""
    refs = "".join(f"<connector-ref>{one}</connector-ref>" for one in names)
    return (
        f"<pool><check-period>100</check-period>{more}"
        f"<static-connectors>{refs}</static-connectors></pool>"
    )


def router(content, key_type="CLIENT_ID", name="r"):
    return (
        f'<connection-routers><connection-router name="{name}"><key-type>{key_type}</key-type>'
        f"{content}</connection-router></connection-routers>"
    )


class Brokers:
    """Some brokers, each with a connector to every one: `to0`, `to1` and so on.

    Args:
        folder: where their configuration is.
        count: of them.
    """

    def __init__(self, folder, count=2):
        self.folder = folder
        self.ports = [free_port() for _ in range(count)]
        self.brokers = [None] * count

    def uri(self, number):
        return f"tcp://{HOST}:{self.ports[number]}"

    async def start(self, number, content="", acceptor="router=r", persists=False, more=""):
        """Start one.

        Args:
            number: which.
            content: of its router; empty for none.
            acceptor: parameters of it.
            persists: whether it keeps what it has.
            more: elements.
        """
        folder = self.folder / str(number)
        connectors = "".join(
            f'<connector name="to{at}">tcp://{HOST}:{port}</connector>'
            for at, port in enumerate(self.ports)
        )
        query = f"?{acceptor}" if content and acceptor else ""
        core = (
            f"<persistence-enabled>{str(persists).lower()}</persistence-enabled>"
            "<journal-type>NIO</journal-type><max-disk-usage>-1</max-disk-usage>"
            "<security-enabled>false</security-enabled>"
            f"<connectors>{connectors}</connectors><acceptors>"
            f'<acceptor name="a">{self.uri(number)}{query}</acceptor></acceptors>'
            f"{content}{more}"
        )
        broker = self.brokers[number] = Broker(broker_options(xml(folder, core)))
        await broker.start()
        return broker

    async def stop(self, number):
        broker, self.brokers[number] = self.brokers[number], None
        if broker is not None:
            await broker.stop()

    def node_id(self, number):
        return self.brokers[number].node_id

    def owner_of(self, key):
        """The number of the broker that CONSISTENT_HASH gives a key to, where all are targets."""
        owners = sorted((hash_of(self.node_id(one)), one) for one in range(len(self.ports)))
        lower = [one for value, one in owners if value <= hash_of(key)]
        return lower[-1] if lower else owners[0][1]

    async def ready(self, number, count):
        """Wait until so many targets of a broker's router are ready."""
        (found,) = self.brokers[number].clients.routers.by_name.values()
        await until(lambda: len(found.pool.ready) == count)
        return found


@contextlib.asynccontextmanager
async def hashing(folder):
    """Two that send clients to each other by their ids."""
    pool = static_pool(["to0", "to1"], "<quorum-size>2</quorum-size>")
    async with serving(folder) as brokers:
        for number in range(2):
            await brokers.start(number, router(HASH + pool))
        for number in range(2):
            await brokers.ready(number, 2)
        yield brokers


@contextlib.asynccontextmanager
async def serving(folder, count=2):
    made = Brokers(folder, count)
    try:
        yield made
    finally:
        for number in range(count):
            with contextlib.suppress(ClientError):
                await made.stop(number)
