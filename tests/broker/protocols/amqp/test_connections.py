"""Connections: who may open one, what is agreed, and how it ends."""

import asyncio
import contextlib
import struct

import pytest
from proton import ConnectionException, symbol
from proton.utils import ConnectionClosed, LinkDetached, SendException

from broker.config.errors import ConfigError
from broker.config.load import load
from broker.discovery.topology import Member
from broker.errors import BrokerError
from broker.model.transport_configuration import TransportConfiguration
from broker.options import BrokerOptions
from broker.protocols.amqp.factory import AmqpProtocolFactory
from broker.protocols.registry import Detection
from broker.server.server import Broker
from broker.transport.acceptor import AcceptorOptions
from tests.broker.protocols.amqp.client import Capability, Client, Message, serving
from tests.broker.protocols.stomp.test_as_for_core import configured
from tests.interop.asynchronous import asynchronous

SASL = b"AMQP\x03\x01\x00\x00"
AMQP = b"AMQP\x00\x01\x00\x00"


def plain(user, password):
    return {"user": user, "password": password, "allowed_mechs": "PLAIN"}


@contextlib.asynccontextmanager
async def raw(broker):
    port = broker.acceptors[0].port
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        yield reader, writer
    finally:
        writer.close()


def init(mechanism, response):
    name, data = mechanism.encode(), response
    fields = b"\xa3" + bytes([len(name)]) + name + b"\xa0" + bytes([len(data)]) + data
    body = b"\x00\x53\x41\xc0" + bytes([len(fields) + 1, 2]) + fields
    return struct.pack(">IBBH", len(body) + 8, 2, 1, 0) + body


@pytest.mark.parametrize(
    ("first", "found"),
    [(b"A", "MORE"), (b"AMQP", "YES"), (b"AMQX", "NO"), (b"C", "NO")],
)
def test_the_first_bytes_say_what_it_is(first, found):
    assert AmqpProtocolFactory().detect(first) is Detection[found]


@asynchronous
async def test_the_mechanisms_are_offered_and_others_refused():
    async with serving() as broker:
        for mechanism, response, outcome in (
            ("EXTERNAL", b"", 2),
            ("PLAIN", b"only one part", 1),
            ("PLAIN", b"\0u\0p", 0),
            ("ANONYMOUS", b"", 0),
        ):
            async with raw(broker) as (reader, writer):
                writer.write(SASL)
                assert await reader.readexactly(8) == SASL
                size = int.from_bytes(await reader.readexactly(4), "big")
                assert (await reader.readexactly(size - 4)).endswith(b"\x05PLAIN\x09ANONYMOUS")
                writer.write(init(mechanism, response))
                size = int.from_bytes(await reader.readexactly(4), "big")
                assert (await reader.readexactly(size - 4))[-1] == outcome
                if outcome:
                    assert await reader.read() == b""


@pytest.mark.parametrize(
    "data",
    [
        b"AMQP\x01\x01\x00\x00",
        b"AMQPxxxxx",
        SASL + b"\x00\x00\x00\x07\x02\x01\x00\x00",
        SASL + b"\x7f\xff\xff\xff\x02\x01\x00\x00",
        SASL + b"\x00\x00\x00\x0c\x02\x01\x00\x00\x00\x53\x44\x45",
        SASL + b"\x00\x00\x00\x0c\x02\x00\x00\x00\x00\x53\x41\x45",
        SASL + init("ANONYMOUS", b"")[:-1] + b"\xff\xff\xff\xff",
        SASL + init("ANONYMOUS", b"") + SASL,
        SASL + init("ANONYMOUS", b"") + b"GET / HTTP",
        AMQP + b"\x00\x00\x00\x07\x02\x00\x00\x00",
        AMQP + b"\x7f\xff\xff\xff\x02\x00\x00\x00",
    ],
)
@asynchronous
async def test_what_is_not_amqp_ends_the_connection_and_nothing_else(data):
    async with serving() as broker:
        for cuts in (1, len(data)):
            async with raw(broker) as (reader, writer):
                for at in range(0, len(data), cuts):
                    writer.write(data[at : at + cuts])
                    await asyncio.sleep(0)
                async with asyncio.timeout(30):
                    with contextlib.suppress(ConnectionResetError):
                        await reader.read()
        async with Client.of(broker) as client:
            await client.send("q", "x")


@asynchronous
async def test_who_is_nobody_or_may_not_is_refused(tmp_path):
    async with configured(tmp_path) as broker:
        for options in (plain("sue", "wrong"), plain("sue", ""), plain("stranger", "s")):
            with pytest.raises(ConnectionException):
                async with Client.of(broker, timeout=5, reconnect=False, **options):
                    pass
        with pytest.raises(ConnectionClosed, match=r"amqp:unauthorized-access.*AMQ229031"):
            async with Client.of(broker):
                pass
        async with (
            Client.of(broker, **plain("sue", "s")) as sue,
            Client.of(broker, **plain("rob", "r")) as rob,
        ):
            queue = await rob.receiver("q")
            await sue.send("q", "for rob")
            assert await queue.bodies(1) == ["for rob"]
            for refused in (sue.receiver("q"), sue.receiver("t"), rob.sender("q")):
                with pytest.raises(LinkDetached, match=r"amqp:unauthorized-access"):
                    await refused
            relay = await rob.sender(None)
            with pytest.raises(SendException):
                await relay.send(Message(address="q", body="x"))
            with pytest.raises(LinkDetached, match=r"amqp:unauthorized-access.*CREATE_ADDRESS"):
                await sue.sender("new", Capability("queue"))


@asynchronous
async def test_an_open_is_answered_with_what_the_broker_has():
    async with serving() as broker, Client.of(broker) as client:
        connection = client.connection.conn
        assert connection.remote_container == broker.node_id
        assert [str(one) for one in connection.remote_offered_capabilities] == [
            *("sole-connection-for-container", "DELAYED_DELIVERY", "SHARED-SUBS"),
            "ANONYMOUS-RELAY",
        ]
        assert connection.remote_properties[symbol("product")] == "Quiver"
        transport = connection.transport
        assert transport.remote_max_frame_size == 131072
        assert transport._impl is not None


@asynchronous
async def test_an_open_names_the_backup_of_the_broker():
    async with serving() as broker:
        for number, scheme in enumerate(("amqp", "amqps"), start=1):
            parameters = {"host": "spare", "port": "5672", "sslEnabled": scheme == "amqps"}
            broker.clients.topology("").announced(
                Member(
                    broker.node_id,
                    2**40 + number,
                    backup=TransportConfiguration("backup", parameters=parameters),
                ),
                object(),
            )
            async with Client.of(broker) as client:
                found = client.connection.conn.remote_properties
            assert found[symbol("failover-server-list")] == [
                {"network-host": "spare", "hostname": "spare", "port": 5672, "scheme": scheme}
            ]


@asynchronous
async def test_a_container_that_wants_to_be_alone_is():
    sole = [symbol("sole-connection-for-container")]
    async with serving() as broker:
        async with Client.of(broker, container_id="c"):
            with pytest.raises(ConnectionClosed, match=r"amqp:invalid-field"):
                async with Client.of(broker, container_id="c", desired_capabilities=sole):
                    pass
            async with Client.of(broker, container_id="c"):
                pass
        async with Client.of(broker, container_id="c", desired_capabilities=sole):
            pass


@asynchronous
async def test_who_is_silent_is_cut_off_and_who_beats_is_not():
    parameters = {"amqpIdleTimeout": "400"}
    async with serving(parameters=parameters) as broker:
        async with raw(broker) as (reader, writer):
            body = b"\x00\x53\x10\xc0\x04\x01\xa1\x01c"
            writer.write(AMQP + struct.pack(">IBBH", len(body) + 8, 2, 0, 0) + body)
            async with asyncio.timeout(30):
                assert b"amqp:" in await reader.read()
        async with Client.of(broker, heartbeat=0.4) as client:
            for _ in range(40):
                await client.flush()
            await client.send("q", "still there")


def test_without_the_engine_an_acceptor_for_it_says_what_is_missing(monkeypatch):
    monkeypatch.setattr("broker.protocols.amqp.factory.find_spec", lambda name: None)
    named = AcceptorOptions(host="127.0.0.1", port=0, protocols=("AMQP",))

    with pytest.raises(BrokerError, match=r"python-qpid-proton: pip install 'quiver-mq\[amqp\]'"):
        asyncio.run(Broker(BrokerOptions(acceptors=(named,))).start())

    async def others():
        async with serving() as broker, raw(broker) as (reader, writer):
            writer.write(SASL)
            assert await reader.read() == b""

    asyncio.run(others())


def test_without_the_engine_a_configuration_says_what_is_missing(monkeypatch, tmp_path):
    monkeypatch.setattr("broker.protocols.amqp.factory.find_spec", lambda name: None)
    (tmp_path / "broker.xml").write_text(
        "<configuration><core><acceptors><acceptor name='a'>tcp://h:1?protocols=CORE,AMQP"
        "</acceptor></acceptors></core></configuration>"
    )

    with pytest.raises(ConfigError, match=r"AMQP, which cannot be spoken: .*quiver-mq\[amqp\]"):
        load(tmp_path / "broker.xml")
    found = load(tmp_path / "broker.xml", lenient=True)
    assert found.cluster.acceptors[0].parameters["protocols"] == "CORE"
